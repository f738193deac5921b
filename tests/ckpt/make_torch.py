"""Makes the files of tests/ckpt/torch: what torch.save writes of many kinds of tensors, and files that must be refused.

    python tests/ckpt/make_torch.py

Needs torch and safetensors. NAME.safetensors holds what NAME.pt is to become.
"""
import collections
import os
import pathlib
import zipfile

import torch
from safetensors.torch import save_file

here = pathlib.Path(__file__).parent / "torch"
here.mkdir(exist_ok=True)
g = torch.Generator().manual_seed(1)
base = torch.randn(4, 6, generator=g)
kinds = collections.OrderedDict(
    f32=base, f64=base.double() / 3, f16=base.half(), bf16=base.bfloat16(), i64=torch.arange(5) - 2, i32=torch.arange(3).int(),
    i16=torch.arange(3).short(), i8=-torch.arange(3).char(), u8=torch.arange(3).byte(), bool=base[0] > 0,
    empty=torch.zeros(0, 3), scalar=torch.tensor(2.5), parameter=torch.nn.Parameter(base[1].clone()),
    transposed=base.t(), rows=base[1:3, ::2], expanded=base[:1, :1].expand(2, 3), shared=base.view(-1)[5:9])


def expect(name, tensors):
    save_file({k: v.detach().clone(memory_format=torch.contiguous_format) for k, v in tensors.items()},
              here / (name + ".safetensors"))


torch.save(kinds, here / "kinds.pt")
expect("kinds", kinds)
net = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 1), torch.nn.BatchNorm2d(3))
with torch.no_grad():
    for p in net.parameters():
        p.copy_(torch.randn(p.shape, generator=g))
torch.save({"epoch": 3, "state_dict": net.state_dict(), "optimizer": {"lr": 0.1, "names": ["a", None, True]}}, here / "nested.pt")
expect("nested", net.state_dict())
torch.save({"ema": net.state_dict(), "net": net.state_dict()}, here / "parts.pt")
torch.save(net.state_dict(), here / "protocol4.pt", pickle_protocol=4)
expect("protocol4", net.state_dict())
torch.save(net.state_dict(), here / "legacy.pt", _use_new_zipfile_serialization=False)


class Evil:
    def __reduce__(self):
        return os.system, ("touch run_by_a_pickle",)


torch.save({"w": base, "x": Evil()}, here / "system.pt")
torch.save(net, here / "module.pt")
torch.save({"w": torch.tensor([1.0, float("inf")])}, here / "infinite.pt")


def archive(name, code, entries=(), compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(here / name, "w", compression) as z:
        for entry, data in (("archive/data.pkl", code), *entries):
            z.writestr(zipfile.ZipInfo(entry), data, compression)


TENSOR = (b"\x80\x02}X\x01\0\0\0actorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03"
          b"\0\0\0cpuK%ctQK%c(K%ct(K\x01t\x89ccollections\nOrderedDict\n)RtRs.")
archive("beyond.pt", TENSOR % (4, 1, 4), [("archive/data/0", bytes(16))])
SWOLLEN = TENSOR.replace(b"(K%ct(K\x01t", b"(J\xff\xff\xff\x7ft(K\x00t")
archive("swollen.pt", SWOLLEN % (4, 0), [("archive/data/0", bytes(16))])
archive("short.pt", TENSOR % (8, 0, 8), [("archive/data/0", bytes(16))])
archive("absent.pt", TENSOR % (4, 0, 4))
archive("compressed.pt", TENSOR % (4, 0, 4), [("archive/data/0", bytes(16))], zipfile.ZIP_DEFLATED)
archive("inst.pt", b"\x80\x02(S'ls'\nios\nsystem\n.")
archive("build.pt", b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}b.")
archive("loop.pt", b"\x80\x02}q\0X\x01\0\0\0ah\0s.")
archive("cut.pt", b"\x80\x02}X\xff\0\0\0a")
whole = bytearray((here / "protocol4.pt").read_bytes())
at = whole.find(net[0].weight.detach().numpy().tobytes())
whole[at] ^= 1
(here / "damaged.pt").write_bytes(whole)
(here / "truncated.pt").write_bytes(whole[:len(whole) // 2])

# written.pt is what `tandem ckpt convert kinds.safetensors written.pt` wrote; PyTorch must take it, without running code
if (here / "written.pt").exists():
    written = torch.load(here / "written.pt", weights_only=True)
    assert set(written) == set(kinds)
    for name, want in kinds.items():
        assert written[name].dtype == want.dtype and torch.equal(written[name], want.detach()), name

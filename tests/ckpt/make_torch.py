"""Makes the files of tests/ckpt/torch: what torch.save writes of many kinds of tensors, and files that must be refused.

    python tests/ckpt/make_torch.py

Needs torch and safetensors. NAME.safetensors holds what NAME.pt is to become.
"""
import collections
import os
import pathlib
import struct
import zipfile
import zlib

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
torch.save({**net.state_dict(), "epoch": 3}, here / "extra.pt")
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
archive("bzip2.pt", TENSOR % (4, 0, 4), [("archive/data/0", bytes(16))], zipfile.ZIP_BZIP2)
archive("expands.pt", TENSOR % (4, 0, 4), [("archive/data/0", bytes(1 << 20))], zipfile.ZIP_DEFLATED)
LARGE = TENSOR.replace(b"cpuK%c", b"cpuJ\0\0\x20\0").replace(b"(K%ct(K\x01t", b"(J\0\0\x20\0t(K\x01t")
archive("bomb.pt", LARGE % 0, [("archive/data/0", bytes(8 << 20))], zipfile.ZIP_DEFLATED)
archive("inst.pt", b"\x80\x02(S'ls'\nios\nsystem\n.")
archive("build.pt", b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}b.")
archive("loop.pt", b"\x80\x02}q\0X\x01\0\0\0ah\0s.")
archive("cut.pt", b"\x80\x02}X\xff\0\0\0a")
whole = bytearray((here / "protocol4.pt").read_bytes())
at = whole.find(net[0].weight.detach().numpy().tobytes())
whole[at] ^= 1
(here / "damaged.pt").write_bytes(whole)
(here / "truncated.pt").write_bytes(whole[:len(whole) // 2])


# ---- zip64, and compressed entries ----

ALL = 0xffffffff


class Packed:
    """An entry; what its directory says is wrong where it is asked for."""
    def __init__(self, name, data, deflate=False, bytes=None):
        self.name, self.crc = name.encode(), zlib.crc32(data)
        self.bytes = len(data) if bytes is None else bytes
        squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
        self.data = squeeze.compress(data) + squeeze.flush() if deflate else data
        self.method = 8 if deflate else 0

    def local(self):
        return struct.pack("<4s5HIIIHH", b"PK\3\4", 45, 0, self.method, 0, 0x21, self.crc, ALL, ALL, len(self.name), 20) + self.name + \
            struct.pack("<HHQQ", 1, 16, self.bytes, len(self.data)) + self.data

    def central(self, at):
        return struct.pack("<4s6HIIIHHHHHII", b"PK\1\2", 45, 45, 0, self.method, 0, 0x21, self.crc, ALL, ALL, len(self.name), 28, 0,
                           0, 0, 0, ALL) + self.name + struct.pack("<HHQQQ", 1, 24, self.bytes, len(self.data), at)


def zip64(entries, starts=None, locator=True):
    """All numbers are in the records of zip64. starts: where the entries begin."""
    out, directory, at = b"", b"", 0
    for i, entry in enumerate(entries):
        at = starts[i] if starts else len(out)
        out += entry.local()
        directory += entry.central(at)
    at += len(entries[-1].local())
    end = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, len(entries), len(entries), len(directory), at)
    if locator:
        end += struct.pack("<4sIQI", b"PK\6\7", 0, at + len(directory), 1)
    return out + directory + end + struct.pack("<4s4HIIH", b"PK\5\6", 0, 0, 0xffff, 0xffff, ALL, ALL, 0)


with zipfile.ZipFile(here / "kinds.pt") as z:
    parts = [(name, z.read(name)) for name in z.namelist()]
(here / "deflated.pt").write_bytes(zip64([Packed(*part, deflate=True) for part in parts]))
(here / "wide.pt").write_bytes(zip64([Packed(*part) for part in parts]))
with zipfile.ZipFile(here / "plain.pt", "w", zipfile.ZIP_DEFLATED) as z: # no zip64
    for name, data in parts:
        z.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)

pickle, numbers = Packed("archive/data.pkl", TENSOR % (4, 0, 4)), struct.pack("<4f", 1, 2, 3, 4)
# an entry behind 4 GiB: far.head, a hole, and far.tail at FAR
FAR = 1 << 32
far = zip64([pickle, Packed("archive/data/0", numbers)], [0, FAR])
(here / "far.head").write_bytes(far[:len(pickle.local())])
(here / "far.tail").write_bytes(far[len(pickle.local()):])
expect("far", {"a": torch.tensor([1.0, 2, 3, 4])})

deflated = Packed("archive/data/0", bytes(1 << 20), deflate=True, bytes=16)
(here / "more.pt").write_bytes(zip64([pickle, deflated]))
deflated = Packed("archive/data/0", numbers, deflate=True)
torn = zip64([pickle, deflated])
(here / "torn.pt").write_bytes(torn.replace(deflated.data, b"\xff" + deflated.data[1:]))
(here / "announced.pt").write_bytes(zip64([pickle, Packed("archive/data/0", numbers, deflate=True, bytes=1 << 40)]))
(here / "unlocated.pt").write_bytes(zip64([pickle, deflated], locator=False))

# written.pt is what `tandem ckpt convert kinds.safetensors written.pt` wrote; PyTorch must take it, without running code
if (here / "written.pt").exists():
    written = torch.load(here / "written.pt", weights_only=True)
    assert set(written) == set(kinds)
    for name, want in kinds.items():
        assert written[name].dtype == want.dtype and torch.equal(written[name], want.detach()), name

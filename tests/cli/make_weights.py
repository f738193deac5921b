"""Makes the files of tests/cli/weights: weights of a small network in several types, and what they are as floats.

    python tests/cli/make_weights.py

Needs torch and safetensors. `float.safetensors` has what torch makes of the numbers of the other files.
"""
import pathlib

import torch
from safetensors.torch import save_file

here = pathlib.Path(__file__).parent / "weights"
here.mkdir(exist_ok=True)
generator = torch.Generator().manual_seed(3)
shapes = {"fc1.weight": (4, 8), "fc1.bias": (4,), "fc2.weight": (3, 4), "fc2.bias": (3,)}
double = {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name, shape in shapes.items()}
mixed = {
    "module.backbone.fc1.weight": double["fc1.weight"],
    "module.backbone.fc1.bias": double["fc1.bias"].to(torch.bfloat16),
    "module.backbone.fc2.weight": double["fc2.weight"].to(torch.float16),
    "module.backbone.fc2.bias": torch.tensor([6e-8, -65504.0, 0.0]).to(torch.float16),
}
save_file(mixed, here / "mixed.safetensors")
save_file({name[16:]: value.float() for name, value in mixed.items()}, here / "float.safetensors")
save_file({name: value.float() for name, value in double.items() if name != "fc2.bias"}
          | {"fc2.weight": torch.ones(5, 4), "fc3.bias": torch.ones(2)}, here / "other.safetensors")
save_file({**{n: v.float() for n, v in double.items()}, "fc1.bias": torch.tensor([0.0, 1e300, 0.0, 0.0], dtype=torch.float64)},
          here / "large.safetensors")
save_file({"stem.weight": torch.ones(2)}, here / "stranger.safetensors")

# a network with batch norm, all of it made halves, and what that is
norm = {"0.weight": torch.randn(3, 2, 1, 1, generator=generator), "0.bias": torch.randn(3, generator=generator),
        "1.weight": torch.ones(3), "1.bias": torch.zeros(3), "1.running_mean": torch.randn(3, generator=generator),
        "1.running_var": torch.ones(3), "1.num_batches_tracked": torch.tensor(300)}
halves = {name: value.half() for name, value in norm.items()}
save_file(halves, here / "halves.safetensors")
save_file({name: value.to(norm[name].dtype) for name, value in halves.items()}, here / "counted.safetensors")
save_file({**halves, "1.num_batches_tracked": torch.tensor(0.5)}, here / "uncounted.safetensors")

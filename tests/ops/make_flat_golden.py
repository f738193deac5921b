#!/usr/bin/env python3
"""Writes flat_golden.h: what PyTorch's optimizers make of 53 parameters in 20 steps, to the bit.

Run with a python that has torch (made with 2.13.0, CPU): python3 tests/ops/make_flat_golden.py > tests/ops/flat_golden.h
Inputs are not stored: parameters and gradients come from the generator below, which flat_golden_test.c repeats.
Cases of the form MULADD use the first moment of torch < 2.1 (mul_, add_) and are written with tensor operations.

PyTorch's wheels take Tensor.sqrt from MKL's vector library, which is not correctly rounded (one unit in the last place
off for every sixth number, and not the same on every processor); builds without MKL round as IEEE 754 wants. The
square root is therefore taken in double here, which rounds to the right float.
"""
import pathlib
import struct
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from torch_lars import Lars

COUNT, STEPS = 53, 20
TORCH = {"SGD": "SGD", "ADAM": "Adam", "ADAMW": "AdamW", "RMSPROP": "RMSprop"}


def numbers(seed, count):
    """Multiples of 2^-16 in [-1, 1): exact in float32, the same in C."""
    out, x = [], seed
    for _ in range(count):
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(((x >> 15) - 65536) / 65536.0)
    return out


def gradient(step):
    return torch.tensor(numbers(1000 + step, COUNT), dtype=torch.float32) * 2.0 ** (step % 5 - 3)


def run(kind, settings):
    p = torch.nn.Parameter(torch.tensor(numbers(1, COUNT), dtype=torch.float32))
    optimizer, first = optimizer_of([p], kind, **settings), None
    for step in range(1, STEPS + 1):
        p.grad = gradient(step)
        optimizer.step()
        first = p.detach().clone() if first is None else first
    return first, p.detach()


class MultiplyAddAdam:
    """Adam and AdamW with the operations of torch 1.13's single-tensor loop."""

    def __init__(self, params, lr, betas, eps, weight_decay=0.0, amsgrad=False, decoupled=False):
        self.p, self.lr, self.betas, self.eps = params[0], lr, betas, eps
        self.weight_decay, self.decoupled, self.amsgrad, self.t = weight_decay, decoupled, amsgrad, 0
        self.m, self.v, self.most = (torch.zeros_like(self.p) for _ in range(3))

    @torch.no_grad()
    def step(self):
        self.t += 1
        beta1, beta2 = self.betas
        g = self.p.grad
        if self.decoupled:
            self.p.mul_(1 - self.lr * self.weight_decay)
        elif self.weight_decay:
            g = g.add(self.p, alpha=self.weight_decay)
        self.m.mul_(beta1).add_(g, alpha=1 - beta1)
        self.v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        self.most = torch.maximum(self.most, self.v) if self.amsgrad else self.v
        denominator = (self.most.sqrt() / (1 - beta2**self.t) ** 0.5).add_(self.eps)
        self.p.addcdiv_(self.m, denominator, value=-(self.lr / (1 - beta1**self.t)))


def optimizer_of(params, kind, form="LERP", **settings):
    if form == "MULADD":
        return MultiplyAddAdam(params, decoupled=kind == "ADAMW", **settings)
    if kind == "LARS":
        return Lars(params, exclude_1d=False, **settings)
    return getattr(torch.optim, TORCH[kind])(params, foreach=False, **settings)


# Name, kind, settings: arguments of torch and members of tdm_optimizer_section. Defaults of torch that are not 0 are
# written out, because a section in C has zeros there.
CASES = [
    ("sgd", "SGD", dict(lr=0.1)),
    ("sgd wd", "SGD", dict(lr=0.1, weight_decay=1e-2)),
    ("sgd momentum", "SGD", dict(lr=0.1, momentum=0.9)),
    ("sgd dampening", "SGD", dict(lr=0.05, momentum=0.8, dampening=0.3)),
    ("sgd nesterov", "SGD", dict(lr=0.1, momentum=0.9, nesterov=True)),
    ("sgd dampening wd", "SGD", dict(lr=0.03, momentum=0.7, dampening=0.2, weight_decay=1e-3)),
    ("sgd nesterov wd", "SGD", dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3)),
    ("adam", "ADAM", dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-8)),
    ("adam wd", "ADAM", dict(lr=1e-2, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.05)),
    ("adam other betas", "ADAM", dict(lr=0.003, betas=(0.4, 0.9), eps=1e-3)),
    ("adamw", "ADAMW", dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2)),
    ("adamw wd", "ADAMW", dict(lr=1e-2, betas=(0.95, 0.99), eps=1e-6, weight_decay=0.1)),
    ("adam muladd", "ADAM", dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, form="MULADD")),
    ("adam muladd wd", "ADAM", dict(lr=1e-2, betas=(0.8, 0.99), eps=1e-8, weight_decay=0.05, form="MULADD")),
    ("adam amsgrad", "ADAM", dict(lr=1e-2, betas=(0.9, 0.5), amsgrad=True, eps=1e-8)),
    ("adam amsgrad wd", "ADAM", dict(lr=1e-2, betas=(0.4, 0.7), amsgrad=True, eps=1e-6, weight_decay=0.05)),
    ("adamw amsgrad", "ADAMW", dict(lr=1e-2, betas=(0.9, 0.5), amsgrad=True, eps=1e-8, weight_decay=0.1)),
    ("rmsprop", "RMSPROP", dict(lr=1e-2, alpha=0.99, eps=1e-8)),
    ("rmsprop wd", "RMSPROP", dict(lr=1e-2, alpha=0.9, eps=1e-3, weight_decay=0.05)),
    ("rmsprop momentum", "RMSPROP", dict(lr=1e-2, alpha=0.99, momentum=0.9, eps=1e-8)),
    ("rmsprop momentum wd", "RMSPROP", dict(lr=1e-3, alpha=0.95, momentum=0.8, eps=1e-8, weight_decay=0.05)),
    ("rmsprop centered", "RMSPROP", dict(lr=1e-2, alpha=0.99, centered=True, eps=1e-8)),
    ("rmsprop centered wd", "RMSPROP", dict(lr=1e-2, alpha=0.3, centered=True, eps=1e-3, weight_decay=0.05)),
    ("rmsprop centered momentum", "RMSPROP", dict(lr=1e-2, alpha=0.9, momentum=0.9, centered=True, eps=1e-3,
                                                  weight_decay=0.05)),
    ("adam amsgrad muladd", "ADAM", dict(lr=1e-2, betas=(0.9, 0.5), amsgrad=True, eps=1e-8, form="MULADD")),
    ("adamw muladd", "ADAMW", dict(lr=1e-2, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.05, form="MULADD")),
    ("lars", "LARS", dict(lr=2.0, eps=1e-8, trust_coefficient=0.01)),
    ("lars wd", "LARS", dict(lr=4.0, eps=1e-3, weight_decay=0.05, trust_coefficient=0.01)),
    ("lars momentum wd", "LARS", dict(lr=1.0, momentum=0.9, eps=1e-8, weight_decay=1e-3, trust_coefficient=0.01)),
    ("lars dampening", "LARS", dict(lr=1.0, momentum=0.8, dampening=0.3, eps=1e-8, trust_coefficient=0.01)),
    ("lars nesterov wd", "LARS", dict(lr=1.0, momentum=0.9, nesterov=True, eps=1e-8, weight_decay=1e-2,
                                      trust_coefficient=0.01)),
]


def in_c(value):
    if isinstance(value, tuple):
        return "{%d, {%s}}" % (len(value), ", ".join(in_c(item) for item in value))
    if isinstance(value, str):
        return "TDM_ADAM_" + value
    return "true" if value is True else repr(value)


def words(tensor):
    hexes = ["0x%08x" % struct.unpack("<I", struct.pack("<f", x))[0] for x in tensor.tolist()]
    lines = [", ".join(hexes[i:i + 9]) for i in range(0, len(hexes), 9)]
    return "{" + (",\n      ").join(lines) + "}"


def main():
    torch.set_num_threads(1)
    torch.Tensor.sqrt = lambda self: torch.sqrt(self.double()).float()
    torch.Tensor.sqrt_ = lambda self: self.copy_(torch.sqrt(self.double()))
    print("/* Made by make_flat_golden.py with torch %s; do not edit. */" % torch.__version__)
    print("/* clang-format off */")
    print("static const flat_case golden_cases[] = {")
    for name, kind, settings in CASES:
        first, last = run(kind, settings)
        members = [".type = TDM_" + kind] + [".%s = %s" % (key, in_c(value)) for key, value in settings.items()]
        print('    {"%s", {%s},' % (name, ", ".join(members)))
        print("     " + words(first) + ",\n     " + words(last) + "},")
    print("};")
    print("/* clang-format on */")
    return 0


if __name__ == "__main__":
    sys.exit(main())

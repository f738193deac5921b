#!/usr/bin/env python3
"""Writes flat_golden.h: what PyTorch's optimizers make of 53 parameters in 20 steps, to the bit.

Run with a python that has torch (made with 2.13.0, CPU): python3 tests/ops/make_flat_golden.py > tests/ops/flat_golden.h
Inputs are not stored: parameters and gradients come from the generator below, which flat_golden_test.c repeats.
Cases named muladd use the first moment of torch < 2.1 (mul_, add_) and are written with tensor operations.

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


def numbers(seed, count):
    """Multiples of 2^-16 in [-1, 1): exact in float32, the same in C."""
    out, x = [], seed
    for _ in range(count):
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(((x >> 15) - 65536) / 65536.0)
    return out


def gradient(step):
    return torch.tensor(numbers(1000 + step, COUNT), dtype=torch.float32) * 2.0 ** (step % 5 - 3)


def run(make):
    p = torch.nn.Parameter(torch.tensor(numbers(1, COUNT), dtype=torch.float32))
    optimizer, first = make([p]), None
    for step in range(1, STEPS + 1):
        p.grad = gradient(step)
        optimizer.step()
        first = p.detach().clone() if first is None else first
    return first, p.detach()


class MultiplyAddAdam:
    """Adam and AdamW with the operations of torch 1.13's single-tensor loop."""

    def __init__(self, params, lr, betas, eps, weight_decay, decoupled, amsgrad):
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


def sgd(**kw):
    return lambda params: torch.optim.SGD(params, foreach=False, **kw)


def adam(**kw):
    return lambda params: torch.optim.Adam(params, foreach=False, **kw)


def adamw(**kw):
    return lambda params: torch.optim.AdamW(params, foreach=False, **kw)


def rmsprop(**kw):
    return lambda params: torch.optim.RMSprop(params, foreach=False, **kw)


def lars(**kw):
    return lambda params: Lars(params, trust_coefficient=0.01, exclude_1d=False, **kw)


def muladd(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, decoupled=False, amsgrad=False):
    return lambda params: MultiplyAddAdam(params, lr, betas, eps, weight_decay, decoupled, amsgrad)


# name, kind, lr, momentum or beta1, dampening or beta2 or alpha, eps, weight decay, nesterov or amsgrad or centered, lerp,
# how torch is asked
CASES = [
    ("sgd", "SGD", 0.1, 0, 0, 0, 0, 0, 0, sgd(lr=0.1)),
    ("sgd wd", "SGD", 0.1, 0, 0, 0, 1e-2, 0, 0, sgd(lr=0.1, weight_decay=1e-2)),
    ("sgd momentum", "SGD", 0.1, 0.9, 0, 0, 0, 0, 0, sgd(lr=0.1, momentum=0.9)),
    ("sgd dampening", "SGD", 0.05, 0.8, 0.3, 0, 0, 0, 0, sgd(lr=0.05, momentum=0.8, dampening=0.3)),
    ("sgd nesterov", "SGD", 0.1, 0.9, 0, 0, 0, 1, 0, sgd(lr=0.1, momentum=0.9, nesterov=True)),
    ("sgd dampening wd", "SGD", 0.03, 0.7, 0.2, 0, 1e-3, 0, 0,
     sgd(lr=0.03, momentum=0.7, dampening=0.2, weight_decay=1e-3)),
    ("sgd nesterov wd", "SGD", 0.1, 0.9, 0, 0, 1e-3, 1, 0,
     sgd(lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3)),
    ("adam", "ADAM", 1e-3, 0.9, 0.999, 1e-8, 0, 0, 1, adam(lr=1e-3)),
    ("adam wd", "ADAM", 1e-2, 0.9, 0.999, 1e-8, 0.05, 0, 1, adam(lr=1e-2, weight_decay=0.05)),
    ("adam other betas", "ADAM", 3e-3, 0.4, 0.9, 1e-3, 0, 0, 1, adam(lr=3e-3, betas=(0.4, 0.9), eps=1e-3)),
    ("adamw", "ADAMW", 1e-3, 0.9, 0.999, 1e-8, 1e-2, 0, 1, adamw(lr=1e-3)),
    ("adamw wd", "ADAMW", 1e-2, 0.95, 0.99, 1e-6, 0.1, 0, 1,
     adamw(lr=1e-2, betas=(0.95, 0.99), eps=1e-6, weight_decay=0.1)),
    ("adam muladd", "ADAM", 1e-3, 0.9, 0.999, 1e-8, 0, 0, 0, muladd()),
    ("adam muladd wd", "ADAM", 1e-2, 0.8, 0.99, 1e-8, 0.05, 0, 0, muladd(1e-2, (0.8, 0.99), 1e-8, 0.05)),
    ("adam amsgrad", "ADAM", 1e-2, 0.9, 0.5, 1e-8, 0, 1, 1, adam(lr=1e-2, betas=(0.9, 0.5), amsgrad=True)),
    ("adam amsgrad wd", "ADAM", 1e-2, 0.4, 0.7, 1e-6, 0.05, 1, 1,
     adam(lr=1e-2, betas=(0.4, 0.7), eps=1e-6, weight_decay=0.05, amsgrad=True)),
    ("adamw amsgrad", "ADAMW", 1e-2, 0.9, 0.5, 1e-8, 0.1, 1, 1,
     adamw(lr=1e-2, betas=(0.9, 0.5), weight_decay=0.1, amsgrad=True)),
    ("rmsprop", "RMSPROP", 1e-2, 0, 0.99, 1e-8, 0, 0, 1, rmsprop(lr=1e-2)),
    ("rmsprop wd", "RMSPROP", 1e-2, 0, 0.9, 1e-3, 0.05, 0, 1, rmsprop(lr=1e-2, alpha=0.9, eps=1e-3, weight_decay=0.05)),
    ("rmsprop momentum", "RMSPROP", 1e-2, 0.9, 0.99, 1e-8, 0, 0, 1, rmsprop(lr=1e-2, momentum=0.9)),
    ("rmsprop momentum wd", "RMSPROP", 1e-3, 0.8, 0.95, 1e-8, 0.05, 0, 1,
     rmsprop(lr=1e-3, alpha=0.95, momentum=0.8, weight_decay=0.05)),
    ("rmsprop centered", "RMSPROP", 1e-2, 0, 0.99, 1e-8, 0, 1, 1, rmsprop(lr=1e-2, centered=True)),
    ("rmsprop centered wd", "RMSPROP", 1e-2, 0, 0.3, 1e-3, 0.05, 1, 1,
     rmsprop(lr=1e-2, alpha=0.3, eps=1e-3, weight_decay=0.05, centered=True)),
    ("rmsprop centered momentum", "RMSPROP", 1e-2, 0.9, 0.9, 1e-3, 0.05, 1, 1,
     rmsprop(lr=1e-2, alpha=0.9, eps=1e-3, momentum=0.9, weight_decay=0.05, centered=True)),
    ("adam amsgrad muladd", "ADAM", 1e-2, 0.9, 0.5, 1e-8, 0, 1, 0, muladd(1e-2, (0.9, 0.5), amsgrad=True)),
    ("adamw muladd", "ADAMW", 1e-2, 0.9, 0.999, 1e-8, 0.05, 0, 0, muladd(1e-2, weight_decay=0.05, decoupled=True)),
    ("lars", "LARS", 2.0, 0, 0, 1e-8, 0, 0, 0, lars(lr=2.0)),
    ("lars wd", "LARS", 4.0, 0, 0, 1e-3, 0.05, 0, 0, lars(lr=4.0, eps=1e-3, weight_decay=0.05)),
    ("lars momentum wd", "LARS", 1.0, 0.9, 0, 1e-8, 1e-3, 0, 0, lars(lr=1.0, momentum=0.9, weight_decay=1e-3)),
    ("lars dampening", "LARS", 1.0, 0.8, 0.3, 1e-8, 0, 0, 0, lars(lr=1.0, momentum=0.8, dampening=0.3)),
    ("lars nesterov wd", "LARS", 1.0, 0.9, 0, 1e-8, 0.01, 1, 0,
     lars(lr=1.0, momentum=0.9, nesterov=True, weight_decay=0.01)),
]


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
    for name, kind, lr, a, b, eps, wd, flag, lerp, make in CASES:
        first, last = run(make)
        print('    {"%s", FLAT_%s, %r, %r, %r, %r, %r, %s, %s,' % (
            name, kind, lr, float(a), float(b), float(eps), float(wd),
            "true" if flag else "false", "true" if lerp else "false"))
        print("     " + words(first) + ",\n     " + words(last) + "},")
    print("};")
    print("/* clang-format on */")
    return 0


if __name__ == "__main__":
    sys.exit(main())

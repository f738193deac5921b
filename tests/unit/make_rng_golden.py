#!/usr/bin/env python3
"""Writes rng_golden.h from PyTorch itself: python3 make_rng_golden.py > rng_golden.h (torch >= 2.7, CPU, x86-64).

Every sampler starts from manual_seed(seed) and is followed by one rand(), which tells how far the stream has moved. The
second profile comes from a child process that PyTorch runs without its vector kernels.
"""
import json
import os
import subprocess
import sys

import torch

SHOWN = (0, 42)  # of the other seeds the header keeps checksums only
SEEDS = [0, 1, 42, 123456789, 2**40 + 7, 2**64 - 1]


def words(tensor):
    return [w & 0xFFFFFFFF for w in tensor.contiguous().view(torch.int32).flatten().tolist()]


def fnv(numbers):
    value = 0xCBF29CE484222325
    for number in numbers:
        value = (value ^ number) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def seed_all(seed):
    torch.manual_seed(seed if seed < 2**63 else seed - 2**64)


def draw(seed, sampler, floats=True):
    seed_all(seed)
    got = sampler()
    after = words(torch.rand(1))[0]
    return (words(got) if floats else got.tolist()), after


def samples(seed):
    rows = {}
    rows["rand"] = draw(seed, lambda: torch.rand(10))
    rows["rand_1300"] = draw(seed, lambda: torch.rand(1300))
    rows["uniform"] = draw(seed, lambda: torch.empty(10).uniform_(-0.5, 0.25))
    rows["uniform_700"] = draw(seed, lambda: torch.empty(700).uniform_(-0.0361, 0.0361))
    for count in (3, 15, 16, 20, 100):
        rows["randn_%d" % count] = draw(seed, lambda: torch.randn(count))
    rows["randn_30011"] = draw(seed, lambda: torch.randn(30011))
    rows["normal_7"] = draw(seed, lambda: torch.empty(7).normal_(0.3, 0.02))
    rows["normal_20"] = draw(seed, lambda: torch.empty(20).normal_(0.3, 0.02))
    # An odd number of scalar draws leaves half a pair behind, which a block draw does not touch.
    rows["randn_3_20_2"] = draw(seed, lambda: torch.cat([torch.randn(3), torch.randn(20), torch.randn(2)]))
    rows["randperm_10"] = draw(seed, lambda: torch.randperm(10), False)
    rows["randperm_100"] = draw(seed, lambda: torch.randperm(100), False)
    rows["randperm_1"] = draw(seed, lambda: torch.randperm(1), False)
    rows["randint_100"] = draw(seed, lambda: torch.randint(0, 100, (10,)), False)
    rows["randint_below"] = draw(seed, lambda: torch.randint(-5, 2**28 - 6, (10,)), False)
    rows["randint_wide"] = draw(seed, lambda: torch.randint(0, 2**28, (10,)), False)
    rows["randint_40"] = draw(seed, lambda: torch.randint(-(2**40), 2**40, (10,)), False)
    return rows


def init_samples():
    rows = {}
    torch.manual_seed(42)
    linear = torch.nn.Linear(10, 10)
    rows["linear_weight"], rows["linear_bias"] = words(linear.weight.data), words(linear.bias.data)
    torch.manual_seed(42)
    conv = torch.nn.Conv2d(3, 64, 3)
    rows["conv_weight"], rows["conv_bias"] = words(conv.weight.data), words(conv.bias.data)
    torch.manual_seed(42)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.Flatten(),
                              torch.nn.Linear(8, 3))
    for name in ("0.weight", "0.bias", "4.weight", "4.bias"):
        rows["net_" + name.replace(".", "_")] = words(net.state_dict()[name])
    return rows


def collect():
    return {"seeds": {str(seed): samples(seed) for seed in SEEDS}, "init": init_samples()}


def put_array(name, kind, numbers, form):
    print("static const %s %s[%d] = {" % (kind, name, len(numbers)))
    line = "   "
    for text in (form(n) + "," for n in numbers):
        if len(line) + 1 + len(text) > 120:
            print(line)
            line = "   "
        line += " " + text
    print(line + "\n};")


def put_profile(name, data):
    kept = {}
    for seed, rows in data["seeds"].items():
        for key, (numbers, after) in rows.items():
            array = "%s_%s_seed%d" % (key, name, SEEDS.index(int(seed)))
            if int(seed) not in SHOWN or len(numbers) > 100:
                array = "NULL"
            elif key.startswith("randint") or key.startswith("randperm"):
                put_array(array, "int64_t", numbers, str)
            else:
                put_array(array, "uint32_t", numbers, lambda n: "0x%08x" % n)
            kept.setdefault(key, []).append((seed, array, len(numbers), fnv(numbers), after))
    for key, rows in kept.items():
        print("static const golden_row %s_%s[] = {" % (key, name))
        for seed, array, count, check, after in rows:
            print("    {UINT64_C(%s), %s, %d, UINT64_C(0x%016x), 0x%08x}," % (seed, array, count, check, after))
        print("};")


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        json.dump(collect(), sys.stdout)
        return
    plain = os.environ | {"ATEN_CPU_CAPABILITY": "default"}
    generic = json.loads(subprocess.check_output([sys.executable, __file__, "--child"], env=plain))
    print("/* Made by make_rng_golden.py with PyTorch %s; do not edit. Floats are their IEEE words. */" %
          torch.__version__.split("+")[0])
    print("#ifndef TDM_RNG_GOLDEN_H\n#define TDM_RNG_GOLDEN_H\n\n#include <stddef.h>\n#include <stdint.h>\n")
    print("/* `check` is FNV-1a over the numbers as 64-bit units, kept where the numbers are not; `after` is the next\n"
          " * torch.rand(1). */")
    print("typedef struct golden_row {\n    uint64_t seed;\n    const void *numbers;\n    size_t count;\n"
          "    uint64_t check;\n    uint32_t after;\n} golden_row;\n")
    avx2 = collect()
    put_profile("avx2", avx2)
    put_profile("generic", generic)
    for key, numbers in avx2["init"].items():
        print("static const uint64_t init_%s = UINT64_C(0x%016x);" % (key, fnv(numbers)))
    print("\n#endif")


main()

#!/usr/bin/env python3
"""Writes mixing.txt, sampler.txt, split.txt, synthetic.txt and transform.txt beside this file with the answers of PyTorch.

Made with torch 2.13.0 on the CPU (x86-64, AVX2). Every version from 2.7 on gives the same.
"""
import itertools
import os

import torch
from torch.utils.data.distributed import DistributedSampler

HERE = os.path.dirname(os.path.abspath(__file__))


def words(tensor):
    return " ".join("%08x" % (w & 0xFFFFFFFF) for w in tensor.flatten().view(torch.int32).tolist())


def per_rank(n, world, epoch, seed, shuffle, drop_last):
    ranks = []
    for rank in range(world):
        sampler = DistributedSampler(range(n), world, rank, shuffle=shuffle, seed=seed, drop_last=drop_last)
        sampler.set_epoch(epoch)
        ranks.append(list(sampler))
    return ranks


def checksum(numbers):
    return sum((k + 1) * v for k, v in enumerate(numbers)) % 2**64


def sampler():
    """n world epoch seed shuffle drop_last samples-per-rank checksum-over-rank-0-then-rank-1-..., one case a line"""
    cases = list(itertools.product((1, 2, 3, 7, 10, 23, 64), (1, 2, 3, 4, 7, 8), (0, 1, 5), (0, 42), (0, 1), (0, 1)))
    cases = [c for i, c in enumerate(cases) if i % 3 == 0]
    cases += [(60000, w, e, 42, 1, d) for w in (1, 3, 8) for e in (0, 9) for d in (0, 1)]
    cases += [(1000, 4, 3, 2**32 - 1, 1, 0), (1000, 4, 3, 2**40 + 7, 1, 0)]
    with open(os.path.join(HERE, "sampler.txt"), "w") as f:
        for n, world, epoch, seed, shuffle, drop_last in cases:
            ranks = per_rank(n, world, epoch, seed, bool(shuffle), bool(drop_last))
            f.write("%d %d %d %d %d %d %d %d\n" % (n, world, epoch, seed, shuffle, drop_last, len(ranks[0]),
                                                   checksum(sum(ranks, []))))


def split():
    """n holdout seed trained checksum-of-trained-then-held, one case a line"""
    cases = [(n, h, s) for n in (2, 3, 10, 23, 1000) for h in (0.1, 0.2, 0.25, 1 / 3, 0.5, 0.9) for s in (0, 42)
             if int(n * h) > 0 and n - int(n * h) > 0]
    with open(os.path.join(HERE, "split.txt"), "w") as f:
        for n, holdout, seed in cases:
            parts = torch.utils.data.random_split(range(n), [1 - holdout, holdout],
                                                  torch.Generator().manual_seed(seed))
            order = [i for part in parts for i in part.indices]
            f.write("%d %r %d %d %d\n" % (n, holdout, seed, len(parts[0]), checksum(order)))


def synthetic():
    """kind samples seed classes-or-width dims..., then the words of x, then labels or the words of y"""
    cases = [("labels", 3, 42, 10, (2, 2, 5)), ("labels", 2, 7, 3, (3,)), ("values", 5, 42, 2, (4,)),
             ("values", 1, 1, 3, (5,)), ("values", 3, -1, 1, (7,))]
    with open(os.path.join(HERE, "synthetic.txt"), "w") as f:
        for kind, samples, seed, width, dims in cases:
            g = torch.Generator().manual_seed(seed)
            x = torch.randn(samples, *dims, generator=g)
            if kind == "labels":
                y = " ".join(map(str, torch.randint(0, width, (samples,), generator=g).tolist()))
            else:
                y = words(torch.randn(samples, width, generator=g))
            f.write("%s %d %d %d %d %s\n%s\n%s\n" % (kind, samples, seed, width, len(dims), " ".join(map(str, dims)),
                                                      words(x), y))


def transform():
    """mean std, then the checksum of the words of ((v / 255) - mean) / std for v = 0..255, and of (x - mean) / std for
    x = v - 100.5"""
    with open(os.path.join(HERE, "transform.txt"), "w") as f:
        for mean, std in ((0.5, 0.5), (0.1307, 0.3081), (0.4914, 0.2023), (0.0, 1.0)):
            v = torch.arange(256, dtype=torch.uint8)
            a = (v.float() / 255 - mean) / std
            b = (v.float() - 100.5 - mean) / std
            sums = [checksum([w & 0xFFFFFFFF for w in t.view(torch.int32).tolist()]) for t in (a, b)]
            f.write("%r %r %d %d\n" % (mean, std, *sums))


def mixing():
    """parts planes height width left top right bottom, then the words of x, of the partner and of the mixed sample.
    Without a box the lines of torchvision's MixUp: batch.roll(1, 0).mul_(1.0 - lam).add_(batch.mul(lam)); with one
    those of CutMix: output[..., y1:y2, x1:x2] = rolled[..., y1:y2, x1:x2]. parts / 2^22 is 1 - lam."""
    g = torch.Generator().manual_seed(3)
    cases = [(1, 2, 3, 4, 0, 0, 0, 0), (1500000, 3, 5, 4, 0, 0, 0, 0), (4194303, 1, 1, 7, 0, 0, 0, 0),
             (524288, 3, 4, 8, 5, 2, 7, 4), (3145728, 1, 4, 4, 0, 1, 4, 4), (4194303, 2, 3, 3, 0, 0, 3, 3)]
    with open(os.path.join(HERE, "mixing.txt"), "w") as f:
        for parts, planes, height, width, left, top, right, bottom in cases:
            batch = torch.randn(2, planes, height, width, generator=g)
            rolled, lam = batch.roll(1, 0), 1.0 - parts / 2**22
            if right == 0:
                mixed = rolled.clone().mul_(1.0 - lam).add_(batch.mul(lam))
            else:
                mixed = batch.clone()
                mixed[..., top:bottom, left:right] = rolled[..., top:bottom, left:right]
            f.write("%d %d %d %d %d %d %d %d\n%s\n%s\n%s\n" % (parts, planes, height, width, left, top, right, bottom,
                                                               words(batch[0]), words(batch[1]), words(mixed[0])))


if __name__ == "__main__":
    mixing()
    sampler()
    split()
    synthetic()
    transform()

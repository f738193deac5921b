#!/usr/bin/env python3
"""Writes average_golden.h: the losses of torch's DistributedDataParallel over gloo on 2 ranks, where some labels are
ignored and differently many on each rank, averaged over the ranks' means (what it does by itself) and over all samples
that count (losses summed, divided by the counts of all ranks, times the ranks).

    python3 make_average_golden.py > average_golden.h
Needs torch (made with 2.13.0)."""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

SAMPLES, INPUTS, CLASSES, PER_DEVICE, EPOCHS, RANKS, SEED, LR = 13, 6, 4, 3, 3, 2, 11, 0.2
IGNORED = (2, 4, 7, 9)  # rank 0 has the even ones: 1 and 3 labels of the first batch count, 3 and 1 of the second


def data():
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(SAMPLES, INPUTS, generator=generator)
    y = torch.randint(CLASSES, (SAMPLES,), generator=generator)
    y[list(IGNORED)] = -100
    return x, y


def rank_main(rank, path, by_samples, out):
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=RANKS)
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(INPUTS, 8), nn.ReLU(), nn.Linear(8, CLASSES)))
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    x, y = data()
    sampler = DistributedSampler(x, RANKS, rank, shuffle=False)
    losses = []
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        indices = list(sampler)
        for first in range(0, len(indices), PER_DEVICE):
            part = indices[first:first + PER_DEVICE]
            counted = (y[part] != -100).sum().float()
            if by_samples:
                every = counted.clone()
                dist.all_reduce(every)
                loss = nn.functional.cross_entropy(model(x[part]), y[part], reduction="sum") * RANKS / every
            else:
                loss = nn.functional.cross_entropy(model(x[part]), y[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            shown = loss.detach().double()
            dist.all_reduce(shown)
            losses.append(float(shown) / RANKS)
    if rank == 0:
        out.put(losses)
    dist.destroy_process_group()


def run(by_samples):
    with tempfile.TemporaryDirectory() as folder:
        out = mp.get_context("spawn").SimpleQueue()
        mp.spawn(rank_main, (os.path.join(folder, "meet"), by_samples, out), nprocs=RANKS)
        return out.get()


def main():
    x, y = data()
    by_ranks, by_samples = run(False), run(True)
    print("/* Made by make_average_golden.py with torch %s. */" % torch.__version__)
    print("enum { AVERAGE_SAMPLES = %d, AVERAGE_INPUTS = %d, AVERAGE_CLASSES = %d, AVERAGE_STEPS = %d };" %
          (SAMPLES, INPUTS, CLASSES, len(by_ranks)))
    print("enum { AVERAGE_PER_DEVICE = %d, AVERAGE_RANKS = %d, AVERAGE_SEED = %d };" % (PER_DEVICE, RANKS, SEED))
    print("static const double average_lr = %r;" % LR)

    def array(kind, name, values):
        print("static const %s %s[] = {\n    %s};" % (kind, name, ",\n    ".join(values)))

    array("float", "average_x", [v.hex() + "f" for v in map(float, x.flatten())])
    array("int64_t", "average_y", [str(int(v)) for v in y])
    array("double", "average_by_ranks", [v.hex() for v in by_ranks])
    array("double", "average_by_samples", [v.hex() for v in by_samples])


if __name__ == "__main__":
    sys.exit(main())

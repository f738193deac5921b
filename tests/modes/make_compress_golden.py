#!/usr/bin/env python3
"""Writes compress_golden.h: the losses of torch's DistributedDataParallel over gloo on 2 ranks with its communication
hooks (bf16_compress_hook without its demand for NCCL, fp16_compress_hook, powerSGD_hook), and without one.

    python3 make_compress_golden.py > compress_golden.h
PowerSGD begins with the factors that tandem draws (modes/compress/powersgd.c): torch's own would be drawn for a whole bucket.
Needs torch (made with 2.13.0)."""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

SAMPLES, INPUTS, HIDDEN, CLASSES, PER_DEVICE, STEPS, RANKS, SEED, DATA_SEED, LR = 48, 12, 24, 5, 6, 12, 2, 11, 3, 0.1
RANK, START = 2, 3
PARAMETER = {INPUTS: 0, HIDDEN: 2}  # of the model, by the columns of its gradient


def factor(columns, rank):
    torch.manual_seed(PARAMETER[columns])
    return torch.tensor([[torch.randn(1).item() for _ in range(rank)] for _ in range(columns)])


def powersgd(model):
    randn = torch.randn

    def drawn(*shape, **options):
        if len(shape) != 3:
            return randn(*shape, **options)
        return factor(shape[1], shape[2]).unsqueeze(0)

    def hook(state, bucket):
        torch.randn = drawn
        try:
            return powerSGD_hook.powerSGD_hook(state, bucket)
        finally:
            torch.randn = randn

    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=RANK, start_powerSGD_iter=START,
                                        min_compression_rate=1)
    model.register_comm_hook(state, hook)


def rank_main(rank, path, how, out):
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=RANKS)
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES)))
    if how == "powersgd":
        powersgd(model)
    elif how != "none":
        dtype = torch.bfloat16 if how == "bf16" else torch.float16
        model.register_comm_hook(None, lambda state, bucket: default_hooks._compress_hook(dtype, None, bucket))
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
    generator = torch.Generator().manual_seed(DATA_SEED)
    x = torch.randn(SAMPLES, INPUTS, generator=generator)
    y = torch.randint(CLASSES, (SAMPLES,), generator=generator)
    losses = []
    for step in range(STEPS):
        first = step * PER_DEVICE * RANKS % SAMPLES
        part = slice(first + rank, first + PER_DEVICE * RANKS, RANKS)
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


def run(how):
    with tempfile.TemporaryDirectory() as folder:
        out = mp.get_context("spawn").SimpleQueue()
        mp.spawn(rank_main, (os.path.join(folder, "meet"), how, out), nprocs=RANKS)
        return out.get()


def main():
    print("/* Made by make_compress_golden.py with torch %s. */" % torch.__version__)
    print("enum { COMPRESS_SAMPLES = %d, COMPRESS_INPUTS = %d, COMPRESS_STEPS = %d, COMPRESS_PER_DEVICE = %d };" %
          (SAMPLES, INPUTS, STEPS, PER_DEVICE))
    print("enum { COMPRESS_RANKS = %d, COMPRESS_SEED = %d, COMPRESS_DATA_SEED = %d };" % (RANKS, SEED, DATA_SEED))
    print("enum { COMPRESS_RANK = %d, COMPRESS_START = %d };" % (RANK, START))
    print("static const double compress_lr = %r;" % LR)
    for how in ("none", "bf16", "fp16", "powersgd"):
        print("static const double compress_%s[] = {\n    %s};" % (how, ",\n    ".join(v.hex() for v in run(how))))


if __name__ == "__main__":
    sys.exit(main())

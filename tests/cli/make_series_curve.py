#!/usr/bin/env python3
"""Writes series_curve.txt: the losses of samples/series/gestures.yaml in PyTorch, with all samples in each batch.

    python3 make_series_curve.py > series_curve.txt

series_test.sh compares tandem's with them."""
import pathlib

import numpy
import torch
from torch import nn

SERIES = pathlib.Path(__file__).resolve().parents[2] / "samples" / "series"
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.Conv1d(2, 16, 5, padding="same")
        self.norm = nn.LayerNorm(16)
        self.order = nn.GRU(16, 24, batch_first=True)
        self.kind = nn.Linear(24, 4)

    def forward(self, x):
        x = nn.functional.max_pool1d(torch.relu(self.parts(x)), 2)
        states, _ = self.order(self.norm(x.transpose(1, 2)))
        return self.kind(states[:, -1])


def main():
    x = torch.from_numpy(numpy.load(SERIES / "x.npy")).float() / 20
    y = torch.from_numpy(numpy.load(SERIES / "y.npy")).long()
    torch.manual_seed(42)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(20):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.9g}")


main()

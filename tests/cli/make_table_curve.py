#!/usr/bin/env python3
"""Writes table_curve.txt: the losses of samples/table/table.yaml in PyTorch, with all rows in each batch.

    python3 make_table_curve.py > table_curve.txt

tables_test.sh compares tandem's with them."""
import csv
import pathlib

import torch
from torch import nn

TABLE = pathlib.Path(__file__).resolve().parents[2] / "samples" / "table" / "deliveries.csv"
NUMBERS = ["distance", "weight", "stops"]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.carrier = nn.Embedding(5, 4, padding_idx=0)
        self.hidden1 = nn.Linear(7, 16, bias=False)
        self.norm = nn.BatchNorm1d(16)
        self.hidden2 = nn.Linear(16, 16)
        self.late = nn.Linear(16, 1)

    def forward(self, numbers, carrier):
        x = torch.cat([numbers, self.carrier(carrier)], 1)
        x = torch.relu(self.norm(self.hidden1(x)))
        return self.late(torch.relu(self.hidden2(x)))[:, 0]


def columns():
    """Numbers with gaps filled by the mean and standardized, in double; categories from 1 on; 0 and 1."""
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = torch.tensor([[float(r[n] or "nan") for n in NUMBERS] for r in rows], dtype=torch.float64)
    mean = numbers.nanmean(0)
    numbers = ((numbers - mean) / (numbers - mean).square().nanmean(0).sqrt()).nan_to_num(0.0)
    kinds = sorted({r["carrier"] for r in rows})
    return (numbers.float(), torch.tensor([1 + kinds.index(r["carrier"]) for r in rows]),
            torch.tensor([float(r["late"] == "yes") for r in rows]))


def main():
    numbers, carrier, late = columns()
    torch.manual_seed(42)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    for _ in range(20):
        loss = nn.functional.binary_cross_entropy_with_logits(net(numbers, carrier), late)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.9g}")


main()

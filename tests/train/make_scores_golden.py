#!/usr/bin/env python3
"""Writes scores_golden.h: outputs, labels and torch's top-5 hits, with ties, NaN and infinite outputs.

The rule is that of torch.sort(descending=True, stable=True). torch.topk leaves the order of equal numbers open.
Usage: make_scores_golden.py > scores_golden.h
"""
import math

import torch

WIDTH, ROWS, IGNORED = 9, 40, -100


def text(value):
    return "NAN" if math.isnan(value) else ("-" if value < 0 else "") + "INFINITY" if math.isinf(value) else f"{value:.2f}f"


def main():
    torch.manual_seed(5)
    y = torch.randint(-4, 5, (ROWS, WIDTH)).float() / 4  # nine values: most rows have ties
    y[3, 2] = y[4, 1] = y[4, 7] = math.nan
    y[5, :6] = math.nan
    y[6, 3], y[7, 8], y[8, :7] = math.inf, -math.inf, -math.inf
    y[9] = 0
    label = torch.randint(0, WIDTH, (ROWS,))
    label[3], label[4], label[5], label[6], label[7], label[8], label[9] = 2, 7, 5, 3, 8, 5, 5
    label[11] = IGNORED
    top = torch.sort(y, dim=1, descending=True, stable=True).indices[:, :5]
    hits = (top == label[:, None]).any(1)
    print(f"/* Written by make_scores_golden.py with torch {torch.__version__.split('+')[0]}. */")
    print(f"enum {{ GOLDEN_ROWS = {ROWS}, GOLDEN_WIDTH = {WIDTH}, GOLDEN_IGNORED = {IGNORED} }};")
    print("static const float golden_y[GOLDEN_ROWS][GOLDEN_WIDTH] = {")
    for row in y.tolist():
        print("    {" + ", ".join(map(text, row)) + "},")
    print("};\nstatic const int64_t golden_label[GOLDEN_ROWS] = {" + ", ".join(map(str, label.tolist())) + "};")
    print("static const int golden_hit[GOLDEN_ROWS] = {" + ", ".join(map(str, hits.int().tolist())) + "};")


if __name__ == "__main__":
    main()

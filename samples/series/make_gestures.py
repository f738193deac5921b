#!/usr/bin/env python3
"""Makes x.npy and y.npy: gestures, as two axes of a hand's acceleration would show them. Needs nothing but Python.

160 samples of 2 channels and 40 points, whole numbers of 8 bits. Classes: 0 swing (both axes together), 1 circle to the left,
2 circle to the right (the second axis a quarter of a period before or behind the first), 3 tap (a short burst).
"""
import math
import os
import random
import struct

SAMPLES, POINTS = 160, 40


def gesture(kind, draw):
    """Both axes, around 0; no two of a kind have the same size, speed and beginning."""
    size, periods, start = draw.uniform(20, 40), draw.uniform(1.5, 3), draw.random()
    lag = {0: 0.0, 1: 0.25, 2: -0.25, 3: 0.0}[kind]
    middle, width = draw.uniform(10, 30), draw.uniform(1.5, 3)
    for axis in range(2):
        for k in range(POINTS):
            value = math.sin(2 * math.pi * (periods * k / POINTS + start + axis * lag))
            if kind == 3:
                value *= 2 * math.exp(-(((k - middle) / width) ** 2))
            yield max(-127, min(127, round(size * value + draw.gauss(0, 6))))


def save(name, kind, shape, numbers):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (kind, "".join("%d, " % n for n in shape))
    head = head.ljust(117) + "\n"
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack("<%db" % len(numbers), *numbers))


def main():
    draw = random.Random(1)
    labels = [n % 4 for n in range(SAMPLES)]
    save("x.npy", "|i1", (SAMPLES, 2, POINTS), [v for kind in labels for v in gesture(kind, draw)])
    save("y.npy", "|i1", (SAMPLES,), labels)


if __name__ == "__main__":
    main()

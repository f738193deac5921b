#!/usr/bin/env python3
"""Makes sign.npy, facts.npy, zone.npy and y.npy: parcels with a sign on them. Needs nothing but Python.

320 samples. A sign is a picture of 10 x 10 bytes: 0 ring (standard), 1 cross (express). Facts are weight in kg and
volume in buckets of 10 litres; the zone is a number from 0 to 4, of which 3 and 4 are abroad. The class is the price: 2 for express, and 1 more
if the parcel is heavy for where it goes: above 8 kg at home, above 4 kg abroad. So no input alone tells the price.
"""
import os
import random
import struct

SAMPLES, SIDE = 320, 10


def sign(is_cross, draw):
    """A ring or a cross of 5 to 7 pixels, somewhere in the picture, brighter than what is around."""
    size = draw.randint(5, 7)
    top, left, light = draw.randint(0, SIDE - size), draw.randint(0, SIDE - size), draw.randint(120, 200)
    for row in range(SIDE):
        for column in range(SIDE):
            y, x = row - top, column - left
            inside = 0 <= y < size and 0 <= x < size
            on_cross = inside and (y == x or y == size - 1 - x)
            on_ring = inside and (y in (0, size - 1) or x in (0, size - 1)) and not (y in (0, size - 1) and x in (0, size - 1))
            drawn = on_cross if is_cross else on_ring
            yield max(0, min(255, round((light if drawn else 30) + draw.gauss(0, 20))))


def save(name, kind, shape, form, numbers):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (kind, "".join("%d, " % n for n in shape))
    head = head.ljust(117) + "\n"
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack("<%d%s" % (len(numbers), form), *numbers))


def main():
    draw = random.Random(1)
    pictures, facts, zones, prices = [], [], [], []
    for _ in range(SAMPLES):
        is_cross, zone, weight = draw.randint(0, 1), draw.randint(0, 4), draw.uniform(0.2, 12)
        limit = 4 if zone >= 3 else 8
        while abs(weight - limit) < 1:  # no doubtful cases
            weight = draw.uniform(0.2, 12)
        pictures += sign(is_cross, draw)
        facts += [weight, weight * draw.uniform(0.1, 0.4)]
        zones.append(zone)
        prices.append(2 * is_cross + (weight > limit))
    save("sign.npy", "|u1", (SAMPLES, 1, SIDE, SIDE), "B", pictures)
    save("facts.npy", "<f4", (SAMPLES, 2), "f", facts)
    save("zone.npy", "|u1", (SAMPLES,), "B", zones)
    save("y.npy", "|u1", (SAMPLES,), "B", prices)


if __name__ == "__main__":
    main()

"""A small folder of pictures, the same bytes everywhere: gratings in four directions, of any colours, under noise. Needs
nothing but Python, and no floats, so that no library of functions decides a pixel."""
import functools
import os
import random
import struct
import zlib

CLASSES = ("falling", "level", "rising", "upright")
COUNT, WIDTH, HEIGHT = 192, 88, 80
NOISE = 110  # peak to peak


def make(folder):
    for path, data in files():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)


@functools.cache
def files():
    draws = random.Random(11)
    kinds = [i % len(CLASSES) for i in range(COUNT)]
    return [(os.path.join(CLASSES[kind], "%03d.png" % i), png(rows_of(kind, draws))) for i, kind in enumerate(kinds)]


def rows_of(kind, draws):
    """Triangle waves between two colours, and noise."""
    across, down = ((3, 3), (0, 4), (3, -3), (4, 0))[kind]
    period, start = 40 + draws.getrandbits(5), draws.getrandbits(6)
    low, high = [40 + draws.getrandbits(7) for _ in range(3)], [40 + draws.getrandbits(7) for _ in range(3)]
    noise = draws.getrandbits(8 * 3 * WIDTH * HEIGHT).to_bytes(3 * WIDTH * HEIGHT, "little")
    for y in range(HEIGHT):
        row = bytearray()
        for x in range(WIDTH):
            at = (across * x + down * y + start) % period
            wave = min(at, period - at)
            for c in range(3):
                value = low[c] + (high[c] - low[c]) * 2 * wave // period
                value += noise[(y * WIDTH + x) * 3 + c] * NOISE // 255 - NOISE // 2
                row.append(min(max(value, 0), 255))
        yield bytes(row)


def png(rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b""))

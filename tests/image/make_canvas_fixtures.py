#!/usr/bin/env python3
"""Writes canvas.txt: what Pillow makes of pictures from a formula. Made with Pillow 13.0.0.

A line: operation, channels, width, height, six parameters, then width, height and FNV-1a of the result's bytes.
"""
import itertools
import math
import pathlib

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

HERE = pathlib.Path(__file__).resolve().parent
LINES = []


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h


def picture(width, height, channels):
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    noise = (x * 7919 + y * 104729 + c * 1299709) % 61
    data = ((x * 5 + y * 3 * (c + 1) + noise) % 256).astype(np.uint8)
    return Image.fromarray(data[:, :, 0] if channels == 1 else data)


def hue(image, turn):
    """torchvision's adjust_hue"""
    if image.mode == "L":
        return image
    h, s, v = image.convert("HSV").split()
    moved = np.array(h, dtype=np.uint8) + np.int32(turn * 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(moved, "L"), s, v)).convert("RGB")


OPERATIONS = {
    "resize": lambda i, w, h: i.resize((int(w), int(h)), Image.BILINEAR),
    "crop": lambda i, x, y, w, h: i.crop((int(x), int(y), int(x + w), int(y + h))),
    "flip": lambda i: i.transpose(Image.FLIP_LEFT_RIGHT),
    "rotate": lambda i, a: i.rotate(a, Image.NEAREST, fillcolor=0),
    "affine": lambda i, *m: i.transform(i.size, Image.AFFINE, m, Image.NEAREST, fillcolor=0),
    "brightness": lambda i, f: ImageEnhance.Brightness(i).enhance(f),
    "contrast": lambda i, f: ImageEnhance.Contrast(i).enhance(f),
    "saturation": lambda i, f: ImageEnhance.Color(i).enhance(f),
    "sharpness": lambda i, f: ImageEnhance.Sharpness(i).enhance(f),
    "hue": hue,
    "grey": lambda i: i.convert("L").convert(i.mode),
    "posterize": lambda i, b: ImageOps.posterize(i, int(b)),
    "solarize": lambda i, t: ImageOps.solarize(i, int(t)),
    "autocontrast": ImageOps.autocontrast,
    "equalize": ImageOps.equalize,
}


def case(name, size, channels, *parameters):
    out = OPERATIONS[name](picture(*size, channels), *parameters)
    given = [repr(float(p)) for p in parameters] + ["0.0"] * (6 - len(parameters))
    LINES.append(" ".join([name, str(channels), str(size[0]), str(size[1]), *given, str(out.width), str(out.height),
                           "%016x" % fnv(out.tobytes())]))


def main():
    sizes = ((1, 1), (2, 3), (7, 5), (16, 16), (31, 64), (65, 33), (100, 20))
    for size, channels in itertools.product(sizes, (1, 3)):
        for target in ((1, 1), (3, 2), (7, 5), (16, 31), (33, 16), (64, 64), (90, 7), (size[0], 9), (9, size[1]), (5, 200)):
            case("resize", size, channels, *target)
        w, h = size
        for box in ((0, 0, w, h), (-2, -3, w + 4, h + 5), (w // 2, h // 2, w, h), (-5, 0, 3, 3), (w + 1, 0, 2, 2)):
            case("crop", size, channels, *box)
        for angle in (0, 10, -37.5, 45, 90, 180, 270, -90, 359.9, 0.001):
            case("rotate", size, channels, angle)
        for m in ((1, 0.3, 0, 0, 1, 0), (1, 0, 0, -0.25, 1, 0), (1, 0, -3, 0, 1, 0), (1, 0, 0, 0, 1, 2), (0.7, 0.1, 1.5, -0.2, 1.3, -2)):
            case("affine", size, channels, *m)
        for factor in (0, 0.1, 0.5, 0.9, 1, 1.3, 1.9, 3):
            for name in ("brightness", "contrast", "saturation", "sharpness"):
                case(name, size, channels, factor)
        for turn in (-0.5, -0.1, 0.0, 0.013, 0.25, 0.5):
            case("hue", size, channels, turn)
        for bits in (1, 4, 7, 8):
            case("posterize", size, channels, bits)
        for threshold in (0, 100, 255, 256):
            case("solarize", size, channels, threshold)
        for name in ("flip", "grey", "autocontrast", "equalize"):
            case(name, size, channels)
    for target in ((224, 224), (256, 171), (40, 300)):
        case("resize", (300, 200), 3, *target)
        case("resize", (211, 403), 1, *target)
    (HERE / "canvas.txt").write_text("\n".join(LINES) + "\n")


if __name__ == "__main__":
    main()

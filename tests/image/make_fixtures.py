#!/usr/bin/env python3
"""Writes small pictures into files/ and codec.txt with what Pillow makes of each: for the module `image`.

Made with Pillow 13.0.0 and its libjpeg-turbo 3. A line: file, channels, width, height, FNV-1a of the pixels; or file,
"refused", and words of the message.
"""
import io
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

HERE = pathlib.Path(__file__).resolve().parent
FILES = HERE / "files"
LINES = []


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h


def pixels(width, height, channels, seed=0):
    """Smooth with some noise, from a formula."""
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    noise = (x * 7919 + y * 104729 + c * 1299709 + seed * 15485863) % 61
    return ((x * 5 + y * 3 * (c + 1) + noise + seed * 40) % 256).astype(np.uint8).squeeze()


def good(name, data):
    (FILES / name).write_bytes(data)
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    for mode in ("RGB", "L"):
        out = image.convert("RGB").convert(mode) if image.mode.startswith("I") or image.mode == "CMYK" else image.convert(mode)
        LINES.append("%s %d %d %d %016x" % (name, len(mode) if mode == "RGB" else 1, *out.size, fnv(out.tobytes())))


def refused(name, data, words):
    (FILES / name).write_bytes(data)
    LINES.append("%s refused %s" % (name, words))


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def exif(orientation):
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags.tobytes()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, bits, colour, rows, extra=b"", interlace=0):
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlace)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def jpegs():
    rgb, grey = Image.fromarray(pixels(37, 23, 3)), Image.fromarray(pixels(37, 23, 1))
    for sampling in (0, 1, 2):
        good("sampling%d.jpg" % sampling, saved(rgb, "JPEG", subsampling=sampling, quality=85))
        good("progressive%d.jpg" % sampling, saved(rgb, "JPEG", subsampling=sampling, progressive=True))
        good("large%d.jpg" % sampling, saved(Image.fromarray(pixels(150, 110, 3)), "JPEG", subsampling=sampling, quality=40))
    good("grey.jpg", saved(grey, "JPEG"))
    good("one.jpg", saved(Image.fromarray(pixels(1, 1, 3).reshape(1, 1, 3)), "JPEG"))
    good("restarts.jpg", saved(rgb, "JPEG", restart_marker_blocks=2))
    good("optimised.jpg", saved(rgb, "JPEG", optimize=True, quality=30))
    good("cmyk.jpg", saved(Image.fromarray(pixels(20, 15, 4), "CMYK"), "JPEG", quality=90))
    good("rgb-in-rgb.jpg", saved(rgb, "JPEG", keep_rgb=True))
    for orientation in range(1, 9):
        good("turned%d.jpg" % orientation, saved(Image.fromarray(pixels(12, 7, 3)), "JPEG", exif=exif(orientation)))
    good("turned9.jpg", saved(rgb, "JPEG", exif=exif(9)))
    good("is-a-jpeg.png", saved(rgb, "JPEG"))
    good("trailing.jpg", saved(rgb, "JPEG") + b"more bytes")
    whole = saved(rgb, "JPEG")
    for at in (len(whole) // 3, len(whole) // 2, len(whole) - 30):
        refused("cut%d.jpg" % at, whole[:at], "a JPEG that is cut off")
    at = len(whole) * 2 // 3
    assert whole[at - 1] != 0xff
    refused("marker.jpg", whole[:at] + b"\xff\x5a" + whole[at + 2:], "Unsupported marker type 0x5a")
    refused("header.jpg", whole[:10], "a JPEG that is cut off")
    refused("empty.jpg", b"", "an empty file")
    refused("text.jpg", b"hello, I am no picture", "neither a JPEG nor a PNG")
    refused("gif.jpg", saved(grey, "GIF"), "a GIF picture; convert it to JPEG or PNG")
    refused("noise.jpg", b"\xff\xd8\xff\xe0" + bytes(range(256)), "JPEG")
    large = bytearray(whole)
    at = large.index(b"\xff\xc0")
    large[at + 5:at + 9] = struct.pack(">HH", 65000, 65000)
    refused("bomb.jpg", bytes(large), "a picture of 65000 x 65000 pixels; at most 89478485 pixels are read")
    bits = saved(Image.fromarray(pixels(16, 16, 1)), "JPEG", progressive=True)
    scan = bits.index(b"\xff\xda")
    refused("scans.jpg", bits[:-2] + bits[scan:-2] * 150 + b"\xff\xd9", "more than 100 scans")


def pngs():
    for name, shape, mode in (("rgb", 3, "RGB"), ("rgba", 4, "RGBA"), ("grey", 1, "L"), ("grey-alpha", 2, "LA")):
        good("%s.png" % name, saved(Image.fromarray(pixels(19, 13, shape), mode), "PNG"))
    good("bilevel.png", saved(Image.fromarray(pixels(19, 13, 1)).convert("1"), "PNG"))
    palette = Image.fromarray(pixels(19, 13, 3)).quantize(16)
    good("palette.png", saved(palette, "PNG"))
    good("palette-alpha.png", saved(palette, "PNG", transparency=3))
    good("rgb-transparent.png", saved(Image.fromarray(pixels(19, 13, 3)), "PNG", transparency=(1, 2, 3)))
    good("grey-transparent.png", saved(Image.fromarray(pixels(19, 13, 1)), "PNG", transparency=7))
    noise = bytes((i * 37 + 11) % 256 for i in range(4096))
    for bits, colour, per in ((1, 0, 1), (2, 0, 1), (4, 0, 1), (16, 2, 3), (16, 4, 2), (16, 6, 4)):
        row = (9 * bits * per + 7) // 8
        rows = b"".join(b"\0" + noise[y * row:(y + 1) * row] for y in range(5))
        good("bits%d-colour%d.png" % (bits, colour), png(9, 5, bits, colour, rows))
    for bits in (1, 2, 4, 8):
        row = (9 * bits + 7) // 8
        rows = b"".join(b"\0" + bytes(b & 0x55 if bits < 8 else b % 200 for b in noise[y * row:(y + 1) * row]) for y in range(5))
        good("palette%d.png" % bits, png(9, 5, bits, 3, rows, chunk(b"PLTE", noise[:3 * min(2**bits, 256)])))
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
    image = pixels(13, 11, 3)
    rows = b"".join(b"\0" + line.tobytes() for x, y, dx, dy in passes for line in image[y::dy, x::dx] if line.size)
    good("interlaced.png", png(13, 11, 8, 2, rows, interlace=1))
    good("turned6.png", saved(Image.fromarray(pixels(12, 7, 3)), "PNG", exif=exif(6)))
    good("tall.png", png(1, 50000, 1, 0, bytes(2 * 50000)))
    good("is-a-png.jpg", saved(Image.fromarray(pixels(5, 5, 3)), "PNG"))
    whole = saved(Image.fromarray(pixels(19, 13, 3)), "PNG")
    refused("cut.png", whole[:len(whole) // 2], "a PNG that is cut off")
    refused("start.png", whole[:8], "a PNG that is cut off")
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 255
    refused("damaged.png", bytes(damaged), "not a PNG that can be read")
    refused("zero.png", png(0, 5, 8, 2, b""), "not a PNG that can be read")
    refused("bomb.png", png(60000, 60000, 8, 2, b"\0" * 100), "a picture of 60000 x 60000 pixels")
    refused("too-few-rows.png", png(19, 13, 8, 2, b"\0" * 100), "PNG")


def same(name, data, like):
    """The same pixels as `like`: what is added must not count, even where Pillow refuses it."""
    good(name, like)
    (FILES / name).write_bytes(data)


def hostile_jpegs():
    whole = saved(Image.fromarray(pixels(37, 23, 3)), "JPEG")
    frame, start = whole.index(b"\xff\xc0"), whole[:2]
    refused("bits12.jpg", whole[:frame] + b"\xff\xc1\0\x11\x0c" + whole[frame + 5:], "not a JPEG that can be read")
    refused("lossless.jpg", whole[:frame] + b"\xff\xc3" + whole[frame + 2:], "not a JPEG that can be read")
    refused("height-later.jpg", whole[:frame + 5] + b"\0\0" + whole[frame + 7:], "not a JPEG that can be read")
    tags = b"Exif\0\0II*\0\xf0\xff\xff\xff" # the directory's place is beyond the file
    same("exif-beyond.jpg", start + b"\xff\xe1" + struct.pack(">H", len(tags) + 2) + tags + whole[2:], whole)
    same("profile-cut.jpg", start + b"\xff\xe2\0\x12ICC_PROFILE\0\xff\xff\xff\xff" + whole[2:], whole)


def hostile_pngs():
    image = Image.fromarray(pixels(19, 13, 3))
    rows = b"".join(b"\0" + line.tobytes() for line in pixels(19, 13, 3))
    plain, large = png(19, 13, 8, 2, rows), zlib.compress(bytes(32 << 20), 9)
    same("text-bomb.png", png(19, 13, 8, 2, rows, chunk(b"zTXt", b"Comment\0\0" + large)), plain)
    same("profile-bomb.png", png(19, 13, 8, 2, rows, chunk(b"iCCP", b"icc\0\0" + large)), plain)
    bomb = png(19, 13, 8, 2, rows + bytes(32 << 20))
    refused("rows-bomb.png", bomb, "not a PNG that can be read: it has more data than pixels")
    data = plain.index(b"IDAT") - 4
    same("empty-chunks.png", plain[:data] + 50 * chunk(b"IDAT", b"") + plain[data:], plain)
    wrong = chunk(b"tEXt", b"Comment\0hello")[:-4] + bytes(4)
    same("text-wrong-sum.png", png(19, 13, 8, 2, rows, wrong), plain)
    good("animated.png", saved(image, "PNG", save_all=True, append_images=[Image.fromarray(pixels(19, 13, 3, 1))]))
    refused("apple.png", plain[:8] + chunk(b"CgBI", bytes(4)) + plain[8:], "not a PNG that can be read")
    refused("no-palette.png", png(9, 5, 8, 3, 5 * bytes(10)), "not a PNG that can be read")
    refused("no-data.png", plain[:data] + chunk(b"IEND", b""), "not a PNG that can be read")


def grey16():
    """Pillow reads 16 bits of grey as numbers beyond 255; here the high byte counts, as for 16-bit colours."""
    rows = b"".join(b"\0" + b"".join(struct.pack(">H", (x * 3001 + y * 7001) % 65536) for x in range(9)) for y in range(5))
    (FILES / "bits16-colour0.png").write_bytes(png(9, 5, 16, 0, rows))
    high = bytes(((x * 3001 + y * 7001) % 65536) >> 8 for y in range(5) for x in range(9))
    LINES.append("bits16-colour0.png 1 9 5 %016x" % fnv(high))


if __name__ == "__main__":
    for old in FILES.glob("*"):
        old.unlink()
    jpegs()
    pngs()
    hostile_jpegs()
    hostile_pngs()
    grey16()
    (HERE / "codec.txt").write_text("\n".join(LINES) + "\n")

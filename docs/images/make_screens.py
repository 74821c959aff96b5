#!/usr/bin/env python3
"""Pictures of the command's screens: runs it in a pseudo-terminal and draws what it prints.

    docs/images/make_screens.py PUMICE      the program; needs Pillow and DejaVu Sans Mono
"""

import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import fcntl
import termios

from PIL import Image, ImageDraw, ImageFont

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FONTS = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono"
SIZE, COLUMNS = 15, 112
PALETTE = {30: (40, 44, 52), 31: (224, 108, 117), 32: (152, 195, 121), 33: (229, 192, 123),
           34: (97, 175, 239), 35: (198, 120, 221), 36: (86, 182, 194), 37: (220, 223, 228)}
TEXT, PAPER = (204, 208, 216), (24, 26, 31)


def run(words, columns=COLUMNS):
    """Everything that a program prints to a terminal."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 60, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns)}
    environment.pop("NO_COLOR", None)
    program = subprocess.Popen(words, stdin=follower, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    printed = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        printed += part
    program.wait()
    return printed.decode("utf-8", "replace").replace("\r\n", "\n")


def cells(text):
    """Letters with their colours, line by line."""
    bold, dim, ink, paper = False, False, None, None
    lines = [[]]
    for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|\n)", text):
        if part == "\n":
            lines.append([])
        elif part.startswith("\x1b["):
            if not part.endswith("m"):
                continue
            codes = [int(code or 0) for code in part[2:-1].split(";")]
            while codes:
                code = codes.pop(0)
                if code == 0:
                    bold, dim, ink, paper = False, False, None, None
                elif code == 1:
                    bold = True
                elif code == 2:
                    dim = True
                elif code in PALETTE:
                    ink = PALETTE[code]
                elif code in (38, 48) and codes and codes[0] == 2:
                    colour, codes = tuple(codes[1:4]), codes[4:]
                    ink, paper = (colour, paper) if code == 38 else (ink, colour)
                elif code in (38, 48) and codes and codes[0] == 5:
                    grey, codes = (codes[1] - 232) * 10 + 8 if codes[1] >= 232 else 128, codes[2:]
                    ink = (grey, grey, grey) if code == 38 else ink
        else:
            for letter in part:
                if letter >= " ":
                    lines[-1].append((letter, bold, dim, ink, paper))
    while lines and not lines[-1]:
        lines.pop()
    return lines


def draw(text, path):
    fonts = [ImageFont.truetype(f"{FONTS}{kind}.ttf", SIZE) for kind in ("", "-Bold")]
    wide, high = round(fonts[0].getlength("M")), SIZE + 4
    lines = cells(text)
    columns = max(len(line) for line in lines)
    image = Image.new("RGB", (columns * wide + 24, len(lines) * high + 20), PAPER)
    pen = ImageDraw.Draw(image)
    for row, line in enumerate(lines):
        for column, (letter, bold, dim, ink, paper) in enumerate(line):
            x, y = 12 + column * wide, 10 + row * high
            colour = ink or TEXT
            if dim:
                colour = tuple((c + 2 * p) // 3 + 20 for c, p in zip(colour, PAPER))
            box = (x, y, x + wide - 1, y + high - 1)
            if paper:
                pen.rectangle(box, fill=paper)
            if letter == "▀":
                pen.rectangle((x, y, x + wide - 1, y + high // 2 - 1), fill=colour)
            elif letter == "▄":
                pen.rectangle((x, y + high // 2, x + wide - 1, y + high - 1), fill=colour)
            elif letter == "█":
                pen.rectangle((x, y + 2, x + wide - 1, y + high - 3), fill=colour)
            elif letter in "│├└─┌┐┘┬":
                middle, centre = x + wide // 2, y + high // 2
                if letter in "│├┌┐┬":
                    pen.line((middle, centre, middle, y + high), fill=colour)
                if letter in "│├└┘":
                    pen.line((middle, y, middle, centre), fill=colour)
                if letter in "├└─┌┬":
                    pen.line((middle, centre, x + wide, centre), fill=colour)
                if letter in "─┐┘┬":
                    pen.line((x, centre, middle, centre), fill=colour)
            else:
                pen.text((x, y), letter, font=fonts[bold], fill=colour)
    image.quantize(128).save(HERE / path, optimize=True)
    print(f"{path}: {(HERE / path).stat().st_size} bytes")


def prompt(*words):
    return "\x1b[2m$\x1b[0m " + " ".join(["pumice", *words]) + "\n"


def main():
    pumice = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        matrix = ROOT / "data/debian-dependencies.mtx.gz"
        subprocess.run([pumice, "import", matrix, "debian.h5"], check=True, stdout=subprocess.DEVNULL)
        make_example(pumice)
        for name, words in [
            ("ls.png", ["ls", "example.h5"]),
            ("spy.png", ["spy", "debian.h5", "--width", "64", "--chunks"]),
            ("stat.png", ["stat", "-sSG", "debian.h5"]),
            ("check.png", ["check", "debian.h5"]),
        ]:
            text = run([pumice, *words])
            draw(prompt(*words) + text, name)
        draw(prompt("import", "large.mtx", "large.h5") + progress(pumice), "progress.png")


def make_example(pumice):
    """A file with a bit of everything, made by h5py and by import."""
    import h5py
    import numpy as np

    with h5py.File("example.h5", "w") as file:
        numbers = np.random.default_rng(1)
        file.create_dataset("run 7/energy", data=numbers.normal(size=200_000).astype("f4"),
                            chunks=(16_384,), compression="gzip", shuffle=True)
        file.create_dataset("run 7/frames", shape=(0, 512, 512), maxshape=(None, 512, 512),
                            chunks=(1, 512, 512), dtype="u2", compression="gzip")
        file["run 7/labels"] = ["alpha", "beta"]
        file["latest"] = h5py.SoftLink("/run 7")
        file["calibration"] = numbers.normal(size=(64, 64))
    words = ["copy", "-i", "debian.h5", "-o", "example.h5", "-s", "matrix", "-d", "packages"]
    subprocess.run([pumice, *words], check=True)


def progress(pumice):
    """The bar of an import that takes a while, halfway."""
    with open("large.mtx", "w") as file:
        side, count = 200_000, 12_000_000
        file.write(f"%%MatrixMarket matrix coordinate integer general\n{side} {side} {count}\n")
        lines = (f"{number // 60 + 1} {number % 60 * 3000 + 1} 7\n" for number in range(count))
        file.writelines(lines)
    frames = re.split(r"\r", run([pumice, "import", "large.mtx", "large.h5"]))
    bars = [frame for frame in frames if "left" in frame]
    return bars[len(bars) // 2]


if __name__ == "__main__":
    main()

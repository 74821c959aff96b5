#!/usr/bin/env python3
"""The pictures of README.md, all of them: what notebooks show of a sparse dataset, and the screens of the command.

    docs/images/make_gallery.py PUMICE      the command's program; needs the Python package, scipy, h5py, Pillow, DejaVu
    docs/images/make_gallery.py             only what Python alone makes
"""

import gzip
import html
import pathlib
import re
import subprocess
import sys
import tempfile

import scipy.io
from PIL import Image, ImageDraw, ImageFont

import pumice

HERE = pathlib.Path(__file__).resolve().parent
MATRIX = HERE.parent.parent / "data/debian-dependencies.mtx.gz"
FONTS = "/usr/share/fonts/truetype/dejavu/DejaVuSans"
SIDE, LINE = 256, 22


def facts(dataset):
    """What a notebook shows beside the picture: names and values."""
    rows = re.findall(r"<tr><th>(.*?)</th><td>(.*?)</td>", dataset._repr_html_())
    return [tuple(html.unescape(cell) for cell in row) for row in rows]


def card(dataset, path):
    """A dataset as notebooks show it."""
    plain, bold = (ImageFont.truetype(f"{FONTS}{kind}.ttf", 13) for kind in ("", "-Bold"))
    image = Image.new("RGB", (SIDE + 380, SIDE + 24), "white")
    pen = ImageDraw.Draw(image)
    pen.text((12, 12), dataset.name, font=bold, fill="black")
    for number, (name, value) in enumerate(facts(dataset)):
        y = 12 + LINE * (number + 2)
        pen.text((110, y), name, font=bold, fill="black", anchor="ra")
        pen.text((122, y), value, font=plain, fill="black")
    picture = Image.fromarray(dataset.spy(SIDE))
    image.paste(picture, (image.width - picture.width - 12, 12))
    pen.rectangle((image.width - SIDE - 13, 11, image.width - 12, 12 + SIDE), outline="#888")
    image.quantize(64).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def from_python():
    """The pictures that need no command."""
    with gzip.open(MATRIX) as file:
        matrix = scipy.io.mmread(file).tocsr()
    with tempfile.TemporaryDirectory() as folder, pumice.File(f"{folder}/debian.h5", "w") as file:
        card(pumice.from_scipy(file, "debian", matrix), HERE / "python-notebook.png")


def from_the_command(program):
    """The pictures of the command: a large one of a matrix, and screens."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/debian.h5"
        subprocess.run([program, "import", MATRIX, path], check=True, stdout=subprocess.DEVNULL)
        picture = HERE / "debian-dependencies.png"
        subprocess.run([program, "spy", path, "--png", picture, "--force"], check=True, stdout=subprocess.DEVNULL)
        Image.open(picture).quantize(64).save(picture, optimize=True)
    subprocess.run([sys.executable, HERE / "make_screens.py", program], check=True)


def main():
    """All pictures."""
    from_python()
    if len(sys.argv) > 1:
        from_the_command(str(pathlib.Path(sys.argv[1]).resolve()))


if __name__ == "__main__":
    main()

"""Draws the pictures of README.md from its tables: `python bench/plot.py`.

Above each `![title](images/NAME.svg)` stands the table that it shows. A row is a group of bars, a column with a
name a kind of bar; bars are on a logarithmic scale, as times differ by powers of ten. Columns and rows of other
units are left out.
"""

import html
import math
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
COLOURS = ["#3b6ea5", "#c0504d", "#8fae4b", "#7f6aa0", "#4aa5b8", "#d98b3a", "#9db8d9", "#d9a3a2", "#999999"]
OTHER_UNITS = re.compile(r"bytes|MB|KB|MiB|GiB|times as|against|share")
BAR, GAP, LEFT, WIDTH = 9, 12, 190, 520


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def number(text):
    match = re.match(r"(\d[\d.]*)( \(.*\))?$", text)
    return float(match.group(1)) if match else None


def tables(text):
    """Title, name and table of each picture."""
    rows, last = [], []
    for line in text.splitlines():
        picture = re.match(r"!\[(.*)\]\((images/.*\.svg)\)", line)
        if picture:
            yield picture.group(1), picture.group(2), last
        elif line.startswith("|"):
            rows.append(cells(line))
        elif rows:
            rows, last = [], rows


def bars(table):
    head, body = table[0], table[2:]
    columns = [at for at in range(1, len(head)) if head[at] and not OTHER_UNITS.search(head[at])]
    rows = [row for row in body if not OTHER_UNITS.search(row[0])]
    return [head[at] for at in columns], [(row[0], [number(row[at]) for at in columns]) for row in rows]


def draw(title, series, groups):
    values = [value for _, row in groups for value in row if value]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    scale = WIDTH / (high - low)
    top = 34 + 16 * len(series)
    height = top + len(groups) * (len(series) * BAR + GAP) + 30
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 70}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="10" y="18" font-size="14">{html.escape(title)} (shorter is faster)</text>',
    ]
    for at, name in enumerate(series):
        y = 30 + 16 * at
        out.append(f'<rect x="{LEFT}" y="{y}" width="10" height="10" fill="{COLOURS[at % len(COLOURS)]}"/>')
        out.append(f'<text x="{LEFT + 16}" y="{y + 9}">{html.escape(name)}</text>')
    for power in range(low, high + 1):
        x = LEFT + (power - low) * scale
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{height - 24}" stroke="#ddd"/>')
        out.append(f'<text x="{x:.1f}" y="{height - 10}" text-anchor="middle">{10.0**power:g}</text>')
    y = top
    for name, row in groups:
        middle = y + len(series) * BAR / 2 + 4
        out.append(f'<text x="{LEFT - 8}" y="{middle:.1f}" text-anchor="end">{html.escape(name)}</text>')
        for at, value in enumerate(row):
            if value:
                length = (math.log10(value) - low) * scale
                out.append(
                    f'<rect x="{LEFT}" y="{y + at * BAR}" width="{length:.1f}" height="{BAR - 1}" '
                    f'fill="{COLOURS[at % len(COLOURS)]}"/>'
                    f'<text x="{LEFT + length + 4:.1f}" y="{y + at * BAR + 8}" font-size="9">{value:g}</text>'
                )
        y += len(series) * BAR + GAP
    return "\n".join([*out, "</svg>", ""])


def main():
    for title, name, table in tables((HERE / "README.md").read_text()):
        path = HERE / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(draw(title, *bars(table)))
        print(path)


if __name__ == "__main__":
    main()

"""Draws docs/plots/race.svg, the picture of README, from the means of the race's tables in docs/benchmarks.md.

    python3 docs/plots/race.py            # after ci/benchmarks.sh race
"""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 70, 30, 50, 60


def means(text, row):
    """The first table with this row: allocator -> mean ratio to glibc."""
    at = text.index(f"| **{row}** |")
    head = text[:at].rindex("| program |")
    names = [name.strip() for name in text[head:].splitlines()[0].strip("|").split("|")][1:]
    cells = [cell.strip() for cell in text[at:].splitlines()[0].strip("|").split("|")][1:]
    return {name: float(re.search(r"\d+\.\d+", cell)[0]) for name, cell in zip(names, cells)}


def main():
    text = (DOCS / "benchmarks.md").read_text()
    race = text[text.index("<!-- race -->") : text.index("<!-- /race -->")]
    time, memory = race.split("\nPeak RSS: ", 1)
    times, peaks = means(time, "geomean, all"), means(memory, "geomean, starred")
    taken = re.search(r"^- heapwright (\w+), on ([\d-]+)$", text, re.M)

    def scale(values, low, high):
        least, most = min(values) - 0.04, max(values) + 0.04
        return least, most, lambda value: low + (value - least) / (most - least) * (high - low)

    x0, x1, x = scale(times.values(), LEFT, WIDTH - RIGHT)
    y0, y1, y = scale(peaks.values(), HEIGHT - BOTTOM, TOP)
    out = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' role='img' aria-labelledby='title'>",
        "<title id='title'>The race: time and peak memory of each allocator</title>",
        "<style>svg{background:#fff;font:13px system-ui,sans-serif}text{fill:#1b1f24}line{stroke:#d8dee4}"
        "circle{fill:#8c959f}.ours circle{fill:#0a58ca}.ours text{fill:#0a58ca;font-weight:600}</style>",
        f"<text x='{LEFT}' y='24'>Geometric means, ratios to glibc (heapwright {taken[1]}, {taken[2]})</text>",
    ]
    for tenth in range(0, 60):
        value = tenth / 10
        if x0 <= value <= x1:
            out.append(f"<line x1='{x(value):.0f}' x2='{x(value):.0f}' y1='{TOP}' y2='{HEIGHT - BOTTOM}'/>")
            out.append(f"<text x='{x(value):.0f}' y='{HEIGHT - BOTTOM + 18}' text-anchor='middle'>{value:.1f}</text>")
        if y0 <= value <= y1:
            out.append(f"<line x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{y(value):.0f}' y2='{y(value):.0f}'/>")
            out.append(f"<text x='{LEFT - 8}' y='{y(value) + 4:.0f}' text-anchor='end'>{value:.1f}</text>")
    out.append(f"<text x='{(LEFT + WIDTH - RIGHT) / 2:.0f}' y='{HEIGHT - 16}' text-anchor='middle'>time, 30 workloads and programs</text>")
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(f"<text x='18' y='{middle:.0f}' text-anchor='middle' transform='rotate(-90 18 {middle:.0f})'>peak memory of the large ones</text>")
    placed = []
    for name in sorted(times, key=lambda name: y(peaks[name])):
        across, down = x(times[name]), y(peaks[name])
        left = across > WIDTH - 110
        label = down + 4
        # (Labels of neighbours move down until they are apart.)
        while any(abs(label - other) < 15 and abs(across - beside) < 90 for beside, other in placed):
            label += 1
        placed.append((across, label))
        ours = " class='ours'" if name == "heapwright" else ""
        where = f"x='{across - 9:.0f}' text-anchor='end'" if left else f"x='{across + 9:.0f}'"
        out.append(f"<g{ours}><circle cx='{across:.0f}' cy='{down:.0f}' r='5'/><text {where} y='{label:.0f}'>{name}</text></g>")
    (DOCS / "plots" / "race.svg").write_text("\n".join(out) + "\n</svg>\n")


if __name__ == "__main__":
    main()

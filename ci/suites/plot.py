"""The plot of whole programs: each library's time over that of the best other library, on a logarithmic axis, a line for each program.

Papers, texts and series have the colours and markers of `tagwire report` (report/src/draw/style.rs).
"""

import html
import math
import statistics

from suites import times

WIDTH, LEFT, RIGHT, HEAD, LINE, FOOT = 760, 190, 76, 84, 24, 46
# Light and dark, by class; series are the last.
COLOURS = {"paper": ("#ffffff", "#0f1318"), "text": ("#1d232b", "#e8ebef"), "muted": ("#4d5661", "#a9b2bd"), "grid": ("#e3e7eb", "#272e36"), "axis": ("#848d97", "#6b747e"),
           "c0": ("#0072b2", "#58b4f0"), "c1": ("#d55e00", "#ff9a52"), "c2": ("#00805c", "#35c99b")}
# Half a marker, in pixels: a circle, a square, a triangle.
MARKERS = ("m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z", "m-3.6 -3.6h7.2v7.2h-7.2Z", "m0 -4.8l4.5 8h-9Z")


def svg(kept, processors):
    """Returns the drawing of the rows with more ranks than processors."""
    rows = [row for row in kept.compared() if row["ranks"] > processors]
    if not rows:
        raise times.Wrong(f"no program with more than {processors} ranks is compared with another library")
    if len(kept.libraries) > len(MARKERS):
        raise times.Wrong(f"a plot has {len(MARKERS)} libraries at most")
    lines = [Line(row, list(kept.libraries)) for row in rows]
    axis = Axis([value for line in lines for value in line.values()])
    height = HEAD + LINE * len(lines) + FOOT
    title = f"Whole programs with more ranks than processors ({processors})"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
             f'aria-label="{html.escape(title)}. {html.escape(kept.machine)}" font-family="system-ui, -apple-system, \'Segoe UI\', \'Helvetica Neue\', Arial, sans-serif" font-size="12">',
             style(), f'<rect class="paper" width="{WIDTH}" height="{height}"/>', text("text", 14, 24, title, 'font-size="15" font-weight="600"'), text("muted", 14, 43, kept.machine)]
    x = 14
    for slot, name in enumerate(kept.libraries.values()):
        parts += [marker(slot, x + 6, 62), text("muted", x + 18, 66, name)]
        x += 40 + 7 * len(name)
    bottom = HEAD + LINE * len(lines)
    for value in axis.ticks():
        place = axis.place(value)
        parts += [f'<path class="{"axis" if value == 1 else "grid"}" d="M{place} {HEAD}V{bottom}"/>', text("muted", place, bottom + 18, f"{value:g}", 'text-anchor="middle"')]
    parts.append(text("muted", (LEFT + WIDTH - RIGHT) / 2, bottom + 36, "time / time of the best other library (less is better)", 'text-anchor="middle"'))
    for number, line in enumerate(lines):
        parts += line.drawn(axis, HEAD + LINE * number + LINE / 2)
    return "\n".join([*parts, "</svg>"]) + "\n"


class Line:
    """A program: ratios to the best other library's median, for each library the least, the median and the greatest."""

    def __init__(self, row, libraries):
        self.name = f"{row['application']}, {row['ranks']} ranks"
        whole = statistics.median(times.best(row["seconds"], libraries[1:]))
        self.ratios = {slot: [value(row["seconds"][name]) / whole for value in (min, statistics.median, max)]
                       for slot, name in enumerate(libraries) if row["seconds"].get(name)}

    def values(self):
        return [value for ratios in self.ratios.values() for value in ratios]

    def drawn(self, axis, y):
        parts = [text("text", LEFT - 12, y + 4, self.name, 'text-anchor="end"')]
        # Ours last, above the others.
        for slot, (least, median, greatest) in reversed(self.ratios.items()):
            parts += [f'<path class="c{slot}" fill="none" stroke-width="1.5" d="M{axis.place(least)} {y:g}H{axis.place(greatest)}"/>', marker(slot, axis.place(median), y)]
        return [*parts, text("text", WIDTH - 14, y + 4, f"{self.ratios[0][1]:.2f}", 'text-anchor="end"')]


class Axis:
    """A logarithmic axis, by halves and doubles, that has all values and 1."""

    def __init__(self, values):
        self.low = math.floor(math.log2(min([1, *values])))
        self.high = math.ceil(math.log2(max([1, *values])))

    def ticks(self):
        return [2.0 ** power for power in range(self.low, self.high + 1)]

    def place(self, value):
        share = (math.log2(value) - self.low) / max(self.high - self.low, 1)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def marker(slot, x, y):
    return f'<path class="c{slot} mark" d="M{x:g} {y:g}{MARKERS[slot]}"/>'


def text(kind, x, y, said, more=""):
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" {more}>{html.escape(said)}</text>'


def style():
    def rules(shade):
        lines = []
        for name, colours in COLOURS.items():
            is_line = name in ("grid", "axis") or name.startswith("c")
            lines.append(f".{name} {{ {'stroke' if is_line else 'fill'}: {colours[shade]} }}")
            if name.startswith("c"):
                lines.append(f".{name}.mark {{ fill: {colours[shade]}; stroke: none }}")
        return " ".join(lines)

    return f"<style>{rules(0)} @media (prefers-color-scheme: dark) {{ {rules(1)} }}</style>"

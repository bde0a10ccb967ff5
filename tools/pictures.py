"""Pictures of documents: bars on a linear axis, of the cells of a table of results, and diagrams of boxes and arrows.

Each is as wide as a phone, has the colours of the reports, and follows the reader's choice of light or dark.
"""

import html
import re
import textwrap

WIDTH, MARGIN, SIZE = 420, 12, 15
LABEL, ROW, LINE = 158, 36, 20
# Of a diagram: between columns, where lines have their words; of a row of boxes, and between rows.
GAP, HIGH, BETWEEN = 57, 58, 34
SECONDS = {"s": 1.0, "ms": 0.001}
# As in crates/marline-report/src/html/style.css.
STYLE = """<style>
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif}
.paper{fill:#fdfdfb}.ink{fill:#1c1f24}.quiet{fill:#5d6570}.ours{fill:#0a5c9e}.theirs{fill:#b4bac2}
.box{fill:#f4f5f3;stroke:#b4bac2}.own{fill:#f4f5f3;stroke:#0a5c9e;stroke-width:2.5}.line{stroke:#5d6570;fill:none}
@media (prefers-color-scheme:dark){
.paper{fill:#14171b}.ink{fill:#e7e9ec}.quiet{fill:#9aa3ae}.ours{fill:#6cb4f5}.theirs{fill:#4a525d}
.box{fill:#1c2026;stroke:#4a525d}.own{fill:#1c2026;stroke:#6cb4f5}.line{stroke:#9aa3ae}
}
</style>"""


def amount(cell, unit):
    """The number that a cell begins with: a time in seconds, or a number alone, in another unit; `None` if it is neither."""
    if unit == "s":
        found = re.match(r"([0-9.]+) (s|ms)\b", cell)
        return float(found[1]) * SECONDS[found[2]] if found else None
    found = re.match(r"([0-9.]+)(?: \(|$)", cell)
    return float(found[1]) if found else None


def text(x, y, words, kind="ink", anchor="start", weight="normal", size=SIZE):
    return (
        f"<text class='{kind}' x='{x:g}' y='{y:g}' text-anchor='{anchor}' font-weight='{weight}' font-size='{size}'>"
        f"{html.escape(words)}</text>"
    )


def page(title, height, lines):
    """The picture of `lines`, with its ground."""
    return "\n".join(
        [
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height:g}' width='{WIDTH}' height='{height:g}' role='img'>",
            f"<title>{html.escape(title)}</title>",
            STYLE,
            f"<rect class='paper' width='{WIDTH}' height='{height:g}'/>",
            *lines,
            "</svg>",
            "",
        ]
    )


def bars(title, each, unit):
    """A bar for each of `each`: label, amount, whether it is ours."""
    heading = textwrap.wrap(title, 42)
    lines = [text(MARGIN, 26 + LINE * place, words, weight="bold") for place, words in enumerate(heading)]
    top = 20 + LINE * len(heading)
    longest = max(value for _, value, _ in each)
    room = WIDTH - LABEL - 48 - 10 * len(unit)
    for place, (label, value, is_ours) in enumerate(each):
        y = top + ROW * place
        long = max(2.0, room * value / longest)
        weight = "bold" if is_ours else "normal"
        kind = "ours" if is_ours else "theirs"
        lines.append(text(LABEL - 8, y + 20, label, anchor="end", weight=weight))
        lines.append(f"<rect class='{kind}' x='{LABEL}' y='{y + 3}' width='{long:.1f}' height='{ROW - 12}' rx='2'/>")
        lines.append(text(round(LABEL + long + 8, 1), y + 20, f"{value:.3g} {unit}", weight=weight))
    return page(title, top + ROW * len(each) + 6, lines)


def diagram(title, boxes, lines):
    """`boxes` by name, each with its column and row `at`, its `text` and perhaps `own`; `lines` between them with words."""
    columns = 1 + max(box["at"][0] for box in boxes.values())
    rows = 1 + max(box["at"][1] for box in boxes.values())
    wide = (WIDTH - 2 * MARGIN - GAP * (columns - 1)) / columns

    def corner(box):
        column, row = box["at"]
        return MARGIN + column * (wide + GAP), MARGIN + row * (HIGH + BETWEEN)

    drawn = []
    for line in lines:
        (x, y), (to_x, to_y) = corner(boxes[line["from"]]), corner(boxes[line["to"]])
        words = line.get("text", "")
        if x == to_x:
            x, to_x = x + wide / 2, to_x + wide / 2
            y, to_y = (y + HIGH, to_y) if y < to_y else (y, to_y + HIGH)
            words = text(x + 8, (y + to_y) / 2 + 4, words, "quiet", size=13) if words else ""
        else:
            x, to_x, y, to_y = x + wide, to_x, y + HIGH / 2, to_y + HIGH / 2
            words = text((x + to_x) / 2, min(y, to_y) - 7, words, "quiet", "middle", size=12) if words else ""
        drawn += [words] if words else []
        drawn.append(f"<path class='line' d='M{x:g} {y:g}L{to_x:g} {to_y:g}'/>")
        drawn.append(f"<circle class='quiet' cx='{to_x:g}' cy='{to_y:g}' r='4'/>")
    for box in boxes.values():
        x, y = corner(box)
        kind = "own" if box.get("own") else "box"
        drawn.append(f"<rect class='{kind}' x='{x:g}' y='{y:g}' width='{wide:g}' height='{HIGH}' rx='6'/>")
        words = [part for given in box["text"].split("\n") for part in textwrap.wrap(given, int(wide / 7.4))]
        for place, part in enumerate(words):
            top = y + HIGH / 2 + 5 - 17 * (len(words) - 1) / 2
            weight = "bold" if place == 0 else "normal"
            drawn.append(text(x + wide / 2, top + 17 * place, part, anchor="middle", weight=weight, size=13))
    return page(title, 2 * MARGIN + rows * HIGH + (rows - 1) * BETWEEN, drawn)

"""Pictures of the guide: horizontal bars on a linear axis, drawn from the cells of a table of results."""

import html
import re

WIDTH, LABEL, ROW, TOP = 560, 190, 38, 44
FONT = "font-family='system-ui, sans-serif'"
OURS, OTHERS, TEXT, GROUND = "#0b57a4", "#b9b4a8", "#1c1f26", "#fdfdfb"
SECONDS = {"s": 1.0, "ms": 0.001}


def seconds(cell):
    """The time that a cell begins with; `None` if it is not one."""
    found = re.match(r"([0-9.]+) (s|ms)\b", cell)
    return float(found[1]) * SECONDS[found[2]] if found else None


def text(x, y, words, anchor="start", weight="normal", size=16):
    return f"<text x='{x:g}' y='{y:g}' text-anchor='{anchor}' font-weight='{weight}' font-size='{size}' fill='{TEXT}' {FONT}>{html.escape(words)}</text>"


def drawing(title, bars):
    """The picture of `bars`: label, seconds, whether it is ours."""
    height = TOP + ROW * len(bars) + 8
    longest = max(value for _, value, _ in bars)
    room = WIDTH - LABEL - 80
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' height='{height}' role='img'>",
        f"<title>{html.escape(title)}</title>",
        f"<rect width='{WIDTH}' height='{height}' fill='{GROUND}'/>",
        text(12, 26, title, weight="bold"),
    ]
    for place, (label, value, is_ours) in enumerate(bars):
        y = TOP + ROW * place
        long = max(2.0, room * value / longest)
        lines.append(text(LABEL - 10, y + 21, label, "end", "bold" if is_ours else "normal"))
        lines.append(
            f"<rect x='{LABEL}' y='{y + 3}' width='{long:.1f}' height='{ROW - 12}' rx='2' fill='{OURS if is_ours else OTHERS}'/>"
        )
        lines.append(text(LABEL + long + 8, y + 21, f"{value:.3g} s", weight="bold" if is_ours else "normal"))
    return "\n".join([*lines, "</svg>", ""])

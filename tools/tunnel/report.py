"""The tables and the picture of docs/tunnel-results.md."""

import json
import math
import pathlib
import statistics

from tunnel.cells import CONTROLLERS, LOSSES, cells, faded_sum, name

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

TITLES = {
    "plain": "plain, Wi-Fi",
    "mptcp": "MPTCP",
    "wireguard": "wireguard-go, Wi-Fi",
    "packets": "tunnel, packets",
    "packets-wifi": "tunnel, packets, Wi-Fi alone",
    "streams-wifi": "tunnel, streams, Wi-Fi alone",
    "streams": "tunnel, streams",
}
COLOURS = {
    "plain": "#8a8a8a",
    "mptcp": "#b8860b",
    "wireguard": "#6a5acd",
    "packets": "#5f9ea0",
    "packets-wifi": "#a9c9ca",
    "streams-wifi": "#7fb77e",
    "streams": "#2e7d32",
}

def report(path):
    results = {row["name"]: row for row in map(json.loads, pathlib.Path(path).read_text().splitlines())}

    def rate(direction, system, cc, loss):
        found = results.get(f"tunnel/transfer-{direction}-{system}-{cc}-{loss}")
        return found and found["mbps"]

    for direction in ("down", "up"):
        table(f"transfers {direction}", ["controller", *(f"{loss} %" for loss in LOSSES)], [
            [TITLES[system], cc.upper(), *(shown(rate(direction, system, cc, loss)) for loss in LOSSES)]
            for system in TITLES
            for cc in CONTROLLERS.get(system, ["cubic", "bbr"])
        ])
    by_kind = {}
    for cell in cells():
        row = results.get(name(cell))
        if row:
            by_kind.setdefault(cell["kind"], []).append(row)
    call = ("lost", "lost_in_a_row", "median_ms", "p95_ms", "p999_ms", "max_ms")
    heading = ["lost", "in a row", "median", "p95", "p99.9", "longest"]
    table("calls", ["losses", "direction", *heading], [
        [TITLES[row["system"]], f"{row['loss']} %", direction, *(row[direction][key] for key in call)]
        for row in by_kind.get("call", ())
        for direction in ("down", "up")
    ])
    table("keys", ["losses", "hand-overs", "keys", "median", "p95", "p99.9", "longest"], [
        [TITLES[row["system"]], f"{row['loss']} %", "yes" if row["hand_over"] else "no", row["keys"], *(row[key] for key in call[2:])]
        for row in by_kind.get("keys", ())
    ])
    grid = {(row["system"], row["cc"], row["loss"]): row["mbps"] for row in by_kind.get("quic", ())}
    table("quic", ["controller", *(f"{loss} %" for loss in LOSSES)], [
        [TITLES[system], cc, *(shown(grid.get((system, cc, loss))) for loss in LOSSES)]
        for cc in ("cubic", "default")
        for system in ("plain", "wireguard", "packets")
    ])
    print(f"\nfading: both networks carry {faded_sum():.1f} Mbit/s")
    paired(by_kind.get("fading", ()), "fading", ("cubic", "bbr"))
    table("shared", ["controller", "Mbit/s", "of the flow beside it"], [
        [TITLES[row["system"]], row["cc"].upper(), shown(row["mbps"]), shown(row["rival_mbps"])] for row in by_kind.get("shared", ())
    ])
    table("busy", ["losses", "transfer", "its Mbit/s", "direction of the call", *heading], [
        [TITLES[row["system"]], f"{row['loss']} %", row["direction"], shown(row["mbps"]), direction, *(row[f"{direction}_call"][key] for key in call)]
        for row in by_kind.get("busy", ())
        for direction in ("down", "up")
    ])
    paired(by_kind.get("mobile", ()), "mobile", ("cubic",))
    table("stalled", ["stalled", "Mbit/s of one more"], [[TITLES[row["system"]], row["stalled"], shown(row["mbps"])] for row in by_kind.get("stalled", ())])
    table("page", ["losses", "ms, sorted", "median"], [
        [TITLES[row["system"]], f"{row['loss']} %", ", ".join(map(str, sorted(row["ms"]))), round(statistics.median(row["ms"]))]
        for row in by_kind.get("page", ())
    ])
    transfers = [cell for cell in cells() if cell["kind"] == "transfer"]
    if all(name(cell) in results for cell in transfers):
        (ROOT / "docs/tunnel-results.svg").write_text(transfers_picture(rate))
    (ROOT / "docs/tunnel-delays.svg").write_text(delays_picture(results))


def paired(rows, kind, controllers):
    found = {(row["system"], row["cc"], row["direction"]): row for row in rows}
    cell = lambda key, column: "" if key not in found else f"{found[key][column]:.1f}"
    table(kind, ["controller", "down", "longest pause, s", "up", "longest pause, s"], [
        [TITLES[system], cc.upper(), *(cell((system, cc, direction), column) for direction in ("down", "up") for column in ("mbps", "longest_pause_s"))]
        for system in TITLES
        for cc in controllers
        if (system, cc, "down") in found
    ])


def shown(value):
    return "" if value is None else f"{value:.1f}"


def table(title, columns, rows):
    print(f"\n### {title}\n\n| | {' | '.join(columns)} |\n| --- |" + " --- |" * len(columns))
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")


# Title, the name of a cell without its system, and its milliseconds.
DELAYS = [
    ("a key of SSH at 2 % of losses, p99.9", "keys-{}-2", lambda row: row["p999_ms"]),
    ("a key of SSH through hand-overs, p95", "keys-{}-moving-0", lambda row: row["p95_ms"]),
    ("a download through hand-overs, longest pause", "mobile-down-{}-cubic-0", lambda row: 1000 * row["longest_pause_s"]),
    ("a call beside a download, p95", "busy-down-{}-0", lambda row: row["down_call"]["p95_ms"]),
]


def delays_picture(results):
    """Delays of programs, on a logarithmic axis, a group of bars for each."""
    width, left, bar, gap = 900, 190, 16, 34
    systems = ["plain", "mptcp", "wireguard", "packets", "streams"]
    least, most = 1, 4.4
    scale = (width - left - 90) / (most - least)
    parts, y = [], 16
    text = lambda x, y, content, anchor="start", weight="normal": parts.append(
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="#222222">{content}</text>'
    )
    for title, cell, delay in DELAYS:
        text(10, y + 12, title, weight="bold")
        y += 22
        for system in systems:
            row = results.get("tunnel/" + cell.format(system))
            if row:
                ms = delay(row)
                length = (math.log10(ms) - least) * scale
                text(left - 8, y + 12, TITLES[system], "end")
                parts.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{bar - 2}" fill="{COLOURS[system]}"/>')
                text(left + length + 6, y + 12, f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms")
                y += bar
        y += gap - 22
    lines = []
    for power, label in ((1, "10 ms"), (2, "100 ms"), (3, "1 s"), (4, "10 s")):
        x = left + (power - least) * scale
        lines.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="30" y2="{y}" stroke="#dddddd"/>')
        text(x, y + 14, label, "middle")
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + 26}" font-family="sans-serif" font-size="12" role="img">',
        "<title>Delays of programs over two networks, on a logarithmic axis</title>",
        f'<rect width="{width}" height="{y + 26}" fill="#ffffff"/>',
    ]
    return "\n".join([*head, *lines, *parts, "</svg>\n"])


def transfers_picture(rate):
    """Mbit/s of downloads and uploads with CUBIC by the losses, a group of bars for each."""
    width, height, left, top, bottom = 900, 400, 50, 40, 100
    most = 30
    scale = (height - top - bottom) / most
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" role="img">',
        "<title>Mbit/s of one connection of TCP with CUBIC over two networks, by the packets that are lost</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    text = lambda x, y, content, anchor="middle": parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#222222">{content}</text>')
    for value in range(0, most + 1, 10):
        y = height - bottom - value * scale
        parts.append(f'<line x1="{left}" x2="{width - 10}" y1="{y}" y2="{y}" stroke="#dddddd"/>')
        text(left - 6, y + 4, value, "end")
    text(left - 40, top - 22, "Mbit/s", "start")
    group = (width - left - 20) / (2 * len(LOSSES))
    bar = (group - 14) / len(TITLES)
    for side, direction in enumerate(("down", "up")):
        for place, loss in enumerate(LOSSES):
            x = left + (side * len(LOSSES) + place) * group + 7
            text(x + group / 2 - 7, height - bottom + 16, f"{loss} %")
            for number, system in enumerate(TITLES):
                value = rate(direction, system, "cubic", loss)
                if value is not None:
                    parts.append(f'<rect x="{x + number * bar:.1f}" y="{height - bottom - value * scale:.1f}" width="{bar - 1:.1f}" height="{value * scale:.1f}" fill="{COLOURS[system]}"/>')
        text(left + (side + 0.5) * len(LOSSES) * group, height - bottom + 34, {"down": "downloads", "up": "uploads"}[direction])
    for number, (system, title) in enumerate(TITLES.items()):
        x, y = left + number % 4 * 215, height - 48 + number // 4 * 24
        parts.append(f'<rect x="{x}" y="{y}" width="10" height="10" fill="{COLOURS[system]}"/>')
        text(x + 14, y + 9, title, "start")
    return "\n".join([*parts, "</svg>\n"])

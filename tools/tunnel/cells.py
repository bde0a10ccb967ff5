"""What is measured: the networks, the systems, and a cell for each run."""

import math
import random

# Name, Mbit/s, round-trip time in ms.
NETWORKS = [("Wi-Fi", 20, 30), ("LTE", 10, 65)]
# Packets that wait before a bottleneck, beyond those on their way: 100 ms.
QUEUE_SECONDS = 0.1
# Mbit/s of the bottleneck of both networks, where they share one.
SHARED_RATE = 20
SERVER = "192.0.2.1"
HOST = "10.3.0.2"
TRANSFER_SECONDS = 10
FADING_SECONDS = 30
SHARED_SECONDS = 30
# Before it, both flows find their rates.
SHARED_SKIPPED = 5
MOBILE_SECONDS = 60
CALL_SECONDS = 60
BUSY_SECONDS = 30
KEY_SECONDS = 300
HAND_OVER_SECONDS = 10
FADING_STEP = 0.5
CALL_INTERVAL = 0.02
CALL_BYTES = 160
QUIC_BYTES = 20_000_000
PAGE_OBJECTS = 40
PAGE_BYTES = 30_000
PAGE_LOADS = 5
LOSSES = [0, 1, 2, 3]
# Two percent, as bursts of four: netem's model of Gilbert and Elliott.
BURSTS = "gemodel 0.5% 25% 100% 0%"
SYSTEMS = ["plain", "mptcp", "wireguard", "packets", "packets-wifi", "streams", "streams-wifi"]
COMPARED = ["plain", "mptcp", "wireguard", "packets", "streams"]
# The controller of TCP does not see the losses where the tunnel splits connections.
CONTROLLERS = {"streams-wifi": ["cubic"]}
# A connection that carries no MPTCP.
PLAIN_UDP = ["plain", "wireguard", "packets", "streams"]


def cells():
    """All cells: those that decide the claims first."""
    for loss in sorted(LOSSES, key=lambda loss: (loss not in (0, 2), loss)):
        for direction in ("down", "up"):
            for system in SYSTEMS:
                for cc in CONTROLLERS.get(system, ["cubic", "bbr"]):
                    yield {"kind": "transfer", "direction": direction, "loss": loss, "system": system, "cc": cc}
    for system in ("plain", "wireguard", "packets"):
        yield {"kind": "call", "system": system, "loss": 0}
        yield {"kind": "call", "system": system, "loss": 2}
    for hand_over in (False, True):
        for loss in (0, 2):
            for system in COMPARED:
                yield {"kind": "keys", "system": system, "hand_over": hand_over, "loss": loss}
    for loss in LOSSES:
        for cc in ("cubic", "default"):
            for system in ("plain", "wireguard", "packets"):
                yield {"kind": "quic", "system": system, "cc": cc, "loss": loss}
    for direction in ("down", "up"):
        for system in COMPARED:
            for cc in ("cubic", "bbr"):
                yield {"kind": "fading", "direction": direction, "system": system, "cc": cc, "loss": BURSTS}
    for cc in ("cubic", "bbr"):
        for system in ("plain", "mptcp", "packets", "streams"):
            yield {"kind": "shared", "direction": "down", "system": system, "cc": cc, "loss": 0}
    for loss in (0, 2):
        for direction in ("down", "up"):
            for system in PLAIN_UDP:
                yield {"kind": "busy", "direction": direction, "system": system, "loss": loss}
    for direction in ("down", "up"):
        for system in COMPARED:
            yield {"kind": "mobile", "direction": direction, "system": system, "cc": "cubic", "loss": 0}
    for stalled in (0, 16, 64):
        yield {"kind": "stalled", "direction": "down", "system": "streams", "stalled": stalled, "loss": 0}
    for loss in (0, 2):
        for system in ("plain", "mptcp", "streams"):
            yield {"kind": "page", "system": system, "loss": loss}


def name(cell):
    words = [cell["kind"]]
    words += [str(cell[key]) for key in ("direction", "system", "cc", "stalled") if key in cell]
    if cell.get("hand_over"):
        words.append("moving")
    words.append("bursts" if cell["loss"] == BURSTS else str(cell["loss"]))
    return "tunnel/" + "-".join(words)


def fading(number):
    """The Mbit/s of a network in each step: a walk whose logarithm returns to the middle, the same in every run."""
    _, rate, _ = NETWORKS[number]
    draws, walk = random.Random(number + 1), 0.0
    for _ in range(round(FADING_SECONDS / FADING_STEP)):
        walk = 0.8 * walk + draws.gauss(0, 0.4)
        yield round(rate * min(2.0, max(0.1, math.exp(walk))), 2)


def faded_sum():
    """The mean of what both networks carry together, in Mbit/s."""
    steps = [sum(rates) for rates in zip(fading(0), fading(1))]
    return sum(steps) / len(steps)

"""Runs the shared test vectors of the operations that the package has.

As a program it prints a line for each case that fails, and the sum that ``tools/vectors.sh`` adds up.
"""

import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marline.flows.sessions import Flows, scan, session_of, summarise
from marline.flows.sessions.scan import NONE, Whole
from marline.transfers import Dispersion, Passage, Phase, PhaseSince, Trace

OWN = Path(__file__).resolve().parents[2] / "vectors"
DIRECTORY = Path(os.environ.get("MARLINE_VECTORS") or OWN)
OWNERS = json.loads((OWN / "owners.json").read_text())


def idi(case: Any) -> object:
    index = Dispersion(case["n"], overlapping=case["overlapping"], of_sample=case["ddof"] == 1)
    return {"j": index.of(case["intervals"])}


def features(case: Any) -> object:
    trace = case["trace"]
    passages = {end: [Passage(packet["id"], packet["t_us"]) for packet in trace[end]] for end in ("sent", "received")}
    phases = [PhaseSince(Phase(since["state"]), since["t_us"]) for since in trace["states"]]
    described = Trace(
        sent=passages["sent"],
        received=passages["received"],
        acks=trace["acks"],
        windows_bytes=trace["cwnd"],
        phases=phases,
        end_us=trace["end_us"],
    )
    return described.features(case["idi_n"])


def found_sessions(case: Any) -> object:
    flows = case["flows"]
    # A number for each peer, in the place of the engines' hashes.
    peers = [(flow["client_ip"], flow["server_ip"], flow["domain"]) for flow in flows]
    keys = [sorted(set(peers)).index(peer) for peer in peers]
    order = sorted(range(len(flows)), key=lambda at: (keys[at], flows[at]["start_ms"]))

    def column(value: Callable[[int], int]) -> Whole:
        return np.array([value(at) for at in order], dtype=np.int64)

    zero = column(lambda _: 0)
    start, end = (column(lambda at, name=name: flows[at][name]) for name in ("start_ms", "end_ms"))  # type: ignore[misc]
    batch = Flows(column(lambda at: keys[at]), zero, start, end, column(lambda at: flows[at]["client_port"]), zero)
    found = list(scan([batch], case["max_gap_ms"]))
    counts = [int(count) for one in found for count in one.flows]
    parallel = [bool(one) for batch in found for one in batch.parallel]
    listed = []
    first = 0
    for count, several in zip(counts, parallel, strict=True):
        members = order[first : first + count]
        listed.append({"start_ms": flows[members[0]]["start_ms"], "flows": members, "parallel": several})
        first += count
    summary = summarise(found)
    return {
        "sessions": sorted(listed, key=lambda one: (one["start_ms"], one["flows"])),
        "isolated_sessions": summary.isolated_sessions,
        "parallel_sessions": summary.parallel_sessions,
        "isolated_flows": summary.isolated_flows,
        "parallel_flows": summary.parallel_flows,
    }


def time_overlap(case: Any) -> object:
    flows = case["flows"]
    order = sorted(range(len(flows)), key=lambda at: flows[at]["start_ms"])
    start, end = (np.array([flows[at][name] for at in order], dtype=np.int64) for name in ("start_ms", "end_ms"))
    found = session_of(start, end, start, start)
    other, p = int(found.overlapping[0]), float(found.time_overlap_percent[0])
    return {
        "longest": order[int(found.longest[0])],
        "overlapping": None if other == NONE else order[other],
        "overlap_ms": int(found.overlap_us[0]),
        "p": None if math.isnan(p) else p,
    }


def data_overlap(case: Any) -> object:
    sizes = np.array(case["sizes"], dtype=np.int64)
    r = float(session_of(sizes, sizes, sizes, sizes).data_overlap_percent[0])
    return {"r": None if math.isnan(r) else r}


ANSWERS: dict[str, Callable[[Any], object]] = {
    "idi": idi,
    "features": features,
    "sessions": found_sessions,
    "time_overlap": time_overlap,
    "data_overlap": data_overlap,
}


def agrees(ours: object, theirs: object, tolerance: float) -> bool:
    """Whether two values are the same, numbers up to ``tolerance`` of the larger."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(agrees(ours[key], theirs[key], tolerance) for key in ours)
    if isinstance(ours, float | int) and isinstance(theirs, float | int):
        return math.isclose(ours, theirs, rel_tol=tolerance)
    return ours == theirs


def cases() -> list[Any]:
    """Those of the operations that ``owners.json`` gives to the package."""
    found = []
    for path in sorted(DIRECTORY.glob("*.json")):
        if path.name == "owners.json":
            continue
        document = json.loads(path.read_text())
        tolerance = document.get("relative_tolerance", 1e-9)
        ours = (case for case in document["cases"] if "package" in OWNERS.get(case["op"], {}))
        found += [{**case, "tolerance": tolerance} for case in ours]
    return found


def failure(case: Any) -> str | None:
    """The error in our answer to a case."""
    answer = ANSWERS.get(case["op"])
    if answer is None:
        return f"the package does not answer `{case['op']}`"
    ours = answer(case["input"])
    return None if agrees(ours, case["expected"], case["tolerance"]) else f"expected {case['expected']}, is {ours}"


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_the_package_agrees_with_the_vector(case: Any) -> None:
    assert failure(case) is None


def test_each_operation_of_the_package_has_vectors() -> None:
    assert {case["op"] for case in cases()} == ANSWERS.keys()


def main() -> int:
    failures = {case["id"]: why for case in cases() if (why := failure(case))}
    for name, why in failures.items():
        print(f"{name}: {why}")
    alone = sum("crate" not in OWNERS[case["op"]] for case in cases())
    print(f"python: {len(cases()) - len(failures)} passed, {len(failures)} failed, {alone} of no crate")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

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

import pytest

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


ANSWERS: dict[str, Callable[[Any], object]] = {"idi": idi, "features": features}


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
    """What is wrong with our answer to a case."""
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

"""The limit of slow start on an unknown path, and the tables of ``tools/limits.py``."""

from pathlib import Path

import pytest

import limits

LINK = "run,variant,over,fetch,status,completion_s,ideal_s\n"
GRID = "run,variant,link.rate,link.rtt,link.buffer,losses,fetch,status,completion_s,ideal_s\n"


def written(directory: Path, head: str, rows: list[str]) -> Path:
    """A file of runs."""
    path = directory / "runs.csv"
    path.write_text(head + "".join(f"{number},{row}\n" for number, row in enumerate(rows)), encoding="utf-8")
    return path


def test_what_fits_into_the_window_takes_no_round_trip() -> None:
    assert limits.slow_start(12_000, 1e6, 0.1) == pytest.approx(0.012)


def test_the_window_doubles_until_it_fills_the_link() -> None:
    # 12, 24 and 48 kB in a round trip each; the next 96 kB would be more than the 50 kB of the path.
    assert limits.slow_start(184_000, 0.5e6, 0.1) == pytest.approx(0.3 + 100_000 / 0.5e6)


def test_a_link_that_loses_nothing_and_carries_its_rate_is_limited_by_slow_start_alone(tmp_path: Path) -> None:
    # 8 Mb/s and 100 ms: 0.2 s for handshake and request, and a byte a microsecond.
    rows = [
        f"default,far,{name},ok,{0.2 + size / 1e6 + 0.2},{0.2 + size / 1e6}"
        for name, size in (("10_mb", 10e6), ("50_mb", 50e6))
    ]
    [link] = limits.links(written(tmp_path, LINK, [*rows, "default,far,1_mb,ok,1.6,1.2"]))
    assert (link.name, link.fastest) == ("far", "default")
    assert link.rate == pytest.approx(1e6)
    # 12, 24, 48 and 96 kB until the window is more than the 100 kB of the path.
    assert link.transfers["1_mb"].limit == pytest.approx(0.2 + 0.4 + 0.82)
    assert link.transfers["1_mb"].default == pytest.approx(1.6)


def test_a_controller_with_a_run_that_did_not_end_is_not_the_fastest(tmp_path: Path) -> None:
    rows = [
        f"{variant},far,{name},ok,{took},{ideal}"
        for variant, factor in (("default", 2), ("bbr", 1))
        for name, took, ideal in (
            ("1_mb", 1.2 * factor, 1.2),
            ("10_mb", 10.2 * factor, 10.2),
            ("50_mb", 50.2 * factor, 50.2),
        )
    ]
    [link] = limits.links(written(tmp_path, LINK, [*rows, "bbr,far,50_mb,failed,,"]))
    assert link.fastest == "default"


def test_points_of_the_grid_are_counted_by_losses_and_other_objects_are_left_out(tmp_path: Path) -> None:
    point = "wireless,8mbps,100ms,1bdp"
    rows = [
        f"{point},{losses},{name},ok,{took},{ideal}"
        for losses in ("none", "1")
        for name, took, ideal in (("100_kb", 0.4, 0.3), ("1_mb", 1.6, 1.2), ("10_mb", 10.6, 10.2))
    ]
    seen = limits.grid(written(tmp_path, GRID, rows))
    assert {losses: len(found) for losses, found in seen["1_mb"].items()} == {"none": 1, "1": 1, "all": 2}
    assert seen["1_mb"]["none"][0].limit == pytest.approx(0.2 + 0.4 + 0.82)
    assert set(seen) == {"1_mb", "10_mb"}

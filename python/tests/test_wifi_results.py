"""The determinants in docs/wifi-results.md match the results of `make determinants`."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from marline.transfers.features import feature

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "wifi-results.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text below a title, in one line."""
    return re.sub(r"\s+", " ", re.split(r"\n##+ ", PAGE.partition(f"\n{title}\n")[2])[0])


SECTION = section("## Determinants")
STATES = section("### States and windows")
FOUND: dict[str, Any] = json.loads(Path(__file__).with_name("determinants.json").read_text(encoding="utf-8"))
FAST = ("RP2", "RP3", "RP6", "RP7")
SLOW = ("RP1", "RP4", "RP5", "RP8")


def root(tree: dict[str, Any]) -> str:
    """Its first question, whichever end it is about."""
    return feature(tree["root"]).label.removeprefix("server ").removeprefix("client ")


def as_written(label: str) -> str:
    return {"inter-packet time variance": "variance of the inter-packet time"}.get(label, label)


def correlations(subject: str, column: str, sites: Iterable[str]) -> list[float]:
    at = FOUND["subjects"][subject]["rank_correlations"]
    return [at[site][column] for site in sites]


@pytest.mark.parametrize("name", FOUND["subjects"])
def test_the_page_has_the_row_of_each_protocol(name: str) -> None:
    subject = FOUND["subjects"][name]
    every, others = subject["trees"]["all"], subject["trees"]["without_mean_ipt"]
    cells = [
        name if name == "all" else f"`{name}`",
        f"{subject['largest_class_percent']:.0f} %",
        f"{every['accuracy_percent']:.1f} %",
        as_written(root(every)),
        f"{others['accuracy_percent']:.1f} %",
        as_written(root(others)),
        f"{others['held_back_percent']:.0f} %",
        f"{subject['mean_window_alone_percent']:.0f} %",
    ]
    assert f"| {' | '.join(cells)} |" in PAGE


def test_the_page_says_how_many_transfers_there_are() -> None:
    assert f"{FOUND['rows']} rows in a full run" in SECTION


def test_no_tree_begins_with_the_mean_window() -> None:
    assert "**The mean window is at no root.**" in SECTION
    trees = (tree for subject in FOUND["subjects"].values() for tree in subject["trees"].values())
    assert "mean_cwnd_bytes" not in {tree["root"] for tree in trees}


def test_the_window_is_that_of_the_queue_too() -> None:
    assert "QUIC's is larger at RP4 than at RP3, which is much faster" in SECTION
    slow, fast = (FOUND["transfers"]["quic"][site] for site in ("RP4", "RP3"))
    assert slow["median_window_bytes"] > fast["median_window_bytes"]
    assert fast["median_mbps"] > 5 * slow["median_mbps"]


def test_the_throughput_of_one_client_follows_the_window_where_the_page_says() -> None:
    assert "Among QUIC's transfers at RP2, RP3, RP6 and RP7, the fast Wi-Fi links, the throughput follows" in SECTION
    columns = ("mean_cwnd_bytes", "slow_start_freq_percent", "server_burstiness")
    assert min(value for column in columns for value in correlations("quic", column, FAST)) > 0.7
    assert "At RP1, RP4, RP5 and RP8 it does not" in SECTION
    assert max(correlations("quic", "mean_cwnd_bytes", SLOW)) < 0
    assert "**TCP's window decides little**" in SECTION
    assert max(correlations("tcp", "mean_cwnd_bytes", (*FAST, *SLOW))) < 0.35


def test_windows_are_as_large_as_the_page_says() -> None:
    smallest = {
        protocol: {site: one["smallest_window_of_path"] for site, one in sites.items()}
        for protocol, sites in FOUND["transfers"].items()
    }
    assert "at least twice what the link takes in a round trip" in SECTION
    assert min(smallest["quic"][site] for site in SLOW) >= 2
    assert "more than what the link takes in a round trip" in SECTION
    assert min(smallest["tcp"].values()) > 1


def test_trees_of_one_client_begin_as_the_page_says() -> None:
    roots = FOUND["roots_by_site"]
    assert "begin with the mean window at RP2 and RP5" in SECTION
    assert [site for site, column in roots.items() if column == "mean_cwnd_bytes"] == ["RP2", "RP5"]
    assert "the time in slow start or congestion avoidance at RP3, RP6 and RP7" in SECTION
    times = {"slow_start_freq_percent", "congestion_avoidance_freq_percent"}
    assert {roots[site] for site in ("RP3", "RP6", "RP7")} <= times


def test_the_page_compares_the_shares_of_figure_6_8() -> None:
    assert "the study has 70 % with a mean window of less than the 340 kB" in STATES
    columns = ("below_optimum_percent", "below_half_of_it_percent", "smallest_window_of_path")
    for protocol in ("tcp", "quic", "bquic"):
        found = FOUND["transfers"][protocol]["RP3"]
        assert f"| `{protocol}` | {' | '.join(str(found[column]) for column in columns)} |" in STATES


def test_the_page_has_the_signs_of_figure_6_10() -> None:
    assert "Here it falls for TCP, and grows for QUIC and BQUIC" in STATES
    (tcp,), (quic,), (bquic,) = (
        correlations(protocol, "server_burstiness", ["RP3"]) for protocol in ("tcp", "quic", "bquic")
    )
    assert tcp < 0 < min(quic, bquic)

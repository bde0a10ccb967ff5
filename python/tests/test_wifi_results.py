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


def between(values: Iterable[float]) -> str:
    several = list(values)
    return f"{min(several):.2f} to {max(several):.2f}"


def correlations(subject: str, column: str, sites: Iterable[str]) -> str:
    at = FOUND["subjects"][subject]["rank_correlations"]
    return between(at[site][column] for site in sites)


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


@pytest.mark.parametrize(
    ("site", "said"), [("RP3", "{0:.0f} kB at RP3, with {1:.0f} Mb/s"), ("RP4", "{0:.0f} kB at RP4, with {1:.1f} Mb/s")]
)
def test_the_page_has_the_medians_of_quic(site: str, said: str) -> None:
    at = FOUND["transfers"]["quic"][site]
    assert said.format(at["median_window_bytes"] / 1e3, at["median_mbps"]) in SECTION


def test_the_page_has_the_correlations_of_each_client() -> None:
    window, burstiness = "mean_cwnd_bytes", "server_burstiness"
    said = [
        f"(rank correlation {correlations('quic', window, FAST)})",
        f"the time in slow start ({correlations('quic', 'slow_start_freq_percent', FAST)})",
        f"the server's burstiness ({correlations('quic', burstiness, FAST)})",
        f"At RP1, RP4, RP5 and RP8 it does not ({correlations('quic', window, SLOW)})",
        f"**TCP's window decides little** ({correlations('tcp', window, (*FAST, *SLOW))})",
    ]
    assert [text for text in said if text not in SECTION] == []


def test_windows_are_as_large_as_the_page_says() -> None:
    smallest = {
        protocol: {site: one["smallest_window_of_path"] for site, one in sites.items()}
        for protocol, sites in FOUND["transfers"].items()
    }
    assert "at least twice what the link takes in a round trip" in SECTION
    assert min(smallest["quic"][site] for site in SLOW) >= 2
    assert f"{min(smallest['tcp'].values()):.1f} times or more what the link takes in a round trip" in SECTION


def test_trees_of_one_client_begin_as_the_page_says() -> None:
    roots = FOUND["roots_by_site"]
    assert "begin with the mean window at RP2 and RP5" in SECTION
    assert [site for site, column in roots.items() if column == "mean_cwnd_bytes"] == ["RP2", "RP5"]
    assert "the time in slow start or congestion avoidance at RP3, RP6 and RP7" in SECTION
    times = {"slow_start_freq_percent", "congestion_avoidance_freq_percent"}
    assert {roots[site] for site in ("RP3", "RP6", "RP7")} <= times


def test_the_page_has_the_shares_of_figure_6_8() -> None:
    quic, bquic, tcp = (FOUND["transfers"][protocol]["RP3"] for protocol in ("quic", "bquic", "tcp"))
    below = "below_optimum_percent"
    assert f"{quic[below]:.0f} % of QUIC's have less, none less than half" in STATES
    assert f"{bquic[below]:.0f} % of BQUIC's, and none of TCP's" in STATES
    assert quic["below_half_of_it_percent"] == 0
    assert tcp[below] == 0


def test_the_page_has_the_correlations_of_figure_6_10() -> None:
    tcp, quic, bquic = (
        FOUND["subjects"][protocol]["rank_correlations"]["RP3"]["server_burstiness"]
        for protocol in ("tcp", "quic", "bquic")
    )
    assert f"{tcp:.2f} for TCP, {quic:.2f} for QUIC, {bquic:.2f} for BQUIC" in STATES

"""One page of what was found in the flows of a run, beside what the thesis found in its own."""

import base64
import csv
from functools import partial
from pathlib import Path
from typing import Any, Final

import duckdb

from marline.pages import Page, Table

TITLES: Final = {"random_forest": "Random Forest", "c45": "C4.5", "nbtree": "NBTree", "bayesnet": "BayesNet"}
THEIRS: Final = {"random_forest": "random_forest", "c45": "c4_5", "nbtree": "nb_tree", "bayesnet": "bayes_net"}

QUANTITIES: Final = {
    "duration_s": "duration, s",
    "client_packets": "packets of the client",
    "server_packets": "packets of the server",
    "client_bytes_per_packet": "bytes a packet of the client",
    "server_bytes_per_packet": "bytes a packet of the server",
    "client_bytes": "bytes of the client",
    "server_bytes": "bytes of the server",
}

LIMITS: Final = (
    "All flows are of this machine: pages with the object counts and sizes of published ones and random content, one "
    "server program, three client programs, emulated links. They show that capture, labels and analyses work together, "
    "and how far the numbers of a flow tell its version among such clients. They say nothing of the share of versions "
    "in a network, nor of the accuracy there: an hour of a campus has thousands of clients and servers, other "
    "time-outs, and flows of minutes."
)


def page(results: dict[str, Any], out: Path, published: Path) -> str:
    """The page as HTML."""
    result = Page("Versions of HTTP in labelled traffic")
    result.answer(_answer(results["classify"]))
    result.lead("Thesis of J. Manzoor (2019), chapters 3 and 4, with packets of clients that load pages here.")
    result.text(LIMITS)
    result.section("The flows")
    for name in ("train", "test"):
        result.subsection(f"Set {name}")
        result.table(captures(results["sets"][name]))
        failed = [one for capture in results["sets"][name] for one in capture["failed"]]
        if failed:
            result.details(f"{len(failed)} visits failed", partial(Page.preformatted, text="\n".join(failed)))
    result.text(
        "Two sources label a flow: the handshake, opened with the secrets that the clients log, and the server's log "
        "of requests. A flow for which they differ has no label."
    )
    result.section("What flows are like (figure 3.3)")
    result.table(changes(results["characterise"], published))
    for name, title in (
        ("duration", "Duration (3.3a)"),
        ("packets", "Packets (3.3b)"),
        ("packet-size", "Mean size of packets (3.3c)"),
        ("bytes", "Bytes (3.3d)"),
        ("packet-sizes", "Sizes of packets (3.3e)"),
        ("packet-size-duration", "Size of packets and duration (3.3f)"),
        ("adoption", "Versions by service (3.2): as many as the plan has"),
    ):
        _figure(result, title, out / "characterise" / f"{name}.svg")
    result.section("Telling versions apart")
    result.text("Table 3.1: ours by cross-validation on the set train, and the thesis's (campus, residential).")
    result.table(algorithms(results["classify"], published))
    _figure(result, "Accuracy (figure 3.4)", out / "classify" / "accuracy.svg")
    _figure(result, "Confusions, percent of a class (figure 3.5)", out / "classify" / "confusion.svg")
    _figure(result, "Accuracy by name (figure 3.6)", out / "classify" / "services.svg")
    _figure(result, "Accuracy by the flows learnt from", out / "classify" / "learning-curve.svg")
    _figure(result, "Time of training (figure 3.7a)", out / "classify" / "training-time.svg")
    _figure(result, "Rate of classification (figure 3.7b)", out / "classify" / "classification-rate.svg")
    result.text("Accuracies without learning: of always one version, and by the transport alone, here and elsewhere.")
    result.table(baselines(results["classify"]))
    result.text("Elsewhere: learnt from the set train, tested with the set test, whose pages and links are others.")
    result.table(elsewhere(results["classify"]))
    result.text(
        "What Random Forest finds of the set test, by the packets that the server sends. Clients, server and pages are "
        "the same for all versions here: only the way of HTTP to use a connection tells them apart, and short flows "
        "show little of it. In the thesis's networks each service has its versions, time-outs and sizes, from which "
        "models can learn, too."
    )
    result.table(by_packets(results["found_by_packets"]))
    result.text("The thesis's months, Random Forest learnt from an hour of June 2016 (table 3.2):")
    result.table(_months(published))
    result.section("Parallel connections")
    result.text("Table 4.2 of the set train, by version, and the thesis's HTTP/2 and SPDY.")
    result.table(sessions(results["sessions"], published))
    result.text("The session of HTTP/2 with most flows, as table 4.3 has one:")
    result.table(_example(out / "train.parquet"))
    for name, title in (
        ("flows-per-session", "Flows of a session of HTTP/2 (figure 4.3)"),
        ("time-overlap", "Time overlap (figure 4.4)"),
        ("longest-flows", "Sessions by their longest flow (figure 4.5)"),
        ("time-overlap-by-duration", "Time overlap by the longest flow (figure 4.6)"),
        ("data-overlap-by-size", "Data overlap by the largest flow (figure 4.7)"),
    ):
        _figure(result, title, out / "sessions-h2" / f"{name}.svg")
    return result.footer([("repeat this", "make flows")]).render()


def algorithms(classify: dict[str, Any], published: Path) -> Table:
    """Table 3.1, ours and theirs."""
    theirs = {
        (row["algorithm"], row["dataset"]): row for row in _rows(published / "002_table3_1_classifier_evaluation.csv")
    }
    rows = []
    for one in classify["algorithms"]:
        low, high = one["accuracy_percent_ci95"]
        ours = [one["accuracy_percent"], one["f_measure_percent"], one["kappa_percent"]]
        of = [theirs[THEIRS[one["algorithm"]], network] for network in ("campus", "residential")]
        columns = ("accuracy_percent_prose", "f_measure_percent", "kappa_percent")
        published_values = [" / ".join(f"{float(row[column]):.1f}" for row in of) for column in columns]
        values = [f"{ours[0]:.1f} ({low:.1f} to {high:.1f})", f"{ours[1]:.1f}", f"{ours[2]:.1f}", *published_values]
        rows.append([TITLES[one["algorithm"]], *values])
    header = ["", "accuracy, %", "F, %", "kappa, %", "thesis: accuracy", "thesis: F", "thesis: kappa"]
    return Table(header, rows, frozenset(range(1, 7)))


def changes(characterise: dict[str, Any], published: Path) -> Table:
    """Medians of flows, and means of HTTP/2 and 3 against those of HTTP/1."""
    theirs = {
        (row["quantity"], row["protocol"]): row["value"]
        for row in _rows(published / "002_ch3_traffic_characteristics.csv")
    }
    thesis = {
        "duration_s": f"+{theirs['mean_duration_excess_over_h1', 'h2']} %",
        "client_bytes_per_packet": f"-{theirs['request_packet_size_reduction_vs_h1', 'h2']} %",
        "server_bytes_per_packet": f"-{theirs['response_packet_size_reduction_vs_h1', 'h2']} %",
    }
    versions = characterise["versions"]
    first = versions["h1"]
    rows = []
    for column, label in QUANTITIES.items():
        medians = [_short(one[column]["p50"]) for one in versions.values()]
        means = [one[column]["mean"] / first[column]["mean"] - 1 for name, one in versions.items() if name != "h1"]
        rows.append([label, *medians, *(f"{100 * change:+.0f} %" for change in means), thesis.get(column, "")])
    others = [name for name in versions if name != "h1"]
    header = ["", *(f"median, {name}" for name in versions), *(f"mean of {name} against h1" for name in others)]
    return Table([*header, "thesis: h2 against h1"], rows, frozenset(range(1, len(header) + 1)))


def confusion(counts: dict[str, dict[str, int]]) -> Table:
    """Percent of the flows of each class, by what they are taken for."""
    rows = []
    for name, row in counts.items():
        whole = sum(row.values())
        rows.append([name, *(f"{100 * count / whole:.1f} %" if whole else "-" for count in row.values()), f"{whole:,}"])
    return Table(["is, taken for", *counts, "flows"], rows, frozenset(range(1, len(counts) + 2)))


def by_packets(found: list[dict[str, Any]]) -> Table:
    """What Random Forest finds of the second set, by the length of flows."""
    rows = [[one["http_version"], one["packets"], f"{one['flows']:,}", f"{one['found_percent']:.1f}"] for one in found]
    return Table(["version", "packets of the server", "flows", "found, %"], rows, frozenset({2, 3}))


def elsewhere(classify: dict[str, Any]) -> Table:
    """What models of the first set find in the second."""
    rows = []
    for one in classify["algorithms"]:
        (test,) = one["tests"]
        recalls = ["-" if recall is None else f"{recall:.1f}" for recall in test["recall_percent"].values()]
        values = [one["accuracy_percent"], test["accuracy_percent"], test["f_measure_percent"]]
        rows.append([TITLES[one["algorithm"]], *(f"{value:.1f}" for value in values), *recalls])
    names = [f"found of {name}, %" for name in classify["flows"]]
    header = ["", "accuracy here, %", "accuracy there, %", "F there, %", *names]
    return Table(header, rows, frozenset(range(1, len(header))))


def baselines(classify: dict[str, Any]) -> Table:
    """Accuracies of answers that need no learning."""
    rows = []
    for one in classify["baselines"]:
        (test,) = one["tests"]
        rows.append([one["rule"], f"{one['accuracy_percent']:.1f}", f"{test['accuracy_percent']:.1f}"])
    return Table(["", "accuracy here, %", "accuracy there, %"], rows, frozenset({1, 2}))


def sessions(by_version: dict[str, Any], published: Path) -> Table:
    """Table 4.2, and the medians of overlaps."""
    rows = []
    for version, one in by_version.items():
        p, r = one["time_overlap_percent"]["median"], one["data_overlap_percent"]["median"]
        mean = one["flows_per_parallel_session_mean"]
        rows.append(
            [version, f"{one['flows']:,}", f"{one['isolated_percent']:.1f}", f"{one['parallel_percent']:.1f}"]
            + ["-" if value is None else f"{value:.1f}" for value in (mean, p, r)]
        )
    known = {(row["quantity"], row["dataset"]): row["value"] for row in _rows(published / "002_ch4_results.csv")}
    for row in _rows(published / "002_table4_2_isolated_parallel.csv"):
        overlap = known["median_session_time_overlap_at_least", row["dataset"]]
        mean = known["mean_flows_in_sessions_with_more_than_one_flow", "both"]
        shares = [f"{float(row[name]):.1f}" for name in ("isolated_flows_percent", "parallel_flows_percent")]
        rows.append([f"thesis: h2, {row['dataset']}", "", *shares, f"about {mean}", f"{overlap} or more", "-"])
    header = ["", "flows", "isolated, %", "parallel, %", "flows a parallel session", "median p, %", "median r, %"]
    return Table(header, rows, frozenset(range(1, 7)))


def overlaps(by_version: dict[str, Any], name: str, sign: str) -> Table:
    """Parallel sessions and medians of their overlaps, by the classes of flows that any version has."""
    every = [one[name] for one in by_version.values()]
    seen = [at for at, of in enumerate(zip(*every, strict=True)) if any(one["sessions"] for one in of)]
    header = [""]
    for at in seen:
        header += [f"{every[0][at]['class']}: sessions", f"median {sign}, %"]
    rows = []
    for version, one in by_version.items():
        of = [one[name][at] for at in seen]
        row = [version]
        for part in of:
            row += [f"{part['sessions']:,}", "-" if part["median"] is None else f"{part['median']:.1f}"]
        rows.append(row)
    return Table(header, rows, frozenset(range(1, len(header))))


def curves(classify: dict[str, Any]) -> Table:
    """Accuracy by the number of flows that were learnt from."""
    every = classify["algorithms"]
    first, *others = [f"{part['flows']:,}" for part in every[0]["curve"]]
    rows = [[TITLES[one["algorithm"]], *(f"{part['accuracy_percent']:.1f}" for part in one["curve"])] for one in every]
    return Table(["accuracy with, %", f"{first} flows", *others], rows, frozenset(range(1, len(others) + 2)))


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _answer(classify: dict[str, Any]) -> str:
    best = max(classify["algorithms"], key=lambda one: one["accuracy_percent"])
    (test,) = best["tests"]
    return (
        f"{TITLES[best['algorithm']]} tells the version of {best['accuracy_percent']:.1f} % of "
        f"{sum(classify['flows'].values()):,} flows by {len(classify['features'])} numbers of their records, and of "
        f"{test['accuracy_percent']:.1f} % over other links and pages."
    )


def captures(of: list[dict[str, Any]]) -> Table:
    """What was loaded over each link, and which labels the flows have."""
    rows = []
    for capture in of:
        labels = capture["labels"]
        counts = [labels[name] for name in ("agree", "differ", "handshake_only", "server_log_only", "neither")]
        rows.append([capture["link"], str(capture["visits"]), str(len(capture["failed"])), *map(str, counts)])
    header = ["link", "visits", "failed", "labels: both agree", "differ", "handshake only", "server's log only", "none"]
    return Table(header, rows, frozenset(range(1, 8)))


def _months(published: Path) -> Table:
    rows = [
        [row["month_2016"], f"{int(row['test_instances']):,}", row["accuracy_percent"]]
        for row in _rows(published / "002_table3_2_temporal_accuracy.csv")
    ]
    return Table(["month of 2016", "flows", "accuracy, %"], rows, frozenset({1, 2}))


def _example(flows: Path) -> Table:
    """The flows that begin within 5 s of one before which there was none for as long."""
    rows = duckdb.execute(
        """
        WITH
            h2 AS (
                SELECT row_number() OVER (ORDER BY start_s, client_port) AS place, client_ip, server_ip,
                    coalesce(sni, '') AS name, start_s, end_s, client_port, client_bytes + server_bytes AS bytes
                FROM read_parquet(?) WHERE http_version = 'h2'
            ),
            beside AS (
                SELECT a.place AS first, a.start_s AS anchor, b.*
                FROM h2 a JOIN h2 b USING (client_ip, server_ip, name)
                WHERE b.place >= a.place AND b.start_s <= a.start_s + 5
            ),
            heads AS (
                SELECT first, count(*) AS flows FROM beside GROUP BY first
                HAVING first NOT IN (SELECT place FROM beside WHERE place > first)
            )
        SELECT name, client_port, start_s - anchor, end_s - start_s, bytes FROM beside
        WHERE first = (SELECT first FROM heads ORDER BY flows DESC, first LIMIT 1) ORDER BY start_s, client_port
        """,
        [str(flows)],
    ).fetchall()
    table = [[name, str(port), f"{start:.3f}", f"{lasts:.3f}", f"{size:,}"] for name, port, start, lasts, size in rows]
    return Table(["name", "client's port", "start, s", "duration, s", "bytes"], table, frozenset({1, 2, 3, 4}))


def _figure(result: Page, caption: str, svg: Path) -> None:
    """A picture of an analysis, if it has drawn it; as data, because identifiers of several pictures would meet."""
    if svg.is_file():
        data = base64.b64encode(svg.read_bytes()).decode("ascii")
        result.figure(caption, f'<img alt="" style="max-width:100%" src="data:image/svg+xml;base64,{data}">')


def _rows(path: Path) -> list[dict[str, str]]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))

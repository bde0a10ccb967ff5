import dataclasses

import pytest

from process import fields
from table import METRICS, Measurement, Results, tables
from tasks import Layout, all_tasks, select

TASK = all_tasks([1])[0]
RATES, CPU = METRICS[0], METRICS[1]


def measured(server: str, round_: int, requests_s: float, cpu_ms: float, load: float = 1.0) -> Measurement:
    return Measurement(
        round=round_,
        task=TASK.key,
        server=server,
        requests_s=requests_s,
        cpu_ms=cpu_ms,
        p50_ms=1.0,
        p99_ms=2.0,
        pss_mib=10.0,
        rss_mib=20.0,
        server_load=load,
        client_load=0.5,
        requests=1000,
        full_handshakes=1,
    )


def test_ratios_are_taken_within_rounds() -> None:
    # The machine was three times as slow in the last two rounds.
    ours = [measured("marline", n, rate, 1 / rate) for n, rate in enumerate([90, 30, 33])]
    others = [measured("nginx", n, rate, 1 / rate) for n, rate in enumerate([100, 30, 30])]
    results = Results([*ours, *others])
    assert results.median(TASK.key, "marline", "requests_s") == 33
    assert results.ratio(TASK.key, "marline", "nginx", "requests_s") == 1.0


def test_a_round_without_one_of_both_counts_for_neither() -> None:
    results = Results([measured("marline", 0, 50, 1), measured("marline", 1, 500, 1), measured("nginx", 1, 1000, 1)])
    assert results.ratio(TASK.key, "marline", "nginx", "requests_s") == 0.5
    assert results.ratio(TASK.key, "marline", "h2o", "requests_s") is None


def test_the_best_other_has_the_most_requests_and_the_least_cpu_time() -> None:
    results = Results([measured("marline", 0, 100, 2), measured("nginx", 0, 200, 4), measured("h2o", 0, 50, 1)])
    assert results.best(TASK.key, ["nginx", "h2o"], RATES) == ("nginx", 0.5)
    assert results.best(TASK.key, ["nginx", "h2o"], CPU) == ("h2o", 2.0)


def test_a_server_that_was_not_busy_is_marked() -> None:
    results = Results([measured("marline", 0, 100, 2), measured("nginx", 0, 200, 4, load=0.5)])
    text = tables(results, [TASK], ["nginx", "marline"], {1: Layout([0], [1], [1])})
    assert "| HTTP/1.1, 1 KiB, file | 200° (2.00) | 100 | 0.50 (nginx) |" in text


def test_a_version_that_a_server_lacks_has_an_empty_cell() -> None:
    text = tables(Results([measured("marline", 0, 100, 2)]), [TASK], ["h2o", "marline"], {1: Layout([0], [1], [1])})
    assert "| HTTP/1.1, 1 KiB, file | - | 100 | - |" in text


def test_tasks_are_selected_by_words() -> None:
    tasks = all_tasks([1, 2])
    assert len({task.key for task in tasks}) == len(tasks) == 36
    assert [task.key for task in select(tasks, ["h3 resume", "h1-proxy-1m-2"])] == [
        "h3-resume-1",
        "h1-proxy-1m-2",
        "h3-resume-2",
    ]
    with pytest.raises(ValueError, match="no task has h4"):
        select(tasks, ["h4"])


def test_a_client_shares_cores_only_where_there_are_none_left() -> None:
    assert Layout.of([0, 1], 1) == Layout([0], [1], [1])
    assert Layout.of([0, 1], 2) == Layout([0, 1], [0, 1], [0, 1])
    assert Layout.of([0, 1, 2, 3], 2) == Layout([0, 1], [2], [3])
    assert [Layout.of(list(range(cores)), 2).shared for cores in (2, 3, 4)] == [True, False, False]


def test_names_of_processes_may_have_parentheses() -> None:
    assert fields("7 (a (b) c) S 1 2")[:2] == ["S", "1"]


def test_every_measurement_has_what_tables_show() -> None:
    names = {each.name for each in dataclasses.fields(Measurement)}
    assert {name for metric in METRICS for name in (metric.name, metric.beside) if name} <= names


def test_servers_that_resume_too_few_sessions_are_marked() -> None:
    resume = next(task for task in all_tasks([1]) if task.reuse == "resume")
    one = dataclasses.replace(measured("h2o", 0, 100, 2), task=resume.key, full_handshakes=340)
    text = tables(Results([one]), [resume], ["h2o"], {1: Layout([0], [1], [1])})
    assert "| HTTP/1.1, 1 KiB, resumed | 100† |" in text

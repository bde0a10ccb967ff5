"""Predictions of flows, their probabilities, and their evaluation."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows import write_labelled
from marline.cli import main
from marline.flows.classify import Model, Options, Sample, evaluate, predict
from marline.flows.classify.calibration import Calibration
from marline.flows.classify.decision import Decision, by_rule
from marline.flows.classify.evaluation import _dealt
from marline.flows.classify.learners import ALGORITHMS
from marline.flows.classify.predict import NOTHING_POSSIBLE
from marline.flows.classify.sample import SameFlowsError
from marline.flows.columns import OVER, TCP, UDP

ODD = """
    SELECT * REPLACE (
        CASE hash(flow_id, 'port') % 5 WHEN 0 THEN 53 WHEN 1 THEN 22 ELSE 443 END AS server_port,
        CASE hash(flow_id, 'transport') % 8
            WHEN 0 THEN 'udp' WHEN 1 THEN 'UDP' WHEN 2 THEN 'icmp' WHEN 3 THEN NULL WHEN 4 THEN '' ELSE 'tcp'
        END AS transport,
        CASE hash(flow_id, 'end') % 9 WHEN 0 THEN start_s - 1 WHEN 1 THEN NULL ELSE end_s END AS end_s,
        CASE hash(flow_id, 'bytes') % 7 WHEN 0 THEN NULL WHEN 1 THEN -5 ELSE client_bytes END AS client_bytes
    )
    FROM '{source}'
"""
"""Flows of all kinds that networks have, with a label each."""


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_labelled(tmp_path_factory.mktemp("flows") / "labelled.parquet")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("odd")
    every, path = write_labelled(directory / "every.parquet", 3000, first=10_000), directory / "odd.parquet"
    duckdb.execute(f"COPY ({ODD.format(source=every)}) TO '{path}' (FORMAT PARQUET)")
    return path


@pytest.mark.parametrize("features", ["transport", "published"])
def test_what_training_does_not_take_is_not_classified_for_the_same_reasons(
    features: str, labelled: Path, odd: Path, tmp_path: Path
) -> None:
    model = Model.train(Sample.load(labelled, features=features), "c45", 1)
    out = tmp_path / "out.parquet"
    prediction = predict(model, odd, out, 0)
    learnt = Sample.load(odd, features=features)
    reasons = {name: count for name, count in learnt.left_out.counts.items() if name in prediction.left_out}
    assert prediction.left_out == reasons
    assert sum(count > 0 for count in reasons.values()) == 4
    assert prediction.without == learnt.left_out.total
    assert prediction.flows - prediction.without == len(learnt.rows)
    counted = duckdb.execute(
        f"SELECT predicted_reason, count(*) FROM '{out}' WHERE predicted IS NULL AND predicted_probability IS NULL "
        "GROUP BY ALL"
    ).fetchall()
    assert dict(counted) == {name: count for name, count in reasons.items() if count}
    ports = f"SELECT DISTINCT server_port FROM '{out}' WHERE predicted IS NOT NULL"
    assert duckdb.execute(ports).fetchall() == [(443,)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("features", ["transport", "published"])
def test_no_answer_is_one_that_the_transport_cannot_carry(
    algorithm: str, features: str, labelled: Path, tmp_path: Path
) -> None:
    model = Model.train(Sample.load(labelled, features=features), algorithm, 1)
    # Flows whose features indicate one version, and whose transport another.
    mixed, out = tmp_path / "mixed.parquet", tmp_path / "out.parquet"
    turned = "CASE WHEN hash(flow_id) % 2 = 0 THEN 'udp' ELSE 'tcp' END AS transport"
    duckdb.execute(f"COPY (SELECT * REPLACE ({turned}) FROM '{labelled}') TO '{mixed}' (FORMAT PARQUET)")
    predict(model, mixed, out, 0)
    found = duckdb.execute(f"SELECT DISTINCT transport, predicted FROM '{out}'").fetchall()
    assert {("tcp", "h3"), ("udp", "h1"), ("udp", "h2")}.isdisjoint(found)
    assert {("tcp", "h1"), ("tcp", "h2"), ("udp", "h3")} <= set(found)


def test_a_flow_over_what_the_model_has_no_version_for_is_unknown(labelled: Path, tmp_path: Path) -> None:
    over_tcp, out = tmp_path / "tcp.parquet", tmp_path / "out.parquet"
    duckdb.execute(f"COPY (SELECT * FROM '{labelled}' WHERE transport = 'tcp') TO '{over_tcp}' (FORMAT PARQUET)")
    model = Model.train(Sample.load(over_tcp), "bayesnet", 1)
    prediction = predict(model, labelled, out, 0)
    found = duckdb.execute(
        f"SELECT predicted, predicted_probability, predicted_reason, count(*) FROM '{out}' WHERE transport = 'udp' "
        "GROUP BY ALL"
    ).fetchall()
    assert found == [("unknown", 0.0, NOTHING_POSSIBLE, prediction.unknown)]


def test_an_answer_that_is_not_probable_enough_is_unknown(
    labelled: Path, odd: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = tmp_path / "model", tmp_path / "out.parquet"
    assert main(["classify", "train", str(labelled), "-o", str(model), "--algorithm", "bayesnet"]) == 0
    command = ["classify", "predict", str(model), str(odd), "-o", str(out), "--json"]
    capsys.readouterr()
    unknown = []
    for threshold in ("0", "0.6", "0.95", "1"):
        assert main([*command, "--threshold", threshold]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["threshold"] == float(threshold)
        assert sum(document["predicted"].values()) + document["unknown"] + document["without_prediction"] == 3000
        wrong = f"predicted IS NOT NULL AND (predicted = 'unknown') <> (predicted_probability < {threshold})"
        assert duckdb.execute(f"SELECT count(*) FROM '{out}' WHERE {wrong}").fetchall() == [(0,)]
        unknown.append(document["unknown"])
    assert unknown[0] == 0
    assert unknown == sorted(unknown)
    assert unknown[-1] > unknown[1]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["unknown"] == unknown[1]
    with pytest.raises(SystemExit):
        main([*command, "--threshold", "60"])


def test_another_suffix_than_parquet_is_an_error_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("p.csv", "p", "p.parquet.gz"):
        with pytest.raises(SystemExit) as raised:
            main(["classify", "predict", "model.json", "flows.csv", "-o", wrong])
        assert raised.value.code == 2
        assert capsys.readouterr().err == f"error: argument -o/--out: {wrong}: the suffix must be .parquet\n"


probabilities = st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=20)
NAMES = ("h1", "h2", "h3", "other")


@given(probabilities, st.data())
def test_a_decision_is_a_distribution_over_what_is_possible(found: list[list[float]], data: st.DataObject) -> None:
    kinds = st.sampled_from([TCP, UDP, float("nan")])
    transport = np.array(data.draw(st.lists(kinds, min_size=len(found), max_size=len(found))))
    decision = Decision.of(np.array(found), transport, NAMES)
    assert decision.probabilities.sum(axis=1) == pytest.approx(np.ones(len(found)))
    for row, over in zip(decision.probabilities, transport, strict=True):
        for name, probability in zip(NAMES, row, strict=True):
            assert np.isnan(over) or over in OVER[name] or probability == 0
    assert decision.answered(0).all()


def test_the_rule_and_the_calibration_are_as_by_hand() -> None:
    assert by_rule(np.array([TCP, UDP, np.nan]), ("h1", "h2", "h3")).tolist() == [1, 2, 1]
    assert by_rule(np.array([TCP, UDP]), ("h1", "other")).tolist() == [-1, -1]
    said = np.array([[0.9, 0.1], [0.7, 0.3], [0.7, 0.3], [0.4, 0.6]])
    calibration = Calibration.of(Decision(said), np.array([0, 0, 1, 1]))
    assert calibration.brier == pytest.approx((0.02 + 0.18 + 0.98 + 0.32) / 4)
    assert calibration.brier_of_shares == pytest.approx(0.5)
    bins = {round(one.low, 1): (one.flows, one.right) for one in calibration.bins if one.flows}
    assert bins == {0.6: (1, 1.0), 0.7: (2, 0.5), 0.9: (1, 1.0)}
    assert [one.answered for one in calibration.answers] == [1, 1, 1, 0.75, 0.25, 0.25, 0]
    assert [one.right for one in calibration.answers[3:6]] == pytest.approx([2 / 3, 1, 1])
    assert np.isnan(calibration.answers[-1].right)


@given(st.lists(st.integers(0, 30), min_size=2, max_size=200).filter(lambda found: len(set(found)) > 1))
def test_groups_are_held_back_as_a_whole_in_folds_that_have_rows(found: list[int]) -> None:
    groups = np.unique(np.array(found), return_inverse=True)[1]
    folds = _dealt(groups, 10)
    assert all(len(set(folds[groups == group].tolist())) == 1 for group in range(groups.max() + 1))
    assert set(folds.tolist()) == set(range(min(10, int(groups.max()) + 1)))


SHIFTED = [f"SELECT * REPLACE (start_s + {by} AS start_s, end_s + {by} AS end_s)" for by in (5e-4, 6e-4, 9e-4, -4.9e-3)]
SHIFTED.append("SELECT * REPLACE ('::ffff:' || client_ip AS client_ip, '::FFFF:' || server_ip AS server_ip)")


def test_flows_of_the_same_ends_at_other_times_are_others(labelled: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    duckdb.execute(
        f"COPY (SELECT * REPLACE (start_s + 1e6 AS start_s, end_s + 1e6 AS end_s) FROM '{labelled}') TO '{other}'"
    )
    assert evaluate(labelled, Options(("bayesnet",), tests=(other,))).results


@pytest.mark.parametrize(
    "rewritten", ["SELECT *", "SELECT * REPLACE (start_s + 1e-6 AS start_s)", "SELECT * LIMIT 1", *SHIFTED]
)
def test_a_test_with_what_was_learnt_from_is_refused(rewritten: str, labelled: Path, tmp_path: Path) -> None:
    same = tmp_path / "same.csv"
    select, _, limit = rewritten.partition(" LIMIT")
    duckdb.execute(f"COPY ({select} FROM '{labelled}' {f'LIMIT {limit}' if limit else ''}) TO '{same}' (FORMAT CSV)")
    with pytest.raises(SameFlowsError, match="a test on training data is not meaningful"):
        evaluate(labelled, Options(("bayesnet",), tests=(same,)))
    with pytest.raises(SameFlowsError, match=r"labelled\.parquet, too"):
        evaluate([labelled, same], Options(("bayesnet",)))


def test_an_evaluation_has_what_its_accuracy_is_to_be_compared_with(
    labelled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(labelled), str(write_labelled(tmp_path / "more.parquet", 500, first=5000))]
    other = str(write_labelled(tmp_path / "other.parquet", 400, first=50_000))
    arguments = ["classify", "evaluate", *files, "--test", other, "--folds", "3", "--json"]
    arguments += ["--algorithm", "random_forest", "--algorithm", "c45", "-o", str(tmp_path / "out")]
    assert main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["sources"] == ["labelled.parquet", "more.parquet"]
    assert document["features"][-1] == "transport"
    rows = f"FROM read_parquet({files!r})"
    whole = "count(*) FILTER (http_version = CASE transport WHEN 'udp' THEN 'h3' ELSE 'h2' END)"
    right, flows = duckdb.execute(f"SELECT {whole}, count(*) {rows}").fetchall()[0]
    majority, rule = document["baselines"][:2]
    assert rule["accuracy_percent"] == pytest.approx(100 * right / flows)
    assert majority["accuracy_percent"] == pytest.approx(100 * max(document["flows"].values()) / flows)
    assert rule["tests"][0]["source"] == "other.parquet"
    for one in document["algorithms"]:
        assert one["grouped"]["client"]["accuracy_percent"] > 80
        assert one["grouped"]["file"]["accuracy_percent"] > 80
        assert sum(bin_["flows"] for bin_ in one["calibration"]["bins"]) == flows
        assert 0 <= one["calibration"]["brier"] < one["calibration"]["brier_of_shares"]
        assert [found["threshold"] for found in one["calibration"]["thresholds"]][:3] == [0.0, 0.5, 0.6]
        assert one["tests"][0]["calibration"]["brier"] < 0.5
        assert {found["feature"] for found in one["importances"]} == set(document["features"])
        assert one["importances"][0]["accuracy_loss_percent"] > 5
    report = (tmp_path / "out" / "report.html").read_text()
    assert "labelled.parquet more.parquet" in report
    for told in ("UDP is h3, all else h2", "Brier score", "by client", "threshold", "in points"):
        assert told in report


def test_where_no_learning_is_needed_it_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The versions of these are independent of their features.
    every, path = write_labelled(tmp_path / "every.parquet"), tmp_path / "flows.parquet"
    drawn = "CASE WHEN hash(flow_id, 'drawn') % 4 = 0 THEN 'h1' ELSE 'h2' END AS http_version"
    duckdb.execute(f"COPY (SELECT * REPLACE ({drawn}) FROM '{every}') TO '{path}' (FORMAT PARQUET)")
    assert main(["classify", "evaluate", str(path), "--folds", "2", "--algorithm", "c45"]) == 0
    assert "As good or better without learning: always h2, here" in capsys.readouterr().out


def test_the_features_of_the_study_are_a_choice_and_what_records_without_the_transport_have(
    labelled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, less = tmp_path / "model", tmp_path / "less.parquet"
    train = ["classify", "train", "-o", str(model), "--algorithm", "bayesnet"]
    assert main([*train, str(labelled), "--features", "published"]) == 0
    assert [feature.column for feature in Model.load(model).features][-1] == "server_bytes_per_packet"
    duckdb.execute(f"COPY (SELECT * EXCLUDE (transport) FROM '{labelled}') TO '{less}' (FORMAT PARQUET)")
    assert main([*train, str(less)]) == 0
    assert len(Model.load(model).features) == 7
    assert predict(Model.load(model), less, tmp_path / "out.parquet").without == 0
    capsys.readouterr()
    assert main([*train, str(less), "--features", "transport"]) == 1
    assert "no column transport" in capsys.readouterr().err

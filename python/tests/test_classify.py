"""Classification of flows: training, storing and using models, the command."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

from flows import write_flows, write_labelled
from marline.arrays import Classes, Numbers
from marline.cli import main
from marline.errors import MissingColumnsError, OptionError, UnreadableFileError
from marline.evaluation import Confusion
from marline.flows.classify import Model, Options, Sample, evaluate, predict
from marline.flows.classify.bayes import Bayes
from marline.flows.classify.discrete import cuts
from marline.flows.classify.evaluation import NoSuchClassError
from marline.flows.classify.learners import ALGORITHMS
from marline.flows.classify.nbtree import NaiveBayesTree
from marline.flows.classify.predict import NotParquetError
from marline.flows.classify.sample import OneClassError, TooFewFlowsError
from marline.flows.classify.selection import select
from marline.flows.classify.trees import Trees
from marline.flows.features import CANDIDATES, SELECTED
from marline.interrupts import INTERRUPTS
from marline.trees import Settings, classify, fit


def drawn(seed: int, rows: int = 600) -> tuple[Numbers, Classes]:
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=(rows, 4)), 1)
    return values, (values[:, 0] + rng.normal(size=rows) * 0.3 > 0).astype(np.int64) + (values[:, 1] > 1)


def rows_of(path: Path) -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    return connection.read_csv(str(path)) if path.suffix == ".csv" else connection.read_parquet(str(path))


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_labelled(tmp_path_factory.mktemp("flows") / "labelled.parquet")


@pytest.fixture(scope="module")
def sample(labelled: Path) -> Sample:
    return Sample.load(labelled)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000), st.integers(1, 40))
def test_compiled_trees_say_what_those_they_were_made_of_say(seed: int, rows: int) -> None:
    values, classes = drawn(seed)
    node = fit(values, classes, 3, Settings())
    assert (Trees.of(node).classify(values[:rows]) == classify(node, values[:rows])).all()


def test_a_compiled_forest_says_what_scikit_learns_says() -> None:
    values, classes = drawn(1)
    forest = RandomForestClassifier(n_estimators=20, random_state=1).fit(values.astype(np.float32), classes)
    other = np.random.default_rng(2).normal(size=(5000, 4))
    ours = Trees.of_forest(forest.estimators_).classify(other)
    assert (ours == forest.predict(other.astype(np.float32))).all()


def test_intervals_are_cut_where_classes_change_and_not_in_noise() -> None:
    rng = np.random.default_rng(1)
    classes = np.repeat([0, 1, 0], 200)
    values = classes * 2.0 + np.repeat([0, 0, 5], 200) + rng.uniform(0, 1, 600)
    found = cuts(values, classes, 2)
    assert len(found) == 2
    assert 1 <= found[0] <= 2
    assert 3 <= found[1] <= 5
    assert len(cuts(rng.normal(size=600), rng.integers(0, 2, 600), 2)) == 0


def test_features_that_tell_the_class_are_selected_and_copies_are_not() -> None:
    rng = np.random.default_rng(1)
    classes = rng.integers(0, 3, 1000)
    telling = (classes == 1) + rng.normal(size=1000) * 0.2
    other = (classes == 2) + rng.normal(size=1000) * 0.2
    rows = np.column_stack([rng.normal(size=1000), telling, telling * 3 + 1, other])
    chosen = select(rows, classes, 3)
    assert 3 in chosen
    assert len({1, 2} & set(chosen)) == 1
    assert 0 not in chosen


def test_a_tree_of_counts_sees_what_counts_alone_cannot() -> None:
    rng = np.random.default_rng(1)
    values = rng.uniform(-1, 1, (2000, 2))
    # Which side of each is rarer decides where the first cut is; both together decide the class.
    classes = ((values[:, 0] > 0.2) ^ (values[:, 1] > 0.3)).astype(np.int64)
    alone = (Bayes.fit(values, classes, 2).classify(values) == classes).mean()
    tree = (NaiveBayesTree.fit(values, classes, 2).classify(values) == classes).mean()
    assert alone < 0.75
    assert tree > 0.95


def test_measures_are_those_of_the_study() -> None:
    # By hand: chance agreement is (50 * 45 + 50 * 55) / 100^2 = 0.5.
    confusion = Confusion.of(np.repeat([0, 0, 1, 1], [40, 10, 5, 45]), np.repeat([0, 1, 0, 1], [40, 10, 5, 45]), 2)
    assert confusion.counts.tolist() == [[40, 10], [5, 45]]
    assert confusion.kappa == pytest.approx((0.85 - 0.5) / 0.5)
    assert confusion.recalls.tolist() == [0.8, 0.9]
    assert confusion.precisions.tolist() == pytest.approx([40 / 45, 45 / 55])
    assert confusion.f_measure == pytest.approx((2 * 40 / 95 + 2 * 45 / 105) / 2)
    never = Confusion(np.array([[5, 0], [5, 0]]))
    assert never.f_measure == pytest.approx(1 / 3)
    assert never.kappa == 0


def test_there_are_17_candidates_and_7_of_them_are_used(sample: Sample) -> None:
    assert len(CANDIDATES) == 17
    assert len(SELECTED) == 7
    assert sample.rows.shape == (2000, 17)
    assert sample.of(SELECTED).shape == (2000, 7)
    assert [feature.column for feature in sample.used] == [*(one.column for one in SELECTED), "transport"]
    assert sample.of().shape == (2000, 8)
    assert sample.names == ("h1", "h2", "h3")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_model_that_was_saved_says_the_same(algorithm: str, sample: Sample, tmp_path: Path) -> None:
    model = Model.train(sample, algorithm, 1)
    path = tmp_path / "model"
    model.save(path)
    read = Model.load(path)
    found = read.classify(sample.of())
    assert (found == model.classify(sample.of())).all()
    assert (found == sample.classes).mean() > 0.85
    assert (read.algorithm, read.names, read.flows) == (algorithm, ("h1", "h2", "h3"), 2000)


def test_flows_are_classified_in_batches_and_kept(labelled: Path, sample: Sample, tmp_path: Path) -> None:
    model = Model.train(sample, "c45", 1)
    out = tmp_path / "new" / "predicted.parquet"
    counts = predict(model, labelled, out)
    table = duckdb.connect().read_parquet(str(out))
    right = table.aggregate("count(*) FILTER (predicted = http_version), count(*)").fetchall()[0]
    assert right == (int((model.classify(sample.of()) == sample.classes).sum()), 2000)
    assert counts.flows == 2000
    assert [file.name for file in out.parent.iterdir()] == [out.name]


def test_a_flow_without_a_value_is_taken_for_nothing(sample: Sample, tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text(
        "start_s,end_s,client_ip,client_port,server_ip,server_port,transport,client_packets,server_packets,client_bytes,"
        "server_bytes\n1,2,10.0.0.1,5000,192.0.2.1,443,tcp,10,20,3000,6000\n"
        "1,2,10.0.0.1,5001,192.0.2.1,443,tcp,,20,3000,6000\n"
    )
    out = tmp_path / "predicted.parquet"
    prediction = predict(Model.train(sample, "bayesnet", 1), path, out)
    assert (sum(prediction.counts.values()), prediction.without) == (1, 1)
    found = duckdb.connect().read_parquet(str(out)).order("client_port").project("predicted IS NULL").fetchall()
    assert found == [(False,), (True,)]


def test_nothing_is_left_of_an_output_that_fails(sample: Sample, tmp_path: Path) -> None:
    model = Model.train(sample, "bayesnet", 1)
    whole = write_flows(tmp_path / "whole.parquet", 200_000).read_bytes()
    damaged = tmp_path / "damaged.parquet"
    # Its footer is whole, and a page of its middle is not.
    footer = 20_000
    damaged.write_bytes(b"PAR1" + b"\xa5" * (len(whole) - footer - 4) + whole[-footer:])
    out = tmp_path / "out" / "predicted.parquet"
    with pytest.raises(UnreadableFileError, match=r"damaged\.parquet"):
        predict(model, damaged, out)
    assert not list(out.parent.glob("*"))
    with pytest.raises(NotParquetError, match=r"the suffix must be \.parquet"):
        predict(model, damaged, tmp_path / "out.csv")


def test_too_little_to_learn_from_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TooFewFlowsError, match="50 flows with a label, and at least 100 are needed: take a longer"):
        Sample.load(write_labelled(tmp_path / "few.parquet", 50))
    one = tmp_path / "one.parquet"
    every = write_labelled(tmp_path / "every.parquet", 1000)
    duckdb.execute(f"COPY (SELECT * FROM '{every}' WHERE http_version = 'h2') TO '{one}'")
    with pytest.raises(OneClassError, match="are of h2; two are needed"):
        Sample.load(one)


def test_a_test_of_other_classes_is_an_error(labelled: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    new = "'other' AS http_version, start_s + 1e6 AS start_s, end_s + 1e6 AS end_s"
    duckdb.execute(f"COPY (SELECT * REPLACE ({new}) FROM '{labelled}') TO '{other}'")
    with pytest.raises(NoSuchClassError, match="are of other, and none of h1, h2, h3"):
        evaluate(labelled, Options(("bayesnet",), folds=2, tests=(other,)))


def test_the_command_learns_classifies_and_judges(
    labelled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = tmp_path / "model", tmp_path / "predicted.parquet"
    assert main(["classify", "train", str(labelled), "-o", str(model), "--algorithm", "c45"]) == 0
    assert main(["classify", "predict", str(model), str(labelled), "-o", str(out)]) == 0
    assert "h2" in capsys.readouterr().out
    other = write_labelled(tmp_path / "other.parquet", 500, first=10_000)
    third = tmp_path / "third.parquet"
    duckdb.execute(f"COPY (SELECT * FROM '{other}' WHERE http_version = 'h3') TO '{third}'")
    arguments = ["classify", "evaluate", str(labelled), "--folds", "3", "--test", str(other), "--json"]
    arguments += ["--test", str(third)]
    arguments += ["--algorithm", "c45", "--algorithm", "bayesnet", "-o", str(tmp_path / "out")]
    assert main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["algorithm"] for one in document["algorithms"]] == ["c45", "bayesnet"]
    for one in document["algorithms"]:
        assert one["accuracy_percent"] > 85
        assert [test["source"] for test in one["tests"]] == ["other.parquet", "third.parquet"]
        assert one["tests"][0]["accuracy_percent"] > 85
        assert set(one["tests"][1]["confusion"]["h1"].values()) == {0}
        assert sum(sum(row.values()) for row in one["confusion"].values()) == 2000
        assert {service["name"] for service in one["services"]} == {f"name-{at}.example" for at in range(5)}
    report = (tmp_path / "out" / "report.html").read_text()
    assert "95.2, 95.5" in report
    assert ">1,000<" in report
    assert "mathdefault" not in report
    figures = ("accuracy", "confusion", "learning-curve", "training-time", "classification-rate", "services")
    assert {f"{name}.svg" for name in figures} <= {file.name for file in (tmp_path / "out").iterdir()}
    assert main(["classify", "evaluate", str(tmp_path / "absent")]) == 1


def test_a_prediction_keeps_all_columns_and_the_order_of_flows(sample: Sample, tmp_path: Path) -> None:
    model = Model.train(sample, "c45", 1)
    table, text = tmp_path / "flows.parquet", tmp_path / "flows.csv"
    every = write_labelled(tmp_path / "every.parquet", 400_000)
    more = (
        "row_number() OVER () AS number, end_s - start_s AS duration_s, 'h2,http/1.1' AS alpn_offered, 'x' AS predicted"
    )
    duckdb.execute(f"COPY (SELECT *, {more} FROM '{every}') TO '{table}' (FORMAT PARQUET)")
    duckdb.execute(f"COPY (SELECT *, {more} FROM '{every}' LIMIT 1000) TO '{text}' (FORMAT CSV, HEADER)")
    for source in (table, text):
        out = tmp_path / "predicted.parquet"
        counts = predict(model, source, out)
        before, after = (rows_of(path) for path in (source, out))
        added = ["predicted", "predicted_probability", "predicted_reason"]
        assert after.columns == [*(name for name in before.columns if name != "predicted"), *added]
        assert counts.without == 0
        numbers = after.project("CAST(number AS BIGINT) AS number").fetchnumpy()["number"]
        assert (np.diff(numbers) == 1).all()
        assert after.project("flow_id, alpn_offered").fetchall() == before.project("flow_id, alpn_offered").fetchall()
        assert after.filter("predicted = http_version").count("*").fetchall()[0][0] > 0.8 * counts.flows


def test_the_file_that_is_read_is_not_overwritten(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_labelled(tmp_path / "flows.parquet", 200)
    content = path.read_bytes()
    (tmp_path / "link.parquet").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    for out in ("flows.parquet", "../" + tmp_path.name + "/flows.parquet", "link.parquet"):
        with pytest.raises(OptionError, match="would be overwritten"):
            predict(Model.train(sample, "bayesnet", 1), path, Path(out))
    assert path.read_bytes() == content


def test_flows_without_a_prediction_are_counted_in_what_is_printed(
    sample: Sample, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Model.train(sample, "bayesnet", 1).save(tmp_path / "model")
    path = tmp_path / "few.csv"
    path.write_text("start_s,end_s,client_ip,client_port,server_ip,server_port\n1,2,10.0.0.1,5000,192.0.2.1,443\n")
    command = ["classify", "predict", str(tmp_path / "model"), str(path), "-o", str(tmp_path / "out.parquet")]
    assert main(command) == 0
    assert "1 of 1 flows have no prediction: 1 lack a number" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["without_prediction_by_reason"].pop("lacks a number") == 1
    assert set(document.pop("without_prediction_by_reason").values()) == {0}
    expected = {"flows": 1, "predicted": {"h1": 0, "h2": 0, "h3": 0}, "without_prediction": 1}
    assert document == {**expected, "unknown": 0, "threshold": 0.6}


def test_values_that_cannot_be_give_no_prediction(sample: Sample, tmp_path: Path) -> None:
    path, out = tmp_path / "flows.parquet", tmp_path / "out.parquet"
    every = write_labelled(tmp_path / "every.parquet", 100)
    broken = "CASE flow_id WHEN 'flow-1' THEN -1 WHEN 'flow-2' THEN 1e300 WHEN 'flow-3' THEN 'nan' ELSE end_s END"
    duckdb.execute(f"COPY (SELECT * REPLACE ({broken} AS end_s) FROM '{every}') TO '{path}' (FORMAT PARQUET)")
    assert predict(Model.train(sample, "c45", 1), path, out).without == 3
    found = duckdb.execute(f"SELECT flow_id FROM '{out}' WHERE predicted IS NULL").fetchall()
    assert found == [("flow-1",), ("flow-2",), ("flow-3",)]


def test_what_is_lacking_to_learn_from_is_named(tmp_path: Path) -> None:
    every = write_labelled(tmp_path / "every.parquet", 150)
    few = tmp_path / "few.parquet"
    duckdb.execute(f"COPY (SELECT * EXCLUDE (client_bytes, server_fin, http_version) FROM '{every}') TO '{few}'")
    with pytest.raises(MissingColumnsError, match="no column client_bytes, server_fin, http_version; classify learns"):
        Sample.load(few)
    port = "CASE WHEN start_s < 1700000000.595 THEN 8443 ELSE 443 END AS server_port"
    label = "CASE WHEN start_s > 1700000000.795 THEN http_version END AS http_version"
    duckdb.execute(f"COPY (SELECT * REPLACE ({port}, {label}) FROM '{every}') TO '{few}'")
    with pytest.raises(TooFewFlowsError) as raised:
        Sample.load(few)
    assert "; of 150 flows 60 are not to port 443, 20 have no label" in str(raised.value)
    assert "experiment" not in str(raised.value)


def test_a_signal_leaves_nothing_unfinished(sample: Sample, tmp_path: Path) -> None:
    Model.train(sample, "c45", 1).save(tmp_path / "model")
    path = write_labelled(tmp_path / "flows.parquet", 1_000_000)
    out = tmp_path / "out" / "predicted.parquet"
    for number in (signal.SIGTERM, signal.SIGINT):
        process = subprocess.Popen(
            [sys.executable, "-m", "marline", "classify", "predict", tmp_path / "model", path, "-o", out],
            stderr=subprocess.PIPE,
            text=True,
        )
        until = time.monotonic() + 60
        while not list(out.parent.glob(".unfinished-*")) and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
        assert (told, process.returncode) == ("interrupted; nothing was written\n", 128 + number)
        assert not list(out.parent.iterdir())


@pytest.mark.parametrize(
    "made", [AttributeError("partially initialized"), RuntimeError("INTERRUPT"), OSError("a read")]
)
def test_whatever_a_library_makes_of_a_signal_it_is_told_as_one(
    made: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_directory: Path) -> Model:
        monkeypatch.setattr(INTERRUPTS, "last", signal.SIGTERM)
        raise made

    monkeypatch.setattr(Model, "load", load)
    with pytest.raises(KeyboardInterrupt):
        main(
            ["classify", "predict", str(tmp_path), str(tmp_path / "flows.parquet"), "-o", str(tmp_path / "out.parquet")]
        )


def test_a_page_says_how_to_repeat_all_of_it(labelled: Path, tmp_path: Path) -> None:
    arguments = ["classify", "evaluate", str(labelled), "--folds", "2", "--algorithm", "bayesnet"]
    assert main([*arguments, "-o", str(tmp_path)]) == 0
    assert "--folds 2 --seed 1 --algorithm bayesnet<" in (tmp_path / "report.html").read_text()

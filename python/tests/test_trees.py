"""Trees: growing, pruning, and their text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marline.arrays import Classes, Numbers
from marline.limits import MAX_DEPTH
from marline.trees import (
    Criterion,
    Leaf,
    Node,
    Settings,
    Split,
    best_cut,
    classify,
    depth,
    entropy,
    extra_errors,
    fit,
    leaves,
    to_text,
)

GROWN = Settings(Criterion.GAIN, smallest_side=1, confidence=None)
NUMBERS = st.floats(-1e9, 1e9, allow_nan=False)
TABLES = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.tuples(st.tuples(*[NUMBERS] * width), st.integers(0, 3)), min_size=1, max_size=40).map(
        lambda rows: (np.array([row for row, _ in rows]), np.array([at for _, at in rows]))
    )
)


def nodes(node: Node) -> list[Node]:
    return [node] if isinstance(node, Leaf) else [node, *nodes(node.low), *nodes(node.high)]


def test_entropy_is_one_bit_for_two_equal_classes_and_none_for_one() -> None:
    assert entropy([5, 5]) == 1.0
    assert entropy([7, 0]) == 0.0
    assert entropy([2, 2, 2, 2]) == 2.0


def test_the_best_cut_is_where_classes_change() -> None:
    values = np.array([1.0, 2.0, 3.0, 10.0, 11.0, 12.0])
    cut = best_cut(values, np.array([0, 0, 0, 1, 1, 1]), 2, 1)
    assert cut is not None
    assert cut.threshold == 6.5
    assert cut.gain_bits == pytest.approx(1.0)
    # Five candidates, at the cost of their choice over six rows.
    assert cut.net_bits == pytest.approx(1.0 - np.log2(5) / 6)


def test_a_cut_leaves_each_side_as_many_rows_as_it_must() -> None:
    values = np.arange(10.0)
    classes = np.array([1] + [0] * 9)
    assert best_cut(values, classes, 2, 6) is None
    cut = best_cut(values, classes, 2, 4)
    assert cut is not None
    assert (values <= cut.threshold).sum() == 4


def test_equal_values_and_single_classes_have_no_cut() -> None:
    assert best_cut(np.ones(8), np.arange(8) % 2, 2, 1) is None
    assert best_cut(np.arange(8.0), np.zeros(8, dtype=np.int64), 2, 1) is None


def test_a_threshold_divides_neighbouring_floats() -> None:
    low = 1.0
    values = np.array([low, np.nextafter(low, 2)])
    cut = best_cut(values, np.array([0, 1]), 2, 1)
    assert cut is not None
    assert values[0] <= cut.threshold < values[1]


@given(TABLES)
def test_a_grown_tree_classifies_what_it_grew_from(table: tuple[Numbers, Classes]) -> None:
    rows, classes = table
    tree = fit(rows, classes, 4, GROWN)
    first: dict[tuple[float, ...], set[int]] = {}
    for row, at in zip(rows.tolist(), classes.tolist(), strict=True):
        first.setdefault(tuple(row), set()).add(at)
    certain = np.array([len(first[tuple(row)]) == 1 for row in rows.tolist()])
    # A class may depend on two features in a way that no single question gains anything from.
    stuck = any(isinstance(node, Leaf) and max(node.counts) < sum(node.counts) for node in nodes(tree))
    assert stuck or (classify(tree, rows) == classes)[certain].all()


@given(TABLES)
def test_counts_of_a_split_are_those_of_its_sides(table: tuple[Numbers, Classes]) -> None:
    rows, classes = table
    for settings in (GROWN, Settings(smallest_side=1)):
        tree = fit(rows, classes, 4, settings)
        assert sum(tree.counts) == len(rows)
        for node in nodes(tree):
            if isinstance(node, Split):
                both = np.add(node.low.counts, node.high.counts)
                assert tuple(both.tolist()) == node.counts
                assert min(sum(node.low.counts), sum(node.high.counts)) >= 1
                assert node.gain_bits >= -1e-9


@given(TABLES)
def test_the_first_question_gains_as_much_as_any_threshold_of_any_feature(table: tuple[Numbers, Classes]) -> None:
    rows, classes = table
    tree = fit(rows, classes, 4, GROWN)
    best = 0.0
    for column in rows.T:
        for threshold in column:
            sides = [np.bincount(classes[side], minlength=4) for side in (column <= threshold, column > threshold)]
            rest = sum(side.sum() * entropy(side) for side in sides) / len(rows)
            best = max(best, entropy(np.bincount(classes, minlength=4)) - rest)
    gained = tree.gain_bits if isinstance(tree, Split) else 0.0
    assert gained == pytest.approx(best, abs=1e-9)


@given(TABLES)
def test_pruning_adds_no_leaf_and_is_the_same_each_time(table: tuple[Numbers, Classes]) -> None:
    rows, classes = table
    whole = fit(rows, classes, 4, Settings(smallest_side=1, confidence=None))
    pruned = fit(rows, classes, 4, Settings(smallest_side=1))
    assert leaves(pruned) <= leaves(whole)
    assert pruned == fit(rows, classes, 4, Settings(smallest_side=1))


def test_pruning_removes_questions_about_noise_and_keeps_the_one_that_tells() -> None:
    rng = np.random.default_rng(3)
    telling, noise = rng.random(400), rng.random((400, 4))
    rows = np.column_stack([telling, noise])
    classes = (telling > 0.5).astype(np.int64)
    wrong = rng.random(400) < 0.1
    classes[wrong] = 1 - classes[wrong]
    whole, pruned = (fit(rows, classes, 2, Settings(Criterion.GAIN, confidence=share)) for share in (None, 0.05))
    assert leaves(pruned) < leaves(whole) / 2
    assert isinstance(pruned, Split)
    assert pruned.feature == 0
    assert pruned.threshold == pytest.approx(0.5, abs=0.02)


def test_gain_ratio_prefers_an_even_answer_of_nearly_the_same_gain() -> None:
    # Feature 0 takes four rows of one class aside; feature 1 divides in the middle, with some errors.
    classes = np.array([0] * 50 + [1] * 50)
    aside = np.where(np.arange(100) < 30, 0.0, 1.0)
    middle = np.where(np.arange(100) < 45, 0.0, 1.0)
    tree = fit(np.column_stack([aside, middle]), classes, 2, Settings(confidence=None))
    assert isinstance(tree, Split)
    assert tree.feature == 1


def test_extra_errors_are_those_of_quinlans_examples() -> None:
    # C4.5, section 4.2, at a confidence of 25 %: upper limits of 0.206 for 0 of 6, and of 0.143 for 0 of 9.
    assert extra_errors(6, 0, 0.25) / 6 == pytest.approx(0.206, abs=5e-4)
    assert extra_errors(9, 0, 0.25) / 9 == pytest.approx(0.143, abs=5e-4)
    assert extra_errors(1, 0, 0.25) == pytest.approx(0.75)
    assert extra_errors(0, 0, 0.25) == 0.0
    assert extra_errors(5, 5, 0.25) == 0.0


@given(st.integers(1, 500), st.data())
def test_less_confidence_expects_more_errors(rows: int, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, rows))
    few, many = extra_errors(rows, errors, 0.4), extra_errors(rows, errors, 0.1)
    assert 0 <= few <= many <= rows - errors + 1e-9


def test_a_tree_is_no_deeper_than_its_limit() -> None:
    # Classes in turn: each question can only take one row aside.
    rows = np.arange(1200.0)[:, None]
    tree = fit(rows, np.arange(1200) % 2, 2, GROWN)
    assert depth(tree) <= MAX_DEPTH


def test_text_shows_questions_classes_and_errors() -> None:
    class Named:
        label = "delay"

        def show(self, value: float) -> str:
            return f"{value:g} ms"

    tree = Split((6, 5), 0, 2.5, Leaf((6, 1)), Split((0, 4), 0, 9.0, Leaf((0, 3)), Leaf((0, 1))))
    assert to_text(tree, [Named()], ["t0", "t10"]).splitlines() == [
        "delay ≤ 2.5 ms: t0 (7/1)",
        "delay > 2.5 ms",
        "|   delay ≤ 9 ms: t10 (3)",
        "|   delay > 9 ms: t10 (1)",
    ]

"""Folds, and the counts over them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marline.arrays import Classes, Numbers
from marline.evaluation import Confusion, by_group, cross_validate, stratified
from marline.trees import Leaf, Node, Settings, fit


@given(st.lists(st.integers(0, 5), min_size=1, max_size=200), st.integers(2, 10), st.integers(0, 9))
def test_folds_have_equal_parts_of_each_class(drawn: list[int], folds: int, seed: int) -> None:
    classes = np.array(drawn)
    dealt = stratified(classes, folds, seed)
    for used in [np.ones(len(classes), dtype=bool), *(classes == at for at in np.unique(classes))]:
        sizes = np.bincount(dealt[used], minlength=folds)
        assert sizes.max() - sizes.min() <= 1


def test_a_seed_deals_the_same_and_another_differently() -> None:
    classes = np.arange(100) % 4
    assert (stratified(classes, 10, 1) == stratified(classes, 10, 1)).all()
    assert (stratified(classes, 10, 1) != stratified(classes, 10, 2)).any()


def test_each_row_is_classified_once_by_what_has_not_seen_it() -> None:
    rows = np.arange(20.0)[:, None]
    classes = np.arange(20) % 2
    seen: list[set[float]] = []

    def learn(rows: Numbers, classes: Classes) -> Node:
        seen.append(set(rows[:, 0].tolist()))
        return Leaf((1, 0))

    confusion = cross_validate(rows, classes, 2, stratified(classes, 5, 1), learn)
    assert confusion.rows == 20
    assert confusion.counts.tolist() == [[10, 0], [10, 0]]
    held = [set(rows[:, 0].tolist()) - one for one in seen]
    assert sorted(value for one in held for value in one) == rows[:, 0].tolist()


def test_a_class_that_only_the_held_back_group_has_is_not_found() -> None:
    rows = np.arange(30.0)[:, None]
    classes = np.repeat([0, 1, 2], 10)
    folds = by_group(["a"] * 10 + ["b"] * 10 + ["c"] * 10)
    confusion = cross_validate(rows, classes, 3, folds, lambda some, of: fit(some, of, 3, Settings()))
    assert confusion.right == 0


def test_the_interval_holds_the_accuracy_and_is_wilsons() -> None:
    confusion = Confusion(np.array([[81, 9], [10, 0]]))
    assert confusion.accuracy == 0.81
    assert confusion.interval == pytest.approx((0.7222, 0.8749), abs=1e-4)
    assert Confusion(np.array([[5, 0], [0, 5]])).interval[1] == 1.0

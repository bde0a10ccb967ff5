"""Rank correlation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marline.correlation import rank_correlation

PAIRS = st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=2, max_size=40)


def test_a_series_follows_any_rising_function_of_itself() -> None:
    values = np.array([3.0, 1.0, 2.0, 10.0])
    assert rank_correlation(values, np.exp(values)) == pytest.approx(1.0)
    assert rank_correlation(values, -(values**3)) == pytest.approx(-1.0)


def test_equal_values_share_a_rank() -> None:
    # Ranks 0.5, 0.5, 2 and 0, 1, 2.
    expected = 1.5 / np.sqrt(1.5 * 2.0)
    assert rank_correlation(np.array([1.0, 1.0, 5.0]), np.array([1.0, 2.0, 3.0])) == pytest.approx(expected)


def test_a_constant_series_has_no_correlation() -> None:
    assert rank_correlation(np.ones(4), np.arange(4.0)) is None


@given(PAIRS)
def test_it_is_symmetric_and_within_one(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, dtype=np.float64).T
    there, back = rank_correlation(first, second), rank_correlation(second, first)
    assert there == back
    assert there is None or abs(there) <= 1 + 1e-12

"""Features of transfers, beyond what the shared vectors hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marline.transfers import FEATURES, Dispersion, Trace, feature

INTERVALS = st.lists(st.floats(0.1, 1e4), min_size=2, max_size=60)


def test_an_empty_transfer_has_no_feature() -> None:
    features = Trace(sent=(), received=(), acks=0, windows_bytes=(), phases=(), end_us=0.0).features()
    assert list(features) == [feature.column for feature in FEATURES]
    assert set(features.values()) == {None}


@given(INTERVALS, st.floats(0.1, 100.0))
def test_dispersion_does_not_depend_on_the_unit_of_time(intervals: list[float], scale: float) -> None:
    scaled = [value * scale for value in intervals]
    assert Dispersion().of(scaled) == pytest.approx(Dispersion().of(intervals), rel=1e-6, abs=1e-9)


@given(INTERVALS, st.integers(1, 8))
def test_dispersion_is_never_negative_and_undefined_for_fewer_than_two_sums(
    intervals: list[float], window: int
) -> None:
    index = Dispersion(window).of(intervals)
    assert (index is None) == (len(intervals) < window + 1)
    assert index is None or index >= 0


def test_dispersion_of_sums_that_do_not_overlap_takes_each_interval_once() -> None:
    intervals = np.array([1.0, 3.0, 1.0, 5.0, 9.0])
    # Sums 4 and 6; the last interval has no sum.
    expected = 1.0 / (2 * intervals.mean() ** 2)
    assert Dispersion(2, overlapping=False).of(intervals) == pytest.approx(expected)


def test_a_sum_of_no_intervals_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one interval"):
        Dispersion(0)


def test_values_are_shown_in_units_for_readers() -> None:
    assert feature("mean_cwnd_bytes").show(340_123) == "340 kB"
    assert feature("loss_probability").show(0.0123) == "1.23 %"
    assert feature("client_mean_ipt_us").show(1116.4) == "1\N{THIN SPACE}116 µs"
    assert feature("my_own_column").label == "my own column"

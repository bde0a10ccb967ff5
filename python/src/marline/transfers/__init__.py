"""A transfer of data, and the features from which the Wi-Fi study derives its throughput.

J. Manzoor, thesis (2019), section 6.2.1. The laboratory has the same in Rust, for its own runs; the vectors
hold both to the same values.
"""

from marline.transfers.dispersion import Dispersion
from marline.transfers.features import FEATURES, GOODPUT, Feature, feature
from marline.transfers.trace import Passage, Phase, PhaseSince, Trace

__all__ = ["FEATURES", "GOODPUT", "Dispersion", "Feature", "Passage", "Phase", "PhaseSince", "Trace", "feature"]

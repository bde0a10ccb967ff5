"""The determinants of a transfer's throughput: a decision tree over its features.

J. Manzoor, thesis (2019), section 6.2, figures 6.6 and 6.7.
"""

from marline.determinants.analysis import Importance, Report, Selection, Subject, Within, analyse
from marline.determinants.document import to_json
from marline.determinants.options import Options

__all__ = ["Importance", "Options", "Report", "Selection", "Subject", "Within", "analyse", "to_json"]

"""Characteristics of the flows of each version of HTTP (thesis of J. Manzoor, 2019, section 3.1)."""

from marline.flows.characterise.analysis import Distribution, Kind, Report, analyse
from marline.flows.characterise.options import Options

__all__ = ["Distribution", "Kind", "Options", "Report", "analyse"]

"""Report pages in the style of the laboratory's."""

from marline.pages.page import Page, Table
from marline.pages.sheet import IncompleteInstallationError, style_sheet

__all__ = ["IncompleteInstallationError", "Page", "Table", "style_sheet"]

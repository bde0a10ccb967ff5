"""Report pages in the style of the laboratory's."""

from marline.pages.page import Page, Table

__all__ = ["Page", "Table"]

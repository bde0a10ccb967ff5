"""The rows: for each its title, a configuration for each program, and the check of what the title promises."""

import dataclasses
import typing

from programs import Known, Missing


@dataclasses.dataclass
class Row:
    title: str
    programs: dict
    check: typing.Callable
    # Whether the server runs when the check begins.
    start: bool


ROWS = {}


def row(title, nginx, caddy, marline, start=True):
    """Registers the check that it decorates. The first promise of a check is the one without which there is nothing of the row."""

    def register(check):
        assert title not in ROWS, title
        programs = {"caddy": caddy, "nginx": nginx, "marline": marline}
        for name, config in programs.items():
            assert isinstance(config, Known | Missing) or config.program == name, f"{title}: {name}"
        ROWS[title] = Row(title, programs, check, start)
        return check

    return register


def load():
    """All rows, in the order of the page."""
    from rows import access, addresses, content, operation, upstreams, watching  # noqa: F401, PLC0415

    return ROWS

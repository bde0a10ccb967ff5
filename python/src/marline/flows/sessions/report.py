"""The content of a report of sessions: the summary, and its source."""

from dataclasses import dataclass
from pathlib import Path

import duckdb

from marline.errors import MarlineError, UnreadableFileError
from marline.flows.columns import VERSIONS, first_unmet
from marline.flows.sessions.engines import looked_at, sessions
from marline.flows.sessions.options import ANY_VERSION, Options
from marline.flows.sessions.summary import Summary, summarise
from marline.flows.source import FlowFile
from marline.tables import reason


class NoFlowsError(MarlineError):
    """No record matches the options."""


@dataclass(frozen=True, slots=True)
class Report:
    """An analysis of a file."""

    source: Path
    format: str
    options: Options
    records: int
    """In the file."""
    summary: Summary
    reasons: dict[str, int]
    """Excluded records, each by the first reason that applies."""

    @property
    def left_out(self) -> int:
        """Records that are not flows, or of another version, or of excluded clients."""
        return self.records - self.summary.flows


def analyse(path: Path, options: Options) -> Report:
    """Find the sessions of a file. Raises :class:`marline.MarlineError`."""
    flows = FlowFile.open(path)
    found = sessions(flows, options)
    versions = flows.versions()
    summary = summarise(found)
    if not summary.flows:
        raise NoFlowsError(_nothing(path, versions, options) + _because(_reasons(flows, options), options))
    return Report(path, flows.format, options, sum(versions.values()), summary, _reasons(flows, options))


def _reasons(flows: FlowFile, options: Options) -> dict[str, int]:
    records, conditions = looked_at(flows, options)
    try:
        counts = dict(records.project(f"{first_unmet(conditions)} AS why").aggregate("why, count(*)", "why").fetchall())
    except duckdb.Error as error:
        raise UnreadableFileError(flows.path, reason(error)) from error
    return {name: counts[name] for name in conditions if name in counts}


def _because(reasons: dict[str, int], options: Options) -> str:
    """The reasons why records are not flows, as the end of a message."""
    of_version = f"not of {options.http}"
    told = ", ".join(f"{count:,} {name}" for name, count in reasons.items() if name != of_version)
    return f": {told}" if told else ""


def _nothing(path: Path, versions: dict[str | None, int], options: Options) -> str:
    records = sum(versions.values())
    if options.http == ANY_VERSION or not records:
        return f"{path}: {records:,} records, none of which can be analysed"
    has = ", ".join(f"{versions[name]:,} of {name}" for name in VERSIONS if name in versions)
    unknown = versions.get(None, 0)
    told = f"{path}: {records:,} records, none of {options.http} that can be analysed"
    told += f" ({has})" if has else ""
    return told + (f"; the version of {unknown:,} is unknown, use --http any for all" if unknown else "")

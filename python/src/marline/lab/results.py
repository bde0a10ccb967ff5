"""The files of a directory of results."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from marline.errors import MarlineError, MissingFileError, OptionError, UnreadableFileError
from marline.lab import figures
from marline.lab.figures import Paper, PaperFigure

if TYPE_CHECKING:
    import pandas as pd

_STATISTICS: Final = ("n", "censored", "median", "p95", "mean", "std", "cov", "min", "max")


class Results:
    """Results of ``marline lab run``: tables of everything that the directory holds, and figures.

    Values are in the unit of their metric's suffix. Parameters are columns with the names of their keys, such as
    ``link.loss``.
    """

    def __init__(self, directory: Path, plan: dict[str, Any], summary: dict[str, Any]) -> None:
        self._directory = directory
        self._plan = plan
        self._summary = summary

    @classmethod
    def open(cls, directory: str | Path) -> Self:
        """Open a directory.

        Raises :class:`MissingFileError` if it has no results, and :class:`UnreadableFileError` if they are damaged.
        """
        directory = Path(directory)
        return cls(directory, _document(directory / "plan.json"), _document(directory / "results.json"))

    @property
    def title(self) -> str:
        """The experiment's title."""
        return str(self._summary["title"])

    @property
    def experiment(self) -> str:
        """The experiment's ID."""
        return str(self._summary["experiment"])

    @property
    def digest(self) -> str:
        """The hash over the metrics of all runs."""
        return str(self._summary["digest"])

    @property
    def metrics(self) -> list[str]:
        """The metrics that reports show; the first is the main one."""
        return list(self._summary["metrics"])

    @property
    def variants(self) -> list[str]:
        """The variants, in the order of the scenario."""
        return list(self._plan["variants"])

    @property
    def parameters(self) -> list[str]:
        """The keys of the sweep."""
        return sorted({key for point in self._plan["points"] for key in point})

    @property
    def points(self) -> list[dict[str, Any]]:
        """The points of the sweep, in its order."""
        return [dict(point) for point in self._plan["points"]]

    def runs(self) -> "pd.DataFrame":
        """A row for each run, as ``runs.csv``: metrics, parameters, and the status.

        A metric that a run does not have is NaN. ``timed_out`` says that the run exceeded its time limit: its times are
        longer than all others, and not known.
        """
        rows = []
        for run in self._records():
            status = _status(run)
            rows.append(
                {
                    "run": run["run"],
                    "variant": run["variant"],
                    **self.points[run["point"]],
                    "repeat": run["repeat"],
                    "seed": run["seed"],
                    "status": status,
                    "reason": run.get("failed") or run.get("invalid") or "",
                    "timed_out": bool(run.get("timed_out", False)),
                    "virtual_s": run["virtual_s"],
                    "packets": run["packets"],
                    **run["metrics"],
                }
            )
        return _frame(rows)

    def cells(self) -> "pd.DataFrame":
        """A row for each metric of each variant at each point: its statistics, and the 95 % interval of the median."""
        rows = []
        for cell in self._summary["cells"]:
            for metric, summary in cell["metrics"].items():
                rows.append(
                    {
                        "variant": cell["variant"],
                        **cell["parameters"],
                        "metric": metric,
                        **{name: summary.get(name) for name in _STATISTICS},
                        **_interval(summary["ci95"]),
                        "ideal_ratio": cell["ideal_ratio"],
                    }
                )
        return _frame(rows)

    def comparisons(self) -> "pd.DataFrame":
        """A row for each comparison: the improvement of ``a`` over ``b``, its interval, and the published one."""
        rows = [
            {
                **{key: one[key] for key in ("a", "b", "metric", "statistic", "pairs", "improvement_percent")},
                **one["parameters"],
                **_interval(one["ci95"]),
                "published_percent": one["published_percent"],
                "source": one["source"],
            }
            for one in self._summary["comparisons"]
        ]
        return _frame(rows)

    def claims(self) -> "pd.DataFrame":
        """A row for each claim, with its verdict."""
        keys = ("text", "verdict", "holds", "of", "met", "needed", "better", "worse")
        rows = [{key: one[key] for key in keys if key in one} for one in self._summary["must"]]
        return _frame(rows)

    def published(self) -> "pd.DataFrame":
        """A row for each published value."""
        keys = ("variant", "metric", "statistic", "value", "source")
        rows = [{**{key: one[key] for key in keys}, **one["parameters"]} for one in self._summary["published"]]
        return _frame(rows)

    def correlations(self) -> "pd.DataFrame":
        """A row for each correlation of two metrics over the runs of a variant at a point."""
        keys = ("variant", "x", "y", "n", "published")
        rows = [
            {**{key: one[key] for key in keys}, "r": one.get("r"), **one["parameters"]}
            for one in self._summary["correlations"]
        ]
        return _frame(rows)

    def series(self) -> "pd.DataFrame":
        """A row for each value of each recorded time series, of which ``name`` is the kind."""
        rows = [
            (run["run"], run["variant"], run["point"], name, time_s, value)
            for run in self._records()
            for name, points in (run.get("series") or {}).get("series", {}).items()
            for time_s, value in points
        ]
        return _frame(rows, ["run", "variant", "point", "name", "time_s", "value"])

    def moments(self) -> "pd.DataFrame":
        """A row for each recorded event: the run, its ``name``, such as ``lost``, and ``time_s``."""
        rows = [
            (run["run"], run["variant"], run["point"], name, time_s)
            for run in self._records()
            for name, times in (run.get("series") or {}).get("moments", {}).items()
            for time_s in times
        ]
        return _frame(rows, ["run", "variant", "point", "name", "time_s"])

    def boxes(self, metric: str | None = None, *, paper: Paper | None = None) -> PaperFigure:
        """A box for each variant at each point: quartiles, median, whiskers from the 5th to the 95th percentile."""
        metric = self._metric(metric)
        samples = [[self._samples(metric, variant, at) for variant in self.variants] for at in range(len(self.points))]
        return figures.boxes(metric, self._names_of_points(), self.variants, samples, paper or Paper())

    def distribution(
        self, metric: str | None = None, *, where: Mapping[str, Any] | None = None, paper: Paper | None = None
    ) -> PaperFigure:
        """The share of runs up to each value, for each variant, over an axis that begins where the values do.

        ``where`` selects points by their parameters; without it, runs of all points are taken together.
        """
        metric = self._metric(metric)
        chosen = [at for at, point in enumerate(self.points) if (where or {}).items() <= point.items()]
        if not chosen:
            raise OptionError(f"no point of the sweep has {dict(where or {})}; its points are {self.points}")
        samples = [
            [value for at in chosen for value in self._samples(metric, variant, at)] for variant in self.variants
        ]
        return figures.distribution(metric, self.variants, samples, paper or Paper())

    def improvements(self, metric: str | None = None, *, paper: Paper | None = None) -> PaperFigure:
        """Improvements in percent with their 95 % intervals, and the published ones, in a row for each comparison."""
        metric = self._metric(metric)
        rows = [
            figures.Improvement(
                label=_label(f"{one['a']} over {one['b']}", one["parameters"], one["statistic"]),
                percent=one["improvement_percent"],
                interval=one["ci95"],
                published=one["published_percent"],
            )
            for one in self._summary["comparisons"]
            if one["metric"] == metric and one["improvement_percent"] is not None
        ]
        if not rows:
            raise OptionError(f"{self.experiment} compares no variants by {metric}")
        return figures.improvements(rows, paper or Paper())

    def correlation(self, x: str, y: str | None = None, *, paper: Paper | None = None) -> PaperFigure:
        """A mark for each run: metric ``y`` over metric ``x``, for each variant."""
        y = self._metric(y)
        self._metric(x)
        clouds = [
            [
                (run["metrics"][x], run["metrics"][y])
                for run in self._records()
                if run["variant"] == variant and _counts(run) and {x, y} <= run["metrics"].keys()
            ]
            for variant in self.variants
        ]
        return figures.correlation(x, y, self.variants, clouds, paper or Paper())

    def over_time(self, variant: str, point: int = 0, *, paper: Paper | None = None) -> PaperFigure:
        """The recorded time series of a run of a variant, the first that has any: a panel for each kind."""
        for run in self._records():
            watched = run.get("series")
            if run["variant"] == variant and run["point"] == point and watched:
                return figures.over_time(watched["series"], watched["moments"], paper or Paper())
        raise OptionError(f"no run of {variant} at point {point} has time series")

    def _metric(self, metric: str | None) -> str:
        metric = metric or self.metrics[0]
        known = {name for cell in self._summary["cells"] for name in cell["metrics"]}
        if metric not in known:
            raise OptionError(f"{self.experiment} has no metric {metric}; it has {', '.join(sorted(known))}")
        return metric

    def _samples(self, metric: str, variant: str, point: int) -> list[float]:
        return [
            run["metrics"][metric]
            for run in self._records()
            if run["variant"] == variant and run["point"] == point and metric in run["metrics"] and _counts(run)
        ]

    def _names_of_points(self) -> list[str]:
        return [", ".join(str(value) for value in point.values()) for point in self.points]

    def _records(self) -> Sequence[dict[str, Any]]:
        if not hasattr(self, "_runs"):
            # A run that was repeated for its time series has two lines, of which the last one counts.
            runs = {int(run["run"]): run for run in _lines(self._directory / "runs.jsonl")}
            self._runs = [runs[number] for number in sorted(runs)]
        return self._runs


def _frame(rows: Sequence[Any], columns: Sequence[str] | None = None) -> "pd.DataFrame":
    # Only tables need it, and it takes a second to load.
    try:
        import pandas as pd  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MarlineError("tables need pandas: pip install './python[lab]'") from error
    return pd.DataFrame(rows, columns=columns)


def _counts(run: Mapping[str, Any]) -> bool:
    return _status(run) == "ok"


def _status(run: Mapping[str, Any]) -> str:
    if run.get("timed_out"):
        return "timed out"
    return "failed" if run.get("failed") else "invalid" if run.get("invalid") else "ok"


def _interval(bounds: Sequence[float] | None) -> dict[str, float | None]:
    low, high = bounds or (None, None)
    return {"ci95_low": low, "ci95_high": high}


def _label(words: str, parameters: Mapping[str, Any], statistic: str) -> str:
    at = ", ".join(str(value) for value in parameters.values())
    place = f", {at}" if at else ""
    return f"{words}{place}" if statistic == "median" else f"{words}{place} ({statistic})"


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MissingFileError(path) from error
    except (OSError, ValueError) as error:
        raise UnreadableFileError(path, str(error)) from error
    if not isinstance(document, dict):
        raise UnreadableFileError(path, "is not an object")
    return document


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        # A last line without an end is that of a run that was interrupted.
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    except FileNotFoundError as error:
        raise MissingFileError(path) from error
    except (OSError, ValueError) as error:
        raise UnreadableFileError(path, str(error)) from error
    for number, line in enumerate(lines, start=1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise UnreadableFileError(path, f"line {number}: {error}") from error

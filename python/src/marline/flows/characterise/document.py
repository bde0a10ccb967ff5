"""The characterisation as JSON."""

from marline.flows.characterise.adoption import KINDS
from marline.flows.characterise.analysis import Distribution, Report
from marline.json import Json


def to_json(report: Report) -> dict[str, Json]:
    """The document of ``--json``."""
    return {
        "source": report.source.name,
        "format": report.format,
        "records": report.records,
        "left_out": report.left_out,
        "left_out_by_reason": {**report.reasons},
        "versions": {
            kind.version: {
                "flows": kind.flows,
                **{column: _distribution(distribution) for column, distribution in kind.of.items()},
            }
            for kind in report.kinds
        },
        "services": [
            {
                "name": service.name,
                "flows": service.flows,
                "periods": [
                    {"begin": period.begin, **dict(zip(KINDS, period.flows, strict=True))} for period in service.periods
                ],
            }
            for service in report.services
        ],
    }


def _distribution(distribution: Distribution) -> dict[str, Json]:
    return {
        "mean": distribution.mean,
        **{f"p{percent}": distribution.percentile(percent) for percent in (5, 25, 50, 75, 95)},
    }

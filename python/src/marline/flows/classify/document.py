"""The evaluation as JSON."""

import numpy as np

from marline.evaluation import Confusion
from marline.flows.classify.calibration import Calibration
from marline.flows.classify.evaluation import Evaluation, Result
from marline.flows.classify.predict import Prediction
from marline.json import Json


def to_json(evaluation: Evaluation) -> dict[str, Json]:
    """The document of ``--json``."""
    sample, options = evaluation.sample, evaluation.options
    return {
        "source": evaluation.source.name,
        "sources": [source.name for source in evaluation.sources],
        "flows": {name: int((sample.classes == at).sum()) for at, name in enumerate(sample.names)},
        "left_out": sample.left_out.total,
        "left_out_by_reason": {**sample.left_out.counts},
        "features": [feature.column for feature in sample.used],
        "folds": options.folds,
        "seed": options.seed,
        "selected": [feature.column for feature in evaluation.selected],
        "baselines": [
            {
                "name": one.name,
                "rule": one.text,
                **_accuracy(one.confusion),
                "tests": [
                    {"source": test.name, **_accuracy(confusion)}
                    for test, confusion in zip(options.tests, one.tests, strict=True)
                ],
            }
            for one in evaluation.baselines
        ],
        "algorithms": [_result(result, sample.names) for result in evaluation.results],
    }


def prediction_to_json(prediction: Prediction) -> dict[str, Json]:
    """The document of ``classify predict --json``."""
    return {
        "flows": prediction.flows,
        "predicted": {**prediction.counts},
        "unknown": prediction.unknown,
        "without_prediction": prediction.without,
        "without_prediction_by_reason": {**prediction.left_out},
        "threshold": prediction.threshold,
    }


def _result(result: Result, names: tuple[str, ...]) -> dict[str, Json]:
    return {
        "algorithm": result.algorithm,
        **_quality(result.confusion, names),
        "calibration": _calibration(result.calibration),
        "grouped": {
            name: None if confusion is None else _quality(confusion, names)
            for name, confusion in result.by_group.items()
        },
        "importances": [
            {"feature": one.feature.column, "accuracy_loss_percent": 100 * one.loss} for one in result.importances
        ],
        "tests": [
            {
                "source": test.source.name,
                "left_out": test.left_out,
                **_quality(test.confusion, names),
                "calibration": _calibration(test.calibration),
            }
            for test in result.tests
        ],
        "services": [
            {"name": one.name, "flows": one.flows, "accuracy_percent": 100 * one.accuracy} for one in result.services
        ],
        "curve": [
            {
                "flows": point.flows,
                "accuracy_percent": 100 * point.accuracy,
                "train_s": point.train_s,
                "classify_per_s": point.classify_per_s,
            }
            for point in result.curve
        ],
    }


def _calibration(calibration: Calibration) -> dict[str, Json]:
    return {
        "brier": calibration.brier,
        "brier_of_shares": calibration.brier_of_shares,
        "bins": [
            {
                "from_percent": 100 * one.low,
                "to_percent": 100 * one.high,
                "flows": one.flows,
                "probability_percent": _percent(one.probability),
                "right_percent": _percent(one.right),
            }
            for one in calibration.bins
        ],
        "thresholds": [
            {
                "threshold": one.threshold,
                "answered_percent": 100 * one.answered,
                "right_percent": _percent(one.right),
            }
            for one in calibration.answers
        ],
    }


def _percent(share: float) -> float | None:
    return None if np.isnan(share) else 100 * share


def _accuracy(confusion: Confusion) -> dict[str, Json]:
    return {
        "accuracy_percent": 100 * confusion.accuracy,
        "accuracy_percent_ci95": [100 * end for end in confusion.interval],
    }


def _quality(confusion: Confusion, names: tuple[str, ...]) -> dict[str, Json]:
    return {
        **_accuracy(confusion),
        "f_measure_percent": 100 * confusion.f_measure,
        "kappa_percent": 100 * confusion.kappa,
        "recall_percent": {
            name: None if np.isnan(recall) else 100 * float(recall)
            for name, recall in zip(names, confusion.recalls, strict=True)
        },
        "confusion": {
            name: {other: int(count) for other, count in zip(names, row, strict=True)}
            for name, row in zip(names, confusion.counts, strict=True)
        },
    }

"""The evaluation as JSON."""

import numpy as np

from marline.evaluation import Confusion
from marline.flows.classify.evaluation import Evaluation, Result
from marline.flows.classify.predict import Prediction
from marline.json import Json


def to_json(evaluation: Evaluation) -> dict[str, Json]:
    """What ``--json`` prints."""
    sample, options = evaluation.sample, evaluation.options
    return {
        "source": evaluation.source.name,
        "flows": {name: int((sample.classes == at).sum()) for at, name in enumerate(sample.names)},
        "left_out": sample.left_out.total,
        "folds": options.folds,
        "seed": options.seed,
        "selected": [feature.column for feature in evaluation.selected],
        "algorithms": [_result(result, sample.names) for result in evaluation.results],
    }


def prediction_to_json(prediction: Prediction) -> dict[str, Json]:
    """What ``classify predict --json`` prints."""
    return {"flows": prediction.flows, "predicted": {**prediction.counts}, "without_prediction": prediction.without}


def _result(result: Result, names: tuple[str, ...]) -> dict[str, Json]:
    return {
        "algorithm": result.algorithm,
        **_quality(result.confusion, names),
        "tests": [
            {"source": test.source.name, "left_out": test.left_out, **_quality(test.confusion, names)}
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


def _quality(confusion: Confusion, names: tuple[str, ...]) -> dict[str, Json]:
    return {
        "accuracy_percent": 100 * confusion.accuracy,
        "accuracy_percent_ci95": [100 * end for end in confusion.interval],
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

"""Classification of flows by version of HTTP (thesis of J. Manzoor, 2019, section 3.2)."""

from marline.flows.classify.evaluation import Evaluation, evaluate
from marline.flows.classify.model import Model
from marline.flows.classify.options import Options
from marline.flows.classify.predict import Prediction, predict
from marline.flows.classify.sample import Sample

__all__ = ["Evaluation", "Model", "Options", "Prediction", "Sample", "evaluate", "predict"]

"""Classification of files that do not fit into memory."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from marline.errors import MarlineError, UnreadableFileError
from marline.flows.classify.decision import DEFAULT_THRESHOLD, Decision
from marline.flows.classify.model import Model
from marline.flows.classify.taken import conditions, value
from marline.flows.columns import first_unmet
from marline.flows.features import TRANSPORT
from marline.flows.source import FlowFile, connect
from marline.interrupts import INTERRUPTS
from marline.output import OutputFile
from marline.tables import quoted, reason

PREDICTED: Final = "predicted"
PROBABILITY: Final = "predicted_probability"
WHY_NOT: Final = "predicted_reason"
ADDED: Final = (PREDICTED, PROBABILITY, WHY_NOT)
"""The added columns: a version, :data:`UNKNOWN` or NULL; its probability; the reason why there is none."""

UNKNOWN: Final = "unknown"
"""The answer for a flow whose most probable version is below the threshold."""

NOTHING_POSSIBLE: Final = "is of a transport that no version of the model goes over"

_BATCH = 1 << 18

Texts: TypeAlias = npt.NDArray[np.object_]


class NotParquetError(MarlineError):
    """The output must be of another kind."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predictions for the flows of a file."""

    counts: dict[str, int]
    """The number of flows of each class of the model."""
    unknown: int
    """Flows of no class with the required probability."""
    left_out: dict[str, int]
    """Records that training would exclude, by reason."""
    threshold: float

    @property
    def without(self) -> int:
        """Records that are not classified."""
        return sum(self.left_out.values())

    @property
    def flows(self) -> int:
        """All flows of the file."""
        return sum(self.counts.values()) + self.unknown + self.without


def predict(model: Model, source: Path, out: Path, threshold: float = DEFAULT_THRESHOLD) -> Prediction:
    """Write the flows of ``source``, with their predicted versions, to a Parquet file, in their order.

    Only flows that training would accept are classified, and only answers of at least the probability ``threshold``
    are given.

    Raises :class:`MarlineError`; an incomplete file is removed.
    """
    if out.suffix != ".parquet":
        raise NotParquetError(f"{out}: the suffix must be .parquet")
    file = OutputFile(out, source)
    flows = FlowFile.open(source, connect(keep_order=True))
    records, columns = flows.copied()
    kept = [name for name in columns if name.lower() not in ADDED]
    asked = conditions(model.features)
    values = [first_unmet(asked), value(TRANSPORT), *(value(feature) for feature in model.features)]
    counts, left_out = np.zeros(len(model.names) + 1, dtype=np.int64), Counter[str]()
    try:
        # Columns by index: a file can have any names.
        reader = records.project(", ".join([*map(quoted, kept), *values])).to_arrow_reader(_BATCH)
        schema = pa.schema([pa.field(name, reader.schema.field(at).type) for at, name in enumerate(kept)])
        for name, kind in zip(ADDED, (pa.string(), pa.float64(), pa.string()), strict=True):
            schema = schema.append(pa.field(name, kind))
        with file.written() as path:
            with pq.ParquetWriter(path, schema, compression="zstd") as writer:
                for batch in reader:
                    INTERRUPTS.check()
                    why, *numbers = (column.to_numpy(zero_copy_only=False) for column in batch.columns[len(kept) :])
                    taken = np.array([one is None for one in why], dtype=np.bool_)
                    transport, *rows = (np.asarray(column, dtype=np.float64)[taken] for column in numbers)
                    decision = Decision.of(model.probabilities(np.column_stack(rows)), transport, model.names)
                    answered = decision.answered(threshold)
                    found = np.where(answered, decision.classes, len(model.names))
                    counts += np.bincount(found, minlength=len(counts))
                    left_out.update(why[~taken])
                    added = _added(why, taken, np.array([*model.names, UNKNOWN], dtype=object)[found], decision)
                    copied = batch.columns[: len(kept)]
                    writer.write_batch(pa.record_batch([*copied, *added], schema=schema))
            INTERRUPTS.check()
    except duckdb.Error as error:
        raise UnreadableFileError(source, reason(error)) from error
    *known, unknown = counts.tolist()
    by_reason = {name: left_out[name] for name in asked}
    return Prediction(dict(zip(model.names, known, strict=True)), unknown, by_reason, threshold)


def _added(why: Texts, taken: npt.NDArray[np.bool_], names: Texts, decision: Decision) -> list[pa.Array]:
    """The columns that are added to a batch."""
    predicted = np.full(len(why), None, dtype=object)
    predicted[taken] = names
    probability = np.full(len(why), np.nan)
    probability[taken] = decision.certainty
    reasons = why.copy()
    reasons[np.flatnonzero(taken)[decision.certainty == 0]] = NOTHING_POSSIBLE
    return [
        pa.array(predicted, pa.string()),
        pa.array(probability, pa.float64(), mask=~taken),
        pa.array(reasons, pa.string()),
    ]

"""Classification of files that do not fit into memory."""

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from marline.errors import MarlineError, UnreadableFileError
from marline.flows.classify.model import Model
from marline.flows.classify.sample import value
from marline.flows.columns import COLUMNS, possible
from marline.flows.source import FlowFile, connect
from marline.interrupts import INTERRUPTS
from marline.output import OutputFile
from marline.tables import quoted, reason

PREDICTED = "predicted"
"""The column that is added; nothing where a flow lacks a feature."""

_BATCH = 1 << 18


class NotParquetError(MarlineError):
    """The output is to be of another kind."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the flows of a file are taken for."""

    counts: dict[str, int]
    """How many are of each class of the model."""
    without: int
    """Flows that are taken for nothing: they lack a number that the model needs, or have one that cannot be."""

    @property
    def flows(self) -> int:
        """All flows of the file."""
        return sum(self.counts.values()) + self.without


def predict(model: Model, source: Path, out: Path) -> Prediction:
    """Write the flows of ``source``, with what they are taken for, to a Parquet file, in their order.

    Raises :class:`MarlineError`; nothing is left of a file that could not be finished.
    """
    if out.suffix != ".parquet":
        raise NotParquetError(f"{out}: the suffix must be .parquet")
    file = OutputFile(out, source)
    records, columns = FlowFile.open(source, connect(keep_order=True)).copied()
    kept = [name for name in columns if name.lower() != PREDICTED]
    values = [f"CASE WHEN {possible(COLUMNS)} THEN {value(feature)} END" for feature in model.features]
    counts = np.zeros(len(model.names), dtype=np.int64)
    flows = 0
    try:
        # Columns by their places: a file can have any names.
        reader = records.project(", ".join([*map(quoted, kept), *values])).to_arrow_reader(_BATCH)
        schema = pa.schema([pa.field(name, reader.schema.field(at).type) for at, name in enumerate(kept)])
        schema = schema.append(pa.field(PREDICTED, pa.string()))
        with file.written() as path:
            with pq.ParquetWriter(path, schema, compression="zstd") as writer:
                for batch in reader:
                    INTERRUPTS.check()
                    numbers = [column.to_numpy(zero_copy_only=False) for column in batch.columns[len(kept) :]]
                    rows = np.column_stack(numbers).astype(np.float64)
                    known = np.isfinite(rows).all(axis=1)
                    found = model.classify(np.ascontiguousarray(rows[known]))
                    counts += np.bincount(found, minlength=len(model.names))
                    flows += len(rows)
                    names = np.full(len(rows), None, dtype=object)
                    names[known] = np.array(model.names, dtype=object)[found]
                    copied = batch.columns[: len(kept)]
                    writer.write_batch(pa.record_batch([*copied, pa.array(names, pa.string())], schema=schema))
            INTERRUPTS.check()
    except duckdb.Error as error:
        raise UnreadableFileError(source, reason(error)) from error
    return Prediction(dict(zip(model.names, counts.tolist(), strict=True)), flows - int(counts.sum()))

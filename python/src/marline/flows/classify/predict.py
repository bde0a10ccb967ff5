"""Classification of files that do not fit into memory."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from marline.errors import MarlineError, OutputError, UnreadableFileError
from marline.flows.classify.model import Model
from marline.flows.classify.sample import value
from marline.flows.columns import COLUMNS
from marline.flows.source import FlowFile
from marline.tables import reason

PREDICTED = "predicted"
"""The column that is added; nothing where a flow lacks a feature."""

_BATCH = 1 << 18


class NotParquetError(MarlineError):
    """The output is to be of another kind."""


def predict(model: Model, source: Path, out: Path) -> dict[str, int]:
    """Write the flows of ``source``, with what they are taken for, to a Parquet file; how many are of each class.

    Raises :class:`MarlineError`; nothing is left of a file that could not be finished.
    """
    if out.suffix != ".parquet":
        raise NotParquetError(f"{out}: the suffix must be .parquet")
    flows = FlowFile.open(source)
    values = ", ".join(f"{value(feature)} AS {_internal(feature.column)}" for feature in model.features)
    unfinished = out.with_name(f".unfinished-{out.name}")
    counts = dict.fromkeys(model.names, 0)
    try:
        reader = flows.relation.project(f"{', '.join(COLUMNS)}, {values}").to_arrow_reader(_BATCH)
        schema = pa.schema([reader.schema.field(name) for name in COLUMNS]).append(pa.field(PREDICTED, pa.string()))
        out.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
            for batch in reader:
                columns = [
                    batch.column(_internal(feature.column)).to_numpy(zero_copy_only=False) for feature in model.features
                ]
                rows = np.column_stack(columns).astype(np.float64)
                known = np.isfinite(rows).all(axis=1)
                found = model.classify(np.ascontiguousarray(rows[known]))
                for at, count in enumerate(np.bincount(found, minlength=len(model.names))):
                    counts[model.names[at]] += int(count)
                names = np.full(len(rows), None, dtype=object)
                names[known] = np.array(model.names, dtype=object)[found]
                kept = [batch.column(name) for name in COLUMNS]
                writer.write_batch(pa.record_batch([*kept, pa.array(names, pa.string())], schema=schema))
        unfinished.replace(out)
    except duckdb.Error as error:
        raise UnreadableFileError(source, reason(error)) from error
    except OSError as error:
        raise OutputError(out, error.strerror or str(error)) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return counts


def _internal(column: str) -> str:
    return f"feature_{column}"

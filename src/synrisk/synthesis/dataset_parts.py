"""A dataset of stored records written in parts; those that an earlier run left whole stay."""

from __future__ import annotations

from collections import Counter
from importlib import metadata
from typing import TYPE_CHECKING, Any

from synrisk.base.digests import digest
from synrisk.base.workers import Executor
from synrisk.data.part_files import KEPT, PartFolder
from synrisk.synthesis.datasets import check_all_folded, draw_parts, rows_of_parts

if TYPE_CHECKING:
    from synrisk.synthesis.synthesizer import Synthesizer


def write_dataset(
    synthesizer: Synthesizer, number: int, seed: int, place: PartFolder, executor: Executor
) -> list[str]:
    """Write the parts of a dataset that are not there; return how each part is."""
    import pyarrow as pa
    from pyarrow import parquet

    confidential, models = synthesizer.confidential, synthesizer.models
    parts = rows_of_parts(confidential.n_records)
    made_from = _made_from(synthesizer, number, seed, parts)
    with PartFolder.opened(place.path, place.notes) as folder:
        states = folder.begin(made_from)
        wanted = [k for k, state in enumerate(states) if state != KEPT]
        # Types are those of the first part in all of them.
        schema = None if 0 in wanted else parquet.read_schema(folder.part(0))
        drawn = draw_parts(confidential, models, number, seed, [parts[k] for k in wanted], executor)
        for k, (frame, n_folded) in zip(wanted, drawn, strict=True):
            table = pa.Table.from_pandas(frame, schema, preserve_index=False)
            schema = table.schema
            folder.write(k, table, made_from[k], n_folded)
        folder.end(len(parts))
        all_folded: Counter[str] = Counter()
        for k in range(len(parts)):
            all_folded.update(folder.beside(k) or {})
    check_all_folded(models, all_folded, confidential.n_records, number)
    return states


def _made_from(
    synthesizer: Synthesizer, number: int, seed: int, parts: list[slice]
) -> list[dict[str, Any]]:
    """Return by what each part is known again; digests tell nothing of what they are of."""
    common = {
        "version": metadata.version("synrisk"),
        "models or records": synthesizer.digest,
        "seed": digest(seed, number),
    }
    return [{**common, "records": [one.start, one.stop]} for one in parts]

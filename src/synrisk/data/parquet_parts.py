"""Tables out, a part at a time: folders of Parquet, each part whole or not there.

Files are called part-00000.parquet and so on; whoever reads the folder takes them in that order.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from synrisk.base.chunks import ROWS
from synrisk.base.errors import FileError
from synrisk.data.output_files import write_whole

ROWS_A_PART = 64 * ROWS


def new_folder(folder: Path) -> Path:
    """Return a folder for parts, which is made if it is not there, or raise if it is not empty."""
    problem = ""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        others = [path.name for path in folder.iterdir()]
    except OSError as error:
        problem, others = error.strerror or type(error).__name__, []
    if problem:
        raise FileError(f"{folder} cannot be written to: {problem}.")
    if others:
        raise FileError(
            f"{folder} is not empty; delete what is in it, or name a folder that is not there."
        )
    return folder


def write_parts(folder: Path, frames: Iterable[pd.DataFrame]) -> int:
    """Write frames of the same columns as the parts of a folder; return how many rows there are."""
    import pyarrow as pa
    from pyarrow import parquet

    schema, n_rows = None, 0
    for number, frame in enumerate(frames):
        table = pa.Table.from_pandas(frame, schema, preserve_index=False)
        schema = table.schema
        image = io.BytesIO()
        parquet.write_table(table, image)
        name = f"part-{number:05d}.parquet"
        write_whole(folder / name, [image.getbuffer().tobytes()], owner_only=True)
        n_rows += len(frame)
    return n_rows


def cut(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the rows of a frame as parts."""
    for first in range(0, len(frame), ROWS_A_PART):
        yield frame.iloc[first : first + ROWS_A_PART]

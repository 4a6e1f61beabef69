"""Read a file of SPSS, SAS or Stata in a process of its own, and send it to standard output.

Compiled code reads such files, which some damaged ones crash; so it runs where it can end nothing
else, with limited memory. This is run as a script, and imports nothing of synrisk, which would take
longer than the reading.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

UNREADABLE, TOO_LARGE = 3, 4  # exit codes
LABELS = b"labels"  # of values, in the metadata of the table
_BYTES_A_CELL = 40  # of memory: twice in pandas, once in Arrow, and the text itself
_BESIDE = 2**30  # bytes that Python and the libraries take


def send(path: Path, most_bytes: int) -> int:
    """Write the table in Arrow's format to standard output; return an exit code."""
    import pyarrow as pa
    import pyreadstat

    _limit_memory(most_bytes)
    readers = {
        ".sav": pyreadstat.read_sav,
        ".zsav": pyreadstat.read_sav,
        ".por": pyreadstat.read_por,
        ".dta": pyreadstat.read_dta,
        ".sas7bdat": pyreadstat.read_sas7bdat,
        ".xpt": pyreadstat.read_xport,
    }
    reader = readers[path.suffix.lower()]
    try:
        _, told = reader(str(path), metadataonly=True)
        if (told.number_rows or 0) * told.number_columns * _BYTES_A_CELL > most_bytes:
            return TOO_LARGE
        frame, told = reader(str(path))
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except MemoryError:
        return TOO_LARGE
    except Exception:  # whatever it is: its words may hold values
        return UNREADABLE
    labels = {name: _plain(of) for name, of in told.variable_value_labels.items() if of}
    table = table.replace_schema_metadata({LABELS: json.dumps(labels).encode()})
    with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as stream:
        stream.write_table(table)
    return 0


def _plain(labels: dict[Any, Any]) -> list[tuple[float | str, str]]:
    """Return values with their labels as JSON has them, in the order of the values."""
    pairs = [
        (code if isinstance(code, str) else float(code), str(label))
        for code, label in labels.items()
    ]
    return sorted(pairs, key=lambda pair: (isinstance(pair[0], str), pair[0]))


def _limit_memory(n_bytes: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (n_bytes + _BESIDE, n_bytes + _BESIDE))


if __name__ == "__main__":
    sys.exit(send(Path(sys.argv[1]), int(sys.argv[2])))

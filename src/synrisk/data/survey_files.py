"""Files of SPSS (.sav, .zsav, .por), SAS (.sas7bdat, .xpt) and Stata (.dta), with their labels."""

from __future__ import annotations

import importlib.util
import io
import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from synrisk.base.errors import FileError, listed
from synrisk.data import survey_reader
from synrisk.data.csv_dialects import FileWarning
from synrisk.data.unpacking import Attempt, Meter, most_bytes

SURVEY_FILES = (".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt")
_SECONDS, _SECONDS_A_MEGABYTE = 60.0, 2.0  # that reading may take


def read_survey_file(path: Path, what: str) -> pd.DataFrame:
    """Return the table in a file of SPSS, SAS or Stata (the extra ``survey``).

    A column all of whose values have labels is a factor of these, in the order of the codes. Values
    that the file declares missing are missing.
    """
    here = f"{what}: {path.name}"
    if importlib.util.find_spec("pyreadstat") is None:
        raise FileError(
            f"{what}: files of SPSS, SAS and Stata need pyreadstat; install it with pip install "
            "'synrisk[survey]'."
        )
    attempt = Attempt(here)
    with attempt:
        import pyarrow as pa

        with pa.ipc.open_stream(io.BytesIO(_sent(path, here))) as stream:
            table = stream.read_all()
        labels = json.loads(table.schema.metadata[survey_reader.LABELS])
        return _labelled(table.to_pandas(), labels, here)
    raise attempt.refusal("cannot be read; is it whole?")


def _sent(path: Path, here: str) -> bytes:
    """Return what the process that reads the file sends."""
    seconds = _SECONDS + _SECONDS_A_MEGABYTE * path.stat().st_size / 2**20
    command = [sys.executable, survey_reader.__file__, str(path.absolute()), str(most_bytes())]
    try:
        done = subprocess.run(  # noqa: S603 - our own script
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise FileError(f"{here} cannot be read within {seconds:,.0f} s; is it whole?") from None
    if done.returncode == survey_reader.TOO_LARGE:
        Meter(here).foresee(most_bytes() + 1)
    if done.returncode != 0:  # also a signal
        raise FileError(f"{here} cannot be read; is it whole?")
    return done.stdout


def _labelled(
    frame: pd.DataFrame, labels: dict[str, list[tuple[float | str, str]]], here: str
) -> pd.DataFrame:
    """Return a table with labels in place of codes, where every value has one of its own."""
    in_part = []
    for name, pairs in labels.items():
        if name not in frame.columns:
            continue
        column, by_code = frame[name], dict(pairs)
        present = column.dropna().unique().tolist()
        if not present or len(set(by_code.values())) < len(by_code):
            continue
        if not set(present) <= set(by_code):
            in_part += [name] if set(present) & set(by_code) else []
            continue
        codes = [code for code in by_code if code in set(present)]
        place = {code: k for k, code in enumerate(codes)}
        places = column.map(place).fillna(-1).to_numpy(dtype=np.int64)
        levels = pd.Index([by_code[code] for code in codes])
        frame[name] = pd.Categorical.from_codes(places, levels)
    if in_part:
        warnings.warn(
            f"{here}: {listed(in_part)} {'has' if len(in_part) == 1 else 'have'} labels for some "
            "values and none for others; all are read as they are. Values that stand for missing "
            "ones must be declared so in the file.",
            FileWarning,
            stacklevel=2,
        )
    return frame

"""Rows sent to numbered files, from which those that belong together are read back at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.errors import FileError
from synrisk.data.column_store import TemporaryFolder


class Buckets:
    """Files of rows of numbers, in a folder that its owner alone may enter.

    Within a file rows keep the order in which they came.

    Parameters
    ----------
    n_columns
        How many numbers a row has.
    """

    def __init__(self, n_columns: int) -> None:
        self._folder = TemporaryFolder()  # goes with this
        self._n_columns = n_columns
        self._n_rows: dict[int, int] = {}

    def _path(self, number: int) -> Path:
        return self._folder.path / f"{number}.bin"

    def n_rows(self, number: int) -> int:
        """Return how many rows a file has."""
        return self._n_rows.get(number, 0)

    def append(self, numbers: IntArray, rows: npt.NDArray[np.float64]) -> None:
        """Send rows to the files of these numbers."""
        order = np.argsort(numbers, kind="stable")
        rows = np.ascontiguousarray(rows[order], dtype="<f8")
        which, first = np.unique(numbers[order], return_index=True)
        problem = ""
        try:
            for number, part in zip(which.tolist(), np.split(rows, first[1:]), strict=True):
                with self._path(number).open("ab") as file:
                    file.write(part.data)
                self._n_rows[number] = self.n_rows(number) + len(part)
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise FileError(f"Rows cannot be written to {self._folder.path}: {problem}.")

    def read(self, number: int) -> FloatArray:
        """Return the rows of a file, none where none were sent there."""
        n_rows, problem = self.n_rows(number), ""
        if not n_rows:
            return np.empty((0, self._n_columns))
        try:
            values = np.fromfile(self._path(number), "<f8")
            if len(values) == n_rows * self._n_columns:
                return values.reshape(n_rows, self._n_columns)
            problem = "it has become shorter"
        except OSError as error:
            problem = error.strerror or type(error).__name__
        raise FileError(f"A file of {self._folder.path} cannot be read: {problem}.")

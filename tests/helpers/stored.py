"""Columns that are read a slice at a time, as those of a table that is not in memory."""

import numpy as np


class StoredColumn:
    """An array behind slices, which counts how much of it is read at once."""

    def __init__(self, values, log):
        self._values, self._log = values, log

    def __len__(self):
        return len(self._values)

    @property
    def dtype(self):
        return self._values.dtype

    @property
    def shape(self):
        return self._values.shape

    def __getitem__(self, rows):
        assert isinstance(rows, slice), "a stored column is read by slices"
        found = self._values[rows].copy()
        self._log["largest"] = max(self._log["largest"], len(found))
        return found

    def __array__(self, dtype=None, copy=None):
        self._log["whole"] += 1
        return np.array(self._values, dtype=dtype)


def stored(columns):
    """Return columns that are read, and a log of how much of them was read at once."""
    log = {"largest": 0, "whole": 0}
    return {name: StoredColumn(values, log) for name, values in columns.items()}, log

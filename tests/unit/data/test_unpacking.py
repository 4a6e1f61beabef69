"""Files that are damaged, or larger than they look: what is said, and what memory they take."""

import bz2
import contextlib
import gzip
import io
import lzma
import struct
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from helpers.mutations import mutations

import synrisk as sr
from synrisk.data import csv_files, frames, r_files
from synrisk.data.frames import read_table
from synrisk.data.unpacking import MOST_BYTES, Attempt, most_bytes

R = Path(__file__).parents[2] / "data" / "r"
PACKERS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}
A_VALUE = "PID700000"
PEOPLE = pd.DataFrame(
    {
        "id": [f"PID{700000 + i}" for i in range(60)],
        "income": np.random.default_rng(0).normal(2e4, 5e3, 60),
        "sex": ["female", "male", None] * 20,
    }
)


def as_csv():
    return PEOPLE.to_csv(index=False).encode()


def as_parquet():
    stream = io.BytesIO()
    PEOPLE.to_parquet(stream)
    return stream.getvalue()


def refused(tmp_path, name, content, why):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(sr.SynriskError, match=why) as caught:
        read_table(tmp_path / name, "T")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert A_VALUE not in str(caught.value)
    return str(caught.value)


# -- damaged ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "damage",
    [
        lambda packed: packed[:-9],
        lambda packed: packed[: len(packed) // 2],
        lambda packed: packed[:20] + b"\xff" * 9 + packed[29:],
        lambda packed: packed[:-6] + b"\x00\x00" + packed[-4:],
        lambda packed: packed + b"more",
    ],
    ids=["end lost", "half lost", "changed", "checksum", "more"],
)
@pytest.mark.parametrize("name", ["t.csv.gz", "t.rds", "t.RData"])
def test_gzip_that_is_damaged(tmp_path, name, damage):
    plain = as_csv() if "csv" in name else gzip.decompress((R / "people.rds").read_bytes())
    refused(tmp_path, name, damage(gzip.compress(plain)), "cannot be unpacked; is it whole")


@pytest.mark.parametrize("packer", ["bzip2", "xz"])
def test_other_packers_whose_files_are_damaged(tmp_path, packer):
    packed = PACKERS[packer](gzip.decompress((R / "people.rds").read_bytes()))
    for content in (packed[:-9], packed[:30], packed[:900] + b"damaged" + packed[907:]):
        refused(tmp_path, "t.rds", content, "cannot be unpacked; is it whole")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", as_csv()),
        ("t.csv.gz", gzip.compress(as_csv(), mtime=0)),
        ("t.parquet", as_parquet()),
        ("t.rds", (R / "people.rds").read_bytes()),
        ("kinds.rds", gzip.decompress((R / "kinds.rds").read_bytes())),
        ("kinds_ascii.rds", gzip.decompress((R / "kinds_ascii.rds").read_bytes())),
        ("list.rds", gzip.decompress((R / "linear_draws_list.rds").read_bytes())),
        ("t.RData", gzip.decompress((R / "two.RData").read_bytes())),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.filterwarnings("ignore::synrisk.FileWarning")
def test_what_chance_does_to_a_file_is_read_or_refused(tmp_path, name, content):
    path = tmp_path / name
    n_refused = 0
    for damaged in mutations(content, np.random.default_rng(zlib.crc32(name.encode())), 40):
        path.write_bytes(damaged)
        with contextlib.suppress(sr.SynriskError):
            assert isinstance(read_table(path, "T"), pd.DataFrame)
            n_refused -= 1
        n_refused += 1
    assert n_refused > 10


# -- too large ----------------------------------------------------------------------------------
def whole(*numbers):
    return struct.pack(f">{len(numbers)}i", *numbers)


def text(word):
    return whole(0x00040009, len(word)) + word.encode()


HEAD = b"X\n" + whole(3, 0x040301, 0x030500, 5) + b"UTF-8"
NOTHING = whole(254)


def frame_of(column, n_rows):
    """An RDS file of a data frame with a column x, as R writes it."""
    attributes = (
        whole(0x402, 1) + text("names") + whole(16, 1) + text("x"),
        whole(0x402, 1) + text("class") + whole(16, 1) + text("data.frame"),
        whole(0x402, 1) + text("row.names") + whole(13, 2, -(2**31), -n_rows),
    )
    return HEAD + whole(0x313, 1) + column + b"".join(attributes) + NOTHING


def sequence(form, *state):
    """A vector that R writes in short, with numbers for its state."""
    name = whole(2, 1) + text(form) + whole(2, 1) + text("base") + whole(2, 13, 1, 13) + NOTHING
    return (
        whole(238) + name + whole(14, len(state)) + struct.pack(f">{len(state)}d", *state) + NOTHING
    )


def many_texts(n):
    """The state of ``as.character(1:n)`` with its numbers in short, too."""
    name = whole(2, 1) + text("deferred_string") + whole(2, 1) + text("base")
    numbers = sequence("compact_intseq", n, 1, 1)
    state = whole(2) + numbers + whole(13, 1, 0)
    return whole(238) + name + whole(2, 13, 1, 16) + NOTHING + state + NOTHING


def zeros(n):
    return whole(14, n) + bytes(8 * n)


def test_short_forms_of_r_are_read(tmp_path):
    path = tmp_path / "t.rds"
    for form, dtype in (("compact_intseq", np.int64), ("compact_realseq", np.float64)):
        path.write_bytes(frame_of(sequence(form, 4, 9, -1), 4))
        found = read_table(path, "T")["x"].to_numpy()
        np.testing.assert_array_equal(found, np.array([9, 8, 7, 6], dtype=dtype), strict=True)


@pytest.mark.parametrize("form", ["compact_intseq", "compact_realseq"])
def test_a_sequence_in_short_is_not_made_if_it_is_too_long(tmp_path, form):
    content = gzip.compress(frame_of(sequence(form, 3e8, 1, 1), 300_000_000))
    assert len(content) < 300
    told = refused(tmp_path, "t.rds", content, r"takes 6\.7 GiB .* limit is 2\.0 GiB")
    assert "set the environment variable SYNRISK_MOST_BYTES to more bytes, such as" in told


@pytest.mark.parametrize("packer", PACKERS)
def test_a_file_that_is_small_until_it_is_unpacked(tmp_path, monkeypatch, packer):
    content = PACKERS[packer](frame_of(zeros(1_000_000), 1_000_000))
    assert len(content) < 20_000
    (tmp_path / "t.rds").write_bytes(content)
    assert len(read_table(tmp_path / "t.rds", "T")) == 1_000_000
    monkeypatch.setenv("SYNRISK_MOST_BYTES", str(2**24))
    told = refused(tmp_path, "t.rds", content, r"is too large.* limit is 16\.0 MiB")
    monkeypatch.setenv("SYNRISK_MOST_BYTES", told.removesuffix(".").rpartition(" ")[2])
    assert len(read_table(tmp_path / "t.rds", "T")) == 1_000_000


@pytest.mark.parametrize(
    "content",
    [
        HEAD + whole(19, 100_000) + NOTHING * 100_000,  # a list, an object for each four bytes
        HEAD + whole(16, 50_000) + text("") * 50_000,
        frame_of(many_texts(50_000), 50_000),
        frame_of(whole(19, 20) + sequence("compact_intseq", 50_000, 1, 1) * 20, 1),
    ],
    ids=["list", "text", "text of numbers", "sequences"],
)
def test_objects_are_counted_and_not_bytes_alone(tmp_path, monkeypatch, content):
    monkeypatch.setenv("SYNRISK_MOST_BYTES", str(2**24))
    refused(tmp_path, "t.rds", gzip.compress(content), "is too large")


LONG = 2**31 - 1


@pytest.mark.parametrize(
    "content",
    [
        HEAD + whole(14, LONG) + bytes(64),
        HEAD + whole(14, -1, 0, 9) + bytes(64),
        HEAD + whole(13, LONG) + bytes(64),
        HEAD + whole(19, LONG) + bytes(64),
        HEAD + whole(16, LONG) + bytes(64),
        HEAD + whole(16, 1, 9, LONG) + bytes(64),
        HEAD + whole(21, LONG) + NOTHING * 9,  # compiled code
        b"A\n3\n262913\n197888\n5\nUTF-8\n14\n2147483647\n1\n2\n",
        b"A\n3\n262913\n197888\n5\nUTF-8\n16\n1\n262153\n2147483647\na\n",
    ],
)
def test_a_length_beyond_the_end_is_refused_before_anything_is_made(tmp_path, content):
    refused(tmp_path, "t.rds", content, "cut short")


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n" + b"0,0\n" * 100_000,
        b"a,b\n" + b"0," * 400_000,
        b'a,b\n"' + b"0" * 2_000_000,
        b"a,b\n" + b'"\n",' * 200_000,
    ],
    ids=["rows", "one line", "one cell", "one row"],
)
def test_packed_csv_is_counted(tmp_path, monkeypatch, content):
    monkeypatch.setenv("SYNRISK_MOST_BYTES", "1000000")
    packed = gzip.compress(content)
    assert len(packed) < 5_000
    refused(tmp_path, "t.csv.gz", packed, r"is too large.* limit is 1,000,000 bytes")


def test_plain_csv_has_no_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNRISK_MOST_BYTES", "1000")
    (tmp_path / "t.csv").write_bytes(as_csv())
    assert len(read_table(tmp_path / "t.csv", "T")) == 60


def test_equal_values_of_parquet_are_counted(tmp_path, monkeypatch):
    pd.DataFrame({"x": np.zeros(500_000)}).to_parquet(tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    assert len(content) < 5_000
    assert len(read_table(tmp_path / "t.parquet", "T")) == 500_000
    monkeypatch.setenv("SYNRISK_MOST_BYTES", "1000000")
    refused(tmp_path, "t.parquet", content, "is too large")


def varint(number):
    """A whole number as the end of a Parquet file has it."""
    number, raw = 2 * number, b""
    while number > 127:
        raw, number = raw + bytes([number & 127 | 128]), number >> 7
    return raw + bytes([number])


def test_parquet_that_says_to_hold_one_row_is_counted_by_its_parts(tmp_path, monkeypatch):
    n = 3_000_000  # more than one group of rows, each of which tells its own number
    pd.DataFrame({"x": np.zeros(n)}).to_parquet(tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    one = bytes([2 | 128, *[128] * (len(varint(n)) - 2), 0])
    assert content.count(varint(n)) == 1
    monkeypatch.setenv("SYNRISK_MOST_BYTES", "30000000")
    refused(tmp_path, "t.parquet", content.replace(varint(n), one), "is too large")


@pytest.mark.parametrize(
    "values", [pa.array(["a" * 100_000] * 2_000), pa.array([["a" * 50] * 99] * 9)]
)
def test_long_texts_that_parquet_holds_once_are_counted(tmp_path, monkeypatch, values):
    monkeypatch.setattr(frames, "_LITTLE_TEXT", 1_000)
    pa.parquet.write_table(pa.table({"x": values}), tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    assert len(content) < 8_000
    assert len(read_table(tmp_path / "t.parquet", "T")) == len(values)
    monkeypatch.setenv("SYNRISK_MOST_BYTES", "5000")
    refused(tmp_path, "t.parquet", content, "is too large")


def test_text_of_parquet_that_is_no_text_is_refused(tmp_path):
    values = pa.array(["female", "maleXY"] * 20)
    pa.parquet.write_table(pa.table({"x": values, "y": range(40)}), tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes().replace(b"maleXY", b"male\xff\xfe")
    refused(tmp_path, "t.parquet", content, "cannot be read as Parquet")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv.gz", gzip.compress(gzip.compress(as_csv()))),
        ("t.csv.gz", gzip.compress(as_parquet())),
        ("t.csv.gz", gzip.compress(gzip.decompress((R / "people.rds").read_bytes()))),
        ("t.rds", gzip.compress((R / "people.rds").read_bytes())),
        ("t.rds", as_csv()),
        ("t.csv", (R / "people.rds").read_bytes()),
        ("t.parquet", gzip.compress(as_csv())),
    ],
)
def test_a_file_within_another_is_refused(tmp_path, name, content):
    refused(tmp_path, name, content, "cannot be read|cut short|cannot be unpacked")


def test_the_limit_is_two_gibibytes_or_what_the_environment_says(monkeypatch):
    monkeypatch.delenv("SYNRISK_MOST_BYTES", raising=False)
    assert most_bytes() == MOST_BYTES == 2 * 2**30
    monkeypatch.setenv("SYNRISK_MOST_BYTES", "5000")
    assert most_bytes() == 5000
    for wrong in ("8 GB", "-1", "0", "1e9", "²"):
        monkeypatch.setenv("SYNRISK_MOST_BYTES", wrong)
        with pytest.raises(sr.OptionError, match="must be a number of bytes, such as 2147483648"):
            most_bytes()


# -- not enough memory, not allowed -------------------------------------------------------------
@pytest.mark.parametrize("error", [MemoryError, lambda: ValueError("C error: out of memory")])
@pytest.mark.parametrize(
    ("module", "function", "name"),
    [
        (pd, "read_parquet", "t.parquet"),
        (pd, "read_csv", "t.csv"),
        (csv_files, "_lengths", "t.csv"),
        (r_files, "parse", "t.rds"),
        (r_files, "_table", "t.rds"),
        (frames.nw, "from_native", ""),
    ],
)
def test_too_little_memory_is_told(tmp_path, monkeypatch, module, function, name, error):
    (tmp_path / "t.csv").write_bytes(as_csv())
    (tmp_path / "t.parquet").write_bytes(as_parquet())
    (tmp_path / "t.rds").write_bytes((R / "people.rds").read_bytes())

    def fail(*_, **__):
        raise error()

    with monkeypatch.context() as patched:
        patched.setattr(module, function, fail)
        with pytest.raises(sr.SynriskError, match="there is not enough memory") as caught:
            read_table(tmp_path / name if name else pa.table({"a": [1]}), "T")
    assert caught.value.__context__ is None


def test_a_file_that_may_not_be_opened():
    attempt = Attempt("T: t.csv")
    with attempt:
        raise PermissionError(13, A_VALUE)
    told = str(attempt.refusal("cannot be read."))
    assert told == "T: t.csv cannot be opened: Permission denied."


def test_what_is_raised_on_purpose_passes():
    with pytest.raises(sr.DataError, match="as it is"), Attempt("T"):
        raise sr.DataError("as it is")

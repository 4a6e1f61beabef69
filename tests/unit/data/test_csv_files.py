"""Files of CSV whose rows are not as their first line says."""

import csv
import gzip
import io

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.base.errors import FileError
from synrisk.data.frames import read_table

SECRETS = ("PID700000", "Jane", "22042.729", "4711.5")


def read(tmp_path, text, name="t.csv", **options):
    path = tmp_path / name
    content = text.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return read_table(path, "T", **options)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        # longer, shorter, and both
        ("id,x\nPID700000,1,Jane\n", r"2 columns, and 1 row of 1 has another number .* \(3\)"),
        ("id,x\nPID700000,1,Jane\nB,2,C\nC,3\n", r"2 rows of 3 have another number of cells \(3\)"),
        ("id,name,x\nPID700000\nB,Bo,3\n", r"3 columns, and 1 row of 2 has .* \(1\)"),
        ("id,name,x\nB,Bo,3\nPID700000,Jane\n", r"1 row of 2 has .* \(2\)"),
        ("id,name,x\nB,Bo,3\nPID700000,Jane\nB,2,3,4\n", r"2 rows of 3 have .* \(2 to 4\)"),
        # the rows' last commas, R's row names without a name of their own
        ("id,x\nA,1,\nB,2,\n", r"2 rows of 2 have another number of cells \(3\)"),
        # the line's end after the names is lost
        ("id,name,xPID700000,Jane,22042.729\nB,Bo,4711.5\nC,Cy,1.5\n",
         r"5 columns, and 2 rows of 2 .* \(3\)\. Are the names and the first record on one line\?"),
        ("id,name,x,PID700000,Jane,22042.729\nB,Bo,4711.5\n", "on one line"),
        ("id,name,x,PID700000,Jane,22042.729\n", "has no rows: it holds a single line"),
        ("id,name,x\n", "has no rows"),
        # another separator: rows of another length, and no line of names
        ("PID700000;Jane;4711.5\nB;Bo\n", "holds semicolons.*separated by ';'"),
        ("PID700000;Jane;4711.5\nB;Bo;2\n", "does not hold column names"),
        ("PID700000;Jane;4711,5\nB;Bo;2,25\n", "does not hold column names"),
        ("PID700000\tJane\t4711.5\nB\tBo\t2\n", "does not hold column names"),
        ("PID700000|Jane|4711.5\nB|Bo|2\n", "does not hold column names"),
        # numbers that can be read in two ways
        # A quotation mark that is closed by another one, some records further down.
        ('",x,y\nJane,1,2\nB",x,y\nC,3,4\n', "a name that goes on in the next line"),
        # The first record beside the names, and a decimal comma in every row.
        ("id;x;y;Jane;22;1,5\nB;2;3,25\nC;3;4,5\n", "names that hold semicolons"),
        ("id\tx\ty\tJane\t22\t1,5\nB\t2\t3,25\nC\t3\t4,5\n", "names that hold tabs"),
        ("id;x;y\nJane;22042.729;1,5\nB;2.5;3,25\n", "decimal commas, and others with .* points"),
        ("id;x\nJane;22042.729\nB;22,042\n", "may be decimals or thousands"),
        ("22042.729 4711.5 Jane\n1 2 Bo\n", "separated by blanks"),
        # a quotation mark that is not closed
        ('id,x\n"PID700000,1\n' + "B,2\n" * 60_000, "quotation mark is not closed"),
        ('id,x\nA,1\nB,"PID700000\n', "is a quotation mark not closed"),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_the_first_line(tmp_path, name, text, why):
    with pytest.raises(FileError, match=why) as caught:
        read(tmp_path, text, name)
    assert not any(secret in str(caught.value) for secret in SECRETS)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize(
    ("text", "n_rows"),
    [
        ("a,b\n\n1,2\n  \n3,4\n\n", 2),
        ("a,b\r\n1,2\r\n3,4\r\n", 2),
        ("a,b\r1,2\r3,4", 2),
        ('"a","b"\n"x, y","two\nlines"\n"say ""no""",\n', 2),
        ("a,b\n1,\n,4\n,\n", 3),
        ("a\n1\n\n2\n", 2),
        ("full name\nJane Doe\nBo Li\n", 2),
        ("a,b,\n1,2,\n3,4,\n", 2),
    ],
)
def test_rows_that_fit(tmp_path, name, text, n_rows):
    assert len(read(tmp_path, text, name)) == n_rows


def test_comments_of_a_sampler_are_no_rows(tmp_path):
    text = '# model = "m", 1\na,b\n# Adaptation "done", at last, 3\n1,2\n3,4 # so, far\n# end\n'
    assert read(tmp_path, text, comment="#")["b"].tolist() == [2, 4]


def test_many_rows_with_and_without_quotation_marks(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=5000), "t": rng.choice(["a, b", "c\nd", "e"], 5000)})
    plain = frame.assign(t="e")
    for table in (frame, plain, pd.concat([plain, frame], ignore_index=True)):
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
            text = table.to_csv(index=False, quoting=quoting)
            pd.testing.assert_frame_equal(read(tmp_path, text), pd.read_csv(io.StringIO(text)))
            with pytest.raises(FileError, match=f"1 row of {len(table) + 1:,} has .* \\(3\\)"):
                read(tmp_path, text + "1,2,3\n")


@pytest.mark.parametrize(("ending", "separator"), [(".csv", " "), (".tsv", " ")])
def test_a_record_above_the_names_in_a_file_with_another_separator_is_not_shown(
    tmp_path, ending, separator
):
    rows = [["CaseID", "Income", "Kids"], *([f"PID{k}", f"{k}.5", "2"] for k in range(700, 740))]
    rows[:2] = rows[1], rows[0]
    path = tmp_path / f"people{ending}"
    path.write_text("\n".join(separator.join(row) for row in rows), encoding="utf-8")
    with pytest.raises(sr.FileError, match="separated by") as caught:
        sr.fit(sr.Regression("Income ~ Kids"), path)
    assert "PID" not in str(caught.value)


def test_a_first_line_with_bytes_that_are_no_text_is_not_shown(tmp_path):
    """A record stands behind the hole that a damaged disk left in place of the names."""
    path = tmp_path / "people.tsv"
    rows = "".join(f"{k}\tTown{k}\n" for k in range(30))
    path.write_text("\0" * 30 + "\tZyxwville\n" + rows, encoding="utf-8")
    with pytest.raises(sr.FileError, match="bytes that are no text") as error:
        sr.fit(sr.Regression("Income ~ 1"), path)
    assert "Zyxwville" not in str(error.value)

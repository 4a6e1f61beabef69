"""The line of every key of a TOML file, against tomllib's own reading of it."""

import os
import sys
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synrisk as sr
from synrisk.base.messages import spelled
from synrisk.data.toml import line_index, parsed, read_settings

TEXT = '''\
# A comment with [brackets] and key = "value"
title = "a # b = c"      # line 2
seed = 1

[data]                   # line 5
file = 'people.csv'
types.Race = ["1", "2"]
types."Zip code" = "category"
note = """
[not.a.heading]
x = 1 \\""" still
"""""

[[model]]                # line 14
formula = "a ~ 1"
[[model]]
formula = """b ~ a"""
prior = { a = { mean = 0, sd = 2 }, sigma.rate = 1 }
[model.extra]
when = 1979-05-27 07:32:00
[risk]
guesses = [              # a comment, with ]
  { n = 3 },
  [1, "]", 3.5e-1],
  '',
]
'quoted.key' = """"two quotes end it"""""
'''


def places(value, place=()):
    """Every place of a value that tomllib read."""
    if place:
        yield place
    if isinstance(value, dict):
        for key, one in value.items():
            yield from places(one, (*place, key))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from places(one, (*place, number))


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), TEXT.rstrip()])
def test_every_place_has_its_line(text):
    lines = line_index(text)
    assert set(lines) == set(places(tomllib.loads(text)))
    expected = {
        ("title",): 2,
        ("seed",): 3,
        ("data",): 5,
        ("data", "file"): 6,
        ("data", "types"): 7,
        ("data", "types", "Race", 1): 7,
        ("data", "types", "Zip code"): 8,
        ("data", "note"): 9,
        ("model",): 14,
        ("model", 0): 14,
        ("model", 0, "formula"): 15,
        ("model", 1): 16,
        ("model", 1, "prior", "a", "sd"): 18,
        ("model", 1, "prior", "sigma", "rate"): 18,
        ("model", 1, "extra", "when"): 20,
        ("risk", "guesses"): 22,
        ("risk", "guesses", 0, "n"): 23,
        ("risk", "guesses", 1, 2): 24,
        ("risk", "guesses", 2): 25,
        ("risk", "quoted.key"): 27,
    }
    assert {place: lines[place] for place in expected} == expected


def text_of(value, multiline):
    """A value as TOML, numbers of `multiline` saying how it is spelled."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"""\n{escaped}"""' if multiline else f'"{escaped}"'
    if isinstance(value, dict):
        pairs = (f"{key_of(key)} = {text_of(one, False)}" for key, one in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        gap = "\n  # , ] }\n" if multiline else " "
        return "[" + f",{gap}".join(text_of(one, multiline) for one in value) + gap + "]"
    return str(value).lower()


def key_of(key):
    return text_of(key, False)


KEYS = st.text(st.sampled_from("ab.#=[]\"'\\ é"), max_size=4)
VALUES = st.recursive(
    st.integers() | st.booleans() | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=3), max_size=3),
    st.lists(st.dictionaries(KEYS, VALUES, max_size=2), max_size=3),
    st.booleans(),
)
def test_random_files(tables, array, multiline):
    written, text = {}, ""
    headings = [(f"[{key_of(key)}]", (key,), table) for key, table in tables.items()]
    if "many" not in tables:
        headings += [("[[many]]", ("many", i), table) for i, table in enumerate(array)]
    for heading, place, table in headings:
        text += f"# a comment\n\n{heading}\n"
        for key, value in table.items():
            written[(*place, key)] = text.count("\n") + 1
            text += f"{key_of(key)} = {text_of(value, multiline)}  # end\n"
    lines = line_index(text)
    assert set(lines) == set(places(tomllib.loads(text)))
    assert {place: lines[place] for place in written} == written


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = people.csv\n", 2),
        ("\n\n[data\n", 3),
        ('a = "open', 1),
        ("[a]\nb = [1,\n2", 3),
        ("a = [1 }\n", 1),
        ("a = [1,\n}", 2),
        ("[a]\n= 1\n", 2),
    ],
)
def test_what_is_not_toml_is_refused_by_its_line(text, line):
    with pytest.raises(sr.SettingsError, match=rf"^study.toml, line {line}: not TOML"):
        parsed(text, "study.toml")


@pytest.mark.parametrize(
    ("text", "key", "first", "second"),
    [
        ("a = 1\n\na = 2\n", "a", 1, 3),
        ('[data]\nfile = "x"\n[risk]\n[data]\n', "data", 1, 4),
        ('a = 1\nb = 2\na = """\nx\n"""\n', "a", 1, 3),
        ("[[model]]\nx = 1\n[[model]]\nx = 2\nx = 3\n", r"model\[2\]\.x", 4, 5),
        ("a = { b = 1, b = 2 }\n", r"a\.b", 1, 1),
        ("[risk]\nguesses = 11\nguesses.Income = 5\n", r"risk\.guesses", 2, 3),
    ],
)
def test_a_key_that_stands_twice_is_named_with_both_lines(text, key, first, second):
    where = rf"^study.toml, line {second}, {key}: stands already on line {first}\. Keep one"
    with pytest.raises(sr.SettingsError, match=where):
        parsed(text, "study.toml")


DEEP = {
    "keys": lambda n: ".".join(["k"] * n) + " = 1",
    "quoted keys": lambda n: ".".join(['"k"'] * n) + " = 1",
    "heading": lambda n: "[" + ".".join(["k"] * n) + "]",
    "arrays": lambda n: "a = " + "[" * n + "]" * n,
    "open arrays": lambda n: "a = " + "[" * n,
    "tables": lambda n: "a = " + "{b = " * n + "1" + "}" * n,
}


@pytest.mark.parametrize("kind", DEEP)
@pytest.mark.parametrize("n", [11, 8_000, 100_000])
def test_what_is_nested_too_deeply_is_refused_before_it_takes_long(kind, n):
    """What reads a text takes time and room with the square of its depth."""
    with pytest.raises(
        sr.SettingsError, match=r"^study.toml, line 2: nested too deeply: at most 10"
    ):
        parsed(f"x = 1\n{DEEP[kind](n)}\n", "study.toml")


@pytest.mark.parametrize("kind", [kind for kind in DEEP if kind != "open arrays"])
def test_depth_that_settings_may_have_is_read(kind):
    parsed(DEEP[kind](9), "study.toml")


def test_points_and_brackets_in_text_and_side_by_side_are_no_depth():
    text = 'a = "' + "x.[{" * 50 + '"\nb = [' + "[1.5], " * 50 + "]\n# " + "[." * 50
    assert len(parsed(text, "study.toml").values["b"]) == 50


def test_many_words_without_a_point_are_no_key():
    with pytest.raises(sr.SettingsError, match="line 1: not TOML: Expected '='"):
        parsed("a " * 200_000 + "= 1", "study.toml")


@pytest.mark.parametrize("digits", ["9" * 301, "-" + "9" * 4_300, "9" * 5_000, "0x" + "f" * 9_999])
@pytest.mark.parametrize(
    ("text", "line"),
    [("x = 1\nseed = %s\n", 2), ('x = """\n"""\ny = [\n%s]\n', 4), ("[a]\nb = {x = %s}\n", 2)],
)
def test_numbers_that_nothing_can_hold_are_refused_by_their_line(digits, text, line):
    with pytest.raises(sr.SettingsError, match=rf"line {line}(, .*)?: a whole number of more than"):
        parsed(text % digits, "study.toml")


def test_long_numbers_that_a_float_holds_are_read():
    values = parsed(f"a = {'9' * 300}\nb = 0.{'1' * 9_999}\n", "study.toml").values
    assert float(values["a"]) == 1e300
    assert values["b"] == 1 / 9


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are those of POSIX")
def test_pipes_and_devices_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "link.toml").symlink_to("/dev/zero")
    for name in ("pipe.toml", "link.toml", "/dev/zero", "/dev/null"):
        with pytest.raises(sr.FileError, match="it is a pipe or a device, not a file"):
            read_settings(tmp_path / name, "The study")


@pytest.mark.parametrize("name", ["a\0b.toml", "\ud800.toml"])
def test_names_that_no_file_can_have_are_refused(name):
    with pytest.raises(sr.FileError, match="no file can have this name") as caught:
        read_settings(name, "The study")
    assert name not in str(caught.value)
    assert caught.value.__context__ is None


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(sr.FileError, match="no such file"):
        read_settings(tmp_path / "none.toml", "The study")
    with pytest.raises(sr.FileError, match="is a folder"):
        read_settings(tmp_path, "The study")
    with pytest.raises(sr.FileError, match="named by the path"):
        read_settings(3, "The study")
    (tmp_path / "bad.toml").write_bytes(b"a = \xff\n")
    with pytest.raises(sr.FileError, match="not UTF-8"):
        read_settings(tmp_path / "bad.toml", "The study")
    (tmp_path / "big.toml").write_bytes(b"#" * (1 << 21))
    with pytest.raises(sr.FileError, match="too large"):
        read_settings(tmp_path / "big.toml", "The study")
    (tmp_path / "mark.toml").write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert read_settings(tmp_path / "mark.toml", "The study").values == {"a": 1}


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda top: top.text("n"), "study.toml, line 1, n: must be text in quotes; got 3"),
        (lambda top: top.text("blank"), "line 2, blank: must be text"),
        (lambda top: top.whole("t"), "line 3, t: must be a whole number from 1; got 'x'"),
        (lambda top: top.whole("flag"), "line 4, flag: must be a whole number from 1; got true"),
        (lambda top: top.whole("n", least=4), "line 1, n: must be a whole number from 4; got 3"),
        (
            lambda top: top.whole("n", most=2),
            "line 1, n: must be a whole number from 1 to 2; got 3",
        ),
        (lambda top: top.choice("t", ("xx", "y"), "y"), "line 3, t: must be one of xx, y; got 'x'"),
        (lambda top: top.section("n"), r"line 1, n: must be a table \(\[n\]\)"),
        (lambda top: top.sections("t"), r"line 3, t: must be tables that begin with \[\[t\]\]"),
        (lambda top: top.texts("list"), r"line 7, list\[2\]: must be text in quotes; got 2"),
        (lambda top: top.texts("n"), "line 1, n: must be a list"),
        (lambda top: top.section("deep").refuse("is bad.", "x"), "line 9, deep.x: is bad"),
        (lambda top: top.section("deep").refuse("is bad.", "y"), "line 8, deep.y: is bad"),
        (
            lambda top: top.section("deep").refuse_unknown(["xx"]),
            "no such setting. Did you mean 'x",
        ),
    ],
)
def test_values_of_the_wrong_kind_are_refused_where_they_stand(read, message):
    text = 'n = 3\nblank = " "\nt = "x"\nflag = true\nlist = ["a",\n\n2]\n[deep]\nx = 1\n'
    with pytest.raises(sr.SettingsError, match=message):
        read(parsed(text, "study.toml"))


def test_values_that_are_right_or_absent():
    top = parsed('t = "x"\nn = 3\nflag = true\nlist = ["a"]\n[[many]]\n[[many]]\n', "study.toml")
    assert (top.text("t"), top.whole("n")) == ("x", 3)
    assert (top.text("none"), top.whole("none"), top.texts("none")) == (None, None, None)
    assert (top.texts("list"), top.choice("t", ("x",), "x")) == (["a"], "x")
    assert [one.place for one in top.sections("many")] == [("many", 0), ("many", 1)]
    assert top.section("none").values == {}
    assert spelled(("model", 1, "Zip code", "x")) == 'model[2]."Zip code".x'

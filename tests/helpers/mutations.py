"""Files that were damaged: bytes changed, lost or repeated, at random."""

from collections.abc import Callable, Iterator

import numpy as np


def mutations(content: bytes, rng: np.random.Generator, n: int) -> Iterator[bytes]:
    """Yield `n` damaged copies of `content`, each by one to three accidents."""
    for _ in range(n):
        damaged = content
        for _ in range(int(rng.integers(1, 4))):
            accident = ACCIDENTS[int(rng.integers(len(ACCIDENTS)))]
            damaged = accident(damaged, rng) if damaged else damaged
        yield damaged


def _slice(content: bytes, rng: np.random.Generator) -> tuple[int, int]:
    """Return the ends of a piece, more often a short one."""
    start = int(rng.integers(len(content)))
    length = int(2 ** rng.uniform(0, np.log2(len(content) + 1)))
    return start, min(start + length, len(content))


def change_bits(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def change_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        changed[int(rng.integers(len(changed)))] = int(rng.integers(256))
    return bytes(changed)


def write_number(content: bytes, rng: np.random.Generator) -> bytes:
    """Put a number that is large, or negative, where four or eight bytes may hold a length."""
    number = [2**31 - 1, 2**24, -1, -(2**31), 10**9][int(rng.integers(5))]
    width = int(rng.choice([4, 8]))
    start = int(rng.integers(len(content)))
    order = "big" if rng.random() < 0.5 else "little"
    return content[:start] + number.to_bytes(width, order, signed=True) + content[start + width :]


def cut_short(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: int(rng.integers(len(content)))]


def leave_out(content: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _slice(content, rng)
    return content[:start] + content[stop:]


def repeat(content: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _slice(content, rng)
    return content[:stop] + content[start:]


def clear(content: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _slice(content, rng)
    return content[:start] + bytes(stop - start) + content[stop:]


ACCIDENTS: tuple[Callable[[bytes, np.random.Generator], bytes], ...] = (
    change_bits, change_bytes, write_number, cut_short, leave_out, repeat, clear,
)  # fmt: skip


# -- text and trees ------------------------------------------------------------------------------
# What a number, a word or a name may be that nobody expects.
HOSTILE_NUMBERS = (
    "nan", "inf", "-inf", "-0", "0", "1e308", "-1e308", "5e-324", "1e400", "9" * 30, "-1", "0x10",
    "1_000", "1,5", "١٢٣", "½", "TRUE", "1e", "--1", "+1", "2020-13-45", "0b1", "1j",
)  # fmt: skip
HOSTILE_NAMES = (
    "<script>alert(1)</script>", "</title><svg onload=alert(1)>",
    "\"'><img src=x onerror=alert(1)>",
    "]]>", "<!--", "&amp;&lt;", "{{7331*7919}}", "{% include '/etc/passwd' %}",
    "${7331*7919}", "%s%n%x", "{0.__class__}",
    "=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "\x1b[2J\x1b[31m", "\x1b]0;owned\x07",
    "a\x00b", "\r\nX: y",
    "\u202egnirts", "\u2066\u2069", "\ud800", "é", "e\u0301", "🎲", "\ufeff", "\u200b", "a" * 5_000,
    "", " ", "\t",
    "\n", "../../etc/passwd", "/etc/passwd", "C:\\con", "--help", "-q", "[bold]x[/bold]",
    "[link=http://x]x[/link]",
    "__import__('os').system('x')", "x; DROP TABLE people", "`x`", "x`y", '"', "'", "\\", "a:b",
    "a[T.b]", "a,b",
    "Intercept", "(Intercept)", "sigma", "weight", "rank", "probability", "prior", "1", "1.5",
    "x y", "x~y", "x+y",
    "None", "nan", "True", "constructor", "__proto__", "self", "lambda", "I(x)", "x.y", "ſ", "ı",
    "𝐱", "$x$", "_x",
    "$\\frac{1}{0}$", "$\\unknown{$", "^", "#x", "//x", "http://x/", "javascript:alert(1)", "xmlns",
    "id", "index",
)  # fmt: skip


def any_of(options, rng):
    """Return one of several."""
    return options[int(rng.integers(len(options)))]


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a copy of `content` that one to three accidents have happened to."""
    return next(mutations(content, rng, 1))


def damaged_table(text: str, separator: str, rng: np.random.Generator) -> str:  # noqa: C901
    """Return a table as text with one to three of its cells, lines or columns changed."""
    rows = [line.split(separator) for line in text.rstrip("\n").split("\n")]
    for _ in range(int(rng.integers(1, 4))):
        row, kind = any_of(rows, rng), int(rng.integers(12))
        if kind == 0:
            row[int(rng.integers(len(row)))] = any_of(HOSTILE_NUMBERS, rng)
        elif kind == 1:
            row[int(rng.integers(len(row)))] = any_of(HOSTILE_NAMES, rng)
        elif kind == 2:
            rows[0][int(rng.integers(len(rows[0])))] = any_of(HOSTILE_NAMES, rng)
        elif kind == 3 and len(row) > 1:
            del row[int(rng.integers(len(row)))]
        elif kind == 4:
            row.insert(int(rng.integers(len(row))), any_of(row, rng))
        elif kind == 5 and len(rows) > 1:
            del rows[int(rng.integers(len(rows)))]
        elif kind == 6 and len(rows) > 1:
            rows[0] += rows.pop(1)  # the newline of the names is lost
        elif kind == 7:
            rows.insert(int(rng.integers(len(rows))), list(rows[0]))
        elif kind == 8:
            row[int(rng.integers(len(row)))] = '"' + any_of(row, rng)
        elif kind == 9:
            at, value = int(rng.integers(len(rows[0]))), any_of(HOSTILE_NUMBERS, rng)
            rows = [rows[0], *([*r[:at], value, *r[at + 1 :]] for r in rows[1:])]
        elif kind == 10:
            separator = any_of((",", ";", "\t", "|", " "), rng)
        elif len(rows) > 1:
            rows[:2] = [rows[1], rows[0]]
    end = any_of(("\n", "\n", "\r\n", "\r"), rng)
    return end.join(separator.join(row) for row in rows) + any_of(("", end), rng)


# Values of a settings file or of JSON, in place of those that should be there.
HOSTILE_TOML = (
    "0", "-1", "1", "1e308", "-1e308", "nan", "inf", "-inf", "true", "false", '""', '" "', '"x"',
    "[]", "{}", "[1]",
    '["x"]', "[[1]]", "{ a = 1 }", "10000000000000000000", "1000000", "9" * 400, "0x" + "f" * 400,
    "1979-05-27",
    "07:32:00", "1e-300", '"../../x"', '"/"', '"a\\u0000b"', '"\\u001b[2J"',
    '"<script>alert(1)</script>"',
    '"{{7331*7919}}"', '"people.csv"', '"study.toml"', '"."', '"out"', '"all levels"', '"range"',
    '"auto"', "[0, 1]",
    "[1, 0]", "[nan, inf]", "{ relative = 5 }", "{ values = [] }",
    "{ interval = 3, low = 1e300, high = -1e300 }",
    "{ additive = 1000000, below = 1, above = 1 }", "{ range = [0, 1e300] }", "0.5", "1.5",
    "'''x\ny'''",
)  # fmt: skip
HOSTILE_VALUES = (
    None, True, -1, 0, 1, 10**30, 1e308, float("nan"), float("inf"), "", "x", "nan", "../../x",
    "\x1b[2J", "\ud800",
    "<script>alert(1)</script>", [], {}, [1], [[]], {"a": 1}, [None], "out", "risk.nc", "a" * 3_000,
    [0] * 3_000,
)  # fmt: skip


def damaged_settings(text: str, rng: np.random.Generator) -> str:
    """Return a TOML text with one to three of its lines or values changed."""
    lines = text.split("\n")
    for _ in range(int(rng.integers(1, 4))):
        at, kind = int(rng.integers(len(lines))), int(rng.integers(8))
        key, equals, value = lines[at].partition("=")
        if kind < 4 and equals:
            lines[at] = f"{key}= {any_of(HOSTILE_TOML, rng)}"
        elif kind == 4:
            del lines[at]
        elif kind == 5:
            lines.insert(int(rng.integers(len(lines) + 1)), lines[at])
        elif kind == 6 and equals:
            lines[at] = f"{any_of(('x', '*', 'file', 'seed', chr(34) * 2, 'a.b.c'), rng)} ={value}"
        elif kind == 7:
            lines[at] += any_of((" #", '"', "]", "}", "\x00", "\\", "é", "\r"), rng)
        lines = lines or [""]
    return "\n".join(lines)


def damaged_tree(tree, rng: np.random.Generator):
    """Change one to three parts of what JSON holds, in place."""
    for _ in range(int(rng.integers(1, 4))):
        found = list(places(tree))
        if not found:
            return
        holder, key = any_of(found, rng)
        kind = int(rng.integers(6))
        if kind == 0 and isinstance(holder, dict):
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[any_of(HOSTILE_NAMES, rng)] = holder.pop(key)
        elif kind == 2:
            holder[key] = any_of(found, rng)[0]
            if holder[key] is tree or _holds(holder[key], holder):  # no circles in JSON
                holder[key] = None
        else:
            holder[key] = any_of(HOSTILE_VALUES, rng)


def places(value):
    """Yield what holds each part of a tree, and its key there."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in list(items):
        yield value, key
        if isinstance(part, dict | list):
            yield from places(part)


def _holds(tree, part) -> bool:
    return tree is part or any(
        holder is part or holder[key] is part for holder, key in places(tree)
    )

"""Draw the rooms of synrisk from what they import: ``make architecture``, to architecture.svg."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from xml.sax.saxutils import escape

PACKAGE = Path(__file__).parents[1] / "src" / "synrisk"
PICTURE = Path(__file__).with_name("architecture.svg")

# In pixels; GAP is between rows, BETWEEN between the rooms of one.
WIDTH, MARGIN, BETWEEN, GAP, PAD, LINE, HEAD = 880, 20, 24, 30, 12, 18, 12
# Pixels to a character, on the safe side: a browser may have other fonts.
SENTENCE_WIDTH, MODULE_WIDTH = 7.4, 7.3
PAPER, FILL, INK, PALE, EDGE = "#ffffff", "#eef3f9", "#14202e", "#46566a", "#33587f"


@dataclass(frozen=True)
class Room:
    """A package of synrisk: its one sentence, its modules, and the rooms that it imports from."""

    name: str
    sentence: str
    modules: tuple[str, ...]
    imports: frozenset[str]


def read_room(folder: Path) -> Room:
    """Return what the sources in `folder` say of a room."""
    sources = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py"))]
    imported = {
        node.module.split(".")[1]
        for source in sources
        for node in ast.walk(source)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("synrisk.")
    }
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    modules = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    packages = sorted(f"{path.parent.name}/" for path in folder.glob("*/__init__.py"))
    return Room(
        folder.name,
        said.split("\n\n")[0].replace("\n", " "),
        (*packages, *modules),
        frozenset(imported - {folder.name}),
    )


def read_rooms(package: Path = PACKAGE) -> dict[str, Room]:
    """Return the rooms by name."""
    return {
        path.parent.name: read_room(path.parent) for path in sorted(package.glob("*/__init__.py"))
    }


def reachable(imports: dict[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Return by room all that it imports from, directly or through others."""
    found: dict[str, frozenset[str]] = {}

    def visit(name: str, above: tuple[str, ...]) -> frozenset[str]:
        if name in above:
            raise ValueError(f"rooms import in a circle: {' → '.join((*above, name))}")
        if name not in found:
            direct = imports[name]
            below = [visit(other, (*above, name)) for other in sorted(direct)]
            found[name] = direct.union(*below)
        return found[name]

    for name in imports:
        visit(name, ())
    return found


def reduced(imports: dict[str, frozenset[str]]) -> dict[str, tuple[str, ...]]:
    """Return the imports that do not follow from others: the arrows of the picture."""
    below = reachable(imports)
    return {
        name: tuple(sorted(direct.difference(*(below[other] for other in direct))))
        for name, direct in imports.items()
    }


def floors(arrows: dict[str, tuple[str, ...]]) -> dict[str, int]:
    """Return by room how many rooms stand under it at most."""
    known: dict[str, int] = {}

    def floor(name: str) -> int:
        if name not in known:
            known[name] = 1 + max((floor(other) for other in arrows[name]), default=-1)
        return known[name]

    for name in arrows:
        floor(name)
    return known


@dataclass(frozen=True)
class Box:
    """Where a room stands, or, in a row that an arrow passes, the column that it has there."""

    left: float
    right: float
    top: float
    bottom: float

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def middle(self) -> float:
        """Where arrows begin and end."""
        return (self.left + self.right) / 2

    def at(self, x: float) -> float:
        """Return `x` if the box is there, else its middle."""
        return x if self.left <= x <= self.right else self.middle


def lines_of(room: Room, width: float) -> tuple[list[str], list[str]]:
    """Return a room's sentence and its modules, in lines that fit a box."""
    inside = width - 2 * PAD
    sentence = textwrap.wrap(room.sentence, int(inside / SENTENCE_WIDTH))
    modules = ", ".join(room.modules)
    return sentence, textwrap.wrap(modules, int(inside / MODULE_WIDTH), break_on_hyphens=False)


def lay_out(
    rooms: dict[str, Room], arrows: dict[str, tuple[str, ...]]
) -> dict[tuple[str, ...], list[Box]]:
    """Return the box of each room, ``(name,)``, and what each arrow, ``(user, used)``, passes.

    A row holds the rooms of a floor and the arrows that pass it, below what leads to them.
    """
    floor = floors(arrows)
    boxes: dict[tuple[str, ...], list[Box]] = {}
    top = float(MARGIN)
    for level in range(max(floor.values()), -1, -1):
        leading: dict[tuple[str, ...], list[float]] = {}  # the middles of what leads to each
        for name in rooms:
            if floor[name] == level:
                leading[name,] = [
                    boxes.get((user, name), boxes[user,])[-1].middle
                    for user in rooms
                    if name in arrows[user]
                ]
        for arrow in _pairs(arrows):
            if floor[arrow[1]] < level < floor[arrow[0]]:
                leading[arrow] = [boxes.get(arrow, boxes[arrow[0],])[-1].middle]
        row = sorted(leading, key=lambda key: (fmean(leading[key] or [0.0]), key[-1]))
        width = (WIDTH - 2 * MARGIN - BETWEEN * (len(row) - 1)) / len(row)
        lines = [lines_of(rooms[key[0]], width) for key in row if len(key) == 1]
        n_lines = max(1 + len(sentence) + len(modules) for sentence, modules in lines)
        bottom = top + LINE * n_lines + 2 * PAD
        for place, key in enumerate(row):
            left = MARGIN + place * (width + BETWEEN)
            boxes.setdefault(key, []).append(Box(left, left + width, top, bottom))
        top = bottom + GAP
    return boxes


def draw(rooms: dict[str, Room]) -> str:
    """Return the picture as SVG."""
    arrows = reduced({name: room.imports for name, room in rooms.items()})
    boxes = lay_out(rooms, arrows)
    height = max(box.bottom for of_key in boxes.values() for box in of_key) + MARGIN
    described = "; ".join(
        f"{name} imports from {', '.join(arrows[name]) or 'no other'}" for name in sorted(rooms)
    )
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
            f'width="{WIDTH}" height="{height:g}" role="img" aria-labelledby="title described">'
        ),
        '<title id="title">The rooms of synrisk</title>',
        f'<desc id="described">{escape(described)}.</desc>',
        f'<rect width="{WIDTH}" height="{height:g}" rx="8" fill="{PAPER}"/>',
    ]
    for name in sorted(rooms, key=lambda name: (boxes[name,][0].top, boxes[name,][0].left)):
        parts += _draw_room(rooms[name], *boxes[name,])
    for arrow in _pairs(arrows):
        parts += _draw_arrow(boxes[arrow[0],][0], boxes.get(arrow, []), boxes[arrow[1],][0])
    return "\n".join([*parts, "</svg>", ""])


def _pairs(arrows: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return sorted((name, below) for name, direct in arrows.items() for below in direct)


def _draw_room(room: Room, box: Box) -> list[str]:
    sentence, modules = lines_of(room, box.width)
    looks = [f'font-family="sans-serif" font-size="16" font-weight="bold" fill="{INK}"']
    looks += [f'font-family="sans-serif" font-size="14" fill="{INK}"'] * len(sentence)
    looks += [f'font-family="monospace" font-size="12" fill="{PALE}"'] * len(modules)
    height = box.bottom - box.top
    where = f'x="{box.left:g}" y="{box.top:g}" width="{box.width:g}" height="{height:g}"'
    parts = [f'<rect {where} rx="6" fill="{FILL}" stroke="{EDGE}"/>']
    for number, (look, text) in enumerate(
        zip(looks, [room.name, *sentence, *modules], strict=True)
    ):
        y = box.top + PAD + LINE * number + 13  # to the line that letters stand on
        parts.append(f'<text x="{box.left + PAD:g}" y="{y:g}" {look}>{escape(text)}</text>')
    return parts


def _draw_arrow(source: Box, passed: list[Box], target: Box) -> list[str]:
    """Draw from the bottom of a room to the top of one below it, past those between them."""
    narrow = min(source, target, key=lambda box: box.width)
    middles = [box.middle for box in passed] or [narrow.middle]
    end = target.at(middles[-1])
    points = [(source.at(middles[0]), source.bottom)]
    for box in passed:
        points += [(box.middle, box.top), (box.middle, box.bottom)]
    points.append((end, target.top - HEAD))
    line = " ".join(f"{x:g},{y:g}" for x, y in points)
    head = f"{end:g},{target.top:g} {end - HEAD / 2:g},{target.top - HEAD:g}"
    return [
        f'<polyline points="{line}" fill="none" stroke="{EDGE}" stroke-width="2"/>',
        f'<polygon points="{head} {end + HEAD / 2:g},{target.top - HEAD:g}" fill="{EDGE}"/>',
    ]


if __name__ == "__main__":
    PICTURE.write_text(draw(read_rooms()), encoding="utf-8")

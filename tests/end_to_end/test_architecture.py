"""The picture of the rooms is what the code says."""

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = runpy.run_path(str(DOCS / "draw_architecture.py"))
ROOMS = SCRIPT["read_rooms"]()
PICTURE = (DOCS / "architecture.svg").read_text(encoding="utf-8")


def closure(arrows):
    """By room, all that can be reached: by going on until nothing is added."""
    found = {name: set(direct) for name, direct in arrows.items()}
    while True:
        more = {name: below.union(*(found[one] for one in below)) for name, below in found.items()}
        if more == found:
            return found
        found = more


def test_the_picture_is_drawn_from_todays_imports():
    assert SCRIPT["draw"](ROOMS) == PICTURE, "run make architecture"


def test_arrows_lead_wherever_a_room_imports_from_and_nowhere_else():
    imports = {name: room.imports for name, room in ROOMS.items()}
    arrows = SCRIPT["reduced"](imports)
    assert all(set(arrows[name]) <= imports[name] for name in imports)
    assert closure(arrows) == closure(imports)


def test_no_arrow_follows_from_others():
    arrows = SCRIPT["reduced"]({name: room.imports for name, room in ROOMS.items()})
    for user, direct in arrows.items():
        for used in direct:
            fewer = {**arrows, user: [one for one in direct if one != used]}
            assert used not in closure(fewer)[user]


def test_a_circle_is_refused():
    circle = {"a": frozenset("b"), "b": frozenset("c"), "c": frozenset("a")}
    with pytest.raises(ValueError, match="circle: a → b → c → a"):
        SCRIPT["reduced"](circle)


@pytest.mark.parametrize("name", ROOMS)
def test_every_room_and_module_is_in_the_picture(name):
    texts = set(re.findall(r">([^<]+)</text>", PICTURE))
    assert name in texts
    shown = {word for text in texts for word in re.split(r"[,\s]+", text)}
    assert set(ROOMS[name].modules) <= shown


def test_boxes_do_not_overlap_and_hold_their_text():
    drawn = re.findall(r'<rect x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"', PICTURE)
    boxes = [tuple(map(float, box)) for box in drawn]
    assert len(boxes) == len(ROOMS)
    for i, (x, y, wide, tall) in enumerate(boxes):
        for left, top, width, height in boxes[:i]:
            apart = x >= left + width or left >= x + wide or y >= top + height or top >= y + tall
            assert apart
    # Ems to a character: DejaVu Sans, a wide one, has 0.49 on average; monospaced fonts have 0.6.
    ems = {"sans-serif": 0.52, "monospace": 0.6}
    for x, y, font, size, text in re.findall(
        r'<text x="(\S+)" y="(\S+)" font-family="(\S+)" .*?font-size="(\d+)".*?>([^<]+)<', PICTURE
    ):
        right = float(x) + ems[font] * float(size) * len(text)
        inside = [b for b in boxes if b[0] < float(x) and b[1] < float(y) < b[1] + b[3]]
        assert any(right <= b[0] + b[2] for b in inside), text

"""What a process may take: the machine's memory, and what its container has."""

import math

import pytest

from synrisk.base import memory_limit as memory
from synrisk.base.errors import ResourceError

GIB = 2**30


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Write what the system tells: the groups of this process, and their limits."""
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "MOUNTED", tmp_path / "fs")
    monkeypatch.setattr(memory, "_of_machine", lambda: 64.0 * GIB)

    def tell(groups, limits):
        (tmp_path / "cgroup").write_text(groups)
        for place, limit in limits.items():
            file = tmp_path / "fs" / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{limit}\n")

    memory.memory_limit.cache_clear()
    yield tell
    memory.memory_limit.cache_clear()


def test_without_control_groups_there_is_the_machine(machine):
    assert memory.memory_limit() == 64 * GIB


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        ("0::/a/b", {"a/b/memory.max": "max", "memory.max": "max"}, 64),
        ("0::/a/b", {"a/b/memory.max": 4 * GIB}, 4),
        ("0::/a/b", {"a/b/memory.max": "max", "a/memory.max": 3 * GIB}, 3),
        ("0::/", {"memory.max": 2 * GIB}, 2),
        ("0::/../../not/seen/within", {"memory.max": 2 * GIB}, 2),
        ("3:cpu:/a\n2:cpuacct,memory:/a", {"memory/a/memory.limit_in_bytes": GIB}, 1),
        ("2:memory:/docker/1f", {"memory/memory.limit_in_bytes": GIB}, 1),
        ("2:memory:/\n0::/", {"memory/memory.limit_in_bytes": 2**63 - 4096}, 64),
        ("1:name=systemd:/a\n0::/a", {"unified/a/memory.max": 5 * GIB}, 5),
        ("nonsense", {}, 64),
    ],
    ids=[
        "no limit", "its own", "of one above", "the root of a container", "a path outside",
        "version 1", "version 1 within a container", "version 1 without", "both versions", "else",
    ],
)  # fmt: skip
def test_the_least_limit_of_a_process_groups_holds(machine, groups, limits, expected):
    machine(groups, limits)
    assert memory.memory_limit() == expected * GIB


def test_what_fits_passes_and_what_does_not_is_refused(machine):
    machine("0::/", {"memory.max": 2 * GIB})
    memory.refuse_beyond(2 * GIB, "This", "Nothing.")
    with pytest.raises(ResourceError, match=r"This takes about 2.5 GiB .* have 2.0 GiB. Use less."):
        memory.refuse_beyond(2.5 * GIB, "This", "Use less.")


@pytest.mark.parametrize(("n_bytes", "n_parts"), [(1, 2), (2 * GIB, 8), (20 * GIB, 80)])
def test_so_many_parts_would_do(machine, n_bytes, n_parts):
    machine("0::/", {"memory.max": 2 * GIB})
    assert memory.n_parts_within(n_bytes) == n_parts
    assert math.ceil(n_bytes / n_parts) <= 2 * GIB / 8

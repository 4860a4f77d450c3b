"""How much memory there is, as Linux tells it, within the control groups of this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.memory import Memory, machine_memory

GIB = 1 << 30
MEMINFO = f"MemTotal: {16 * GIB // 1024} kB\nMemFree: 1 kB\nMemAvailable: {8 * GIB // 1024} kB\n"


def a_machine(root: Path, cgroup: str = "0::/\n", files: dict[str, str] | None = None) -> Path:
    for name, text in {"proc/meminfo": MEMINFO, "proc/self/cgroup": cgroup, **(files or {})}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def a_group(folder: str, limit: str, used: int, inactive: int = 0) -> dict[str, str]:
    stat = f"anon 1\ninactive_file {inactive}\n"
    return {f"{folder}/memory.max": limit, f"{folder}/memory.current": str(used), f"{folder}/memory.stat": stat}


def test_without_a_limit_it_is_the_machine_s(tmp_path: Path) -> None:
    group = a_group("sys/fs/cgroup/user", "max\n", 5 * GIB)
    assert machine_memory(a_machine(tmp_path, "0::/user\n", group)) == Memory(16 * GIB, 8 * GIB)
    assert Memory(16 * GIB, 8 * GIB).free_share == 0.5


def test_a_container_has_what_its_group_leaves_and_caches_do_not_count_as_used(tmp_path: Path) -> None:
    group = a_group("sys/fs/cgroup", str(4 * GIB), 3 * GIB, GIB // 2)
    # Inside a container the path is the host's.
    machine = a_machine(tmp_path, "0::/system.slice/docker-1.scope\n", group)
    assert machine_memory(machine) == Memory(4 * GIB, GIB + GIB // 2)


def test_of_groups_inside_each_other_the_tightest_counts(tmp_path: Path) -> None:
    groups = a_group("sys/fs/cgroup/a", str(6 * GIB), 5 * GIB) | a_group("sys/fs/cgroup/a/b", str(5 * GIB), 2 * GIB)
    assert machine_memory(a_machine(tmp_path, "0::/a/b\n", groups)) == Memory(6 * GIB, GIB)


def test_groups_of_the_first_version_are_known_too(tmp_path: Path) -> None:
    folder = "sys/fs/cgroup/memory/job"
    group = {
        f"{folder}/memory.limit_in_bytes": str(2 * GIB),
        f"{folder}/memory.usage_in_bytes": str(GIB),
        f"{folder}/memory.stat": "inactive_file 0\n",
    }
    assert machine_memory(a_machine(tmp_path, "4:cpu,memory:/job\n0::/\n", group)) == Memory(2 * GIB, GIB)


@pytest.mark.parametrize("meminfo", ["", "MemTotal: many kB\n", "MemTotal: 5 kB\n"])
def test_where_the_system_says_nothing_it_cannot_be_told(tmp_path: Path, meminfo: str) -> None:
    (a_machine(tmp_path) / "proc/meminfo").write_text(meminfo)
    assert machine_memory(tmp_path) is None
    assert machine_memory(tmp_path / "nowhere") is None

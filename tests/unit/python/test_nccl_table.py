# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Decision tables of NCCL: a choice from each size on, and the rings of a node."""

import json

import pytest

import towpath
from conftest import refusal
from inside.nccl import (
    GRID,
    IMITATION,
    TABLES,
    Assumptions,
    Decision,
    Decisions,
    Environment,
    Library,
    TableWriter,
    find_entry,
    host_digest,
    host_facts,
    host_of,
    node_orders,
    table_releases,
)


def host(name, gpus=8):
    facts = host_facts(towpath.load(name, hosts=1).spec, gpus, Assumptions())
    return host_of(facts.topology, facts.generation, facts.cpu)


def test_the_grid_has_two_sizes_per_power_of_two():
    assert GRID[:5] == (8, 12, 16, 24, 32)
    assert GRID[-1] == 8 << 30


def test_machines_with_the_same_topology_share_a_table():
    assert host_digest(host("dgx-h100")) == host_digest(host("dgx-h100"))
    assert host_digest(host("dgx-h100")) != host_digest(host("dgx-h100", 4))
    assert host_digest(host("dgx-h100")) != host_digest(host("dgx-a100"))


def test_the_order_in_a_node_is_found_wherever_the_ring_enters_it():
    rings = [(0, 1, 2, 3, 4, 5), (0, 2, 4, 3, 5, 1), (0, 2, 1, 3, 5, 4)]
    assert node_orders(rings, 3, 2) == (((0, 1, 2), (1, 0, 2), (0, 2, 1)), False)
    assert node_orders([(2, 0, 1)], 3, 1) == (((2, 0, 1),), False)


def test_rings_with_another_order_in_another_node_are_left_out():
    assert node_orders([(0, 1, 2, 5, 4, 3)], 3, 2) == (((0, 1, 2),), True)
    assert node_orders([(0, 3, 1, 2, 5, 4)], 3, 2) == ((), False)


def test_a_written_table_is_read_again(tmp_path, monkeypatch):
    rows = [
        Decision("all_reduce", size, name, "LL", channels, 512, 1.0)
        for size, name, channels in ((8, "tree", 1), (16, "tree", 1), (64, "ring", 2))
    ]
    found = Decisions("2.28.9", 8, 8, 4, 0, ((0, 1, 2, 3, 4, 5, 6, 7),), (), {}, tuple(rows))
    writer = TableWriter("2.28.9", "2026-01-02")
    own = host("dgx-h100")
    assert not writer.has(own, 1)
    writer.add(own, 1, "dgx-h100", found)
    writer.add_name(own, 1, "another")
    (tmp_path / "2.28.9.json").write_text(writer.text())
    monkeypatch.setattr(TABLES, "FOLDER", tmp_path)
    entry = find_entry(own, 1)
    assert (entry.release, entry.date, entry.channels) == ("2.28.9", "2026-01-02", 4)
    assert entry.orders == ((0, 1, 2, 3, 4, 5, 6, 7),)
    choices = [entry.choice("all_reduce", size) for size in (4, 8, 63, 64, 1 << 40)]
    assert [one.algorithm for one in choices] == ["tree", "tree", "tree", "ring", "ring"]
    assert entry.choice("all_gather", 8) is None
    assert find_entry(own, 2) is None
    assert find_entry(own, 1, "2.27.5") is None


def test_a_release_makes_the_choices_of_its_table():
    machine = towpath.load("dgx-b200", hosts=1)
    older = machine.imitate(Library.of("nccl", release="2.25.1"))
    assert older.source_note.startswith("NCCL 2.25.1 itself")
    newest = machine.imitate("nccl")
    sizes = [1 << power for power in range(10, 31)]
    assert any(older.launch("all_reduce", s) != newest.launch("all_reduce", s) for s in sizes)
    wrong = Library.of("nccl", release="2.1.1")
    assert "2.1.1 is not built here" in refusal(machine.imitate, wrong)
    of_amd = Library.of("nccl", release="rccl-2.21.5")
    assert "RCCL 2.21.5 has no choices of its own" in refusal(machine.imitate, of_amd)
    assert "no graph file" in refusal(Library.of, "nccl", release="2.27.5", graph_file="g.xml")


def test_the_same_hosts_of_another_gpu_of_amd_have_the_table():
    assert "itself" in towpath.load("mi325x", hosts=1).imitate("rccl").source_note


def test_a_build_that_does_not_decide_is_named_in_the_notes(monkeypatch):
    def fails(*_):
        raise towpath.ConfigError("the build does not run here")

    monkeypatch.setattr(IMITATION, "built_releases", lambda is_rccl: ["2.28.9"])
    monkeypatch.setattr(IMITATION, "find_build", lambda release: release)
    monkeypatch.setattr(IMITATION, "decide", fails)
    library = towpath.load("gb200-nvl72", ranks_per_host=4).imitate("nccl")
    assert "imitated" in library.source_note
    assert "the build does not run here" in library.notes


def test_rccl_s_table_has_hosts_of_two_to_eight_mi300x():
    [release] = table_releases(is_rccl=True)
    data = json.loads((TABLES.FOLDER / f"{release}.json").read_text())
    assert {name for entry in data["entries"].values() for name in entry["machines"]} == {"mi300x"}
    assert len(data["entries"]) == 7 + 6
    four = towpath.load("mi300x", hosts=1, ranks_per_host=4).imitate("rccl")
    assert "RCCL" in four.source_note
    assert "itself made the choices" in four.source_note
    assert four.launch("all_reduce", 1 << 28).algorithm == "ring"


@pytest.mark.parametrize("release", table_releases())
def test_shipped_tables_are_small_and_complete(release):
    data = json.loads((TABLES.FOLDER / f"{release}.json").read_text())
    assert data["release"] == release
    machines = {name for entry in data["entries"].values() for name in entry["machines"]}
    assert machines >= {"dgx-h100", "dgx-a100", "dgx-b200", "hgx-h200", "aws-p5", "pcie-8gpu"}
    if release == table_releases()[-1]:
        assert machines >= {"dgx-b300", "aws-p4d", "gcp-a3-mega", "gh200-4gpu", "rtx-pro-6000-8gpu"}
    nodes = {key.split()[1] for key in data["entries"]}
    assert nodes == {"1", "2", "4", "8", "16", "32", "128"}


def test_all_shipped_tables_take_less_than_500_kb():
    assert sum(file.stat().st_size for file in TABLES.FOLDER.glob("*.json")) < 500_000
    assert len(table_releases()) >= 6


def test_a_choice_with_settings_is_imitated(monkeypatch, tmp_path):
    monkeypatch.setenv("TOWPATH_NCCL_CACHE", str(tmp_path))  # no builds
    machine = towpath.load("dgx-h100", hosts=1)
    own = machine.imitate(Library.of("nccl"))
    assert "itself made the choices" in own.source_note
    forced = machine.imitate(Library("nccl", Environment.of({"NCCL_ALGO": "Tree"})))
    assert "imitated" in forced.source_note
    assert forced.choose("all_reduce", 1 << 20).algorithm == "tree"

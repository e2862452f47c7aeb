# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The decisions of RCCL itself. `$TOWPATH_RCCL_SOURCE` names a checkout of it, which they need."""

import os
from pathlib import Path

import pytest

import towpath
from conftest import refusal, towpath_command
from inside.nccl import (
    Assumptions,
    Question,
    build,
    decide,
    host_facts,
    host_from_file,
    host_of,
    operations,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def source():
    named = os.environ.get("TOWPATH_RCCL_SOURCE")
    if not named:
        pytest.skip("TOWPATH_RCCL_SOURCE names no checkout of RCCL")
    return Path(named)


def ask(source, nodes, calls, gpus=8, **options):
    found = host_facts(towpath.load("mi300x", hosts=nodes).spec, gpus, Assumptions())
    host = host_of(found.topology, found.generation, found.cpu)
    return decide(build(source), Question(host, nodes, calls, **options))


def test_rings_are_those_that_rccl_has_for_eight_mi300x(source):
    one = ask(source, 1, [("all_reduce", 1 << 20)])
    assert one.channels == 56
    assert one.rings[1] == (0, 1, 2, 3, 4, 5, 7, 6)
    assert "matching Rome model" in one.log
    two = ask(source, 2, [("all_reduce", 1 << 20)], is_replicated=True)
    assert two.channels == 64
    assert "matching Rome model" in two.log


def test_the_ranks_of_one_node_decide_as_all_ranks_do(source):
    calls = [("all_reduce", 1 << power) for power in range(12, 31, 6)]
    connected = ask(source, 2, calls)
    replicated = ask(source, 2, calls, is_replicated=True)
    assert replicated.decisions == connected.decisions
    assert replicated.rings == connected.rings


def test_the_shipped_table_is_what_rccl_decides(source):
    found = ask(source, 2, operations(16), is_replicated=True)
    library = towpath.load("mi300x", hosts=2).imitate("rccl")
    assert found.release in library.source_note.replace("RCCL ", "rccl-")
    for one in found.decisions:
        own = library.launch(one.collective, one.size_bytes)
        assert (own.algorithm, own.protocol) == (one.algorithm, one.protocol)
        assert own.channels == one.channels


def test_the_topologies_of_rccl_s_own_tool_are_decided(source):
    files = sorted((source / "tools" / "topo_expl" / "models").glob("*.xml"))
    assert len(files) > 50
    for file in files[::8]:
        host = host_from_file(file.read_text(), file.name, "mi300")
        question = Question(host, 2, [("all_reduce", 1 << 20)], is_replicated=True)
        assert decide(build(source), question).channels > 0


def test_the_command_asks_rccl_on_machines_of_amd_only(source):
    release = towpath_command("nccl", "build", str(source)).stdout.split(":")[0]
    name = release.replace("RCCL ", "rccl-")
    words = ("explain", "all_reduce", "--hosts", "2", "--sizes", "1M", "--nccl")
    assert "tree/LL" in towpath_command(*words, name, "--machine", "mi300x").stdout
    assert "name a release of NCCL" in refusal(
        towpath_command, *words, name, "--machine", "dgx-h100"
    )

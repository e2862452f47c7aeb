# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The decisions of NCCL itself. `$TOWPATH_NCCL_SOURCE` names its repository, which they need."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import towpath
from conftest import refusal, towpath_command
from inside.nccl import Assumptions, Question, build, decide, host_facts, host_from_file, host_of

pytestmark = pytest.mark.slow
RELEASE = "2.21.5"
CALLS = [
    (collective, 1 << power)
    for collective in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
    for power in range(12, 31, 3)
]


@pytest.fixture(scope="module")
def source():
    named = os.environ.get("TOWPATH_NCCL_SOURCE")
    if not named:
        pytest.skip("TOWPATH_NCCL_SOURCE names no repository of NCCL")
    return Path(named)


def ask(source, machine, nodes, calls=CALLS, release=RELEASE, **options):
    found = host_facts(towpath.load(machine, hosts=nodes).spec, 8, Assumptions())
    host = host_of(found.topology, found.generation, found.cpu)
    return decide(build(source, release), Question(host, nodes, calls, **options))


def changes(found, collective="all_reduce"):
    """The choices of a collective where they differ from the one at the size before."""
    rows = [one for one in found.decisions if one.collective == collective]
    texts = [f"{one.name} {one.channels} {one.threads}" for one in rows]
    return [
        (rows[place].size_bytes, text)
        for place, text in enumerate(texts)
        if place == 0 or text != texts[place - 1]
    ]


# What NCCL's log says on these machines, in our words: choices, channels, the first ring and the
# costs of the ring under LL.
GOLDEN = [
    (
        "dgx-h100", 1,
        [(4096, "ring/LL 1 96"), (32768, "ring/LL 1 512"), (262144, "ring/LL 8 512"),
         (2097152, "nvls/Simple 16 640")],
        (24, 16), (0, 1, 2, 3, 4, 5, 6, 7), (15.0, 80.6),
    ),
    (
        "dgx-h100", 2,
        [(4096, "tree/LL 1 512"), (32768, "tree/LL 8 512"), (262144, "tree/LL128 14 640"),
         (2097152, "nvls_tree/Simple 16 640")],
        (16, 16), (0, 7, 6, 5, 4, 3, 2, 1, 9, 10, 11, 12, 13, 14, 15, 8), (43.4, 20.8),
    ),
    (
        "dgx-a100", 1,
        [(4096, "ring/LL 1 96"), (32768, "ring/LL 1 512"), (262144, "ring/LL 8 512"),
         (2097152, "ring/LL 24 512"), (16777216, "ring/LL128 24 640"),
         (134217728, "ring/Simple 24 544")],
        (24, 0), (0, 1, 2, 3, 4, 5, 6, 7), (15.0, 50.1),
    ),
]  # fmt: skip


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: f"{golden[0]}-{golden[1]}")
def test_a_release_decides_as_its_log_says(source, golden):
    machine, nodes, choices, channels, ring, cost = golden
    found = ask(source, machine, nodes)
    assert changes(found) == choices
    assert (found.channels, found.nvls_channels) == channels
    assert found.rings[0] == ring
    own = found.costs["all_reduce", "ring", "LL"]
    assert (round(own.latency_us, 1), round(own.bandwidth_gb_per_s, 1)) == cost


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_the_ranks_of_one_node_decide_as_all_ranks_do(source, nodes):
    connected = ask(source, "dgx-h100", nodes)
    replicated = ask(source, "dgx-h100", nodes, is_replicated=True)
    assert replicated.decisions == connected.decisions
    assert replicated.rings == connected.rings
    assert replicated.costs == connected.costs
    assert [tree[:8] for tree in replicated.trees] == [tree[:8] for tree in connected.trees]


def test_1024_ranks_are_decided_within_a_gigabyte(source, monkeypatch):
    monkeypatch.setenv("TOWPATH_NCCL_MEMORY_MIB", "1024")
    found = ask(source, "dgx-h100", 128, is_replicated=True)
    assert found.ranks == 1024
    assert len(found.rings[0]) == 1024


def test_variables_act_because_nccl_reads_them(source):
    found = ask(source, "dgx-h100", 1, variables={"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL"})
    own = {one.name for one in found.decisions if one.collective == "all_reduce"}
    assert own == {"tree/LL"}


def test_more_memory_than_allowed_is_one_sentence(source, monkeypatch):
    monkeypatch.setenv("TOWPATH_NCCL_MEMORY_MIB", "8")
    assert "takes more than 8 MiB" in refusal(ask, source, "dgx-h100", 1)


def test_a_file_that_nccl_does_not_understand_is_one_sentence(source):
    text = '<system><cpu numaid="0"><pci busid="0000:01:00.0" class="0x03"/></cpu></system>'
    host = host_from_file(text, "topo.xml", "hopper")
    question = Question(host, 2, [("all_reduce", 1 << 20)])
    assert f"NCCL {RELEASE} does not decide" in refusal(decide, build(source, RELEASE), question)


def test_the_command_prints_decisions_and_changes(source):
    towpath_command("nccl", "build", str(source), "--release", RELEASE)
    words = ("explain", "all_reduce", "--machine", "dgx-h100", "--hosts", "1", "--sizes", "1M")
    shown = towpath_command(*words, "--nccl", RELEASE).stdout
    assert f"decided by NCCL {RELEASE} itself" in shown
    assert "ring/LL" in shown
    row = json.loads(towpath_command(*words, "--nccl", RELEASE, "--json").stdout)
    assert row
    same = towpath_command(*words, "--nccl", f"{RELEASE},{RELEASE}").stdout
    assert "the same algorithm, protocol and channels at all 1 sizes" in same
    assert "is not built here" in refusal(towpath_command, *words, "--nccl", "2.99.1")


_KILLED = """
import os, signal, sys, threading, time
from inside.nccl import *
import towpath
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
found = host_facts(towpath.load("dgx-h100", hosts=2).spec, 8, Assumptions())
host = host_of(found.topology, found.generation, found.cpu)
from pathlib import Path
while True:
    decide(build(Path(sys.argv[1]), sys.argv[2]), Question(host, 2, [("all_reduce", 1 << 20)]))
"""


def shared_files():
    return {name for name in os.listdir("/dev/shm") if name.startswith("nccl")}


def processes():
    """The programs of this user that ask NCCL."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(folder / "exe").endswith(("/decide", "/decide_replicated")):
                found.add(folder.name)
        except OSError:
            continue
    return found


def test_nothing_stays_behind_a_killed_program(source):
    before, others = shared_files(), processes()
    command = [sys.executable, "-c", _KILLED, str(source), RELEASE]
    running = [subprocess.Popen(command) for _ in range(2)]
    for each in running:
        assert each.wait(timeout=60) == -9
    deadline = 100
    while processes() - others and deadline:
        deadline -= 1
        subprocess.run(["sleep", "0.1"], check=True)
    assert processes() <= others
    assert shared_files() == before


@pytest.mark.long
def test_a_tuner_configuration_does_what_it_says(source, tmp_path):
    release = "2.30.7"
    tree = f"v{release}-1:plugins/tuner/example"
    archive = subprocess.run(
        ["git", "-C", str(source), "archive", tree], check=True, capture_output=True
    )
    subprocess.run(["tar", "x", "-C", tmp_path], input=archive.stdout, check=True)
    plugin, file = tmp_path / "tuner.so", tmp_path / "tuner.csv"
    command = ["gcc", f"-I{tmp_path}/nccl", f"-I{tmp_path}", "-fPIC", "-shared", "-o", plugin]
    subprocess.run([*command, tmp_path / "plugin.c"], check=True)
    file.write_text(
        "allreduce,0,131072,tree,ll,4,1,8\nallreduce,131073,4194304,ring,simple,8,1,8\n"
    )
    found = ask(
        source, "dgx-h100", 1, [("all_reduce", 1 << 16), ("all_reduce", 1 << 20)], release,
        variables={"NCCL_TUNER_PLUGIN": str(plugin), "NCCL_TUNER_CONFIG_FILE": str(file)},
    )  # fmt: skip
    assert [(one.name, one.channels) for one in found.decisions] == [
        ("tree/LL", 4), ("ring/Simple", 8),
    ]  # fmt: skip

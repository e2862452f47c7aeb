# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath doctor`: files of operators, and the cause that each shows."""

import csv
import functools
import json
import math
import os
import pickle
import random
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conftest import ROOT, refusal, shared_data, towpath_command
from doctor_answers import answer, causes, diagnosed
from inside.cli import main as cli
from operator_logs import (
    FACTORS,
    RAS,
    InfoLog,
    dump,
    entry,
    inspector,
    nccl_tests,
    ras_json,
    watchdog,
)

OPERATORS = shared_data() / "operators"
SIZES = [1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 27, 1 << 30]
H100 = "NVIDIA H100 80GB HBM3"
GPUS = {
    "dgx-h100": H100, "dgx-a100": "NVIDIA A100-SXM4-80GB", "hgx-h200": "NVIDIA H200",
    "dgx-b200": "NVIDIA B200",
}  # fmt: skip


@functools.cache
def expected(machine, hosts, collective):
    """Expected time and printed error at each size: the rows of an answer about any times."""
    log = nccl_tests(collective, dict.fromkeys(SIZES, 100.0), hosts, 8, GPUS[machine])
    with tempfile.TemporaryDirectory() as folder:
        rows = diagnosed(Path(folder), log).rows
    return {row["size_bytes"]: (row["expected_us"], row["error_pct"] / 100) for row in rows}


def job(factor=lambda size: 1.0, collective="all_reduce", hosts=2, **options):
    """A log of 8 H100 per host whose times are the expected ones times a factor."""
    times = expected("dgx-h100", hosts, collective)
    slower = {size: time_us * factor(size) for size, (time_us, _) in times.items()}
    return nccl_tests(collective, slower, hosts, 8, H100, **options)


# --- files of others ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "options", "faults", "words"),
    [
        ("nccl_tests_b200_2x8_all_reduce.log", {"machine": "dgx-b200"}, [], "16 of 16 GPUs"),
        ("nccl_tests_b200_2x8_all_reduce.log", {}, [], "give --machine NAME"),
        ("rccl_tests_mi300x_1x8_all_reduce.log", {}, [], "mi300x, 8 of 8 GPUs"),
        ("nccl_inspector.jsonl", {}, [], "4096 records were dropped"),
        ("ras_and_watchdog.txt", {}, ["hang", "late_rank"], "rank 118 waited for 1800 s"),
        ("nccl_topo_8xl20y.xml", {}, [], "pcie-8gpu"),
        ("topo_ansi_4x3090.txt", {}, [], "NVLinks join GPU0-GPU3 only"),
        ("topo_check_env_2xa100.txt", {}, [], "mlx5_0, mlx5_1, mlx5_2, mlx5_3 are far"),
        ("cases/01-a100-nvlink-pairs/topo.txt", {}, [], "GPU0-GPU1, GPU2-GPU3"),
        ("cases/02-h100-tabs-nine-nics/topo.txt", {}, [], "NIC0 is far from every GPU"),
        ("cases/03-t4-two-sockets/topo.txt", {}, [], "(GPU0, GPU1-GPU2-GPU3)"),
        ("cases/04-topo-mp-in-vm/topo.txt", {}, [], "`topo -mp`, or of a virtual machine"),
        ("cases/06-xml-without-gpus/topo.xml", {}, ["no_gpu"], "has no GPU"),
        (
            "cases/12-two-n300-unconnected/cluster_descriptor.yaml", {}, ["unconnected"],
            "{0, 1}, {2, 3}",
        ),
    ],
)  # fmt: skip
def test_files_of_operators_get_the_right_answer(file, options, faults, words):
    if not OPERATORS.is_dir():
        pytest.skip("TOWPATH_DATA has no operators")
    found = answer(OPERATORS / file, **options)
    assert causes(found) == faults
    assert words in json.dumps(vars(found))


# --- healthy jobs ---------------------------------------------------------------------------------


# GB/s of the NVLinks of a GPU and of its adapter in one direction, from data sheets.
LINKS = {"dgx-a100": (300, 25), "dgx-h100": (450, 50), "hgx-h200": (450, 50), "dgx-b200": (900, 50)}
# Shares of these rates that large rings of nccl-tests reach in public tables, and microseconds of
# the smallest call in a host and of each doubling of hosts.
NVLINK_SHARE, NETWORK_SHARE, SMALLEST_US, DOUBLING_US = 0.8, 0.9, 20.0, 12.0
MEASURED = {("dgx-h100", 1): "h100_sxm", ("dgx-b200", 1): "b200_sxm"}


def measured_times(machine, hosts, collective):
    """Times of nccl-tests that others measured, by size. Empty if there are none."""
    file = shared_data() / "nccl_fit.csv"
    times = {}
    if (machine, hosts, collective) == ("dgx-h100", 2, "all_reduce"):
        file = ROOT / "validation" / "gpu_collectives" / "all_reduce_two_h100_servers.csv"
        for words in (line.split(",") for line in file.read_text().splitlines()):
            if words[:3] == ["2", "16", "default"]:
                times.setdefault(int(words[3]), float(words[4]))
    elif (machine, hosts) in MEASURED and file.is_file():
        for name, _, op, gpus, size, time_us in csv.reader(file.open()):
            if (name, op, gpus) == (MEASURED[machine, hosts], collective, "8"):
                times[int(size)] = float(time_us)
    return {size: times[size] for size in (*SIZES, 1 << 29) if size in times}


def usual_times(machine, hosts, collective):
    """Times that a good cluster has, from measurements or from the rates of its links."""
    nvlink, adapter = LINKS[machine]
    factor = FACTORS[collective](8 * hosts)
    # Switches that reduce leave only the exchange between equal GPUs of the hosts to an adapter.
    is_reduced = collective == "all_reduce" and machine != "dgx-a100"
    carried = 2 * (hosts - 1) / hosts if is_reduced else factor
    ns_per_byte = factor / NVLINK_SHARE / nvlink
    if hosts > 1:
        ns_per_byte = max(ns_per_byte, carried / NETWORK_SHARE / 8 / adapter)
    least_us = SMALLEST_US + DOUBLING_US * math.log2(hosts)
    times = {size: least_us + size * ns_per_byte / 1e3 for size in SIZES}
    return measured_times(machine, hosts, collective) or times


def healthy(folder, seed):
    """A job with usual times and noise of 15 percent. No time comes from a simulation."""
    chance = random.Random(seed)
    machine = chance.choice(list(GPUS))
    collective = chance.choice(["all_reduce", "all_gather", "reduce_scatter"])
    hosts = chance.choice([1, 2, 4])
    prefix = chance.choice(["", "[1,0]<stdout>:", "job-0-0: ", "2026-01-02T03:04:05Z pod/n0 "])
    times = {
        size: time_us * chance.uniform(0.87, 1.15)
        for size, time_us in usual_times(machine, hosts, collective).items()
    }
    text = nccl_tests(collective, times, hosts, 8, GPUS[machine], prefix=prefix)
    if chance.random() < 0.3:
        text = text.replace("# ", "").replace("#", "")
    if chance.random() < 0.3 and hosts > 1:
        text += InfoLog(hosts).text()
    found = diagnosed(folder, text)
    assert found.machine.startswith(f"{machine}, ") and len(found.rows) == len(times)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_a_healthy_job_is_not_accused(tmp_path, seed):
    found = healthy(tmp_path, seed)
    assert causes(found) == [], found.findings


@pytest.mark.long
def test_200_healthy_jobs_are_not_accused(tmp_path):
    for seed in range(200):
        found = healthy(tmp_path, 1000 + seed)
        assert causes(found) == [], (seed, found.findings)


def test_other_healthy_files_are_not_accused(tmp_path):
    chance = random.Random(1)
    for text in (
        InfoLog(2).text(), InfoLog(1).text(), inspector(8, 12, chance), RAS,
        ras_json(dict.fromkeys(range(8), 100)), ras_json({0: 101, 1: 100, 2: 101, 3: 101}),
    ):  # fmt: skip
        assert causes(diagnosed(tmp_path, text)) == []


def test_dumps_of_a_healthy_job_are_not_accused(tmp_path):
    files = []
    for rank in range(4):
        path = tmp_path / f"trace_rank_{rank}"
        path.write_bytes(dump(4, [entry(n) for n in range(rank, 20)]))
        files.append(path)
    assert causes(answer(*files)) == []


# --- faults ---------------------------------------------------------------------------------------


def changed(**settings):
    log = InfoLog(settings.pop("hosts", 2))
    for name, value in settings.items():
        setattr(log, name, value)
    return log


def lacking(host, *numbers, hosts=2):
    adapters = [[f"mlx5_{n}" for n in range(8)] for _ in range(hosts)]
    adapters[host] = [name for name in adapters[host] if int(name[5:]) not in numbers]
    return changed(adapters=adapters, hosts=hosts)


def one(value, place, usual=48.0):
    return [value if n == place else usual for n in range(8)]


CROSSED = {(host, gpu): gpu ^ host for host in range(2) for gpu in range(8)}
INFO_FAULTS = [
    *[("adapter_missing", lacking(1, n)) for n in range(4)],
    ("adapter_missing", lacking(0, 0, 1, 2, 3)),
    ("adapter_missing", lacking(2, 5, hosts=4)),
    ("sockets", changed(network="Socket", gdr=False)),
    ("sockets", changed(network="Socket", gdr=False, hosts=4)),
    ("sockets", changed(network="Socket", gdr=False, variables={"NCCL_IB_DISABLE": "1"})),
    ("gdr_off", changed(gdr=False)),
    ("gdr_off", changed(gdr=False, hosts=4)),
    # The paths are far because NCCL leads them through the processor without GPUDirect RDMA.
    ("gdr_off", changed(gdr=False, path="PHB")),
    ("gdr_off", changed(without_gdr={8, 9, 10, 11})),
    ("gdr_off", changed(without_gdr={0})),
    ("gdr_off", changed(without_gdr=set(range(8, 16)))),
    ("p2p_off", changed(local="SHM/direct/direct")),
    ("p2p_off", changed(local="SHM/direct/direct", hosts=1)),
    ("p2p_off", changed(local="SHM", variables={"NCCL_P2P_DISABLE": "1"})),
    ("p2p_off", changed(warnings=["P2P is disabled between NVLINK connected GPUs 2 and 3."])),
    ("p2p_off", changed(warnings=["P2P is disabled between connected GPUs 0 and 1."])),
    ("p2p_disable", changed(variables={"NCCL_P2P_DISABLE": "1"})),
    ("p2p_level", changed(variables={"NCCL_P2P_LEVEL": "LOC"})),
    ("variable", changed(variables={"NCCL_IB_DISABLE": "1"})),
    ("variable", changed(variables={"NCCL_SHM_DISABLE": "1"})),
    ("version", changed(releases=["2.28.9", "2.27.5"])),
    ("version", changed(releases=["2.19.3", "2.28.9", "2.28.9", "2.28.9"], hosts=4)),
    ("version", changed(warnings=["Mismatched NCCL version detected : rank 0 version 22809"])),
    ("wrong_rail", changed(rail_of=CROSSED)),
    ("pcie_link", changed(pcie=one(12.0, 3))),
    ("pcie_link", changed(pcie=one(3.0, 0))),
    ("pcie_link", changed(pcie=one(24.0, 7))),
    ("pcie_link", changed(bridge=one(0.2, 2))),
    ("pcie_link", changed(bridge=[0.2] * 8)),
    ("nvlink_missing", changed(nvlink=one(20.6, 4, 370.8))),
    ("nvlink_missing", changed(nvlink=one(185.4, 1, 370.8))),
    ("network_error", changed(warnings=["NET/IB : Got completion from peer 10.0.0.2<1> with "
                                        "status=12 opcode=129 vendor err 129"])),
    ("network_error", changed(warnings=["socketPollConnect: Connection refused"])),
    ("network_error", changed(warnings=["Call to ibv_create_qp failed with error"])),
    ("network_error", changed(warnings=["NET/IB : mlx5_3:1 Got async event : port error"])),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "log"), INFO_FAULTS)
def test_a_fault_of_a_log_of_nccl_is_named_first(tmp_path, cause, log):
    found = diagnosed(tmp_path, log.text())
    named = causes(found)
    assert cause in named[:2], found.findings
    assert all(each["evidence"] and each["next_check"] for each in found.findings)


def from_size(least, factor):
    return lambda size: factor if size >= least else 1.0


@pytest.mark.parametrize(
    ("factor", "collective", "hosts", "first"),
    [
        (from_size(1 << 24, 4.0), "all_reduce", 2, "16 MiB"),
        (from_size(1 << 27, 3.0), "all_gather", 2, "128 MiB"),
        (from_size(1 << 30, 2.5), "reduce_scatter", 4, "1 GiB"),
        (from_size(0, 20.0), "all_reduce", 2, "1 KiB"),
        (from_size(1 << 20, 8.0), "all_reduce", 1, "1 MiB"),
    ],
)
def test_a_slow_job_is_slow_from_a_size_on(tmp_path, factor, collective, hosts, first):
    found = diagnosed(tmp_path, job(factor, collective, hosts))
    assert causes(found)[0] == "slow"
    assert f"{collective} is slow from {first} on" in found.findings[0]["sentence"]


def test_a_log_of_nccl_explains_a_slow_table(tmp_path):
    text = job(from_size(1 << 20, 15.0)) + changed(network="Socket", gdr=False).text()
    found = diagnosed(tmp_path, text)
    assert set(causes(found)) == {"slow", "sockets"}


def test_a_slow_table_between_hosts_suggests_causes(tmp_path):
    found = diagnosed(tmp_path, job(from_size(1 << 20, 15.0)))
    # No line states any cause, so only the slow times are a fault.
    assert causes(found) == ["slow"]
    assert {each["cause"] for each in found.possibilities} == {
        "sockets", "gdr_off", "adapter_missing",
    }  # fmt: skip
    assert not any(each["is_fault"] or each["evidence"] for each in found.possibilities)


def test_wrong_elements_are_named(tmp_path):
    assert causes(diagnosed(tmp_path, job(wrong=3))) == ["wrong_data"]


@pytest.mark.parametrize("late", [0, 3, 7])
def test_a_late_rank_is_named_by_the_inspector(tmp_path, late):
    found = diagnosed(tmp_path, inspector(8, 12, random.Random(late), late))
    assert causes(found) == ["slow_rank"] and f"rank {late} enters last" in str(found.findings)


def test_ras_names_ranks_that_are_behind_or_gone(tmp_path):
    found = diagnosed(tmp_path, ras_json({0: 100, 1: 100, 2: 90, 3: 100}))
    assert causes(found) == ["late_rank"] and "rank 2 (90)" in str(found.findings)
    found = diagnosed(tmp_path, ras_json(dict.fromkeys(range(7), 100), (7,)))
    assert causes(found) == ["dead_rank"] and "rank 7 on node1" in str(found.findings)
    lines = (
        "INCOMPLETE\n  Missing communicator data from 1 rank\n"
        "  Rank 5 -- GPU 5 managed by process 12 on node node0\n"
    )
    found = diagnosed(tmp_path, RAS.replace("Errors\n======\n", f"Errors\n======\n\n{lines}"))
    assert causes(found) == ["dead_rank"] and "rank 5" in str(found.findings)
    lines = (
        "#0-0 (1234) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
        "  15 ranks have launched up to operation 70\n"
        "  Rank 4 has launched up to operation 60 -- GPU 4 managed by process 1 on node node0\n"
    )
    found = diagnosed(tmp_path, RAS + lines)
    assert causes(found) == ["late_rank"] and "rank 4 (60) launched fewer" in str(found.findings)
    found = diagnosed(tmp_path, RAS + lines.replace("60", "69"))
    assert causes(found) == [] and "rank 4 (69) launched fewer" in str(found.findings)


def test_the_watchdogs_name_the_rank_that_is_behind(tmp_path):
    text = "".join(watchdog(rank, 90 if rank == 5 else 110, 89) for rank in range(8))
    found = diagnosed(tmp_path, text)
    assert "rank 5 enqueued 90 collectives" in str(found.findings)
    assert "late_rank" in causes(found)


def dumps(folder, of_rank, ranks=4):
    files = []
    for rank in range(ranks):
        path = folder / f"nccl_trace_rank_{rank}"
        path.write_bytes(dump(ranks, of_rank(rank)))
        files.append(path)
    return answer(*files)


def test_dumps_name_the_rank_that_did_not_enter(tmp_path):
    def of_rank(rank):
        done = [entry(n) for n in range(10)]
        return done if rank == 2 else [*done, entry(10, state="started")]

    found = dumps(tmp_path, of_rank)
    assert causes(found) == ["late_rank"]
    assert "rank 2 did not enter nccl:all_reduce number 10" in found.findings[0]["sentence"]


@pytest.mark.parametrize("other", [{"name": "nccl:broadcast"}, {"size": 2048}])
def test_dumps_name_the_rank_with_another_collective(tmp_path, other):
    def of_rank(rank):
        last = entry(5, state="scheduled", **(other if rank == 1 else {}))
        return [*(entry(n) for n in range(5)), last]

    found = dumps(tmp_path, of_rank)
    assert causes(found) == ["mismatch"] and "rank 1 called" in found.findings[0]["sentence"]


def test_dumps_name_the_rank_whose_gpu_did_not_start(tmp_path):
    def of_rank(rank):
        state = "scheduled" if rank == 3 else "started"
        return [*(entry(n) for n in range(5)), entry(5, state=state)]

    assert "rank 3 called nccl:all_reduce number 5 but its GPU" in str(dumps(tmp_path, of_rank))


def test_a_dump_in_json_is_read(tmp_path):
    data = pickle.loads(dump(2, [entry(0)]))
    found = diagnosed(tmp_path, json.dumps(data), names=("trace_rank_1.json",))
    assert found.formats == ["PyTorch flight recorder"]


# --- pickles --------------------------------------------------------------------------------------


class Runs:
    """A pickle of it runs a command when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_nothing_in_a_pickle_is_executed(tmp_path, protocol):
    made = tmp_path / "made"
    path = tmp_path / "trace_rank_0"
    path.write_bytes(pickle.dumps({"entries": [Runs(made)]}, protocol))
    pickle.loads(path.read_bytes())
    assert made.is_dir(), "the command in the pickle would not run"
    made.rmdir()
    assert "is a pickle that would run" in refusal(towpath_command, "doctor", str(path))
    assert not made.exists()


def test_a_damaged_pickle_is_one_sentence(tmp_path):
    path = tmp_path / "trace_rank_0"
    path.write_bytes(dump(2, [entry(0)])[:-20])
    assert "is a damaged pickle" in refusal(towpath_command, "doctor", str(path))


# --- outputs --------------------------------------------------------------------------------------


def test_a_gate_has_pass_marks_and_an_exit_status(tmp_path):
    path, gate, junit = tmp_path / "job.log", tmp_path / "gate.json", tmp_path / "junit.xml"
    path.write_text(job())
    line = ("doctor", str(path), "--gate", str(gate), "--junit", str(junit))
    towpath_command(*line)
    marks = json.loads(gate.read_text())
    assert marks["passed"] and len(marks["marks"]) == len(SIZES)
    assert all(0 < row["min_busbw_gb_per_s"] < row["expected_busbw_gb_per_s"] or
               row["size_bytes"] < 1 << 20 for row in marks["marks"])  # fmt: skip
    assert ElementTree.parse(junit).getroot().get("failures") == "0"
    path.write_text(job(from_size(1 << 24, 5.0)))
    assert CliRunner().invoke(cli.app, line).exit_code == 1
    assert not json.loads(gate.read_text())["passed"]
    assert int(ElementTree.parse(junit).getroot().get("failures")) >= 3


def test_a_page_shows_the_plot_and_the_cause(tmp_path):
    path, page = tmp_path / "job.log", tmp_path / "page.html"
    path.write_text(job(from_size(1 << 24, 5.0)))
    text = towpath_command("doctor", str(path), "--out", str(page)).stdout
    assert "1. slower than expected (likely" in text or "1. slower than expected (almost" in text
    assert "next: " in text
    assert "all_reduce: bus bandwidth" in page.read_text()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "job.log: is empty"),
        ("hello\n", "job.log:1: has none of the known formats: nccl-tests"),
        ('{"communicators": 1, "missing_ranks": []}', "has no list 'communicators'"),
        ('{"coll_perf": {}}\n', "job.log:1: has no header"),
    ],
)
def test_a_file_without_content_is_refused(tmp_path, text, expected):
    path = tmp_path / "job.log"
    path.write_text(text)
    assert expected in refusal(towpath_command, "doctor", str(path))


def test_names_in_a_log_are_printable_and_short(tmp_path):
    path = tmp_path / "job.log"
    names = [f"\x1b[31m{n}{'x' * 50}" for n in range(100)]
    path.write_text(changed().text() + "".join(
        f"node0:1:2 [0] NCCL INFO Using network {name}\n" for name in names
    ))  # fmt: skip
    lines = towpath_command("doctor", str(path)).stdout.splitlines()
    assert any("network: IB, 0xxx" in line for line in lines)
    assert all(line.isprintable() and len(line) < 700 for line in lines), lines


def test_a_topology_beside_a_table_is_its_machine(tmp_path):
    from test_topology_import import hopper_table

    (tmp_path / "topo.txt").write_text(hopper_table())
    (tmp_path / "job.log").write_text(job())
    found = answer(tmp_path / "job.log", tmp_path / "topo.txt")
    assert found.machine.startswith("topo, 16 of 16 GPUs") and causes(found) == []

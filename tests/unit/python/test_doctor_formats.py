# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath doctor`: forms of the files of operators, and several files of one job."""

import json
import pickle
import random
import time

import pytest

import towpath
from conftest import refusal, towpath_command
from doctor_answers import causes, diagnosed
from inside.operators import Document, differences, parse_log
from operator_logs import (
    InfoLog,
    dump,
    entry,
    inspector,
    nccl_tests,
    ras_json,
    showtopo,
    watchdog,
)
from towpath import ConfigError

NVSWITCH = "NVIDIA B200"
TIMES = {1 << 20: 90.0, 1 << 24: 300.0, 1 << 27: 900.0, 1 << 30: 5000.0}


def log_of(hosts=2, **settings):
    log = InfoLog(hosts)
    for name, value in settings.items():
        setattr(log, name, value)
    return log


def test_the_topology_of_rocm_smi_is_read(tmp_path):
    found = diagnosed(tmp_path, showtopo())
    assert causes(found) == [] and found.facts["GPUs of a host"] == "8"


# --- NCCL_DEBUG=INFO ------------------------------------------------------------------------------


def test_the_network_of_a_plug_in_is_rdma(tmp_path):
    found = diagnosed(tmp_path, log_of(network="AWS Libfabric").text())
    assert causes(found) == []
    assert "NET/AWS Libfabric/GDRDMA" in found.facts["transports"]
    found = diagnosed(tmp_path, log_of(network="AWS Libfabric", gdr=False).text())
    assert causes(found) == ["gdr_off"]


@pytest.mark.parametrize("network", ["IBext_v8", "OFI", "AWS Libfabric"])
def test_a_plug_in_is_no_difference_from_nccls_own_network(network):
    def log(**settings):
        return parse_log(Document.of("job.log", log_of(**settings).text().encode()))

    assert differences(log(network=network), log()) == []
    without = differences(log(network=network, gdr=False), log())
    assert [each.cause for each in without] == ["gdr_off"]
    assert [each.cause for each in differences(log(network="Socket"), log())] == ["sockets"]


@pytest.mark.parametrize("form", ["Ring 00 : 0 -> 1", "Channel 00 : 0[1000] -> 1[2000]"])
def test_connections_of_old_releases_are_read(tmp_path, form):
    lines = "".join(f"n{n}:1:1 [0] NCCL INFO {form} [send] via NET/Socket/0\n" for n in (0, 1))
    assert causes(diagnosed(tmp_path, lines)) == ["sockets"]


@pytest.mark.parametrize(("hosts", "faults"), [(1, []), (2, ["variable"])])
def test_a_job_of_one_host_needs_no_infiniband(tmp_path, hosts, faults):
    text = log_of(hosts, variables={"NCCL_IB_DISABLE": "1"}).text()
    assert causes(diagnosed(tmp_path, text)) == faults


def test_pairs_with_different_numbers_of_nvlinks_are_no_fault(tmp_path):
    say = "node0:1:1 [0] NCCL INFO "
    lines = [f"{say}=== System : maxBw 42.0 totalBw 126.0 ==="]
    lines += [f"{say}+ NVL[{42.0 if n % 3 else 21.0}] - GPU/0-{n}000 ({n})" for n in range(8)]
    text = "\n".join(lines)
    assert causes(diagnosed(tmp_path, text)) == []
    found = diagnosed(tmp_path, text.replace("GPU/0-", "NVS/0-"))
    assert causes(found) == ["nvlink_missing"] * 3


def test_a_closed_connection_is_a_dead_process(tmp_path):
    text = log_of(warnings=["socketProgress: Connection closed by remote peer node1<4123>"]).text()
    found = diagnosed(tmp_path, text)
    assert causes(found) == ["dead_rank"] and "node1<4123>" in found.findings[0]["sentence"]


def split(text):
    """The lines of a log in a file per host, with a rank per file."""
    files = {}
    for line in text.splitlines(keepends=True):
        host = line.partition(":")[0] if line.startswith("node") else "node0"
        files.setdefault(host, []).append(line)
    return ["".join(lines) for lines in files.values()]


def test_files_of_the_hosts_of_a_job_are_compared(tmp_path):
    adapters = [[f"mlx5_{n}" for n in range(8)], [f"mlx5_{n}" for n in range(7)]]
    found = diagnosed(tmp_path, *split(log_of(adapters=adapters).text()))
    assert causes(found) == ["adapter_missing"]
    assert "node1 uses 7 adapters, other hosts 8" in found.findings[0]["sentence"]
    first, second = split(log_of().text())
    found = diagnosed(tmp_path, first, f"{second}NCCL version 2.19.3+cuda12.3\n")
    assert causes(found) == ["version"]


def test_logs_of_two_jobs_are_not_compared(tmp_path):
    one, other = log_of(), log_of(releases=["2.19.3", "2.19.3"])
    found = diagnosed(tmp_path, one.text(), other.text())
    assert causes(found) == []
    assert found.facts["1. job: NCCL"] == "2.28.9" and found.facts["2. job: NCCL"] == "2.19.3"


# --- a file per rank ------------------------------------------------------------------------------


def test_watchdogs_of_several_files_are_compared(tmp_path):
    texts = [watchdog(rank, 90 if rank == 5 else 110, 89) for rank in range(8)]
    found = diagnosed(tmp_path, *texts)
    assert causes(found) == ["hang", "late_rank"]
    assert "rank 5 enqueued 90 collectives, the other ranks up to 110" in str(found.findings)
    assert "and 7 other ranks timed out" in str(found.findings)


def test_records_of_the_inspector_in_several_files_are_compared(tmp_path):
    lines = inspector(8, 12, random.Random(3), 3).splitlines()
    files = ["\n".join(line for line in lines if f'"rank": {rank},' in line) for rank in range(8)]
    assert causes(diagnosed(tmp_path, *files)) == ["slow_rank"]


# --- RAS ------------------------------------------------------------------------------------------

MISMATCH = """\
Job summary
===========

#0-0 (fa93daea854b060b) MISMATCH
  Communicator ranks have different AllGather operation counts
  {} ranks have launched up to operation {}
  {} ranks have launched up to operation {}
  Rank 12 -- GPU 4 managed by process 1 on node 10.0.0.1
  Rank 13 -- GPU 5 managed by process 2 on node 10.0.0.1

"""


@pytest.mark.parametrize(
    ("counts", "faults", "words"),
    [
        # The ranks ahead are printed, and most ranks are behind: not late.
        ((30, 640, 2, 641), [], ""),
        ((30, 641, 2, 640), [], "rank 12, 13 (640) launched fewer AllGather"),
        ((30, 641, 2, 600), ["late_rank"], "rank 12, 13 (600) launched fewer AllGather"),
    ],
)
def test_one_operation_between_ranks_is_no_fault(tmp_path, counts, faults, words):
    found = diagnosed(tmp_path, MISMATCH.format(*counts))
    assert causes(found) == faults and words in str(found.findings)
    same = ras_json({rank: counts[1] if rank < 30 else counts[3] for rank in range(32)})
    assert causes(diagnosed(tmp_path, same)) == faults


def test_a_long_output_of_ras_is_read_in_linear_time(tmp_path):
    block = "  Missing communicator data from 1 rank\n  Rank 5 -- GPU 5 managed by process 1\n\n"

    def seconds(count):
        begin = time.process_time()
        diagnosed(tmp_path, "Job summary\n" + block * count)
        return time.process_time() - begin

    seconds(100)
    # 16 times the lines: linear time is 16 times as long, quadratic time 256 times.
    assert seconds(32_000) < 60 * seconds(2_000)


# --- nccl-tests -----------------------------------------------------------------------------------


def test_a_log_with_two_programs_has_two_tables(tmp_path):
    text = "".join(nccl_tests(name, TIMES, 1, 8, NVSWITCH) for name in ("all_gather", "all_reduce"))
    found = diagnosed(tmp_path, text)
    assert found.facts["collective"] == "all_gather, all_reduce"
    assert {row["collective"] for row in found.rows} == {"all_gather", "all_reduce"}


def test_a_folder_does_not_name_the_collective(tmp_path):
    text = nccl_tests("all_gather", TIMES, 1, 8, NVSWITCH).replace("all_gather_perf", "program")
    found = diagnosed(tmp_path, text, names=("all_reduce/job.log",))
    assert found.facts["collective"] == "not stated"
    found = diagnosed(tmp_path, text, names=("job/all-gather.log",))
    assert found.facts["collective"] == "all_gather"


# --- pickles and dumps ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        b"\x80\x04r\xff\xff\xff\x02.",  # a memory of 50 million places
        b"\x80\x04]r\xff\xff\xff\x02.",
        b"\x80\x04" + b")" + b"\x86".join([b"2"] * 2000) + b".",
        # A key of nested tuples takes a time that is exponential in its depth to hash.
        b"\x80\x04}(" + b")" + b"2\x86" * 64 + b"K\x01u.",
        b"\x80\x04\x8b\xff\xff\xff\x7f.",
    ],
)
def test_a_small_pickle_needs_no_large_memory(tmp_path, code):
    path = tmp_path / "trace_rank_0"
    path.write_bytes(code)
    sentence = refusal(towpath_command, "doctor", str(path))
    assert "is a damaged pickle" in sentence or "is not a flight recorder dump" in sentence


def nested(depth):
    value = ["x"] * 10
    for _ in range(depth):
        value = [value] * 10
    return value


@pytest.mark.parametrize(
    "changes",
    [
        {"profiling_name": "n" * 1_000_000}, {"input_sizes": nested(40)}, {"state": nested(40)},
        {"collective_seq_id": 10**30}, {"process_group": (10**5000, "x")},
        {"input_sizes": [[10**5000]]}, {"duration_ms": 10**400}, {"time_created_ns": 10**5000},
        {"input_dtypes": nested(40)},
    ],
)  # fmt: skip
def test_huge_fields_of_dumps_are_bounded(tmp_path, changes):
    data = pickle.loads(dump(2, [entry(0), entry(1, state="started")]))
    data["entries"][1] |= changes
    other = dump(2, [entry(0), entry(1, state="started", name="nccl:broadcast")])
    try:
        found = diagnosed(
            tmp_path, pickle.dumps(data), other, names=("trace_rank_0", "trace_rank_1")
        )
    except ConfigError as error:
        assert "entry 2 has no collective_seq_id" in str(error) and len(str(error)) < 300
    else:
        assert all(len(each["sentence"]) < 1000 for each in found.findings)


# --- texts on the terminal ------------------------------------------------------------------------

ESCAPE = "\x1b]0;owned\x07\x1b[2J"


def test_no_escape_sequence_reaches_the_terminal(tmp_path):
    record = json.loads(inspector(1, 1, random.Random(1)).splitlines()[0])
    record["metadata"]["hostname"] = ESCAPE
    data = pickle.loads(dump(2, [entry(0, state="started")]))
    data["entries"][0]["profiling_name"] = f"nccl:{ESCAPE}"
    data["entries"][0]["process_group"] = (ESCAPE, "x")
    gone = json.loads(ras_json({0: 1}, (1,)))
    gone["communicators"][0]["missing_ranks"][0]["host"] = ESCAPE
    log = log_of(variables={"NCCL_ALGO": ESCAPE})
    table = nccl_tests("all_reduce", TIMES, 1, 8, f"GPU {ESCAPE}").replace("node0", f"n{ESCAPE}")
    texts = [json.dumps(record), pickle.dumps(data), json.dumps(gone), log.text(), table]
    texts += [dump(2, [entry(0, name="nccl:broadcast", state="started")])]
    names = ["i.json", "trace_rank_0", "ras.json", "nccl.log", "all_reduce.log", "trace_rank_1"]
    files = []
    for name, text in zip(names, texts, strict=True):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        files.append(str(path))
    shown = towpath_command("doctor", *files).stdout
    assert "owned" in shown
    assert all(line.isprintable() for line in shown.splitlines())


def test_a_gpu_of_another_model_is_not_a_shipped_machine(tmp_path):
    for gpu in ("NVIDIA H800", "NVIDIA H20", "NVIDIA H100 NVL", "NVIDIA H100 PCIe"):
        found = diagnosed(tmp_path, nccl_tests("all_reduce", TIMES, 1, 8, gpu))
        assert found.rows == [] and f"servers of '{gpu}', so nothing is expected" in found.notes[0]


def test_slow_sizes_below_a_fast_largest_size_are_named_as_such(tmp_path):
    expected = diagnosed(tmp_path, nccl_tests("all_reduce", TIMES, 1, 8, NVSWITCH)).rows
    times = {row["size_bytes"]: row["expected_us"] for row in expected}
    slow = {size: t * (20 if size < 1 << 27 else 1) for size, t in times.items()}
    found = diagnosed(tmp_path, nccl_tests("all_reduce", slow, 1, 8, NVSWITCH))
    assert causes(found) == ["slow"]
    assert "is slow at 2 of 4 sizes (1 MiB to 16 MiB)" in found.findings[0]["sentence"]


def test_the_measured_error_is_separate_from_the_spread_of_clusters(tmp_path):
    log = nccl_tests("all_reduce", TIMES, 1, 8, "NVIDIA H100 80GB HBM3")
    rows = diagnosed(tmp_path, log).rows
    largest = towpath.load("dgx-h100", hosts=1).run(
        "all_reduce", size_bytes=1 << 30, library="nccl", data=False
    )
    assert rows[-1]["error_pct"] == largest.rows[0].error_pct[1] < 20

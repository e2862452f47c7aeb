# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath job`: the communication of a traced job, as traced and on machines."""

import gzip
import json
import resource
import subprocess
import sys
import time

import pytest

import towpath
from conftest import refusal, towpath_command
from inside.operators import job_times, read_job
from job_traces import chakra_json, chakra_protobuf, kineto
from operator_logs import dump, entry

MIB = 1 << 20
# Computation until 1,000 us. The first collective is hidden, the second half of the second is not.
STEP = [
    ("", 0.0, 1000.0, 0), ("all_gather", 100.0, 400.0, 64 * MIB),
    ("all_reduce", 800.0, 400.0, 64 * MIB),
]  # fmt: skip


def times(path, *words):
    text = towpath_command("job", str(path), *words, "--json").stdout
    return json.loads(text)["results"][0]["times"]


def expected_us(machine, collective, size, **options):
    result = towpath.load(machine, **options).run(
        collective, size_bytes=size, library="nccl", data=False
    )
    return result.rows[0].time_us


@pytest.mark.parametrize("packs", [False, True])
def test_kineto_shows_communication_and_its_exposed_part(tmp_path, packs):
    path = tmp_path / "trace.json"
    text = json.dumps(kineto(STEP, 8))
    path.write_bytes(gzip.compress(text.encode()) if packs else text.encode())
    traced, other = times(path, "--machine", "dgx-h100")
    assert traced["communication_us"] == 800 and traced["exposed_us"] == 200
    assert traced["step_us"] == 1200
    gather = expected_us("dgx-h100", "all_gather", 64 * MIB, hosts=1)
    reduce = expected_us("dgx-h100", "all_reduce", 64 * MIB, hosts=1)
    assert other["communication_us"] == pytest.approx(gather + reduce)
    # 200 us of computation are left to hide the second one.
    exposed = max(gather - 400, 0) + max(reduce - 200, 0)
    assert other["exposed_us"] == pytest.approx(exposed)
    assert other["step_us"] == pytest.approx(1200 + exposed - 200)


def test_a_group_is_placed_where_its_ranks_are(tmp_path):
    path = tmp_path / "trace.json"
    content = kineto(STEP[:2], 16)
    content["traceEvents"][1]["args"] |= {
        "Process Group Ranks": "[0, 8]", "Group size": 2, "Out msg nelems": 32 * MIB,
    }  # fmt: skip
    path.write_text(json.dumps(content))
    _, found = times(path, "--machine", "dgx-h100")
    between = expected_us("dgx-h100", "all_gather", 64 * MIB, hosts=2, ranks_per_host=1)
    assert found["communication_us"] == pytest.approx(between)


NODES = [
    (1, "", 100, 0, ()), (2, "all_reduce", 0, 16 * MIB, (1,)), (3, "", 50, 0, (1,)),
    (4, "", 30, 0, (2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("is_json", [True, False])
def test_chakra_follows_dependencies(tmp_path, is_json):
    path = tmp_path / "trace.0.et"
    if is_json:
        path.write_text(json.dumps(chakra_json(NODES)))
    else:
        path.write_bytes(chakra_protobuf(NODES))
    (found,) = times(path, "--machine", "dgx-h100", "--ranks", "8")
    reduce = expected_us("dgx-h100", "all_reduce", 16 * MIB, hosts=1)
    assert found["communication_us"] == pytest.approx(reduce)
    assert found["exposed_us"] == pytest.approx(max(reduce - 50, 0))
    assert found["step_us"] == pytest.approx(100 + max(reduce, 50) + 30)


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter"])
def test_chakra_states_the_input_of_a_rank(tmp_path, collective):
    """As ASTRA-sim reads it: an all-gather has the bytes of all ranks."""
    path = tmp_path / "trace.0.et"
    path.write_text(json.dumps(chakra_json([(1, collective, 0, MIB, ())])))
    (found,) = times(path, "--machine", "dgx-h100", "--ranks", "8")
    whole = MIB * (8 if collective == "all_gather" else 1)
    assert found["groups"][0]["size_bytes"] == whole
    expected = expected_us("dgx-h100", collective, whole, hosts=1)
    assert found["communication_us"] == pytest.approx(expected)


def test_needs_may_follow_in_the_file(tmp_path):
    path = tmp_path / "trace.0.et"
    path.write_text(json.dumps(chakra_json([NODES[3], NODES[1], NODES[2], NODES[0]])))
    (found,) = times(path, "--machine", "dgx-h100", "--ranks", "8")
    reduce = expected_us("dgx-h100", "all_reduce", 16 * MIB, hosts=1)
    assert found["step_us"] == pytest.approx(100 + max(reduce, 50) + 30)


def test_dependencies_pass_through_nodes_without_time(tmp_path):
    """An untimed node between two computations, beside a computation of 50 us."""
    path = tmp_path / "trace.0.et"
    nodes = [(1, "", 100, 0, ()), (9, "", 0, 0, (1,)), (2, "all_reduce", 0, 16 * MIB, (9,)),
             (3, "", 50, 0, (1,)), (4, "", 30, 0, (2, 3))]  # fmt: skip
    content = chakra_json(nodes)
    content["nodes"][1]["type"] = "METADATA_NODE"
    path.write_text(json.dumps(content))
    (found,) = times(path, "--machine", "dgx-h100", "--ranks", "8")
    reduce = expected_us("dgx-h100", "all_reduce", 16 * MIB, hosts=1)
    assert found["step_us"] == pytest.approx(100 + max(reduce, 50) + 30)


def test_work_of_the_processor_is_not_computation_of_the_gpu(tmp_path):
    path = tmp_path / "trace.0.et"
    content = chakra_json([NODES[0], NODES[1], (3, "", 5000, 0, (1,)), NODES[3]])
    content["nodes"][2]["attr"] = [{"name": "is_cpu_op", "boolVal": True}]
    path.write_text(json.dumps(content))
    (found,) = times(path, "--machine", "dgx-h100", "--ranks", "8")
    assert found["exposed_us"] == pytest.approx(found["communication_us"])
    assert found["step_us"] == pytest.approx(100 + 5000 + 30)


def seconds_of(computations, path):
    """Processor time of a trace whose collectives each cover all computations."""
    calls = [("", 10.0 * n, 5.0, 0) for n in range(computations)]
    calls += [("all_reduce", 0.0, 10.0 * computations, MIB)] * (computations // 50)
    path.write_text(json.dumps(kineto(calls, 8)))
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        (traced,) = job_times(read_job(path), [])
        seconds.append(time.process_time() - begin)
    assert traced.exposed_us == pytest.approx(computations // 50 * 5.0 * computations)
    return min(seconds)


def test_a_long_trace_takes_linear_time(tmp_path):
    """Eight times the calls take eight times as long, and 64 times if each meets all others."""
    path = tmp_path / "trace.json"
    assert seconds_of(40_000, path) < 24 * seconds_of(5_000, path)


def test_all_members_of_a_packed_trace_are_read(tmp_path):
    path = tmp_path / "trace.json"
    text = json.dumps(kineto(STEP, 8)).encode()
    path.write_bytes(gzip.compress(text[:500]) + gzip.compress(text[500:]))
    assert times(path, "--machine", "dgx-h100")[0]["communication_us"] == 800


def test_a_small_file_that_unpacks_to_many_gib_is_refused_in_little_memory(tmp_path):
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(bytes(1 << 24)) * 640)  # 10 GiB in 10 MB
    memory = (2 << 30, 2 << 30)
    run = subprocess.run(
        [sys.executable, "-m", "towpath", "job", str(path), "--machine", "dgx-h100"],
        capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, memory),
    )  # fmt: skip
    assert f"{path}: unpacks to more than 512 MiB, the maximum" in run.stderr, run.stderr


def test_what_is_left_out_is_printed(tmp_path):
    content = kineto(STEP, 8)
    content["traceEvents"] += [
        {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv", "ts": 5, "dur": 3},
        content["traceEvents"][1] | {"args": {"Collective name": "send", "Group size": 2}},
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(content))
    text = towpath_command("job", str(path), "--machine", "dgx-h100").stdout
    assert "left out: 1 kernels of NCCL without their size, which are not predicted" in text
    assert "left out: 1 calls of send, which are not predicted" in text


def test_names_in_a_trace_are_printable_and_short(tmp_path):
    """A name that clears the terminal, and 1,000 long names."""
    content = kineto(STEP, 8)
    dumped = [entry(n, size=MIB) for n in range(3)]
    names = ["\x1b[2J\x1b[31mred\u202e", *(f"{n} {'x' * 5000}" for n in range(999))]
    kernel = content["traceEvents"][1]
    for n, name in enumerate(names):
        content["traceEvents"].append(kernel | {"args": kernel["args"] | {"Collective name": name}})
        dumped.append(entry(n + 3, name=name))
    (tmp_path / "trace.json").write_text(json.dumps(content))
    (tmp_path / "trace_rank_0").write_bytes(dump(8, dumped))
    for file in ("trace.json", "trace_rank_0"):
        text = towpath_command("job", str(tmp_path / file), "--machine", "dgx-h100").stdout
        assert "[2Jred, which are not predicted" in text
        lines = text.splitlines()
        assert all(line.isprintable() and len(line) < 200 for line in lines), lines
        assert sum("left out" in line for line in lines) == 17
        assert "other calls, which" in text


def test_the_reason_of_a_call_without_a_prediction_is_printed(tmp_path):
    content = kineto([("", 0.0, 1000.0, 0), ("all_reduce", 100.0, 400.0, 64 * MIB)] * 2, 8)
    content["traceEvents"][3]["args"] |= {"Collective name": "alltoall"}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(content))
    text = towpath_command("job", str(path), "--machine", "mi300x").stdout
    assert (
        "missing: 1 calls on mi300x, 8 GPUs on 1 host keep their traced time (all_to_all: " in text
    )


def test_a_shortened_list_of_ranks_has_a_first_rank_and_a_stride(tmp_path):
    path = tmp_path / "trace.json"
    content = kineto(STEP[:2], 16)
    content["traceEvents"][1]["args"] |= {
        "Process Group Ranks": "[0, ...]", "Group size": 2, "Out msg nelems": 32 * MIB,
        "Global rank start": 0, "Global rank stride": 8,
    }  # fmt: skip
    path.write_text(json.dumps(content))
    _, found = times(path, "--machine", "dgx-h100")
    between = expected_us("dgx-h100", "all_gather", 64 * MIB, hosts=2, ranks_per_host=1)
    assert found["communication_us"] == pytest.approx(between)


def test_a_dump_has_communication_only(tmp_path):
    path = tmp_path / "trace_rank_0"
    path.write_bytes(dump(8, [entry(n, size=MIB) for n in range(3)]))
    traced, found = times(path, "--machine", "dgx-h100")
    assert traced["communication_us"] == 3000 and traced["exposed_us"] is None
    assert found["groups"][0]["count"] == 3 and found["groups"][0]["size_bytes"] == 4 * MIB


def test_a_job_on_three_machines_has_a_page(tmp_path):
    path, page = tmp_path / "trace.json", tmp_path / "page.html"
    path.write_text(json.dumps(kineto(STEP, 8)))
    names = "dgx-h100,dgx-b200,dgx-a100"
    done = towpath_command("job", str(path), "--machine", names, "--out", str(page))
    assert done.stdout.count("ms of communication") == 4
    assert "Exposed and hidden communication" in page.read_text()


@pytest.mark.long
def test_ten_thousand_gpus_take_longer_than_sixteen_hosts(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(kineto(STEP[:1] + STEP[2:], 8)))
    small = times(path, "--machine", "dgx-h100", "--ranks", "128")[-1]
    large = times(path, "--machine", "dgx-h100", "--ranks", "10000")[-1]
    assert "10000 GPUs on 1250 hosts" in large["where"]
    assert large["communication_us"] > small["communication_us"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"{}", "is neither a Kineto trace nor a Chakra trace"),
        (b'{"traceEvents": []}', "has no collective kernel with its size"),
        (b'{"traceEvents": 1}', "has no list 'traceEvents'"),
        (b"\xff\xff\xff", "is neither JSON nor Chakra's protobuf"),
        (bytes(1_000_000), "is neither JSON nor Chakra's protobuf (byte 2)"),
        (b"\x1f\x8b\x00", "is damaged: gzip cannot unpack it"),
        (json.dumps(chakra_json(NODES[:1])).encode(), "has no collective: it needs nodes"),
        (
            json.dumps(chakra_json([*NODES, (7, "", 1, 0, (8,)), (8, "", 1, 0, (7,))])).encode(),
            "has a cycle of dependencies: 2 nodes cannot start, such as node 7",
        ),
        (
            json.dumps(kineto(STEP, 8)).replace("BFloat16", "Float3").encode(),
            "has a collective with elements of type 'Float3', whose size is not known",
        ),
        (gzip.compress(b"{}", mtime=0)[:-3], "is damaged: gzip cannot unpack it all"),
    ],
)
def test_what_is_not_a_trace_is_refused(tmp_path, content, expected):
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    assert expected in refusal(towpath_command, "job", str(path), "--machine", "dgx-h100")

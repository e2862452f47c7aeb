# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The all-reduce kernels of inference engines: data by pushes, times in a CUDA graph."""

import json
import statistics

import pytest

import towpath
from conftest import refusal, towpath_command
from inside.collectives import ERRORS
from inside.validation import find_table, validate_table
from towpath import load

PUSH = {"algorithm": "one_shot_push", "channels": 4}


@pytest.fixture(scope="module")
def host():
    return load("dgx-h100", hosts=1)


@pytest.mark.parametrize("algorithm", ["one_shot_push", "two_shot_pull_push"])
@pytest.mark.parametrize("protocol", ["Simple", "LL"])
def test_every_byte_that_is_pushed_arrives(host, algorithm, protocol):
    options = {"algorithm": algorithm, "protocol": protocol, "channels": 4}
    result = host.run(size_bytes=[8, 1000, "64K"], **options)
    assert [row.wrong for row in result.rows] == [0, 0, 0]


@pytest.mark.parametrize("algorithm", ["one_shot_push", "two_shot_pull_push"])
def test_they_are_right_in_every_order(algorithm):
    line = ("verify", "all_reduce", "--ranks", "4", "--algorithm", algorithm, "--channels", "2")
    assert "correct" in towpath_command(*line).stdout


def test_calls_in_a_row_do_not_overwrite_data_that_is_still_polled():
    result = towpath.run_live(ranks=3, size_bytes="4K", iterations=40, **PUSH)
    assert result.rows[0].wrong == 0


def test_a_push_has_no_barrier_and_polls_the_data_itself(host):
    cost, wire = host.spec.gpu_cost, host.spec.link_types["nvlink"].latency_ns.value
    [row] = host.run(size_bytes=8, data=False, launch="graph", **PUSH).rows
    one_way_ns = cost.direct_overhead_ns.value + 2 * wire + cost.ll.receive_overhead_ns.value
    least_us = (cost.launch_in_graph_ns.value + one_way_ns) / 1e3
    assert least_us < row.time_us < least_us + cost.kernel.memory_latency_ns.value / 1e3


ROWS = [
    ("h100_sxm,vllm,8,8192", "custom_1stage"),
    ("h100_sxm,vllm,8,131072", "symm_multimem"),
    ("h100_sxm,sglang,2,1048576", "sglang_push"),
    ("h100_sxm,sglang,2,2097152", "sglang_pull"),
    ("h100_sxm,sglang,8,131072", "sglang_two_shot"),
    ("b200_sxm,sglang,8,262144", "sglang_push"),
    ("b200_sxm,sglang,8,16777216", "nccl"),
    ("h100_sxm,trtllm,8,131072", "lamport_one_shot"),
    ("b200_sxm,trtllm,8,1048576", "sync_two_shot"),
    ("b200_sxm,trtllm,2,8388608", "nccl"),
]


def test_each_engine_has_its_own_kernel_at_a_size(tmp_path):
    path = tmp_path / "table.csv"
    lines = ["machine,engine,gpus,elements,time_us", *(f"{row},5" for row, _ in ROWS)]
    path.write_text("\n".join(lines) + "\n")
    rows = validate_table(path).rows
    assert [row["chosen"] for row in rows] == [name for _, name in ROWS]
    assert all(row["predicted"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("h100_sxm,trtllm,6,128,5", "which kernel trtllm takes on 6 GPUs"),
        ("h100_sxm,triton,8,128,5", "vllm, sglang, trtllm"),
        ("dgx-a100,sglang,8,128,5", "which kernel sglang takes on 8 GPUs of dgx-a100"),
    ],
)
def test_a_kernel_that_is_not_known_is_named(tmp_path, row, words):
    path = tmp_path / "table.csv"
    path.write_text("machine,engine,gpus,elements,time_us\n" + row + "\n")
    [found] = validate_table(path).rows
    assert found["predicted"] is None and words in found["error"]


def crossovers(tmp_path, *line):
    """What `towpath tune engine` prints for 8 GPUs, and the table that it writes."""
    file = tmp_path / "limits.json"
    options = ("--gpus", "8", "--limits", str(file), "--json")
    printed = towpath_command("tune", "engine", *line, *options).stdout
    [result] = json.loads(printed)["results"][0]["gpus"]
    return result["found"], json.loads(file.read_text())


# Between these sizes the other kernel becomes faster in measurements of the three engines.
@pytest.mark.parametrize(
    ("line", "pair", "measured"),
    [
        (("sglang", "--machine", "dgx-h100"), "sglang_push sglang_two_shot", (128, 256)),
        (("sglang", "--machine", "dgx-b200"), "sglang_push sglang_two_shot", (512, 1024)),
        (("vllm", "--machine", "dgx-h100"), "symm_multimem nccl", (32 << 10, 64 << 10)),
    ],
)
def test_measured_crossovers_are_met_within_a_power_of_two(tmp_path, line, pair, measured):
    found, _ = crossovers(tmp_path, *line)
    [one] = [each for each in found if f"{each['before']} {each['after']}" == pair]
    assert measured[0] / 2 <= one["size_bytes"] / 1024 <= measured[1] * 2
    assert one["low_bytes"] < one["size_bytes"] < one["high_bytes"]


def test_the_tables_have_the_form_of_the_engines(tmp_path):
    found, limits = crossovers(tmp_path, "vllm", "--sizes", "64K:64M")
    assert limits["CUSTOM_ALL_REDUCE_MAX_SIZES"] == {"9.0": {"8": found[0]["size_bytes"]}}
    assert limits["SYMM_MEM_ALL_REDUCE_MAX_SIZES"] == {"9.0": {"8": found[1]["size_bytes"]}}
    found, limits = crossovers(tmp_path, "sglang", "--sizes", "64K:64M")
    push, two_shot = (each["size_bytes"] for each in found)
    mode = {"one_shot_push_threshold": push, "one_shot_pull_threshold": push}
    assert limits == {"THRESHOLD_2_SHOT_MAP": {"8": mode}, "max_pull_size": {"8": two_shot}}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (("nccl",), "choose one of vllm, sglang, trtllm"),
        (("trtllm", "--limits", "x.json"), "the table of trtllm is compiled in"),
        (("vllm", "--gpus", "9"), "--gpus is '9'"),
        (("vllm", "--machine", "dgx-a100"), "which kernel vllm takes on 2 GPUs of dgx-a100"),
    ],
)
def test_an_engine_that_cannot_be_tuned_is_refused_in_one_sentence(line, words):
    assert words in refusal(towpath_command, "tune", "engine", *line)


def test_the_errors_of_kernels_are_those_of_the_shipped_tables():
    tables = ("all_reduce_vllm", "all_reduce_sglang", "all_reduce_trtllm")
    rows = [
        row for name in tables for row in validate_table(find_table(f"gpu_collectives/{name}")).rows
    ]
    for name in {row["chosen"] for row in rows} - {"custom_2stage", "symm_two_shot"}:
        errors = [abs(row["error_pct"]) / 100 for row in rows if row["chosen"] == name]
        assert statistics.median(errors) == pytest.approx(ERRORS[name], abs=0.02), name

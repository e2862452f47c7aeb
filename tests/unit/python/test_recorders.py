# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The calls of a run in the forms of PyTorch's flight recorder and of NCCL Inspector."""

import importlib.util
import json
import pickle
import subprocess
import sys

import pytest

import towpath
from conftest import refusal, towpath_command
from doctor_answers import answer, causes

SIZES = ["64K", "64M"]


@pytest.fixture(scope="module")
def result():
    return towpath.load("dgx-h100", hosts=2).expect("all_gather", size_bytes=SIZES)


def test_dumps_have_a_file_per_rank_with_the_calls(result, tmp_path):
    result.flight_recorder(tmp_path / "dumps")
    files = sorted((tmp_path / "dumps").iterdir())
    assert {file.name for file in files} == {f"nccl_trace_rank_{rank}" for rank in range(16)}
    dump = pickle.loads((tmp_path / "dumps" / "nccl_trace_rank_3").read_bytes())
    assert dump["rank"] == 3 and dump["pg_config"]["0"]["ranks"] == str(list(range(16)))
    times = [each.time_us for each in result.measurements]
    assert [entry["duration_ms"] for entry in dump["entries"]] == [t / 1e3 for t in times]
    first = dump["entries"][0]
    assert first["profiling_name"] == "nccl:_all_gather_base"
    assert first["input_sizes"] == [[1024]] and first["output_sizes"] == [[16384]]


def test_a_dump_that_does_not_fit_is_named(result, tmp_path):
    full = tmp_path / "nccl_trace_rank_3"
    full.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        result.flight_recorder(tmp_path)
    assert caught.value.filename == str(full)


def test_the_doctor_reads_its_own_dumps(result, tmp_path):
    result.flight_recorder(tmp_path)
    found = answer(*tmp_path.iterdir())
    assert found.formats == ["PyTorch flight recorder"] and causes(found) == []
    assert found.facts["flight recorder"].startswith("16 dumps of ")


def test_a_job_has_the_times_of_its_dump(result, tmp_path):
    result.flight_recorder(tmp_path)
    line = ("job", str(tmp_path / "nccl_trace_rank_0"), "--machine", "dgx-h100", "--json")
    traced, predicted = json.loads(towpath_command(*line).stdout)["results"][0]["times"]
    assert traced["communication_us"] == pytest.approx(predicted["communication_us"])
    assert {group["size_bytes"] for group in traced["groups"]} == {1 << 16, 1 << 26}


def test_the_doctor_finds_records_of_the_inspector_as_expected(result, tmp_path):
    result.inspector(tmp_path / "calls.jsonl")
    found = answer(tmp_path / "calls.jsonl", machine="dgx-h100")
    assert causes(found) == [] and {row["size_bytes"] for row in found.rows} == {1 << 16, 1 << 26}
    assert all(row["ratio"] == pytest.approx(1) for row in found.rows)


def test_equal_runs_write_equal_files(result, tmp_path):
    for name in ("one", "two"):
        result.flight_recorder(tmp_path / name)
    one, two = ((tmp_path / name / "nccl_trace_rank_0").read_bytes() for name in ("one", "two"))
    assert one == two


def test_a_live_run_writes_both_forms(tmp_path):
    dumps, lines = tmp_path / "dumps", tmp_path / "calls.jsonl"
    words = ("--live", "2", "--sizes", "4K", "--flight-recorder", str(dumps))
    towpath_command("run", "all_reduce", *words, "--inspector", str(lines))
    found = answer(*dumps.iterdir(), lines)
    assert causes(found) == [] and len(list(dumps.iterdir())) == 2
    record = json.loads(lines.read_text().splitlines()[0])
    assert record["coll_perf"]["coll_msg_size_bytes"] == 4096
    assert record["header"]["n_ranks"] == 2


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    line = ("run", "all_reduce", "--machine", "ring", "--sizes", "4K", "--flight-recorder")
    assert "it is not a directory" in refusal(towpath_command, *line, str(tmp_path / "file"))
    assert "there is no directory" in refusal(towpath_command, *line, str(tmp_path / "a" / "b"))


@pytest.mark.slow
def test_torchs_own_viewer_reads_the_dumps(result, tmp_path):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    result.flight_recorder(tmp_path)
    viewer = "torch.distributed.flight_recorder.fr_trace"
    command = [sys.executable, "-m", viewer, str(tmp_path), "-p", "nccl_trace_rank_"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath job` on traces that other projects publish.

TOWPATH_PUBLIC_TRACES names a folder with some of them:
- nccl_data.json.gz, a Kineto trace of AlexNet on 2 A100: tests/data/nccl_parser_config of
  github.com/facebookresearch/HolisticTraceAnalysis
- resnet_act_checkpoint.json.gz and eager_trace.json.gz, Kineto traces of 8 MI300X and of 8 B200:
  tests/traces/mi300 and tests/traces/b200 of github.com/AMD-AGI/TraceLens
- all_reduce.0.et: examples/workload/microbenchmarks/all_reduce/8npus_1MB of
  github.com/astra-sim/astra-sim
- chakra.0.et: tests/data/feeder_tests_trace.tar.gz of github.com/mlcommons/chakra
"""

import json
import os
from pathlib import Path

import pytest

from conftest import refusal, towpath_command

pytestmark = pytest.mark.slow


def trace(name):
    folder = os.environ.get("TOWPATH_PUBLIC_TRACES")
    if folder is None or not (Path(folder) / name).is_file():
        pytest.skip(f"TOWPATH_PUBLIC_TRACES names no folder with {name}")
    return str(Path(folder) / name)


def test_a_kineto_trace_has_its_collectives_and_their_times():
    line = ("job", trace("nccl_data.json.gz"), "--machine", "dgx-a100", "--json")
    found = json.loads(towpath_command(*line).stdout)["results"][0]
    assert found["trace"] == "Kineto trace" and found["ranks"] == 2 and found["left_out"] == {}
    traced, predicted = found["times"]
    assert sum(group["count"] for group in traced["groups"]) == 21
    assert traced["communication_us"] == pytest.approx(46_877, rel=1e-3)
    assert traced["exposed_us"] < traced["communication_us"]
    # Traced all-reduces of 8 to 30 MiB take the same time, because the ranks wait for each other.
    reduces = {
        group["size_bytes"]: group["total_us"] / group["count"]
        for group in traced["groups"]
        if group["collective"] == "all_reduce"
    }
    assert max(reduces) > 3.5 * min(reduces)
    assert reduces[max(reduces)] < 1.1 * reduces[8_196_000]
    # The prediction has no wait, so the step becomes shorter by the exposed part.
    assert predicted["communication_us"] < 0.1 * traced["communication_us"]
    saved = traced["step_us"] - predicted["step_us"]
    assert saved == pytest.approx(traced["exposed_us"] - predicted["exposed_us"])


def test_a_job_of_eight_gpus_is_predicted_on_three_machines():
    machines = "mi300x,dgx-b200,dgx-h100"
    line = ("job", trace("resnet_act_checkpoint.json.gz"), "--machine", machines, "--json")
    found = json.loads(towpath_command(*line).stdout)["results"][0]
    assert found["ranks"] == 8
    assert found["left_out"] == {"kernels of NCCL without their size": 5}
    traced, *predicted = found["times"]
    assert traced["communication_us"] == pytest.approx(47_200, rel=1e-3)
    assert traced["exposed_us"] == pytest.approx(35_040, rel=1e-3)
    assert len(predicted) == 3 and not any(each["missing"] for each in predicted)
    for each in predicted:
        # The ranks of this step wait for each other in both all-reduces.
        assert each["communication_us"] < 0.02 * traced["communication_us"]
        saved = traced["step_us"] - each["step_us"]
        assert saved == pytest.approx(traced["exposed_us"] - each["exposed_us"])


def test_an_all_gather_without_a_wait_is_near_its_prediction():
    line = ("job", trace("eager_trace.json.gz"), "--machine", "dgx-b200", "--json")
    found = json.loads(towpath_command(*line).stdout)["results"][0]
    (traced,), (predicted,) = (each["groups"] for each in found["times"])
    assert (traced["collective"], traced["size_bytes"], traced["ranks"]) == (
        "all_gather", 402_176, 8,
    )  # fmt: skip
    assert traced["total_us"] == pytest.approx(21.953)
    # One call without repetition, 26 % longer than predicted.
    assert predicted["total_us"] == pytest.approx(traced["total_us"], rel=0.3)


def test_an_example_of_astra_sim_is_read():
    line = ("job", trace("all_reduce.0.et"), "--ranks", "8", "--machine", "dgx-h100", "--json")
    (found,) = json.loads(towpath_command(*line).stdout)["results"][0]["times"]
    (group,) = found["groups"]
    assert (group["collective"], group["size_bytes"], group["count"]) == ("all_reduce", 1 << 20, 1)


def test_a_chakra_trace_with_a_cycle_is_refused():
    line = ("job", trace("chakra.0.et"), "--machine", "dgx-a100", "--ranks", "2")
    assert "has a cycle of dependencies: 2283 nodes cannot start, such as node 3317" in refusal(
        towpath_command, *line
    )

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A thousand GPUs fit into a small computer. How fast is in benchmarks/collective."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, resource
from inside.collectives import Call, GpuPlace, simulated
from inside.machines import catalogue
from inside.schedules import ScheduleSource
spec = catalogue.load("dgx-h100", ranks=1024)
source = ScheduleSource(collective="all_reduce", ranks=1024, channels=8, hosts=128)
place = GpuPlace(spec.build())
outcome = simulated.invoke(
    place, Call(source.schedule()), 64 << 20, in_place=False, with_data=False)
peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"time_us": outcome.time_us, "peak_bytes": peak_bytes}))
"""


@pytest.mark.long
def test_a_ring_over_1024_gpus_needs_less_than_2_gib():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    result = json.loads(done.stdout)["results"][0]
    assert result["peak_bytes"] < 2 << 30
    # 2046 steps of at least a LL-free NVLink hop each cannot take less than a millisecond.
    assert result["time_us"] > 1_000

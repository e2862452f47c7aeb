# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath job` on many hosts: extrapolated times beside simulated ones."""

import json

import pytest

import towpath
from conftest import towpath_command
from inside.operators import EXTRAPOLATION_ERROR_PCT
from job_traces import kineto

pytestmark = pytest.mark.slow
MIB = 1 << 20


def predicted_us(folder, collective, size, ranks):
    path = folder / "trace.json"
    path.write_text(json.dumps(kineto([("", 0.0, 10.0, 0), (collective, 0.0, 10.0, size)], ranks)))
    text = towpath_command("job", str(path), "--machine", "dgx-h100", "--json").stdout
    found = json.loads(text)["results"][0]["times"][-1]
    assert found["extrapolated"] == 1
    return found["communication_us"]


def errors_pct(folder, calls):
    """The differences at 24 and 32 hosts, by call."""
    found = {}
    for collective, size in calls:
        for hosts in (24, 32):
            simulated = towpath.load("dgx-h100", hosts=hosts).run(
                collective, size_bytes=size, library="nccl", data=False
            )
            predicted = predicted_us(folder, collective, size, 8 * hosts)
            found[collective, size, hosts] = 100 * (predicted / simulated.rows[0].time_us - 1)
    return found


def test_extrapolated_times_are_near_simulated_ones(tmp_path):
    calls = [(name, size) for name in ("all_gather", "reduce_scatter") for size in (MIB, 64 * MIB)]
    errors = errors_pct(tmp_path, [*calls, ("all_reduce", MIB)])
    print({call: f"{error:+.1f} %" for call, error in errors.items()})
    assert all(abs(error) <= EXTRAPOLATION_ERROR_PCT for error in errors.values()), errors
    # The printed error is not larger than necessary.
    assert max(map(abs, errors.values())) > 0.8 * EXTRAPOLATION_ERROR_PCT


@pytest.mark.long
def test_extrapolated_times_of_large_arrays_are_near_simulated_ones(tmp_path):
    calls = [(name, 1 << 30) for name in ("all_reduce", "all_gather", "reduce_scatter")]
    errors = errors_pct(tmp_path, [*calls, ("all_reduce", 64 * MIB)])
    assert all(abs(error) <= EXTRAPOLATION_ERROR_PCT for error in errors.values()), errors


def test_the_error_of_the_extrapolation_is_printed(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(kineto([("all_gather", 0.0, 10.0, MIB)], 8)))
    line = ("job", str(path), "--machine", "dgx-h100", "--ranks", "10000")
    assert "differed from simulations by up to 11 %" in towpath_command(*line).stdout

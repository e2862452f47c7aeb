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
FEW_HOSTS_PCT = 2.2  # the largest difference on up to 64 hosts


def predicted(folder, collective, size, ranks):
    """The predicted time in microseconds, and the number of extrapolated kinds of calls."""
    path = folder / "trace.json"
    path.write_text(json.dumps(kineto([("", 0.0, 10.0, 0), (collective, 0.0, 10.0, size)], ranks)))
    text = towpath_command("job", str(path), "--machine", "dgx-h100", "--json").stdout
    found = json.loads(text)["results"][0]["times"][-1]
    return found["communication_us"], found["extrapolated"]


def errors_pct(folder, calls):
    """The differences of extrapolated from simulated times, by call and number of hosts."""
    found = {}
    for collective, size, hosts in calls:
        # Without a fold, all ranks of a tree are simulated. Equal ranks of a ring are many.
        simulated = towpath.load("dgx-h100", hosts=hosts).run(
            collective, size_bytes=size, library="nccl", data=False, fold=collective != "all_reduce"
        )
        time_us, extrapolated = predicted(folder, collective, size, 8 * hosts)
        assert extrapolated == 1
        found[collective, size, hosts] = 100 * (time_us / simulated.rows[0].time_us - 1)
    print({call: f"{error:+.1f} %" for call, error in found.items()})
    return found


def test_extrapolated_times_are_near_simulated_ones(tmp_path):
    calls = [("all_gather", MIB, hosts) for hosts in (160, 256)]
    calls += [("reduce_scatter", 64 * MIB, 256)]
    calls += [("all_reduce", MIB, 64), ("all_reduce", 64 * MIB, 24)]
    errors = errors_pct(tmp_path, calls)
    assert all(abs(error) <= FEW_HOSTS_PCT for error in errors.values()), errors
    # The limit is not larger than necessary.
    assert max(map(abs, errors.values())) > 0.7 * FEW_HOSTS_PCT


def times_us(hosts, sizes, *options):
    """The times of all-reduces in microseconds that `towpath expect` prints as JSON."""
    text = towpath_command(
        "expect", "all_reduce", "--machine", "dgx-h100", "--hosts", str(hosts), "--sizes", sizes,
        "--json", *options,
    ).stdout  # fmt: skip
    result = json.loads(text)["results"][0]
    assert ("--no-fold" in options) != any("hosts, and differ" in each for each in result["notes"])
    return [row["out_of_place"]["time_us"] for row in result["rows"]]


def test_expected_times_on_many_hosts_follow_from_fewer():
    sizes = "8,128K,8M"
    found = zip(times_us(24, sizes), times_us(24, sizes, "--no-fold"), strict=True)
    errors_pct = [100 * (extrapolated / simulated - 1) for extrapolated, simulated in found]
    assert all(abs(error) <= FEW_HOSTS_PCT for error in errors_pct), errors_pct


@pytest.mark.long
def test_the_printed_error_of_many_hosts_is_the_largest():
    found = zip(times_us(128, "16M,1G"), times_us(128, "16M,1G", "--no-fold"), strict=True)
    errors_pct = [abs(100 * (extrapolated / simulated - 1)) for extrapolated, simulated in found]
    assert 0.9 * EXTRAPOLATION_ERROR_PCT < max(errors_pct) <= EXTRAPOLATION_ERROR_PCT


@pytest.mark.long
def test_extrapolated_times_of_large_arrays_are_near_simulated_ones(tmp_path):
    # NCCL takes LL128 for 4 GiB on 256 hosts, and Simple on the 128 hosts that are simulated.
    calls = [("all_gather", 1 << 30, 256)]
    calls += [("reduce_scatter", size, 256) for size in (1 << 30, 4 << 30)]
    calls += [("all_reduce", 1 << 30, hosts) for hosts in (24, 32)]
    errors = errors_pct(tmp_path, calls)
    assert all(abs(error) <= FEW_HOSTS_PCT for error in errors.values()), errors


@pytest.mark.parametrize(("collective", "size"), [("all_gather", MIB), ("reduce_scatter", 1 << 30)])
def test_rings_on_up_to_128_hosts_are_simulated(tmp_path, collective, size):
    """NCCL takes fewer channels and another protocol there than on 16 hosts."""
    simulated = towpath.load("dgx-h100", hosts=32).run(
        collective, size_bytes=size, library="nccl", data=False
    )
    expected = pytest.approx(simulated.rows[0].time_us)
    assert predicted(tmp_path, collective, size, 8 * 32) == (expected, 0)


def test_the_error_of_the_extrapolation_is_printed(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(kineto([("all_gather", 0.0, 10.0, MIB)], 8)))
    line = ("job", str(path), "--machine", "dgx-h100", "--ranks", "10000")
    assert "such times differ from simulations by up to 6.6 %" in towpath_command(*line).stdout

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Each element of NCCL's collectives on virtual GPUs against the exact result, in three releases.
`$TOWPATH_NCCL_SOURCE` names NCCL's repository, which these tests need."""

from itertools import product

import pytest

from conftest import run_with_nccl

pytestmark = pytest.mark.long
OLD, RELEASE, NEWEST = "2.21.5", "2.27.5", "2.30.7"
COUNTS = "0,1,7,1024,10007,262144"
SMALL_COUNTS = "1,7,1024"
COLLECTIVES = "all_reduce,all_gather,reduce_scatter,broadcast,reduce,sendrecv,alltoall"
REDUCTIONS = "all_reduce,reduce_scatter,reduce"
TYPES = "int8,uint8,int32,uint32,int64,uint64,half,bfloat16,float,double"
WAYS = [*product(("Ring", "Tree"), ("LL", "LL128", "Simple")), ("NVLS", "Simple")]


def run(program, release, *words, **options):
    return run_with_nccl(program, *words, release=release, **options)


def last_line(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(("algorithm", "protocol"), WAYS)
@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
@pytest.mark.parametrize("release", [OLD, RELEASE, NEWEST])
def test_all_reduce_is_exact(compiled, release, ranks, algorithm, protocol):
    if algorithm == "NVLS" and ranks < 3:
        pytest.skip("NCCL uses no switch between two ranks")
    words = (str(ranks), "all_reduce", "float", "sum", "out,in,shifted", COUNTS)
    done = run(
        compiled("sweep", release), release, *words, NCCL_ALGO=algorithm, NCCL_PROTO=protocol
    )
    assert last_line(done) == "18 cases, 0 wrong"


@pytest.mark.parametrize("way", [*WAYS[:-1], ("NVLSTree", "Simple")], ids="-".join)
@pytest.mark.parametrize("per_host", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("release", [OLD, RELEASE, NEWEST])
def test_all_reduce_on_two_hosts_is_exact(compiled, tmp_path, release, per_host, way):
    algorithm, protocol = way
    if algorithm == "NVLSTree" and per_host < 3:
        pytest.skip("NCCL uses no switch between two ranks")
    options = ("--real-time", "--ranks-per-host", str(per_host), "--processes-per-host", "1")
    words = (str(2 * per_host), "all_reduce", "float", "sum", "out,in,shifted", COUNTS)
    done = run(
        compiled("sweep", release), release, *words, hosts=2, options=options,
        NCCL_TEST_ID=tmp_path / "id", NCCL_ALGO=algorithm, NCCL_PROTO=protocol,
    )  # fmt: skip
    assert last_line(done) == "18 cases, 0 wrong"


@pytest.mark.parametrize("type_name", [*TYPES.split(","), "e4m3", "e5m2"])
def test_all_collectives_are_exact_for_a_type(compiled, type_name):
    program = compiled("sweep", RELEASE)
    words = (type_name, "sum", "out,in,shifted", SMALL_COUNTS)
    # Five collectives in three places, two of which have no result in place.
    assert last_line(run(program, RELEASE, "4", COLLECTIVES, *words)) == "57 cases, 0 wrong"
    words = (type_name, "prod,min,max,avg,premulsum", "out", SMALL_COUNTS)
    assert last_line(run(program, RELEASE, "4", REDUCTIONS, *words)) == "45 cases, 0 wrong"


def test_the_mean_of_one_rank_loses_elements_in_older_releases(compiled):
    """github.com/NVIDIA/nccl/issues/1950, which 2.29.7 mends."""
    words = ("1", "all_reduce", "bfloat16", "avg", "out", "10001")
    done = run(compiled("sweep", RELEASE), RELEASE, *words)
    assert done.stdout == (
        "all_reduce bfloat16 avg out 10001: 1 elements are wrong\n1 cases, 1 wrong\n"
    )
    assert last_line(run(compiled("sweep", NEWEST), NEWEST, *words)) == "1 cases, 0 wrong"


@pytest.mark.parametrize("release", [RELEASE, NEWEST])
def test_symmetric_memory_is_exact(compiled, release):
    done = run(compiled("symmetric", release), release, "4", "1000")
    assert last_line(done) == "reduce_scatter: 0 wrong"
    assert done.stdout.count(": 0 wrong") == 3


def test_gathers_to_different_roots_are_reported(compiled):
    program = compiled("mistakes", NEWEST)
    assert last_line(run(program, NEWEST, "roots", "corrected")) == "right"
    done = run(program, NEWEST, "roots")
    assert done.returncode == 70, done.stdout + done.stderr
    for root in (0, 1):
        assert f"Gather of {1 << 19} float32 to rank {root}" in done.stderr

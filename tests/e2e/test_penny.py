# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The library of all-reduce kernels: right data, live and simulated; its times beside the model."""

import ctypes

import pytest

import towpath
from conftest import ROOT, towpath_command
from inside.kernels import ALL_REDUCES, EXCHANGES
from inside.machines import with_settings
from inside.studies import penny

SOURCE = ROOT / "penny" / "bench.cu"
FLAGS = [f"-I{ROOT / 'penny' / 'include'}"]
TYPES = ["half", "bfloat16", "float"]
MACHINE = "dgx-h100"


@pytest.fixture(scope="module")
def bench():
    return towpath.kernel(SOURCE, flags=FLAGS)


def words(kernel: str, type_name: str, size_bytes: int, rings: int, calls: int) -> list[str]:
    return [kernel, type_name, str(size_bytes), "64", "32", str(rings), str(calls)]


@pytest.mark.parametrize("pes", [2, pytest.param(8, marks=pytest.mark.long)])
def test_every_kernel_is_right_in_simulated_time(bench, pes):
    for place, kernel in enumerate((*EXCHANGES, *ALL_REDUCES)):
        # A size that the blocks do not divide, and two calls on the same signals.
        chosen = words(kernel, TYPES[place % 3], 10_000, 1, 2)
        assert bench.run(MACHINE, pes, arguments=chosen).status == 0, chosen


def test_kernels_over_two_hosts_are_right(bench):
    for kernel, rings in (("exchange_vectorised", 1), ("vectorised_ring", 8), ("simple_ring", 2),
                          ("one_shot", 1)):  # fmt: skip
        chosen = words(kernel, "half", 36_000, rings, 1)
        assert bench.run(MACHINE, 16, arguments=chosen).status == 0, chosen


@pytest.mark.parametrize("hosts", [1, 2, 3, pytest.param(5, marks=pytest.mark.long)])
def test_alternating_rings_close_for_any_number_of_hosts(bench, hosts):
    chosen = words("vectorised_ring", "float", 20_480, 8, 1)
    assert bench.run(MACHINE, 8 * hosts, arguments=chosen).status == 0


@pytest.mark.parametrize("pes", [2, pytest.param(4, marks=pytest.mark.long)])
def test_every_kernel_is_right_between_processes(bench, pes):
    for place, kernel in enumerate((*EXCHANGES, *ALL_REDUCES)):
        chosen = words(kernel, TYPES[(place + pes) % 3], 10_000, 1, 2)
        assert bench.run_live(pes, arguments=chosen).status == 0, chosen


@pytest.mark.long
@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("kernel", [*EXCHANGES, *ALL_REDUCES])
def test_a_kernel_is_right_over_the_sizes_of_the_document(bench, kernel, type_name):
    for pes in (2, 8):
        for threads in (32, 128, 512, 1024):
            for packet_bytes in (16, 64, 256, 2048):
                size_bytes = 4 * pes * threads * packet_bytes
                chosen = [kernel, type_name, str(size_bytes), str(threads), str(packet_bytes), "1"]
                assert bench.run(MACHINE, pes, arguments=chosen).status == 0, chosen


# Beside the model, which waits in another way: it lets a kernel end when its stores are
# acknowledged, and has no barrier before a put.
AGREEMENT = [
    (penny.Point("exchange_separate_signal", 1 << 17, 256, 16, 1, 2), 0.01),
    (penny.Point("exchange_vectorised", 1 << 17, 256, 16, 1, 2), 0.01),
    (penny.Point("vectorised_ring", 1 << 16, 256, 16, 1, 8), 0.05),
    (penny.Point("simple_ring", 1 << 16, 256, 16, 1, 8), 0.05),
]


@pytest.mark.parametrize(("point", "tolerance"), AGREEMENT)
def test_a_kernel_takes_the_time_of_the_model(point, tolerance):
    spec = towpath.load(MACHINE).spec
    model_us = penny.model_us(spec, point)
    assert model_us is not None
    assert penny.run(spec, point) == pytest.approx(model_us, rel=tolerance)


def test_one_shot_is_faster_than_a_ring_for_small_arrays_over_two_hosts():
    # Only while one thread of a block asks for the end of its puts: 16 KiB take 34 us, not 177.
    by_gpus = ["gpu_cost.kernel.gpu_initiated_adapters=true"]
    spec = with_settings(towpath.load(MACHINE).spec, by_gpus)
    one_shot = penny.run(spec, penny.Point("one_shot", 1 << 14, 512, 16, 1, 16))
    ring = penny.run(spec, penny.Point("vectorised_ring", 1 << 14, 64, 16, 1, 16))
    assert 2 * one_shot < ring


def test_the_command_sweeps_blocks_and_packets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = towpath_command(
        "bench", "penny", "--kernels", "one_shot,two_shot", "--sizes", "64K", "--block-size",
        "64,128", "--packet-size", "16", "--out", str(tmp_path),
    )  # fmt: skip
    assert "one_shot" in done.output
    assert 'class="plot"' in (tmp_path / "study.html").read_text(encoding="utf-8")
    with pytest.raises(towpath.ConfigError, match="no kernel 'tree'; choose one of"):
        towpath_command("bench", "penny", "--kernels", "tree")


def reduce_on_a_rank(communicator, count: int) -> str:
    import torch

    from towpath import penny as library

    library.begin(f"penny-test-{communicator.ranks}-{count}", communicator.rank,
                  communicator.ranks, capacity_bytes=4096)  # fmt: skip
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        own = torch.arange(count) % 7
        for algorithm in (None, *library.ALGORITHMS):
            tensor = (own + communicator.rank).to(dtype)
            library.all_reduce(tensor, algorithm=algorithm, threads=32, blocks=2)
            expected = communicator.ranks * own + sum(range(communicator.ranks))
            assert torch.equal(tensor, expected.to(dtype)), (dtype, algorithm)
    with pytest.raises(towpath.ConfigError, match="not contiguous"):
        library.all_reduce(torch.zeros(4, 4).t())
    library.end()
    return "right"


@pytest.mark.parametrize("count", [3, 1000, 5000])
def test_tensors_of_the_cpu_are_reduced(count):
    pytest.importorskip("torch")
    assert towpath.launch(reduce_on_a_rank, 2, arguments=(count,)) == ["right", "right"]


def test_a_library_says_what_is_wrong():
    pytest.importorskip("torch")
    from inside.penny import checked_call

    class Refusing:
        def call(self, function, arguments):
            text = f"{function} is refused".encode()
            ctypes.memmove(arguments[-1], text, len(text))

    with pytest.raises(towpath.ConfigError, match="penny_end is refused"):
        checked_call(Refusing(), "penny_end")

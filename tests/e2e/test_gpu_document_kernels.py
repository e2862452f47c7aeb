# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The kernels of the GPU document, cut out of it and compiled as they are, give the right data."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import towpath
from conftest import ROOT
from inside.kernels import nvshmem_home
from inside.reproduce import CannotRun, document, worklog_kernels, worklog_times

KERNELS = [
    "plain_exchange", "signal_exchange", "fused_exchange", "ring", "vectorised_ring", "simple_ring",
]  # fmt: skip
TYPES = ["half", "float", "bfloat16"]
# Threads, bytes of each, blocks, calls: from a few KiB to some MiB a PE.
SHAPES = [(32, 16, 1, 2), (64, 32, 4, 2), (256, 64, 8, 1)]


@pytest.fixture(scope="module")
def text() -> str:
    try:
        return document("003")
    except CannotRun as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def include(text, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("include")
    (folder / "document_kernels.h").write_text(worklog_kernels.header(text), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def kernel(include):
    return towpath.kernel(worklog_times.PROGRAM, flags=[f"-I{include}"])


def arguments(name: str, type_name: str, shape: tuple[int, int, int, int]) -> list[str]:
    threads, packet_bytes, blocks, calls = shape
    return [name, type_name, str(threads), str(packet_bytes), str(blocks), str(calls)]


@pytest.mark.parametrize("pes", [2, 8, 16])
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_right_in_simulated_time(kernel, name, pes):
    for type_name, shape in zip(TYPES, SHAPES, strict=True):
        result = kernel.run("dgx-h100", pes, arguments=arguments(name, type_name, shape))
        assert result.status == 0, (name, type_name, shape)
        assert result.time_us > 0


def test_alternating_rings_are_right_over_two_nodes(kernel):
    chosen = [*arguments("alternating_rings", "half", (64, 16, 2, 2)), "8"]
    assert kernel.run("dgx-h100", 16, arguments=chosen).status == 0


# Each kernel once; the long test has all of them.
@pytest.mark.parametrize(("pes", "first"), [(2, 0), (4, 1), (8, 2)])
def test_the_kernels_are_right_between_processes(kernel, pes, first):
    for i, name in list(enumerate(KERNELS))[first::3]:
        chosen = arguments(name, TYPES[(i + pes) % 3], SHAPES[i % 2])
        assert kernel.run_live(pes, arguments=chosen).status == 0, chosen


@pytest.mark.long
@pytest.mark.parametrize("pes", [2, 4, 8])
def test_every_kernel_is_right_between_processes(kernel, pes):
    for i, name in enumerate(KERNELS):
        chosen = arguments(name, TYPES[(i + pes) % 3], SHAPES[i % 3])
        assert kernel.run_live(pes, arguments=chosen).status == 0, chosen


def test_the_same_run_takes_the_same_time(kernel):
    chosen = arguments("vectorised_ring", "half", SHAPES[1])
    first = kernel.run("dgx-h100", 4, arguments=chosen)
    assert kernel.run("dgx-h100", 4, arguments=chosen) == first


def test_a_waiting_exchange_is_slower_by_its_fences(kernel):
    shape = (1024, 16, 64, 1)
    plain = kernel.run("dgx-h100", 2, arguments=arguments("plain_exchange", "half", shape))
    signal = kernel.run("dgx-h100", 2, arguments=arguments("signal_exchange", "half", shape))
    assert signal.time_us > plain.time_us


@pytest.mark.long
@pytest.mark.parametrize("pes", [2, 8, 16])
@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_right_over_the_sizes_of_the_document(kernel, name, type_name, pes):
    for threads in (32, 128, 512, 1024):
        for packet_bytes in (16, 64, 256, 2048):
            chosen = arguments(name, type_name, (threads, packet_bytes, 4, 1))
            assert kernel.run("dgx-h100", pes, arguments=chosen).status == 0, chosen


@pytest.mark.long
def test_the_documents_figures_come_out_of_its_kernels(text, tmp_path):
    kernels = worklog_times.Kernels(text, tmp_path)
    for figure in worklog_times.exchange_figures(kernels):
        assert figure.ratio == pytest.approx(1, abs=0.05), figure
    for comparison in worklog_times.ring_comparisons(kernels):
        assert comparison.holds, comparison


@pytest.mark.long
def test_the_documents_figures_between_nodes_come_out_of_its_kernels(text, tmp_path):
    kernels = worklog_times.Kernels(text, tmp_path)
    for comparison in worklog_times.node_comparisons(kernels):
        assert comparison.holds, comparison


def test_nvcc_compiles_and_links_the_kernels(include, tmp_path):
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not installed")
    library = nvshmem_home()
    if library is None:
        pytest.skip("nvidia-nvshmem-cu13 of PyPI is not installed (or $NVSHMEM_HOME is not set)")
    made = subprocess.run(
        [str(ROOT / "tools" / "gpu_build.sh"), str(worklog_times.PROGRAM),
         str(tmp_path / "document_kernels"), f"-I{include}"],
        capture_output=True, text=True, timeout=600,
        env={**os.environ, "NVSHMEM_HOME": str(library)},
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "document_kernels.dlink.o").stat().st_size > 0

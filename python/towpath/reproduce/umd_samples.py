# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 002: its samples for tt-umd as printed, and tt-umd's own microbenchmarks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from towpath.reproduce.documents import checkout, document, file_of
from towpath.reproduce.guide_program import compile_host
from towpath.specs import catalogue
from towpath.studies.pcie_document import MB, TABLES

Result = dict[str, Any]
_STAND_INS = Path(__file__).parent / "programs" / "umd"
_HEAD = """
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <vector>
#include "gtest/gtest.h"
#include "umd/device/cluster.hpp"
using namespace tt;
using namespace tt::umd;
constexpr std::size_t MB = 1 << 20;
std::vector<std::uint8_t> bytes(4096, 7), back(4096);
const int chip = 0;
const std::size_t size = bytes.size(), offset = 0;
const std::uint64_t address = 0x1000;
const void* const data = bytes.data();
"""
_CLUSTER = "auto cluster = std::make_unique<Cluster>();\n"
_CORE = "const CoreCoord core = cluster->get_cores(CoreType::TENSIX)[0];\n"
_TENSIX = "const CoreCoord core{{1, 2}, CoreType::TENSIX};\n"
# The buffer's bytes before and after: the sample's engine has moved them.
_ARRIVED = """
std::fill_n(static_cast<std::uint8_t*>(buffer->get_buffer_va()), size, 7);
buffer->dma_write_to_device(offset, size, core, address);
cluster.read_from_device(back.data(), chip, core, address, size);
std::cout << "arrived " << (back == bytes) << "\\n";
"""
_CHECK = """
cluster->read_from_device(back.data(), chip, core, address, size);
std::cout << "same " << (back == bytes) << "\\n";
"""
# Around each sample: the lines before it, the lines after it, and a slip with its correction.
_AROUND = (
    (_CLUSTER + _CORE, _CHECK, None),
    (_CLUSTER + _CORE, _CHECK, None),
    (_TENSIX, _ARRIVED, ("cluster->", "cluster.")),
    None,  # only comments
    (_CLUSTER, "static_cast<void>(eth_core);\n", None),
    (_CLUSTER, 'std::cout << "cores " << eth_cores.size() << "\\n";\n', None),
    ("", "static_cast<void>(cluster);\n", None),
    (_TENSIX, _ARRIVED, None),
)


def _run(folder: Path, program: str, arguments: tuple[str, ...] = (), **variables: str) -> str:
    ran = _start(folder, program, arguments, **variables)
    if ran.returncode != 0 or "error:" in ran.stdout:
        said = (ran.stdout + ran.stderr).strip().splitlines()
        raise RuntimeError(f"{program} ended with {ran.returncode}: {said[-1] if said else ''}")
    return ran.stdout


def _start(
    folder: Path, program: str, arguments: tuple[str, ...], **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [f"./{program}", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, **variables},
    )


def samples() -> Result:
    """The samples of the document: compiled as printed where no slip prevents it, and run."""
    blocks = re.findall(r"```cpp\n(.*?)```", document("002"), re.DOTALL)
    if len(blocks) != len(_AROUND):
        raise ValueError(f"the text has {len(blocks)} samples, not {len(_AROUND)}")
    said: dict[int, str] = {}
    failed: dict[int, str] = {}
    slips = []
    with tempfile.TemporaryDirectory(prefix="towpath-") as name:
        folder = Path(name)
        for number, (block, around) in enumerate(zip(blocks, _AROUND, strict=True)):
            if around is None:
                continue
            before, after, slip = around
            if slip is not None:
                slips.append(f"sample {number + 1}: '{slip[0]}' of an object")
                block = block.replace(*slip)
            source = f"{_HEAD}TEST(Sample, Run) {{\n{before}{block}{after}}}\n"
            (folder / f"sample{number}.cpp").write_text(source, encoding="utf-8")
            error = compile_host(folder, f"sample{number}.cpp", f"sample{number}", _STAND_INS)
            if error:
                failed[number] = error
                continue
            try:
                said[number] = _run(folder, f"sample{number}")
            except RuntimeError as reason:
                failed[number] = str(reason)
        chip = catalogue.load_chip("blackhole").with_masks("tensix=0x1020, dram=0x8, eth=0x3fff")
        (folder / "chip.json").write_text(json.dumps(chip.data()), encoding="utf-8")
        harvested = _run(
            folder,
            "sample5",
            TOWPATH_MACHINE=str(folder / "chip.json"),
            TOWPATH_HOST="blackhole-host",
        )
    reasons = "; ".join(failed.values()) or "; ".join(slips)
    return {
        "compiled": [len(said), f"7 of 8 are code, all but one as printed: {reasons}"],
        "static_window": ["same 1" in said.get(1, ""), said.get(1, reasons).strip()],
        "sysmem_manager": [
            all("arrived 1" in said.get(number, "") for number in (2, 7)),
            "; ".join(said.get(number, reasons).strip() for number in (2, 7)),
        ],
        "get_cores": [
            "cores 14" in said.get(5, "") and "skipped" in harvested,
            f"{said.get(5, reasons).strip()}; {harvested.strip()}",
        ],
    }


# --- tt-umd's microbenchmarks ---------------------------------------------------------------------

_FILES = (
    "tests/microbenchmark/benchmarks/tlb/test_tlb.cpp",
    "tests/microbenchmark/benchmarks/pcie_dma/test_pcie_dma.cpp",
)
_WANTED = {
    "test_tlb": ("MicrobenchmarkTLB.DRAM", "MicrobenchmarkTLB.Tensix"),
    "test_pcie_dma": (
        "MicrobenchmarkPCIeDMA.DRAMZeroCopy",
        "MicrobenchmarkPCIeDMA.TensixZeroCopy",
        "MicrobenchmarkPCIeDMA.TensixMapBufferZeroCopy",
    ),
}


def _without_channels(folder: Path, program: str, wanted: tuple[str, ...]) -> str:
    """The end of benchmarks that open a cluster without memory channels and allocate from them.

    Raises:
        RuntimeError: a benchmark ends in another way.
    """
    ran = _start(folder, program, wanted)
    errors = re.findall(r"^error: (.*)$", ran.stdout, re.MULTILINE)
    reason = "0 host memory channels"
    if ran.returncode != len(wanted) or [reason in error for error in errors] != [True] * len(
        wanted
    ):
        raise RuntimeError(f"{program} ended with {ran.returncode}: {'; '.join(errors)}")
    return f"{len(wanted)} tests of DMA are refused: {errors[0]}"


def benchmarks() -> Result:
    """tt-umd's benchmarks of windows and DMA, compiled unmodified and run in simulated time."""
    umd = checkout("tt-umd")
    rates: dict[tuple[str, str], float] = {}
    ran: list[str] = []
    refused = ""
    with tempfile.TemporaryDirectory(prefix="towpath-") as name:
        folder = Path(name)
        (folder / "common").mkdir()
        utilities = "tests/microbenchmark/common/microbenchmark_utils.hpp"
        (folder / "common" / "microbenchmark_utils.hpp").write_text(
            file_of(umd, utilities), encoding="utf-8"
        )
        for path in _FILES:
            stem = Path(path).stem
            (folder / f"{stem}.cpp").write_text(file_of(umd, path), encoding="utf-8")
            error = compile_host(folder, f"{stem}.cpp", stem, _STAND_INS, folder)
            if error:
                return {"failed": error}
            if stem == "test_pcie_dma":
                refused = _without_channels(folder, stem, _WANTED[stem])
                continue
            text = _run(folder, stem, _WANTED[stem])
            ran += re.findall(r"^test: (.*)$", text, re.MULTILINE)
            for title, row, size, time_ns in re.findall(
                r"^result: (.*?) \| (.*?) \| (.*?) \| (.*)$", text, re.MULTILINE
            ):
                rates[title, row] = float(size) / MB / (float(time_ns) / 1e9)
    errors = []
    for table in TABLES:
        title = "TLB_DRAM" if table.kind == "dram" else "TLB_Tensix"
        kind = "Static" if table.is_static else "Dynamic"
        for cell in table.cells:
            ours = rates[title, f"{kind} TLB, write, {cell.size_bytes} bytes"]
            small_static = table.is_static and table.kind == "dram" and cell.size_bytes <= 4096
            if not small_static:
                errors.append(100 * abs(ours / cell.write_mb_per_s - 1))
    return {
        "tables_worst": [
            max(errors),
            f"{', '.join(ran)}; {refused}; worst of {len(errors)} writes in percent, "
            "without 2 and 4 KB to DRAM through a static window",
        ],
    }

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Files and options for the compilation of the host parts of NCCL and RCCL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from towpath import _core

INSTALLED = Path(_core.__file__).parent
OWN_SOURCE = INSTALLED / "virtual_gpu_source"
_RCCL_FOLDER = OWN_SOURCE / "towpath" / "virtual_gpu" / "rccl"

# The headers that a host program on virtual GPUs includes.
_CUDA_HEADERS = (
    "cuda", "cuda.h", "cudaTypedefs.h", "cuda_bf16.h", "cuda_fp16.h", "cuda_fp8.h",
    "cuda_runtime.h", "cuda_runtime_api.h", "towpath_cuda_driver.h", "towpath_cuda_types.h",
    "towpath_cuda_virtual.h", "towpath_gpu.h", "towpath_narrow_float.h", "towpath_vector_types.h",
)  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """The files, options and generated files of a library.

    Attributes:
        left_out: files of other platforms, separate programs, device code, and code for one network
            card. The weak functions of enhcompat.cc would replace functions of virtual GPUs.
        defines: macros of each file.
        include: a folder of headers that comes first. None: there is none.
        own_left_out: the folder of virtual_gpu that is for the other library. None: there is none.
        generator_words: what the program that writes the tables of kernels gets after its folder.
        generated: the files that it writes for the host.
        without_code: device code, and the functions of a network that GPUs drive.
        macros_left_out: macros that the library's header does not get here.
        optimized: the search of channels, which takes most of the time of a run.
        traced: the file whose trace has the choice at each size, with its time.
    """

    left_out: re.Pattern[str]
    defines: tuple[str, ...]
    include: Path | None = None
    own_left_out: Path | None = None
    generator_words: tuple[str, ...] = ()
    generated: str = "*.cc"
    without_code: re.Pattern[str] = re.compile(
        r"nccl(Symk?)?DevKernel|ncclLaunchOneRank|ncclDevFunc|ncclKernel|[gG]daki|"
        r"ncclGinResetSignals"
    )
    macros_left_out: tuple[str, ...] = ()
    optimized: str = "graph/"
    traced: str = "enqueue.cc"

    @property
    def headers(self) -> list[Path]:
        """Towpath's headers that the library includes: files and folders."""
        own = [INSTALLED / "gpu_include" / name for name in _CUDA_HEADERS]
        return own if self.include is None else [*own, self.include]

    @property
    def text(self) -> str:
        """All of it but the headers, for a digest."""
        words = (
            *self.defines, self.left_out.pattern, *self.generator_words, self.generated,
            *self.macros_left_out, self.optimized, self.traced,
        )  # fmt: skip
        return " ".join(words)

    def own_sources(self) -> list[Path]:
        """The sources that are linked to the library."""
        other = self.own_left_out
        found = sorted(OWN_SOURCE.rglob("*.cpp"))
        return [each for each in found if other is None or not each.is_relative_to(other)]


_NCCL = Recipe(
    left_out=re.compile(
        r"device/|collectives/device/|enhcompat\.cc|ras/client\.cc|param/ncclparam\.cc|"
        r".*windows|.*_stub\.cc|.*gdaki"
    ),
    defines=(
        "TOWPATH_VIRTUAL_GPU", "CUDA_MAJOR=12", "CUDA_MINOR=8", "NCCL_OS_LINUX", "PROFAPI",
        "NCCL_GIN_GDAKI_ENABLE=0", "NCCL_GIN_PROXY_ENABLE=0", "NVTX_DISABLE",
        'NCCL_GIT_BRANCH=""', 'NCCL_GIT_COMMIT_HASH=""',
    ),
    own_left_out=_RCCL_FOLDER,
)  # fmt: skip
_RCCL = Recipe(
    # NVML and GDRCopy are NVIDIA's. alt_rsmi.cc reads the links of GPUs from the kernel driver.
    left_out=re.compile(
        r"device/|clique/|enhcompat\.cc|misc/(nvmlwrap|gdrwrap|cudawrap)\.cc|"
        r"misc/alt_rsmi\.cc|misc/mscclpp/"
    ),
    defines=(
        "TOWPATH_VIRTUAL_GPU", "__HIP_PLATFORM_AMD__", "ROCM_VERSION=60200", "NVTX_NO_IMPL",
        "HIP_UNCACHED_MEMORY",
    ),
    include=_RCCL_FOLDER / "include",
    # Without functions by indirect calls, traces, MSCCL's kernels and a choice of GPUs.
    generator_words=("OFF", "OFF", "OFF", "OFF"),
    generated="host_table.cpp",
    without_code=re.compile(r"nccl(Symk?)?DevKernel|ncclLaunchOneRank|ncclDevFunc|mscclKernel"),
    macros_left_out=("RCCL_FLOAT8",),
)  # fmt: skip


def recipe_of(is_rccl: bool) -> Recipe:
    """The recipe of RCCL or NCCL."""
    return _RCCL if is_rccl else _NCCL

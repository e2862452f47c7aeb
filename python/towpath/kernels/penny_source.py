# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Sources of the library of all-reduce kernels in this package."""

from __future__ import annotations

from pathlib import Path

from towpath.kernels.gpu_kernel import GpuKernel

EXCHANGES = (
    "exchange_plain", "exchange_separate_signal", "exchange_fused_signal", "exchange_vectorised",
)  # fmt: skip
ALL_REDUCES = ("ring", "vectorised_ring", "simple_ring", "one_shot", "two_shot")


def sources() -> Path:
    """The folder with `penny.cu`, `bench.cu` and `include`."""
    from towpath import _core

    return Path(_core.__file__).parent / "penny_source"


def compile_flags() -> list[str]:
    """Compiler flags for sources that include the library."""
    return [f"-I{sources() / 'include'}"]


def every_kernel(type_name: str) -> GpuKernel:
    """All kernels of the library for one type of element, to launch by name.

    Args:
        type_name: "half", "float" or "__nv_bfloat16".
    """
    names = [f"penny::{name}<{type_name}>" for name in (*EXCHANGES, *ALL_REDUCES)]
    return GpuKernel(str(sources() / "bench.cu"), names, compile_flags())

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of GPUs: compilation, profiles, and the sources of the penny collectives."""

from towpath.kernels import profile
from towpath.kernels.gpu_kernel import GpuKernel, SimulatedGpus
from towpath.kernels.nvshmem_home import nvshmem_home
from towpath.kernels.penny_source import ALL_REDUCES, EXCHANGES
from towpath.kernels.profile_causes import ended_by
from towpath.kernels.shmem_program import compile_program

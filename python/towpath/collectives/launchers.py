# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The rank and number of ranks that torchrun, mpirun and srun give to a process."""

from __future__ import annotations

import os

from towpath.errors import ConfigError, quoted

# torchrun, mpirun of Open MPI, mpirun of MPICH and Intel MPI, srun.
_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_RANKS = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


def rank(given: int | None) -> int:
    """The rank of this process: the given one, or the launcher's. Raises ConfigError."""
    return _number("rank", given, _RANK)


def ranks(given: int | None) -> int:
    """The number of processes: the given one, or the launcher's. Raises ConfigError."""
    return _number("ranks", given, _RANKS)


def _number(what: str, given: int | None, variables: tuple[str, ...]) -> int:
    said = [os.environ[name] for name in variables if name in os.environ]
    text = str(given) if given is not None else next(iter(said), None)
    if text is None:
        raise ConfigError(f"connect needs {what}: an argument, or ${variables[0]}")
    if not text.isdecimal():
        raise ConfigError(f"{what} is {quoted(text)}; it must be a whole number, 0 or more")
    return int(text)

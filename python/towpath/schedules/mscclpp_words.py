# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The words of MSCCL++'s execution plans, with their meaning in a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from towpath._core import Buffer, Collective, Protocol, StepType

RANKS_MAX = 4096
OPERATIONS_MAX = 64  # of a thread block
CHANNELS_PER_OPERATION_MAX = 8
SCRATCH_BYTES = 64 * 1024 * 1024  # with reuse_resources

BYTES_MAX = 2**64 - 1
NO_LIMIT = 2**63  # from here on, a size is no limit
THREADS = 1024
ALIGNMENT_BYTES = 16

COLLECTIVES = {
    "allreduce": Collective.all_reduce,
    "allgather": Collective.all_gather,
    "reducescatter": Collective.reduce_scatter,
    "broadcast": Collective.broadcast,
    "reduce": Collective.reduce,
    "alltoall": Collective.all_to_all,
}
PROTOCOLS = {"Simple": Protocol.simple, "LL": Protocol.ll}
BUFFERS = {"i": Buffer.input, "o": Buffer.output, "s": Buffer.scratch}

# Operations that load, combine and store. A shape says what each operand is: "l" local, "p" packets
# in the own scratch, "r" remote, "k" packets in a peer's scratch, "g" a group behind its switch,
# "q" packets in the scratch of such a group; "*" any number more of the one before.
SHAPES = {
    "copy": ("l", "l"),
    "cpkt": ("l", "p"),
    "upkt": ("p", "l"),
    "re": ("ll*", "l"),
    "res": ("ll*", "lr*"),
    "rre": ("lr*", "l"),
    "rres": ("lr*", "lr*"),
    "repkt": ("lp*", "l"),
    "respkt": ("lp*", "lk*"),
    "recpkt": ("lp*", "lp"),
    "recspkt": ("lp*", "lpk*"),
    "rppkt": ("p", "k*"),
    "glres": ("g", "g"),
    "gstore": ("l", "g"),
    "gstorepkt": ("p", "q"),
}
# Operations of pairs: the n-th source goes to the n-th destination.
PAIRS = {
    "put": ("l", "r"),
    "pws": ("l", "r"),
    "pwsf": ("l", "r"),
    "get": ("r", "l"),
    "ppkt": ("l", "k"),
}
SIGNALLING = {
    "signal": StepType.signal,
    "wait": StepType.wait,
    "rlxsignal": StepType.signal,
    "rlxwait": StepType.wait,
    "flush": StepType.flush,
}
SEMAPHORES = {"sem_acquire": StepType.acquire, "sem_release": StepType.release}
NAMES = sorted({*SHAPES, *PAIRS, *SIGNALLING, *SEMAPHORES, "nop", "barrier", "pipeline"})


def letters_of(shape: str, count: int) -> str | None:
    """The letters of a number of operands of a shape.

    Args:
        shape: shape of the sources or destinations of an operation; see `SHAPES`.
        count: number of operands.

    Returns:
        A letter for each, or None if the shape has fewer operands.
    """
    if not shape.endswith("*"):
        return shape if len(shape) == count else None
    fixed, repeated = shape[:-2], shape[-2]
    more = count - len(fixed)
    return fixed + repeated * more if more >= 1 or (more == 0 and len(fixed) > 0) else None


def word_of(words: Mapping[str, Any], value: Any) -> str:
    """The word of a table for a value.

    Args:
        words: word -> value.
        value: one of its values.
    """
    return next(word for word, meaning in words.items() if meaning == value)

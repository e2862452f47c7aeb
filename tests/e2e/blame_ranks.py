# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks that work in turn until one of them does something wrong; test_blame asks what they say."""

import ctypes
import os
import signal
import sys

import numpy as np

CULPRIT = 1
ROUNDS = 30  # before the fault


class Fault(Exception):
    """What a rank raises that fails by an exception."""


def fail(how: str) -> None:
    """A fault that a process can have by itself. None for "return"."""
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif how == "segfault":
        ctypes.string_at(8)
    elif how == "exception":
        raise Fault("on purpose")
    elif how.startswith("exit"):
        sys.exit(int(how.split()[1]))
    elif how.startswith("_exit"):
        os._exit(int(how.split()[1]))


def reduce(communicator, how: str, rounds: int = ROUNDS) -> None:
    """All-reduces for ever; the culprit does something else after some rounds."""
    array = np.ones(64, np.float32)
    done = 0
    while communicator.rank != CULPRIT or done < rounds:
        communicator.all_reduce(array, "max")
        done += 1
    if how == "allocation":
        communicator.allocate(100)
    elif how == "mismatch":
        communicator.broadcast(array, root=CULPRIT)
    else:
        fail(how)


def reduce_by_penny(communicator, job: str, how: str, timeout_s: float, rounds: int = ROUNDS):
    """The same by penny, whose group is another one than that of `launch`."""
    import torch

    from towpath import penny

    penny.begin(job, communicator.rank, communicator.ranks, capacity_bytes=4096,
                timeout_s=timeout_s)  # fmt: skip
    done = 0
    while communicator.rank != CULPRIT or done < rounds:
        penny.all_reduce(torch.ones(100))
        done += 1
    if how == "allocation":
        penny.empty(100)
    elif how == "mismatch":
        penny.all_reduce(torch.ones(10))
    elif how == "return":
        penny.end()
    else:
        fail(how)

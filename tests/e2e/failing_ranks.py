# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_live_failures do: reduce for ever, while one of them fails."""

import os
import signal
import sys
import time

import numpy as np

ROUNDS_BEFORE = 50  # the group is joined, and in the middle of its work


def raise_key_error():
    raise KeyError("x")


def raise_memory_error():
    raise MemoryError


def exit_0():
    sys.exit(0)


def exit_3():
    sys.exit(3)


def end_at_once():
    os._exit(5)


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def return_early():
    """Nothing: the rank's function returns while the others go on."""


def reduce_for_ever(communicator, culprit, fail):
    """The culprit fails in the middle of its work."""
    array = np.ones(64, np.float32)
    rounds = 0
    while communicator.rank != culprit or rounds < ROUNDS_BEFORE:
        communicator.all_reduce(array, "max")
        rounds += 1
    fail()


class FailsWhenLoaded:
    """Fails in the rank that loads it as the culprit, before that rank joins the group."""

    def __init__(self, culprit, fail):
        self.culprit = culprit
        self.fail = fail

    def __reduce__(self):
        return _load, (self.culprit, self.fail)


def _load(culprit, fail):
    if int(os.environ["RANK"]) == culprit:
        fail()


def reduce_after_loading(communicator, _loaded):
    """Every rank but the culprit gets as far as this at most."""
    reduce_for_ever(communicator, None, None)


def close_and_return_later(communicator, culprit, seconds):
    """The culprit leaves the others at once, and its function returns after they have said so."""
    if communicator.rank == culprit:
        communicator.close()
        time.sleep(seconds)
    else:
        reduce_for_ever(communicator, None, None)


def print_and_reduce(communicator):
    """A rank that prints, as libraries do."""
    print("a rank prints")
    os.write(1, b"and so does a library\n")
    return communicator.all_reduce(np.full(3, communicator.rank)).tolist()


def wait_for_nobody(communicator, told):
    """Tells where its process is, and waits for a signal that never comes."""
    first = communicator.signals()
    with open(os.path.join(told, str(communicator.rank)), "w") as file:
        file.write(str(os.getpid()))
    if communicator.rank == 0:
        communicator.wait_signal(first, timeout_s=600)
    communicator.barrier(timeout_s=600)


def compute(communicator, seconds):
    """Long work between two collectives, without a word to the others."""
    communicator.barrier()
    time.sleep(seconds if communicator.rank == 0 else 0)
    communicator.barrier(timeout_s=seconds + 60)
    return communicator.rank


def largest_mapping_in_a_core_file(communicator):
    """Bytes of the largest mapping that a core file of this rank would hold."""
    communicator.all_reduce(np.ones(64, np.float32), "max")
    sizes = [0]
    size_bytes = 0
    with open("/proc/self/smaps") as lines:
        for line in lines:
            field, _, value = line.partition(":")
            if field == "Size":
                size_bytes = int(value.split()[0]) << 10
            elif field == "VmFlags" and "dd" not in value.split():
                sizes.append(size_bytes)
    return max(sizes)

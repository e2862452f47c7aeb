# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks of the torch backend of which one does something wrong; test_blame and others ask.

Usage: PYTHONPATH=tests/support python tests/e2e/torch_blame.py FAULT:ROUNDS ...

Prints for each a line of JSON: the seconds, and for each rank what torch_faults.outcomes gives.
"""

import json
import sys
import time

import torch
import torch.distributed as dist
from blame_ranks import CULPRIT, fail
from torch_faults import call, outcomes

from inside.torch import load_extension


def body_of(how: str, rounds: int):
    def body(rank, say):
        for _ in range(rounds):
            call()
        if rank != CULPRIT:
            while True:
                call()
        if how == "stop":
            say("stopped")
        if how == "mismatch":
            dist.broadcast(torch.ones(1000), src=CULPRIT)
            call()
        # A forked rank ends without the end of an interpreter.
        fail(how.replace("exit", "_exit"))
        return "returned"

    return body


def main() -> None:
    torch.set_num_threads(1)
    load_extension()
    for word in sys.argv[1:]:
        how, rounds = word.split(":")
        began = time.monotonic()
        said = outcomes(body_of(how, int(rounds)))
        print(json.dumps([time.monotonic() - began, said]), flush=True)


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A rank of PyTorch on a host of its own: RANK and the rest as torchrun sets them.

Prints "right" when every call gave what it should. With the word "wait" it then stays in a
collective, and prints what ended it.
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import towpath.torch  # noqa: F401: registers the backend


def check(rank: int, ranks: int) -> None:
    """Collectives of several sizes, messages, a group of its own, and a rank that computes."""
    total = sum(range(1, ranks + 1))
    for size in (0, 1, 1000, 3_000_000):
        values = torch.full((size,), float(rank + 1))
        dist.all_reduce(values)
        assert torch.equal(values, torch.full((size,), float(total))), size
        gathered = [torch.empty(size) for _ in range(ranks)]
        dist.all_gather(gathered, torch.full((size,), float(rank)))
        for source, part in enumerate(gathered):
            assert torch.equal(part, torch.full((size,), float(source))), size
    last = torch.tensor([rank])
    dist.broadcast(last, src=ranks - 1)
    assert last.item() == ranks - 1
    if rank == 0:
        dist.send(torch.arange(100_000), dst=1, tag=3)
        time.sleep(0.2)
    elif rank == 1:
        received = torch.empty(100_000, dtype=torch.int64)
        dist.recv(received, src=0, tag=3)
        assert torch.equal(received, torch.arange(100_000))
    another = dist.new_group(list(range(ranks)), backend="towpath")
    one = torch.ones(5)
    dist.all_reduce(one, group=another)
    assert torch.equal(one, torch.full((5,), float(ranks)))
    dist.barrier()


def main() -> None:
    dist.init_process_group("towpath", timeout=timedelta(seconds=60))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    check(rank, ranks)
    print("right", flush=True)
    if "wait" in sys.argv:
        try:
            if rank == 0:
                dist.barrier()
            else:
                time.sleep(60)
        except RuntimeError as error:
            print(str(error).splitlines()[0], flush=True)
            return
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

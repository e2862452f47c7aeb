# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A rank: JOB RANK RANKS TOKEN TIMEOUT_S [TRANSPORT].

Lines of input say how often it all-reduces.

Prints "ready", then what it found, or the kind, the peer and the sentence of what went wrong.
"""

import sys

import numpy as np

import towpath
from towpath import ConfigError, TransportError


def main() -> None:
    job, rank, ranks, token, timeout_s = sys.argv[1:6]
    transport = sys.argv[6] if len(sys.argv) > 6 else "ucx"
    token = token if transport == "ucx" else None
    try:
        with towpath.connect(
            job, int(rank), int(ranks), transport=transport, token=token,
            timeout_s=float(timeout_s), heap_bytes=256 << 20,
        ) as group:  # fmt: skip
            print("ready", flush=True)
            for times in sys.stdin:
                for _ in range(int(times)):
                    for elements in (1, 1000, 200_000):
                        array = np.arange(elements, dtype=np.float64) + group.rank
                        found = group.all_reduce(array)
                        expected = np.arange(elements) * group.ranks + sum(range(group.ranks))
                        assert np.array_equal(found, expected)
                print("right", flush=True)
    except TransportError as error:
        print(error.kind, error.peer, error, flush=True)
    except ConfigError as error:
        print("refused", None, error, flush=True)


if __name__ == "__main__":
    main()

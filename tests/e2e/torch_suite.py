# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of its backends (DistributedTest of the wheel) on gloo and on ours.

Usage (with PYTHONPATH=tests/support):
    python tests/e2e/torch_suite.py gloo|towpath|named RANKS [--only WORD] [--write]

Compares with torch_suite.json beside this file, and exits with 1 where an outcome differs; --write
writes the outcomes there instead.

Most of the tests ask for the backend by the name "gloo" and skip all others. So that they run on
ours, `towpath` here takes gloo's place: what torch makes when it is asked for gloo is our backend.
`named` is our backend by its own name.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

RESULTS = Path(__file__).with_suffix(".json")
TIMEOUT_S = 90
SKIPS = range(72, 90)  # exit codes of torch's TEST_SKIPS


def take_the_place_of_gloo() -> None:
    """Lets torch make our backend where it would make gloo."""
    import torch
    import torch.distributed.distributed_c10d as c10d
    from torch._C._distributed_c10d import Backend as any_backend
    from torch.testing._internal.distributed import distributed_test

    from inside.torch import create, load_extension

    load_extension()  # before ranks are forked
    real = c10d.ProcessGroupGloo

    class Options:
        def __init__(self, store, rank, size, timeout):
            self.store, self.group_rank, self.group_size = store, rank, size
            self.timeout, self.global_ranks_in_group = timeout, []

    class AnyBackend(type):
        def __instancecheck__(cls, instance):
            return isinstance(instance, any_backend)

        def __getattr__(cls, name):
            return getattr(real, name)

    class Ours(metaclass=AnyBackend):
        def __new__(cls, store, rank, size, timeout=timedelta(minutes=30), **_):
            return create("towpath", Options(store, rank, size, timeout))

    any_backend.options = SimpleNamespace()  # torch notes the ranks of a gloo group there
    c10d.ProcessGroupGloo = Ours
    # It takes what is called gloo for a ProcessGroupGloo and asks it for its threads.
    torch.distributed.Logger.set_construction_data_and_log = lambda *_: None
    find_events = distributed_test.get_profiling_event

    def events_as_of_gloo(name, *rest, **options):
        events = find_events(name.replace("gloo:", "towpath:"), *rest, **options)
        for event in events:
            event.name = event.name.replace("towpath:", "gloo:")
        return events

    distributed_test.get_profiling_event = events_as_of_gloo


@dataclass(frozen=True)
class Run:
    """One test on some ranks.

    Attributes:
        case: The class with the tests.
        name: The test.
        ranks: How many processes.
        folder: Where files of this run are written.
    """

    case: type
    name: str
    ranks: int
    folder: Path

    def log(self, rank: int) -> Path:
        return self.folder / f"log.{rank}"

    def run_rank(self, rank: int, pipe) -> None:
        """One rank of the test; never returns."""
        descriptor = os.open(self.log(rank), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        self.case._run(rank, self.name, str(self.folder / "store"), pipe)

    def exit_codes(self) -> list[int]:
        """What the ranks exit with; one that has to be killed exits with -9."""
        context = multiprocessing.get_context("fork")
        pipes = [context.Pipe() for _ in range(self.ranks)]
        processes = [
            context.Process(target=self.run_rank, args=(rank, pipes[rank][1]))
            for rank in range(self.ranks)
        ]
        for process in processes:
            process.start()
        end = time.monotonic() + TIMEOUT_S
        while any(each.is_alive() for each in processes) and time.monotonic() < end:
            if any(each.exitcode not in (None, 0, *SKIPS) for each in processes):
                end = min(end, time.monotonic() + 10)
            time.sleep(0.02)
        for process in processes:
            process.kill()
            process.join()
        for pair in pipes:
            for pipe in pair:
                pipe.close()
        return [process.exitcode for process in processes]


def run_test(case, name: str, ranks: int) -> tuple[str, str]:
    """Passed, skipped, failed or hung, and the end of what the ranks printed."""
    from torch.testing._internal.distributed import distributed_test

    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TEMP_DIR"] = scratch
        os.environ["INIT_METHOD"] = f"file://{scratch}/shared_init_file"
        for folder in ("barrier", "test_dir"):
            (Path(scratch) / folder).mkdir()
        distributed_test.Barrier.init()
        run = Run(case, name, ranks, Path(scratch))
        codes = run.exit_codes()
        printed = "\n".join(
            f"--- rank {rank}: {code}\n" + run.log(rank).read_text(errors="replace")[-3000:]
            for rank, code in enumerate(codes)
        )
    if all(code in SKIPS for code in codes):
        return "skipped", ""
    if all(code == 0 or code in SKIPS for code in codes):
        return "passed", ""
    return ("failed" if any(code not in (0, -9, *SKIPS) for code in codes) else "hung"), printed


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def keep_or_compare(arguments: argparse.Namespace, results: dict[str, str]) -> int:
    """Writes the outcomes, or says which are not those of torch_suite.json; the exit code."""
    outcomes = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    of_backend = outcomes.setdefault(arguments.backend, {})
    if arguments.write:
        of_backend[str(arguments.ranks)] = results
        text = json.dumps(outcomes, indent=1, sort_keys=True)
        RESULTS.write_text(text + "\n", encoding="utf-8")
        return 0
    expected = of_backend.get(str(arguments.ranks), {})
    differing = [name for name, outcome in results.items() if outcome != expected.get(name)]
    for name in differing:
        print(f"{name}: {results[name]}, expected {expected.get(name)}")
    return 1 if differing else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backend", choices=["gloo", "towpath", "named"])
    parser.add_argument("ranks", type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    os.environ["BACKEND"] = "towpath" if arguments.backend == "named" else "gloo"
    os.environ["WORLD_SIZE"] = str(arguments.ranks)
    os.environ["TEMP_DIR"] = tempfile.mkdtemp()
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(free_port())
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch
    from torch.testing._internal.distributed.distributed_test import (
        DistributedTest,
        TestDistBackend,
    )

    import towpath.torch  # noqa: F401: registers the backend

    torch.set_num_threads(1)
    if arguments.backend == "towpath":
        take_the_place_of_gloo()

    class TestSuite(TestDistBackend, DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()

    results = {}
    names = sorted(name for name in dir(TestSuite) if name.startswith("test_"))
    for name in names:
        if arguments.only not in name:
            continue
        began = time.monotonic()
        outcome, printed = run_test(TestSuite, name, arguments.ranks)
        results[name] = outcome
        print(f"{outcome:8} {name} {time.monotonic() - began:.1f} s", flush=True)
        if printed and arguments.only:
            print(printed)
    counts = {word: list(results.values()).count(word) for word in sorted(set(results.values()))}
    print(arguments.backend, arguments.ranks, "ranks:", counts)
    return keep_or_compare(arguments, results)


if __name__ == "__main__":
    sys.exit(main())

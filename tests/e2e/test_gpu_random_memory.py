# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Of random kernels, each error in the use of memory is named with its line, and no right kernel is
accused."""

import collections
import sys

import pytest

import towpath
from conftest import ROOT
from inside import _core
from inside.kernels import GpuKernel

sys.path.insert(0, str(ROOT / "tests" / "e2e" / "gpu"))

import memory_programs  # noqa: E402

KERNELS_PER_SOURCE = 250


class Kernels:
    """A compiled source with the kernels of some seeds."""

    def __init__(self, folder, seeds) -> None:
        self.cases = [memory_programs.case(seed, number) for number, seed in enumerate(seeds)]
        text, self.lines = memory_programs.source(self.cases)
        self.file = folder / "random.cu"
        self.file.write_text(text)
        self.object = str(GpuKernel(str(self.file), (), ()).compile())
        self.machine = towpath.load("dgx-h100").spec.build(hosts=1)

    def run(self, number: int, *, is_wrong: bool) -> int:
        arguments = self.cases[number].arguments(number, is_wrong=is_wrong)
        pes = _core.SimulatedPes(self.machine, self.object, 2, 1)
        return pes.run_main([str(self.file), *arguments])

    def check(self, number: int) -> None:
        """Runs a kernel without its error, and with it."""
        case = self.cases[number]
        assert self.run(number, is_wrong=False) == 0, case
        with pytest.raises(towpath.HazardError) as raised:
            self.run(number, is_wrong=True)
        sentence = str(raised.value)
        assert raised.value.hazard == case.hazard, (sentence, case)
        assert f"random.cu:{self.lines[number]} " in sentence, (sentence, case)
        block, thread = case.thread
        assert f"thread {thread} of block ({block},0,0) of kernel kernel_{number} " in sentence
        assert memory_programs.PLACES[case.place][1] in sentence, (sentence, case)


def check_all(folder, seeds) -> collections.Counter:
    kernels = Kernels(folder, seeds)
    for number in range(len(kernels.cases)):
        kernels.check(number)
    return collections.Counter((each.place, each.error) for each in kernels.cases)


def test_each_error_is_named_and_right_kernels_are_silent(tmp_path):
    found = check_all(tmp_path, range(80))
    assert {error for _, error in found} == set(memory_programs.ERRORS)


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_two_thousand_kernels(tmp_path, part):
    seeds = range(1000 + part * KERNELS_PER_SOURCE, 1000 + (part + 1) * KERNELS_PER_SOURCE)
    found = check_all(tmp_path, seeds)
    assert sum(found.values()) == KERNELS_PER_SOURCE
    print(sorted(found.items()))

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Of random programs no right one is accused, and each mistake is called by its name."""

import sys

import numpy as np
import pytest

import towpath
from conftest import ROOT
from inside import _core
from inside.kernels import GpuKernel, SimulatedGpus

FOLDER = ROOT / "tests" / "e2e" / "gpu"
sys.path.insert(0, str(FOLDER))

import random_programs  # noqa: E402


class Interpreter:
    """The compiled kernel and the machine, for thousands of runs."""

    def __init__(self) -> None:
        self.object = str(GpuKernel(str(FOLDER / "interpreter.cu"), (), ()).compile())
        self.machine = towpath.load("dgx-h100").spec.build(hosts=1)

    def load(self, pes: int) -> SimulatedGpus:
        return SimulatedGpus(_core.SimulatedPes(self.machine, self.object, pes, 1))


@pytest.fixture(scope="module")
def kernel():
    return Interpreter()


def run(kernel, program) -> int:
    return random_programs.run(kernel.load(program.pes), program)


def mistake_of(seed: int) -> str:
    return list(random_programs.MISTAKES)[seed % len(random_programs.MISTAKES)]


def check_right(kernel, seed: int) -> None:
    assert run(kernel, random_programs.program(seed)) == 0, seed


def check_wrong(kernel, seed: int) -> None:
    mistake = mistake_of(seed)
    hazard = random_programs.MISTAKES[mistake]
    error = towpath.DeadlockError if hazard is None else towpath.HazardError
    with pytest.raises(error) as raised:
        run(kernel, random_programs.program(seed, mistake))
    if hazard is not None:
        assert raised.value.hazard == hazard, (seed, mistake, str(raised.value))


def test_no_right_program_is_accused(kernel):
    for seed in range(60):
        check_right(kernel, seed)


def test_each_mistake_is_named(kernel):
    for seed in range(60):
        check_wrong(kernel, seed)


def test_a_mistake_is_named_where_earlier_waits_are_late(kernel):
    # On words of right phases, its last signal came before an earlier wait for a lower value.
    check_wrong(kernel, 6064)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_programs(kernel, part):
    for seed in range(1000 * part, 1000 * (part + 1)):
        check_right(kernel, seed)
        check_wrong(kernel, seed)


def test_a_program_is_the_same_for_the_same_seed():
    one, other = (random_programs.program(5, "no wait") for _ in range(2))
    assert one.code == other.code
    assert not np.array_equal(random_programs.program(6).code, one.code)

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Work spread over processes: the same results in the same order, and no death unnoticed."""

import os
import signal
import time

import pytest

from towpath.studies.parallel import ProcessEnded, map_in_order


def square_later(number):
    """The first items take longest."""
    time.sleep(0.02 * (4 - number) if number < 4 else 0)
    return number * number, os.getpid()


def fail_at_three(number):
    if number == 3:
        raise ValueError("three is too many")
    return number


def die_at_two(number):
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_results_are_in_the_items_order(processes):
    done = map_in_order(square_later, list(range(10)), "squares", processes)
    assert [result for result, _ in done] == [number * number for number in range(10)]
    workers = {worker for _, worker in done}
    assert len(workers) <= processes
    assert (os.getpid() in workers) == (processes == 1)


def test_nothing_to_do_needs_no_process():
    assert map_in_order(square_later, [], "nothing", 4) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_of_one_item_is_raised_as_it_was(processes):
    with pytest.raises(ValueError, match="three is too many"):
        map_in_order(fail_at_three, list(range(6)), "failing", processes)


def test_a_killed_process_is_named_with_its_item():
    with pytest.raises(ProcessEnded, match="item 2 was killed by SIGKILL") as ended:
        map_in_order(die_at_two, list(range(6)), "dying", 2)
    assert ended.value.item == 2

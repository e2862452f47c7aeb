# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Work spread over processes: the same results in the same order, and no death unnoticed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from inside.sweep import ProcessEnded, map_in_order

pytestmark = pytest.mark.slow  # starts processes


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


_IMPORTS_FOR_LONG = """
import sys
import time

from inside.sweep import in_processes

def work(item):
    return item

if __name__ == "__main__":
    print("ready", flush=True)
    try:
        list(in_processes(work, list(range(1_000_000)), 2))
    except KeyboardInterrupt:
        sys.exit(130)
else:
    open("importing", "w").close()
    time.sleep(600)
"""


def test_ctrl_c_while_processes_start_is_no_traceback(tmp_path):
    """The terminal's ctrl-C goes to the whole group, to processes that still import as well."""
    script = tmp_path / "script.py"
    script.write_text(_IMPORTS_FOR_LONG)
    command = subprocess.Popen(
        [sys.executable, "script.py"], cwd=tmp_path, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert command.stdout.readline() == "ready\n"
    while not (tmp_path / "importing").exists():
        assert command.poll() is None
    os.killpg(command.pid, signal.SIGINT)
    _, errors = command.communicate(timeout=60)
    assert (command.returncode, errors) == (130, "")

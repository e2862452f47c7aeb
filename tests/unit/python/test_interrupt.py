# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C: what the command says, what still runs, and that it ends also inside the core."""

import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # starts processes

_PROGRAM = """
import atexit
import ctypes
import signal
import threading
from inside.cli import main as cli

signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever started the tests

def ready():
    print("ready", flush=True)

def never_return(announce=lambda: None):
    # A call that gives Python no turn, as a long simulation does: a mutex locked twice.
    mutex = ctypes.create_string_buffer(64)
    waits = f" {ctypes.addressof(mutex):#x} "
    system_call = open(f"/proc/self/task/{threading.get_native_id()}/syscall")

    def watch():
        while waits not in system_call.read():
            system_call.seek(0)
        announce()

    threading.Thread(target=watch, daemon=True).start()
    lock = ctypes.CDLL(None).pthread_mutex_lock
    lock(mutex)
    lock(mutex)

def app(prog_name, standalone_mode, obj):
    obj.sentence = "interrupted; there is a way on"
    atexit.register(print, "exit handlers ran", flush=True)
    try:
        {body}
    finally:
        {cleanup}

cli.app = app
cli.main()
"""


def interrupted(body, cleanup, count=1):
    """The exit code, standard output and standard error of a command that gets ctrl-C."""
    command = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM.replace("{body}", body).replace("{cleanup}", cleanup)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert command.stdout.readline() == "ready\n"
    for number in range(count):
        command.send_signal(signal.SIGINT)
        if number + 1 < count:
            assert command.stdout.readline() == "cleaning up\n"
    output, errors = command.communicate(timeout=60)
    return command.returncode, output, errors


@pytest.mark.parametrize(
    "waiting",
    [
        "ready(); threading.Event().wait()",
        "ready(); __import__('time').sleep(600)",
        "ready()\n        while True: pass",
    ],
)
def test_a_command_that_waits_or_works_unwinds(waiting):
    code, output, errors = interrupted(waiting, "print('cleaned up')")
    assert (code, output) == (130, "cleaned up\nexit handlers ran\n")
    assert errors == "towpath: interrupted; there is a way on\n"


def test_a_command_inside_the_core_ends_and_exit_handlers_run():
    code, output, errors = interrupted("never_return(ready)", "print('cleaned up')")
    assert (code, output) == (130, "exit handlers ran\n")
    assert errors == "towpath: interrupted; there is a way on\n"


def test_a_second_one_ends_a_command_that_hangs_as_it_unwinds():
    cleanup = "print('cleaning up', flush=True), never_return()"
    code, output, errors = interrupted("ready(); threading.Event().wait()", cleanup, count=2)
    assert (code, output, errors) == (130, "", "")


def test_what_fails_as_it_unwinds_is_not_a_traceback():
    code, _, errors = interrupted("ready(); threading.Event().wait()", "raise OSError(5, 'late')")
    assert (code, errors) == (130, "towpath: interrupted; there is a way on\n")


def test_a_command_started_with_interrupts_ignored_keeps_ignoring_them():
    command = subprocess.Popen(
        [sys.executable, "-c", _IGNORES], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    output, errors = command.communicate(timeout=60)
    assert (command.returncode, output, errors) == (0, "done\n", "")


_IGNORES = """
import os
import signal
from inside.cli import main as cli

signal.signal(signal.SIGINT, signal.SIG_IGN)

def app(prog_name, standalone_mode, obj):
    os.kill(os.getpid(), signal.SIGINT)
    print("done")

cli.app = app
cli.main()
"""

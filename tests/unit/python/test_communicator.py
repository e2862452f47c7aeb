# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""connect, launch and Communicator: numpy arrays between processes of this host."""

import atexit
import os
import subprocess
import sys
from pathlib import Path

import pytest

import communicator_ranks as ranks_do
from inside import _core
from towpath import ConfigError, RankError, connect, launch, run_live

pytestmark = pytest.mark.slow  # starts processes


@pytest.mark.parametrize("ranks", [2, 5])
def test_every_collective_gives_numpys_result(ranks):
    wrong = launch(
        ranks_do.every_collective, ranks, arguments=(("float32", "int64", "bfloat16"), ("sum",))
    )
    assert wrong == [[]] * ranks


def test_every_type_and_operation_gives_numpys_result():
    exact = ("sum", "prod", "min", "max")  # averages may differ by a rounding
    wrong = launch(ranks_do.every_collective, 3, arguments=(ranks_do.ALL_TYPES, exact))
    assert wrong == [[]] * 3


def test_results_go_where_they_are_asked_to():
    assert launch(ranks_do.in_and_out_of_place, 4) == [None] * 4


@pytest.mark.parametrize("ranks", [1, 3])
def test_data_goes_to_neighbours_one_sided(ranks):
    assert launch(ranks_do.neighbours, ranks) == [None] * ranks


def test_memory_of_plans_that_are_not_used_is_given_back():
    assert launch(ranks_do.many_plans, 2) == [2.0 * 98] * 2


def test_wrong_use_is_an_error_that_says_what_is_allowed():
    assert launch(ranks_do.wrong_use, 1) == ["<towpath.Communicator rank 0 of 1>"]


def test_ranks_that_call_different_things_are_told():
    assert launch(ranks_do.differ, 2) == ["disagreement"] * 2


def test_a_function_that_cannot_be_sent_is_an_error():
    with pytest.raises(ConfigError, match="cannot be pickled for the ranks"):
        launch(lambda communicator: None, 2)


def test_an_error_in_a_rank_comes_with_its_traceback():
    with pytest.raises(RankError, match=r"rank 0 \(pid \d+\) failed \(TypeError: ") as caught:
        launch(ranks_do.neighbours, 1, arguments=("one too many",))
    assert "live_rank.py" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("arguments", "environment", "sentence"),
    [
        ((), {}, "connect needs a job"),
        (("job",), {}, "connect needs rank"),
        (("job", 0), {}, "connect needs ranks"),
        (("job", 3, 3), {}, "rank 3 is outside the range 0 to 2"),
        (("job",), {"RANK": "first", "WORLD_SIZE": "2"}, "rank is 'first'; it must be"),
        (("x" * 65, 0, 1), {}, "65 bytes"),
    ],
)
def test_connect_says_what_it_lacks(monkeypatch, arguments, environment, sentence):
    for name in ("TOWPATH_JOB", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=sentence):
        connect(*arguments)


@pytest.mark.parametrize(
    "join",
    [
        lambda name: connect("job", 0, 1, transport=name),
        lambda name: launch(ranks_do.neighbours, 1, transport=name),
        lambda name: run_live(ranks=1, size_bytes=8, transport=name),
    ],
)
def test_an_unknown_transport_is_one_sentence_with_those_that_exist(join):
    with pytest.raises(ConfigError) as caught:
        join("carrier-pigeon")
    sentence = str(caught.value)
    assert "'carrier-pigeon'" in sentence and "\n" not in sentence
    assert sentence.endswith(f"choose one of {', '.join(_core.live_transports())}")


def test_a_long_reason_reaches_the_other_ranks_whole():
    with pytest.raises(RankError) as caught:
        launch(ranks_do.fail_at_length, 2)
    assert caught.value.rank == 1 and ranks_do.LONG_REASON in caught.value.others[0]


def test_a_closed_communicator_leaves_nothing_in_its_process():
    with connect("first", 0, 1):
        callbacks = atexit._ncallbacks()
    for number in range(3):
        connect(f"next-{number}", 0, 1).close()
    assert atexit._ncallbacks() == callbacks


PROGRAM = """
import numpy as np
from towpath import connect
communicator = connect(timeout_s=60)
if communicator.rank == 1:
    {ending}
print(communicator.all_reduce(np.ones(3)).tolist())
communicator.close()
"""


def _outcomes(tmp_path: Path, ending: str):
    """(exit code, standard output, last line of standard error) of two processes of one job."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(ending=ending))
    job = {"TOWPATH_JOB": f"test-{os.getpid()}", "WORLD_SIZE": "2"}
    processes = [
        subprocess.Popen(
            [sys.executable, program], env={**os.environ, **job, "RANK": str(rank)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for rank in range(2)
    ]  # fmt: skip
    outcomes = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        outcomes.append((process.returncode, out.strip(), err.strip().rpartition("\n")[2]))
    return outcomes


def test_processes_of_any_launcher_join_by_their_environment(tmp_path):
    assert _outcomes(tmp_path, "pass") == [(0, "[2.0, 2.0, 2.0]", "")] * 2


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        ("raise KeyError('x')", r"failed (KeyError: 'x')"),
        ("raise SystemExit(0)", "exited early with status 0"),
    ],
)
def test_a_program_that_ends_without_closing_is_named_with_its_reason(tmp_path, ending, reason):
    code, out, told = _outcomes(tmp_path, ending)[0]
    assert (code, out) == (1, "")
    assert "TransportError: rank 1 (pid " in told and reason in told

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""How many slots the verifier counts, and what MSCCL files may say about their collective."""

import pytest
from typer.testing import CliRunner

import towpath
from conftest import refusal, towpath_command
from inside.cli import main as cli


def verdict_text(*words):
    """What a command prints that may end with exit code 1."""
    return CliRunner().invoke(cli.app, words).stdout


# --- slots of a machine or an executor ------------------------------------------------------------


def nine_sends_first(path, coll="alltoall"):
    """Two ranks that each send nine chunks before they receive nine: more than 8 slots hold."""

    def step(number, kind, chunk):
        return (
            f'<step s="{number}" type="{kind}" srcbuf="i" srcoff="{chunk}" dstbuf="o" '
            f'dstoff="{chunk}" cnt="1" depid="-1" deps="-1" hasdep="0"/>'
        )

    gpus = []
    for rank in range(2):
        own, other = (range(9 * r, 9 * r + 9) for r in (rank, 1 - rank))
        copies = "".join(step(n, "cpy", chunk) for n, chunk in enumerate(own))
        sends = [step(n, "s", chunk) for n, chunk in enumerate(other)]
        receives = [step(9 + n, "r", chunk) for n, chunk in enumerate(other)]
        gpus.append(
            f'<gpu id="{rank}" i_chunks="18" o_chunks="18" s_chunks="0">'
            f'<tb id="0" send="-1" recv="-1" chan="0">{copies}</tb>'
            f'<tb id="1" send="{1 - rank}" recv="{1 - rank}" chan="0">{"".join(sends + receives)}'
            "</tb></gpu>"
        )
    path.write_text(
        f'<algo name="nine" proto="LL" nchannels="1" nchunksperloop="18" ngpus="2" coll="{coll}">'
        f"{''.join(gpus)}</algo>"
    )
    return str(path)


def test_a_deadlock_is_said_with_the_slots_that_are_assumed(tmp_path):
    file = nine_sends_first(tmp_path / "nine.xml")
    text = verdict_text("verify", file, "--size", "1M")
    assert "it hangs assuming these slots: 8 FIFO slots per connection" in text
    assert "--machine and --executor count others" in text


@pytest.mark.parametrize(
    "where",
    [
        ("--machine", "dgx-h100", "--hosts", "1"), ("--executor", "nccl"),
        ("--executor", "msccl", "--hosts", "1"),
    ],
)  # fmt: skip
def test_in_one_host_it_hangs(tmp_path, where):
    file = nine_sends_first(tmp_path / "nine.xml")
    assert "deadlock" in verdict_text("verify", file, *where)


def test_between_hosts_twice_as_many_slots_let_it_finish_as_run_does(tmp_path):
    schedule = towpath.Schedule.load(nine_sends_first(tmp_path / "nine.xml"))
    verdict = towpath.verify(schedule, size_bytes="1M", executor="nccl", hosts=2)
    assert verdict.is_correct and verdict.hangs_from_bytes is None
    assert "16 between hosts, with the executor nccl" in verdict.assumption
    apart = towpath.load("dgx-h100", hosts=2, ranks_per_host=1)
    assert towpath.verify(schedule, size_bytes="1M", machine=apart).is_correct
    assert apart.run(schedule, size_bytes="1M").wrong == 0
    together = towpath.load("dgx-h100", hosts=1)
    with pytest.raises(towpath.DeadlockError):
        together.run(schedule, size_bytes="1M")
    assert not towpath.verify(schedule, size_bytes="1M", machine=together).is_correct


def test_a_circle_of_receives_hangs_whatever_the_slots(tmp_path):
    file = tmp_path / "circle.xml"
    nine_sends_first(file)
    text = file.read_text().replace('type="s"', 'type="x"').replace('type="r"', 'type="s"')
    file.write_text(text.replace('type="x"', 'type="r"'))
    verdict = towpath.verify(towpath.Schedule.load(file), size_bytes="1M")
    assert verdict.hangs_with_any_slots is True


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--machine", "dgx-h100", "--executor", "nccl"), "exclude each other"),
        (("--executor", "nicl"), "there is no executor"),
        (("--executor", "nccl", "--hosts", "3"), "2 ranks cannot be spread evenly over 3 hosts"),
        (("--hosts", "2"), "--hosts with a file requires --machine or --executor"),
    ],
)
def test_slots_that_make_no_sense_are_refused(tmp_path, options, expected):
    file = nine_sends_first(tmp_path / "nine.xml")
    assert expected in refusal(towpath_command, "verify", file, *options)


# --- words of MSCCL files -------------------------------------------------------------------------


def test_a_custom_collective_needs_a_declared_result(tmp_path):
    file = nine_sends_first(tmp_path / "nine.xml", coll="custom")
    assert "add --result NAME" in refusal(towpath.Schedule.load, file)
    schedule = towpath.Schedule.load(file, result="alltoall")
    assert schedule.collective == "all_to_all"
    done = towpath_command(
        "verify", file, "--result", "all_to_all", "--executor", "nccl", "--hosts", "2"
    )
    assert "correct" in done.stdout
    where = ("--machine", "dgx-h100", "--hosts", "2", "--ranks-per-host", "1", "--sizes", "1M")
    assert (
        " 0 OK" in towpath_command("run", "--schedule", file, "--result", "alltoall", *where).stdout
    )


def test_a_result_is_for_custom_collectives_only(tmp_path):
    file = nine_sends_first(tmp_path / "nine.xml")
    assert "applies only to coll='custom'" in refusal(
        towpath.Schedule.load, file, result="all_reduce"
    )
    assert "requires --schedule" in refusal(
        towpath_command, "run", "all_reduce", "--machine", "ring", "--result", "all_reduce"
    )


def test_reduce_scatter_has_two_spellings(tmp_path):
    file = tmp_path / "scatter.xml"
    towpath.Schedule.generate("reduce_scatter", ranks=4).save(file)
    file.write_text(file.read_text().replace('coll="reducescatter"', 'coll="reduce_scatter"'))
    assert towpath.Schedule.load(file).collective == "reduce_scatter"

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""MSCCL XML in and out."""

from __future__ import annotations

import io
import os
from pathlib import Path as FilePath

import pytest

from inside import _core
from inside.core import (
    Buffer,
    Collective,
    Protocol,
    RankProgram,
    Schedule,
    Step,
    StepType,
    ThreadBlock,
)
from inside.schedules import ScheduleFormatError, dump_schedule, load_schedule

REPOSITORY = FilePath(__file__).resolve().parents[3]
DATA = FilePath(os.environ.get("TOWPATH_DATA", REPOSITORY.parent / "shared" / "data"))
PUBLISHED = sorted((DATA / "schedules" / "azure").glob("*.xml"))

# Two ranks, two thread blocks each: one exchanges, the other adds up when the first has received.
EXCHANGE = """\
<algo name="exchange" proto="LL" nchannels="1" nchunksperloop="1" ngpus="2" coll="allreduce" \
inplace="1" outofplace="0" minBytes="0" maxBytes="4096">
  <gpu id="0" i_chunks="1" o_chunks="0" s_chunks="1">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="-1" \
deps="-1" hasdep="1"/>
      <step s="1" type="r" srcbuf="i" srcoff="-1" dstbuf="s" dstoff="0" cnt="1" depid="-1" \
deps="-1" hasdep="1"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="0" \
deps="0" hasdep="0"/>
      <step s="1" type="re" srcbuf="s" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="0" \
deps="1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="1" o_chunks="0" s_chunks="1">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="-1" \
deps="-1" hasdep="1"/>
      <step s="1" type="r" srcbuf="i" srcoff="-1" dstbuf="s" dstoff="0" cnt="1" depid="-1" \
deps="-1" hasdep="1"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="0" \
deps="0" hasdep="0"/>
      <step s="1" type="re" srcbuf="s" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="0" \
deps="1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
"""


def load_text(tmp_path: FilePath, text: str) -> Schedule:
    file = tmp_path / "schedule.xml"
    file.write_text(text, encoding="utf-8")
    return load_schedule(file)


def one_rank(steps: list[Step], **fields) -> Schedule:
    block = ThreadBlock(steps=steps)
    program = RankProgram(input_chunks=100, output_chunks=100, blocks=[block, ThreadBlock()])
    return Schedule("one", Collective.all_reduce, chunks=100, ranks=[program], **fields)


def copy_step(**fields) -> Step:
    return Step(StepType.copy, destination=Buffer.output, **({"count": 1} | fields))


def test_every_field_is_read(tmp_path):
    schedule = load_text(tmp_path, EXCHANGE)
    assert (schedule.name, schedule.collective) == ("exchange", Collective.all_reduce)
    assert (schedule.protocol, schedule.channels, schedule.chunks) == (Protocol.ll, 1, 1)
    assert (schedule.in_place, schedule.out_of_place) == (True, False)
    assert (schedule.size_bytes_min, schedule.size_bytes_max) == (0, 4096)
    assert schedule.rank_count == 2
    program = schedule.rank(1)
    assert (program.input_chunks, program.output_chunks, program.scratch_chunks) == (1, 0, 1)
    exchange, add = program.blocks
    assert (exchange.send_peer, exchange.receive_peer, exchange.channel) == (0, 0, 0)
    assert (add.send_peer, add.receive_peer) == (_core.NONE, _core.NONE)
    assert exchange.steps == [
        Step(StepType.send, Buffer.input, 0, Buffer.scratch, 0, 1, True),
        Step(StepType.receive, Buffer.input, 0, Buffer.scratch, 0, 1, True),
    ]
    assert add.steps == [
        Step(StepType.nop, destination=Buffer.output, depends_on_block=0, depends_on_step=0),
        Step(StepType.reduce, Buffer.scratch, 0, Buffer.input, 0, 1, False, 0, 1),
    ]


@pytest.mark.skipif(not PUBLISHED, reason="the published MSCCL schedules are not on this machine")
@pytest.mark.parametrize("file", PUBLISHED, ids=lambda file: file.stem)
def test_published_schedule_survives_export_and_import(file, tmp_path):
    schedule = load_schedule(file)
    dump_schedule(schedule, tmp_path / "again.xml")
    assert load_schedule(tmp_path / "again.xml") == schedule


def test_root_survives_export_and_import(tmp_path):
    schedule = one_rank([copy_step()])
    schedule.ranks = [schedule.rank(0), schedule.rank(0)]
    schedule.collective = Collective.broadcast
    schedule.root = 1
    dump_schedule(schedule, tmp_path / "root.xml")
    assert load_schedule(tmp_path / "root.xml") == schedule


def test_name_with_markup_survives_export_and_import(tmp_path):
    schedule = one_rank([copy_step()])
    schedule.name = "a \"quoted\" & 'marked' <name> ü"
    dump_schedule(schedule, tmp_path / "name.xml")
    assert load_schedule(tmp_path / "name.xml").name == schedule.name


def test_what_only_msccl_tools_write_is_ignored(tmp_path):
    extended = EXCHANGE.replace('inplace="1"', 'inplace="1" redop="sum" nthreadblocks="4"')
    assert load_text(tmp_path, extended) == load_text(tmp_path, EXCHANGE)


# What is changed in EXCHANGE, the line of the error, and a part of its sentence.
BROKEN = [
    ('coll="allreduce"', 'coll="allfoo"', 1, "choose one of allreduce, allgather, reducescatter,"),
    ('proto="LL"', 'proto="ll"', 1, "choose one of Simple, LL, LL128"),
    ('ngpus="2"', 'ngpus="3"', 22, "has 2 <gpu>, but ngpus is 3"),
    ('ngpus="2"', 'ngpus="65537"', 1, "it must be 1 to 65536"),
    ('nchannels="1"', 'nchannels="65"', 1, "it must be 1 to 64"),
    ('nchunksperloop="1"', 'nchunksperloop="4294967297"', 1, "it must be 1 to 32768"),
    ('maxBytes="4096"', 'maxBytes="-1"', 1, "it must be 0 to 9223372036854775807"),
    ('name="exchange"', 'name="ex&#10;change"', 1, "printable characters"),
    (' inplace="1"', ' inplace="1" speed="2"', 1, "has the attribute 'speed' on <algo>"),
    (' s_chunks="1"', "", 2, "has no attribute 's_chunks' on <gpu>"),
    ('<gpu id="1"', '<gpu id="0"', 12, "the next in order is 1"),
    ('<tb id="1"', '<tb id="2"', 7, "the next in order is 1"),
    ('send="1" recv="1"', 'send="0" recv="1"', 3, "it must be any other gpu, or -1"),
    ('send="1" recv="1"', 'send="1" recv="2"', 3, "it must be -1 to 1"),
    ('chan="0"', 'chan="64"', 3, "it must be 0 to 63"),
    ('s="1" type="r"', 's="2" type="r"', 5, "the next in order is 1"),
    ('type="re"', 'type="add"', 9, "choose one of s, r, rcs, rrs, rrc, rrcs, cpy, re, nop"),
    ('srcbuf="s"', 'srcbuf="x"', 9, "choose one of i, o, s"),
    ('srcoff="0"', 'srcoff="-1"', 4, "it must be 0 to 32767"),
    ('cnt="1"', 'cnt="72"', 4, "it must be 1 to 71"),
    ('cnt="1"', 'cnt="0"', 4, "it must be 1 to 71"),
    ('cnt="1"', 'cnt="one"', 4, "has cnt='one' on <step>"),
    ('hasdep="1"', 'hasdep="2"', 4, "choose one of 0, 1"),
    ('depid="0" deps="1"', 'depid="-1" deps="-1"', 9, "must have a dependency itself"),
    (
        'depid="0" deps="0" hasdep="0"',
        'depid="0" deps="0" hasdep="1"',
        8,
        "not raise a flag for a nop",
    ),
    ('type="re"', 'type="nop"', 10, "ends a thread block with a nop"),
    ("<step s=", "<op step=", 4, "the form of newer MSCCL tools"),
    ("<gpu", "<cpu", 2, "it must be <gpu>"),
    ("<algo", "<!DOCTYPE algo []><algo", 1, "document type or an entity"),
    ("</algo>", "", 23, "is not valid XML"),
    ("</tb>", "</tb>text", 6, "contains the text 'text'"),
]


@pytest.mark.parametrize(("old", "new", "line", "sentence"), BROKEN)
def test_broken_file_is_refused_with_line_and_reason(old, new, line, sentence, tmp_path):
    assert old in EXCHANGE
    with pytest.raises(ScheduleFormatError) as caught:
        load_text(tmp_path, EXCHANGE.replace(old, new, 1))
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'schedule.xml'}:{line}: ")
    assert sentence in text
    assert "\n" not in text


def test_structural_error_names_file_and_step(tmp_path):
    with pytest.raises(ScheduleFormatError) as caught:
        load_text(tmp_path, EXCHANGE.replace('s_chunks="1"', 's_chunks="0"', 1))
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'schedule.xml'}: schedule 'exchange', rank 0, ")
    assert "thread block 0, step 1" in text


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(ScheduleFormatError, match="none.xml:1: cannot be read: No such file"):
        load_schedule(tmp_path / "none.xml")


# What MSCCL has no place for, and a part of the sentence.
UNHOLDABLE = [
    (lambda: one_rank([copy_step()] * 257), "thread block 0: it has 257 steps; MSCCL supports"),
    (lambda: one_rank([copy_step(count=72)]), "step 0: it has 72 chunks at once; MSCCL supports"),
    (lambda: one_rank([copy_step()], channels=65), "it has 65 channels; MSCCL supports at most 64"),
    (
        lambda: one_rank([Step(StepType.nop, depends_on_block=1, depends_on_step=0)]),
        "it ends with a nop",
    ),
    (
        lambda: one_rank([Step(StepType.nop, depends_on_block=1, depends_on_step=0), copy_step()]),
        "it follows a nop and must itself have a dependency",
    ),
    (lambda: one_rank([Step(StepType.nop, publishes=True)]), "it is a nop that publishes"),
]


@pytest.mark.parametrize(("schedule", "sentence"), UNHOLDABLE)
def test_what_msccl_cannot_hold_is_not_written(schedule, sentence):
    schedule = schedule()
    program = schedule.rank(0)
    program.blocks = [program.blocks[0], ThreadBlock(steps=[copy_step(publishes=True)])]
    schedule.ranks = [program]
    stream = io.StringIO()
    with pytest.raises(ScheduleFormatError) as caught:
        dump_schedule(schedule, stream)
    assert sentence in str(caught.value)
    assert stream.getvalue() == ""


def test_limits_themselves_are_written(tmp_path):
    schedule = one_rank([copy_step(count=71)] * 256, channels=64)
    dump_schedule(schedule, tmp_path / "limits.xml")
    assert load_schedule(tmp_path / "limits.xml") == schedule

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""MSCCL++'s execution plans become schedules and come back; what is wrong is one sentence."""

from __future__ import annotations

import copy
import json

import pytest

from conftest import refusal
from inside import _core
from inside.core import Holder, StepType
from inside.schedules import files, mscclpp_json
from towpath import Schedule, verify

MEET = [
    {"name": "signal", "channel_ids": [0], "channel_type": "memory"},
    {"name": "wait", "channel_ids": [0], "channel_type": "memory"},
]


def local(buffer, index, size=1):
    return {"type": buffer, "index": index, "size": size}


def remote(index, size=1, buffer_id=0):
    return {"buffer_id": buffer_id, "index": index, "size": size}


def behind_switch(index, size=1):
    return {"switch_channel_id": 0, "index": index, "size": size}


def plan(*operations, blocks=None, **changes):
    """A plan of 2 GPUs in which both do the same, each with the other one."""
    gpus = [
        {
            "id": rank,
            "input_chunks": 4,
            "output_chunks": 4,
            "scratch_chunks": 4,
            "channels": [
                {"channel_type": "memory", "connected_to": [1 - rank, 1 - rank]},
                {"channel_type": "port", "connected_to": [1 - rank]},
                {
                    "channel_type": "switch",
                    "buffer_type": "i",
                    "rank_groups": [{"size": 2, "ranks": [0, 1]}],
                },
            ],
            "remote_buffers": [
                {"rank": 1 - rank, "type": "s", "access_channel_types": ["memory", "port"]},
                {"rank": 1 - rank, "type": "i", "access_channel_types": ["memory"]},
            ],
            "semaphores": [{"init_value": 0}, {"init_value": 2}],
            "threadblocks": [
                {
                    "id": number,
                    "ops": list(each),
                    "channels": [
                        {"channel_type": "memory", "channel_ids": [0, 1]},
                        {"channel_type": "port", "channel_ids": [0]},
                        {"channel_type": "switch", "channel_ids": [0]},
                    ],
                    "remote_buffer_refs": [
                        {"access_channel_type": "memory", "remote_buffer_ids": [0, 1]},
                        {"access_channel_type": "port", "remote_buffer_ids": [0]},
                    ],
                }
                for number, each in enumerate(blocks or [operations])
            ],
        }
        for rank in (0, 1)
    ]
    return {
        "name": "p", "collective": "allreduce", "protocol": "Simple", "inplace": True, "gpus": gpus,
    } | changes  # fmt: skip


@pytest.fixture
def load(tmp_path):
    def load_plan(content):
        path = tmp_path / "plan.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return mscclpp_json.load_schedule(path)

    return load_plan


def move(name, sources, destinations, channel_type="memory", **more):
    return {
        "name": name, "src_buff": sources, "dst_buff": destinations, "channel_type": channel_type,
    } | more  # fmt: skip


MOVES = {
    "put": (move("put", [local("i", 0)], [remote(1)]), [(Holder.own, 0)], [(Holder.peer, 1)]),
    "get": (move("get", [remote(1)], [local("s", 2)]), [(Holder.peer, 1)], [(Holder.own, 2)]),
    "res": (
        move("res", [local("i", 0), local("s", 1)], [local("i", 0), remote(2)]),
        [(Holder.own, 0), (Holder.own, 1)],
        [(Holder.own, 0), (Holder.peer, 2)],
    ),
    "rre": (
        move("rre", [local("i", 0), remote(1)], [local("i", 0)]),
        [(Holder.own, 0), (Holder.peer, 1)],
        [(Holder.own, 0)],
    ),
    "rres": (
        move("rres", [local("i", 0), remote(1)], [local("i", 3), remote(2)]),
        [(Holder.own, 0), (Holder.peer, 1)],
        [(Holder.own, 3), (Holder.peer, 2)],
    ),
    "glres": (
        move("glres", [behind_switch(1)], [behind_switch(1)], "switch"),
        [(Holder.group, 1)],
        [(Holder.group, 1)],
    ),
    "gstore": (
        move("gstore", [local("s", 3)], [behind_switch(1)], "switch"),
        [(Holder.own, 3)],
        [(Holder.group, 1)],
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_operation_is_a_direct_step_with_its_operands(name, load):
    operation, sources, destinations = MOVES[name]
    schedule = load(plan(operation))
    block = schedule.rank(0).blocks[0]
    assert [step.type for step in block.steps] == [StepType.direct]
    access = block.accesses[0]
    assert [(each.holder, each.chunk) for each in access.sources] == sources
    assert [(each.holder, each.chunk) for each in access.destinations] == destinations
    assert all(each.number == 1 for each in access.sources if each.holder == Holder.peer)


# Every operation that the format has; packets are put where they are read.
EVERYTHING = plan(
    blocks=[
        [
            {"name": "rlxsignal", "channel_ids": [0], "channel_type": "memory"},
            {"name": "rlxwait", "channel_ids": [0], "channel_type": "memory"},
            {"name": "nop"},
            *[operation for operation, _, _ in MOVES.values()],
            *MEET,
            {"name": "copy", "src_buff": [local("i", 0)], "dst_buff": [local("s", 0)]},
            move("re", [local("i", 0), local("s", 0)], [local("i", 0)]),
            move("re", [local("i", 0), local("s", 0), local("s", 1)], [local("i", 1)]),
            move("put", [local("i", 0)], [remote(1)], "port", channel_ids=[0]),
            move("pws", [local("i", 0)], [remote(1)], "port", channel_ids=[0]),
            move("pwsf", [local("i", 0)], [remote(1)], "port", channel_ids=[0]),
            {"name": "wait", "channel_ids": [0, 0], "channel_type": "port"},
            {"name": "flush", "channel_ids": [0], "channel_type": "port"},
            move("copy", [local("i", 0)], [local("s", 0)], tbg_info={"tb_id": 1, "tbg_size": 3}),
            {"name": "sem_release", "semaphore_ids": [0]},
            {"name": "barrier", "barrier_id": 5, "num_threadblocks": 2},
        ],
        [
            {"name": "sem_acquire", "semaphore_ids": [0]},
            {
                "name": "pipeline",
                "iter_context": {"unit_size": 64, "num_chunks": 2},
                "ops": [
                    {"name": "sem_acquire", "semaphore_ids": [1]},
                    {"name": "copy", "src_buff": [local("i", 2)], "dst_buff": [local("s", 2)]},
                    {"name": "nop"},
                    {"name": "sem_release", "semaphore_ids": [1]},
                ],
            },
            {"name": "barrier", "barrier_id": 5, "num_threadblocks": 2},
        ],
    ],
)
PACKETS = plan(
    move("ppkt", [local("i", 0)], [remote(0)]),
    move("cpkt", [local("i", 0)], [local("s", 1)]),
    move("rppkt", [local("s", 1)], [remote(2)]),
    move("upkt", [local("s", 0)], [local("o", 1)]),
    move("repkt", [local("i", 0), local("s", 2)], [local("i", 2)]),
    move("respkt", [local("i", 0), local("s", 2)], [local("i", 0), remote(3)]),
    move("recpkt", [local("i", 0), local("s", 3)], [local("i", 0), local("s", 4)]),
    move("recspkt", [local("i", 0), local("s", 4)], [local("i", 0), local("s", 5), remote(6)]),
    move("gstorepkt", [local("s", 6)], [behind_switch(7)], "switch"),
    protocol="LL", use_double_scratch_buffer=True,
)  # fmt: skip
for _gpu in PACKETS["gpus"]:
    _gpu["scratch_chunks"] = 8
    _gpu["channels"][2]["buffer_type"] = "s"
    _gpu["threadblocks"][0]["id"] = 0


@pytest.mark.parametrize("content", [EVERYTHING, PACKETS], ids=["everything", "packets"])
def test_plan_survives_export_and_import(content, load, tmp_path):
    content = copy.deepcopy(content)
    if content["protocol"] == "LL":  # both store to the group's packets; one of them has to go
        content["gpus"][1]["threadblocks"][0]["ops"].pop()
    schedule = load(content)
    mscclpp_json.dump_schedule(schedule, tmp_path / "again.json")
    assert mscclpp_json.load_schedule(tmp_path / "again.json") == schedule
    names = {operation["name"] for operation in _operations(content)}
    written = json.loads((tmp_path / "again.json").read_text())
    assert {operation["name"] for operation in _operations(written)} == names


def _operations(content):
    for gpu in content["gpus"]:
        for block in gpu["threadblocks"]:
            for operation in block["ops"]:
                yield operation
                yield from operation.get("ops", [])


def test_channels_are_matched_by_their_place_among_those_to_a_peer(load):
    content = plan({"name": "signal", "channel_ids": [1], "channel_type": "memory"})
    other = {"name": "wait", "channel_ids": [1], "channel_type": "memory"}
    content["gpus"][1]["threadblocks"][0]["ops"] = [other]
    schedule = load(content)
    signal, wait = (schedule.rank(rank).blocks[0].accesses[0].ends[0] for rank in (0, 1))
    assert (signal.peer, signal.channel) == (1, 1)
    assert (wait.peer, wait.channel) == (0, 1)


def test_header_becomes_fields(load):
    schedule = load(
        plan(
            {"name": "nop"}, collective="allgather", protocol="LL", inplace=False,
            reuse_resources=True, use_double_scratch_buffer=True, min_message_size=64,
            max_message_size=2**64 - 1,
        )
    )  # fmt: skip
    assert (schedule.name, schedule.collective) == ("p", _core.Collective.all_gather)
    assert (schedule.in_place, schedule.out_of_place) == (False, True)
    assert schedule.has_double_scratch and schedule.scratch_bytes_max == 64 << 20
    assert (schedule.size_bytes_min, schedule.size_bytes_max) == (64, 0)


def test_older_plans_call_the_buffer_of_a_switch_buff(load):
    content = plan(move("glres", [behind_switch(1)], [behind_switch(1)], "switch", channel_ids=[0]))
    for gpu in content["gpus"]:
        gpu["channels"][2]["buff"] = gpu["channels"][2].pop("buffer_type")
    assert load(content).groups == [[0, 1]]


def _changed(path, value):
    def change(content):
        place = content
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


_OPS = ("gpus", 0, "threadblocks", 0, "ops")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_changed(("protocol",), "LL128"), "protocol: is 'LL128'; choose one of Simple, LL"),
        (_changed(("inplace",), 1), "inplace: is '1'; it must be true or false"),
        (_changed(("gpus",), []), "gpus: is empty"),
        (_changed(("gpus", 1, "id"), 0), "gpus[1].id: is '0'; the next in order is 1"),
        (_changed(("gpus", 1, "input_chunks"), 3), "different numbers of input or output chunks"),
        (_changed(("gpus", 0, "extra"), 3), "gpus[0]: has the name 'extra'"),
        (_changed(("buffer_alignment",), 32), "buffer_alignment: is '32'; it must be 16 to 16"),
        (
            _changed((*_OPS, 0, "name"), "glre"),
            ".ops[0].name: is 'glre'; choose one of barrier, copy",
        ),
        (_changed((*_OPS, 0, "reduce_op"), "min"), "supports only sum"),
        (_changed((*_OPS, 0, "src_buff"), []), "has 0 sources; it must have at least"),
        (_changed((*_OPS, 0, "src_buff", 1, "buffer_id"), 2), "is '2'; it must be 0 to 1"),
        (_changed((*_OPS, 0, "src_buff", 0, "size"), 2), "all must have the same size"),
        (_changed((*_OPS, 0, "channel_type"), "port"), "is a rres over port channels"),
        (_changed((*_OPS, 0, "src_buff", 0, "index"), 4), "rank 0, thread block 0, step 0"),
        (_changed(_OPS, [{"name": "nop"}] * 65), "has 65 entries; it must have at most 64"),
        (_changed(_OPS, MEET), "rank 0, thread block 0, step 1: it waits for a signal"),
        (_changed(_OPS, [{"name": "sem_acquire", "semaphore_ids": [9]}]), "is '9'; it must be 0"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_place(change, words, load):
    content = plan(copy.deepcopy(MOVES["rres"][0]))
    change(content)
    sentence = refusal(load, content)
    assert words in sentence
    assert "plan.json" in sentence


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "plan.json:1: is not valid JSON"),
        ("[" * 100_000, "nests too deeply"),
        ('{"name": NaN}', "contains NaN"),
        ('{"name": 1, "name": 2}', "has the name 'name' twice"),
        ('{"name": ' + "9" * 5000 + "}", "a number that is too long"),
        ("[]", "is a list of 0; it must be an object"),
    ],
)
def test_text_that_is_no_plan(text, words, load):
    assert words in refusal(load, text)


def test_file_is_read_by_what_it_holds_and_written_by_its_name(tmp_path):
    schedule = _core.make_schedule("two_shot_multimem_all_reduce", ranks=4, channels=2)
    schedule.in_place = False
    path = tmp_path / "plan.json"
    files.dump_schedule(schedule, path)
    renamed = path.rename(tmp_path / "plan.txt")
    assert files.load_schedule(renamed) == schedule
    assert Schedule.load(renamed.read_bytes()) == Schedule(schedule)
    assert Schedule(schedule).to_json() == renamed.read_text()
    ring = _core.make_schedule("ring_all_reduce", ranks=4)
    files.dump_schedule(ring, tmp_path / "ring.xml")
    assert files.load_schedule(tmp_path / "ring.xml") == ring


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ring_all_reduce", "it runs in place and out of place"),
        ("nvls_all_reduce", "it is ordered by a dependency; MSCCL++ has semaphores"),
        ("all_pairs_all_gather", "it is a send; MSCCL++ has no FIFOs"),
    ],
)
def test_what_mscclpp_cannot_hold_is_refused(name, words, tmp_path):
    schedule = _core.make_schedule(name, ranks=4)
    if name != "ring_all_reduce":
        schedule.in_place = False
    assert words in refusal(mscclpp_json.dump_schedule, schedule, tmp_path / "plan.json")
    assert not (tmp_path / "plan.json").exists()


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("name", ["two_shot_pull_all_reduce", "nvls_all_gather"])
def test_our_own_schedules_are_right_after_the_way_through_a_plan(name, ranks, tmp_path):
    schedule = _core.make_schedule(name, ranks=ranks, channels=2)
    schedule.in_place = False
    mscclpp_json.dump_schedule(schedule, tmp_path / "plan.json")
    again = mscclpp_json.load_schedule(tmp_path / "plan.json")
    assert again == schedule
    assert verify(Schedule(again), size_bytes="64K").is_correct

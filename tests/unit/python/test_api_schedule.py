# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Schedules from a generator, a file or bytes; verdicts; studies of chips and links."""

import pytest

import towpath
from conftest import refusal
from inside import _core
from inside.collectives import size_of, sizes_of
from inside.schedules import Step, algorithms_within

HANGS = """<algo name="crossed" proto="Simple" nchannels="1" nchunksperloop="16" ngpus="2"
 coll="alltoall" inplace="0" outofplace="1" minBytes="0" maxBytes="0">
  <gpu id="0" i_chunks="16" o_chunks="16" s_chunks="0">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="8" dstbuf="o" dstoff="0" cnt="8" depid="-1"
 deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="8" cnt="8" depid="-1"
 deps="-1" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="8" depid="-1"
 deps="-1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="16" o_chunks="16" s_chunks="0">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="8" depid="-1"
 deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="8" depid="-1"
 deps="-1" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="cpy" srcbuf="i" srcoff="8" dstbuf="o" dstoff="8" cnt="8" depid="-1"
 deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
"""


@pytest.mark.parametrize("algorithm", towpath.algorithms(), ids=lambda each: each.name)
def test_every_algorithm_generates_a_correct_schedule_that_survives_a_file(algorithm, tmp_path):
    grid = {"columns": 2} if algorithm.name.startswith("grid_") else {}
    schedule = towpath.Schedule.generate(
        algorithm.collective, algorithm=algorithm.name, ranks=4, **grid
    )
    assert (schedule.collective, schedule.ranks) == (algorithm.collective, 4)
    verdict = towpath.verify(schedule, size_bytes="64K", dtype="half")
    assert verdict.is_correct and verdict.problems == ()
    if algorithm.name not in algorithms_within(algorithm.collective, (_core.Reach.fifo,)):
        return  # test_mscclpp_json.py
    if algorithm.name == "send_receive_all_to_all":
        with pytest.raises(towpath.ConfigError, match="half of the threads of a block"):
            schedule.to_xml()
        return
    schedule.save(tmp_path / "schedule.xml")
    assert towpath.Schedule.load(tmp_path / "schedule.xml") == schedule
    assert towpath.Schedule.load(schedule.to_xml().encode()).fingerprint == schedule.fingerprint


def test_a_schedule_has_its_figures_and_steps():
    schedule = towpath.Schedule.generate("broadcast", ranks=3, root=1, protocol="ll", channels=2)
    assert (schedule.root, schedule.protocol, schedule.channels) == (1, "LL", 2)
    assert schedule.in_place or schedule.out_of_place
    sends = [step for step in schedule.steps() if step.rank == 1 and step.send_peer is not None]
    assert isinstance(sends[0], Step)
    assert sends[0].receive_peer is None
    assert {step.channel for step in sends} == {0, 1}
    assert repr(schedule) == "Schedule('ring_broadcast', broadcast, 3 ranks, LL, 2 channels)"
    assert schedule != towpath.Schedule.generate("broadcast", ranks=3)
    assert len({schedule, towpath.Schedule.generate("broadcast", ranks=3)}) == 2


def test_wrong_schedules_are_refused():
    generate = towpath.Schedule.generate
    assert "all_reduce" in refusal(generate, "all_redce", ranks=2)
    assert "ring_all_reduce" in refusal(generate, "all_reduce", algorithm="rnig", ranks=2)
    assert "spread evenly" in refusal(generate, "all_reduce", ranks=3, hosts=2)
    assert "not valid XML" in refusal(towpath.Schedule.load, b"nonsense")
    assert "cannot be read" in refusal(towpath.Schedule.load, "/nonexistent/schedule.xml")


def test_a_schedule_that_hangs_says_from_which_size_and_who_waits_for_whom():
    schedule = towpath.Schedule.load(HANGS.encode())
    small = towpath.verify(schedule, size_bytes=1024)
    assert small.is_correct, small.problems
    assert small.hangs_from_bytes > 1024
    verdict = towpath.verify(schedule, size_bytes="64M")
    assert not verdict.is_correct
    problem = verdict.problems[0]
    assert (problem.kind, problem.rank, problem.step) == ("deadlock", 0, 0)
    assert verdict.to_dict()["problems"][0]["sentence"] == problem.sentence
    assert repr(verdict) == "Verdict('crossed', 67108864 bytes, 1 problems)"
    machine = towpath.load("dgx-h100", hosts=1)
    with pytest.raises(towpath.DeadlockError) as caught:
        machine.run(schedule, size_bytes="64M", data=False)
    assert len(caught.value.cycle) == 2
    assert "waits for a free slot from rank 1" in caught.value.cycle[0]
    assert machine.run(schedule, size_bytes=1024).wrong == 0


def test_sizes_are_numbers_texts_or_several():
    assert size_of("1M") == size_of(1 << 20) == 1 << 20
    assert sizes_of("8:64:2") == [8, 16, 32, 64]
    assert sizes_of(["1K", 8]) == [1024, 8]
    numpy = pytest.importorskip("numpy")
    assert sizes_of(numpy.array([8, 16])) == [8, 16]
    assert "16 TiB" in refusal(size_of, 1 << 50)


def test_links_between_chips_are_measured():
    chips = towpath.load("n300")
    pings = chips.link_ping((0, 1), payload_bytes=16, samples=3)
    assert len(pings) == 3
    assert all(ping.send_and_receive_ns > ping.wait_ns > 0 for ping in pings)
    one_way = chips.link_bandwidth((0, 1), message_bytes=4096, messages=200)
    assert 5 < one_way < 12.5
    duplex = chips.duplex_bandwidth((0, 1), packet_bytes=4096, channels=4)
    assert one_way < duplex < 25
    ring = towpath.load("t3000").ring_ping([0, 1], samples=2)
    assert len(ring) == 2 and min(ring) > 100


def test_routes_are_planned_from_lists_of_chips():
    planned = towpath.load("t3000").routes([[0, 1, 2], [2, 3]])
    assert planned.chip_lists == [[0, 1, 2], [2, 3]]
    assert planned.best.timesteps <= planned.given.timesteps
    assert "no link" in refusal(towpath.load("t3000").routes, [[0, 7]])


def test_virtual_channels_are_studied_on_part_of_a_chip(tmp_path):
    chip = towpath.load("wormhole")
    study = chip.study(
        size_bytes=[64], patterns=["one_to_one"], nocs=[0], vcs=[1, 2], transactions=8,
        workers=(2, 1), follow_ups=False, jobs=1,
    )  # fmt: skip
    assert len(study.parts["patterns"]) == 2
    for row in study.parts["patterns"]:
        assert row["bandwidth_bytes_per_cycle"] > 0
    assert repr(study).startswith("NocStudy('wormhole', 2 rows, ")
    assert "did you mean 'one_to_one'" in refusal(chip.study, patterns=["one_to_oen"])
    assert "whole flits" in refusal(chip.study, size_bytes=[33])
    assert "vcs has 9" in refusal(chip.study, vcs=[9])
    assert "workers is 99 x 1" in refusal(chip.study, workers=(99, 1))


def test_a_table_is_validated(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("nodes,gpus,config,size_bytes,time_us_out_of_place\n1,8,default,1048576,60\n")
    validation = towpath.validate(table)
    assert validation.rows[0]["measured"] == 60
    assert validation.rows[0]["predicted"] > 0
    other = tmp_path / "other.csv"
    other.write_text("colour\nred\n")
    assert "fit no known table" in refusal(towpath.validate, other)


def one_shot(orders):
    """An all_reduce in XML in which each rank adds the inputs of all in its own order."""
    ranks = len(orders)
    gpus = []
    for rank, order in enumerate(orders):
        peers = [peer for peer in range(ranks) if peer != rank]
        blocks = [
            f'<tb id="{number}" send="{peer}" recv="{peer}" chan="0">'
            f'<step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="s" dstoff="{rank}" cnt="1" '
            'depid="-1" deps="-1" hasdep="0"/>'
            f'<step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="s" dstoff="{peer}" cnt="1" '
            'depid="-1" deps="-1" hasdep="1"/></tb>'
            for number, peer in enumerate(peers)
        ]
        # An own copy first, then the sum of three in the rank's order.
        steps = []
        for number, peer in enumerate(order):
            kind, own = ("cpy", "o") if number == 0 else ("re", "o")
            source = ("i", 0) if peer == rank else ("s", peer)
            waits = -1 if peer == rank else peers.index(peer)
            steps.append(
                f'<step s="{number}" type="{kind}" srcbuf="{source[0]}" srcoff="{source[1]}" '
                f'dstbuf="{own}" dstoff="0" cnt="1" depid="{waits}" '
                f'deps="{-1 if waits < 0 else 1}" hasdep="0"/>'
            )
        adder = f'<tb id="{ranks - 1}" send="-1" recv="-1" chan="0">{"".join(steps)}</tb>'
        gpus.append(
            f'<gpu id="{rank}" i_chunks="1" o_chunks="1" s_chunks="{ranks}">{"".join(blocks)}'
            f"{adder}</gpu>"
        )
    return (
        f'<algo name="oneshot" nchannels="1" nchunksperloop="1" proto="Simple" ngpus="{ranks}" '
        f'coll="allreduce" inplace="0">{"".join(gpus)}</algo>'
    )


@pytest.mark.parametrize(
    ("orders", "remarks"),
    [
        ([(0, 1, 2)] * 3, 0),
        ([(1, 0, 2), (0, 1, 2), (0, 1, 2)], 0),  # a + b is b + a
        ([(0, 1, 2), (1, 2, 0), (0, 1, 2)], 1),
    ],
)
def test_ranks_that_add_in_different_orders_are_a_remark(orders, remarks):
    verdict = towpath.verify(towpath.Schedule.load(one_shot(orders).encode()), size_bytes="64K")
    assert verdict.is_correct, verdict.problems
    assert len(verdict.remarks) == len(verdict.to_dict()["remarks"]) == remarks
    assert all("different orders" in remark for remark in verdict.remarks)


@pytest.mark.parametrize("algorithm", [each.name for each in towpath.algorithms("all_reduce")])
def test_own_algorithms_add_in_the_same_order_on_all_ranks(algorithm):
    try:
        schedule = towpath.Schedule.generate("all_reduce", algorithm=algorithm, ranks=8, hosts=2)
    except towpath.TowpathError:
        schedule = towpath.Schedule.generate("all_reduce", algorithm=algorithm, ranks=8)
    assert towpath.verify(schedule, size_bytes="1M").remarks == ()

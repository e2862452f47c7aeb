# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from inside import _core
from inside.machines import EthernetEnd, catalogue
from inside.studies import parse_routes, plan_routes
from towpath import ConfigError

RING = """\
form: chip_cluster
name: ring
description: four chips, one link to each neighbour
source: chosen
chips:
  - {chip: wormhole, x: 0, y: 0}
  - {chip: wormhole, x: 1, y: 0}
  - {chip: wormhole, x: 1, y: 1}
  - {chip: wormhole, x: 0, y: 1}
links: [[0/0, 1/1], [1/0, 2/1], [2/0, 3/1], [3/0, 0/1]]
"""
OPPOSITE = ["0-1-2", "1-2-3", "2-3-0", "3-0-1"]


def ring():
    return catalogue.parse_chip_cluster(RING, "ring.yaml")


def test_the_order_of_four_routes_round_a_ring_halves_their_timesteps():
    planned = plan_routes(ring(), parse_routes(OPPOSITE))
    assert (planned.given.timesteps, planned.best.timesteps) == (8, 4)
    assert planned.is_best
    assert planned.best.order == [0, 2, 1, 3]
    assert planned.best.commands[EthernetEnd(0, 0)] == [(1, "send", 0, 0), (4, "send", 3, 1)]
    assert planned.best.commands[EthernetEnd(1, 1)] == [(1, "receive", 0, 0), (4, "receive", 3, 1)]
    assert planned.best.time_us is None


def test_with_packets_the_lists_run_as_kernels():
    planned = plan_routes(ring(), parse_routes(OPPOSITE), packet_bytes=16 << 10)
    assert planned.given.time_us / planned.best.time_us == pytest.approx(2, rel=0.15)
    small = plan_routes(ring(), parse_routes(OPPOSITE), packet_bytes=16)
    # At 12.5 GB/s, over the four timesteps of the best order.
    assert planned.best.time_us - small.best.time_us > 4 * (16 << 10) / 12.5e3
    assert f"4 timesteps, {planned.best.time_us:.2f} us" in planned.text()
    with pytest.raises(ConfigError, match="packets have 24 bytes; they must have"):
        plan_routes(ring(), parse_routes(OPPOSITE), packet_bytes=24)


def test_the_table_has_a_row_per_core_and_a_column_per_timestep():
    planned = plan_routes(ring(), parse_routes(OPPOSITE))
    assert planned.best.table() == "\n".join(
        (
            "core          1  2  3  4",
            "0 E0         0>  .  . 3>",
            "0 E1          . >2 >3  .",
            "1 E0          . 0> 1>  .",
            "1 E1         >0  .  . >3",
            "2 E0         2>  .  . 1>",
            "2 E1          . >0 >1  .",
            "3 E0          . 2> 3>  .",
            "3 E1         >2  .  . >1",
        )
    )
    text = planned.text()
    assert "4 routes of 8 hops on ring" in text
    assert "in the given order: 8 timesteps" in text
    assert "in the order 0 2 1 3: 4 timesteps (no order takes fewer)" in text


def test_long_tables_go_on_below():
    planned = plan_routes(ring(), [[0, 1]] * 60)
    lines = planned.given.table().splitlines()
    assert max(map(len, lines)) <= 100
    assert "60" in lines[-3].split()
    assert "no better order was found (no order takes fewer)" in planned.text()


def test_every_core_does_one_command_per_timestep():
    spec = catalogue.shipped_chip_cluster("galaxy")
    chips = [[y * 8 + x for x in range(8)] for y in range(4)]
    lists = chips + [row[::-1] for row in chips] + [[x + 8 * y for y in range(4)] for x in range(8)]
    planned = plan_routes(spec, lists * 3, candidates_max=200)
    for schedule in (planned.given, planned.best):
        for commands in schedule.commands.values():
            steps = [step for step, *_ in commands]
            assert steps == sorted(set(steps))
        assert schedule.timesteps >= planned.timesteps_min
    assert planned.best.timesteps <= planned.given.timesteps


def test_a_json_object_holds_all_of_it():
    data = json.loads(json.dumps(plan_routes(ring(), parse_routes(OPPOSITE)).to_dict()))
    assert data["best"]["timesteps"] == 4
    assert {"core": "0/0", "timestep": 4, "command": "send", "route": 3, "hop": 1} in (
        data["best"]["commands"]
    )


def test_any_lists_can_be_executed_and_a_deadlock_is_a_sentence():
    routes = _core.route_over_links(ring().build(), parse_routes(OPPOSITE))
    lists = {}
    for hop in range(2):
        for number, route in enumerate(routes):
            for core, kind in ((route[hop].sender, "send"), (route[hop].receiver, "receive")):
                command = _core.Command(_core.Command.Kind[kind], number, hop)
                lists.setdefault(core, []).append(command)
    lists = [_core.CoreCommands(core, commands) for core, commands in lists.items()]
    outcome, deadlock = _core.execute_routes(routes, lists)
    assert outcome.timesteps == 0
    assert deadlock.startswith("hop 1 of route 0 (1/0 to 2/1) waits for hop 1 of route 1")
    assert deadlock.count("to free a buffer of") == 4
    outcome, deadlock = _core.execute_routes(routes, lists, buffers_per_core=2)
    assert (outcome.timesteps, deadlock) == (2, "")


@pytest.mark.parametrize(
    "text", ["0", "", "0-", "-1-2", "0-1-x", "0,1", "0-99999", "0- 1", "0-1\n"]
)
def test_a_route_is_chips_with_dashes_between_them(text):
    with pytest.raises(ConfigError, match="must be two chips or more, such as 0-1-2"):
        parse_routes(["0-1", text])


def test_chips_of_a_route_are_joined():
    with pytest.raises(ConfigError, match="route 1 goes from chip 0 to chip 2, between which"):
        plan_routes(ring(), parse_routes(["0-1", "0-2"]))
    with pytest.raises(ConfigError, match="cluster 'ring': has no chip 9; it has 0 to 3"):
        plan_routes(ring(), parse_routes(["0-9"]))
    with pytest.raises(ConfigError, match="there are 0 routes; there must be 1 to 1000"):
        parse_routes([])

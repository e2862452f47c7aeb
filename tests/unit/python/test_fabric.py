# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import pytest

import towpath
from inside import _core
from inside.cli import main as cli
from inside.collectives import Call, fabric
from inside.machines import catalogue, shipped
from inside.schedules import ScheduleSource


def run(machine, collective, sizes, algorithm=None):
    """The collective's first algorithm unless told, as `towpath run` takes it."""
    return towpath.load(machine).run(
        collective, size_bytes=sizes, algorithm=algorithm, protocol="Simple"
    )


def neighbours(cluster, shape, places):
    chips = [shape.chips[place] for place in places]
    pairs = zip(chips, chips[1:] + chips[:1], strict=True)
    return [bool(cluster.channels_to(one, other, with_reserved=False)) for one, other in pairs]


@pytest.mark.parametrize("name", ["t3000", "galaxy", "galaxy-torus"])
def test_ranks_follow_a_ring_through_all_chips(name):
    cluster = catalogue.load_chip_cluster(name).build()
    places = fabric.ranks_in_ring(cluster)
    assert sorted(places) == list(range(len(cluster.chips)))
    assert all(neighbours(cluster, _core.FabricShape.usual(cluster), places))


def mesh(width, height):
    chip = shipped.chip("blackhole").build()
    chips = [_core.ClusterChip(chip, x=x, y=y) for y in range(height) for x in range(width)]
    rows = [(n, n + 1) for n in range(width * height) if (n + 1) % width != 0]
    columns = [(n, n + width) for n in range(width * (height - 1))]
    links = [_core.EthernetLink((one, 0), (other, 1)) for one, other in rows]
    links += [_core.EthernetLink((one, 2), (other, 3)) for one, other in columns]
    return _core.ChipCluster(name="mesh", chips=chips, links=links)


@pytest.mark.parametrize("width, height", [(3, 3), (5, 3), (3, 5), (1, 4), (4, 1), (1, 3), (4, 3)])
def test_neighbouring_ranks_are_neighbouring_chips_where_there_is_no_ring_too(width, height):
    cluster = mesh(width, height)
    places = fabric.ranks_in_ring(cluster)
    assert sorted(places) == list(range(width * height))
    assert all(neighbours(cluster, _core.FabricShape.usual(cluster), places)[:-1])


@pytest.mark.parametrize(
    "arguments",
    [
        "run all_reduce", "run all_gather --channels 1",
        "run all_reduce --algorithm grid_all_reduce",
        "tune all_reduce", "tune ethernet", "bench ethernet",
    ],
)  # fmt: skip
def test_a_chip_on_its_own_is_one_sentence(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["towpath", *arguments.split(), "--machine", "p150"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    printed = capsys.readouterr()
    assert (end.value.code, printed.out) == (2, "")
    (sentence,) = printed.err.splitlines()
    assert "'p150' has no link between chips" in sentence
    assert "such as n300" in sentence
    assert list(tmp_path.iterdir()) == []


def test_the_planes_are_those_that_the_dispatcher_leaves():
    assert fabric.planes(catalogue.load_chip_cluster("n300").build()) == 1
    assert fabric.planes(catalogue.load_chip_cluster("t3000").build()) == 1
    assert fabric.planes(catalogue.load_chip_cluster("galaxy").build()) == 4


@pytest.mark.parametrize("machine", ["n300", "t3000"])
@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
def test_collectives_run_on_chips_with_the_right_data(machine, collective):
    result = run(machine, collective, "1000:70000:69000")
    assert result.wrong == 0
    assert all(row.out_of_place.time_us > 0 for row in result.rows)


@pytest.mark.parametrize("algorithm", ["line_all_gather", "line_reduce_scatter", "line_all_reduce"])
def test_lines_run_on_chips_with_the_right_data(algorithm):
    collective = algorithm.removeprefix("line_")
    assert run("t3000", collective, "50000:50000", algorithm).wrong == 0


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter"])
def test_grids_run_on_chips_with_the_right_data(collective):
    assert run("t3000", collective, "50000:50000", f"grid_{collective}").wrong == 0


@pytest.mark.parametrize("machine", ["n300", "t3000", "blackhole-line"])
@pytest.mark.parametrize("channels", [1, 4])
def test_sums_from_both_sides_are_right(machine, channels):
    result = towpath.load(machine).run(
        "reduce_scatter", size_bytes="4000,33000,300000", algorithm="half_ring_reduce_scatter",
        protocol="Simple", channels=channels,
    )  # fmt: skip
    assert result.wrong == 0


# Up to where the line is the bound, and no router's own work.
@pytest.mark.slow
@pytest.mark.parametrize(("size", "share"), [("64K", 0.85), ("256K", 0.85), ("1M", 1)])
def test_from_both_sides_takes_less_than_once_round(size, share):
    half, whole = (
        run("t3000", "reduce_scatter", f"{size}:{size}", algorithm).rows[0].out_of_place.time_us
        for algorithm in ("half_ring_reduce_scatter", "ring_reduce_scatter")
    )
    assert half < share * whole


def test_a_grid_has_its_machines_columns_and_rings():
    def grid(name):
        cluster = catalogue.load_chip_cluster(name).build()
        return fabric.grid_of(_core.FabricShape.mesh(cluster))

    assert grid("t3000") == {"columns": 4, "row_rings": False, "column_rings": False}
    assert grid("galaxy-torus") == {"columns": 8, "row_rings": True, "column_rings": True}
    assert grid("blackhole-line") == {"columns": 8, "row_rings": False, "column_rings": False}


def test_the_same_round_trip_takes_the_same_time():
    cluster = catalogue.load_chip_cluster("t3000").build()
    shape = _core.FabricShape.usual(cluster)
    times = {
        _core.fabric_round_trip(cluster, shape, source=0, destination=3, payload_bytes=256).total_ns
        for _ in range(2)
    }
    assert len(times) == 1


def test_a_round_trip_is_told_apart():
    cluster = catalogue.load_chip_cluster("t3000").build()
    shape = _core.FabricShape.usual(cluster)
    ends = {"source": 0, "destination": 1, "payload_bytes": 4096}
    trip = _core.fabric_round_trip(cluster, shape, **ends)
    # Three writes of 22 cycles and what tells the router; the payload takes 1.25 cycles a flit.
    assert trip.response_ns == 3 * 22 + 36
    assert trip.flush_ns == pytest.approx(128 * 1.25 - (trip.response_ns - 44), abs=16)
    assert trip.total_ns > trip.flush_ns + trip.response_ns
    other_way = _core.fabric_round_trip(cluster, shape, **ends, worker_noc=1)
    assert other_way.total_ns != trip.total_ns


def test_a_message_goes_all_round_a_ring():
    cluster = catalogue.load_chip_cluster("t3000").build()
    shape = _core.FabricShape.usual(cluster)

    def trip(to):
        return _core.fabric_round_trip(cluster, shape, source=0, destination=to, payload_bytes=16)

    # Eight hops, against one, and four there and four back.
    assert trip(0).response_ns == 0
    assert trip(0).total_ns / trip(1).total_ns == pytest.approx(8 / 2, rel=0.15)
    assert trip(0).total_ns < trip(4).total_ns - trip(4).response_ns


@pytest.mark.parametrize(
    ("streams", "figures", "sentence"),
    [
        ([(0, 0)], {}, "goes from place 0 to itself"),
        ([(0, 9)], {}, "place 9 .* it has 0 to 7"),
        ([(-1, 0)], {}, "place -1 .* it has 0 to 7"),
        ([], {}, "no streams"),
        ([(0, 1)], {"packets": 0}, "0 packets"),
        ([(0, 1)], {"payload_bytes": 0}, "payload of 0 bytes"),
        ([(0, 1)], {"payload_bytes": 6}, "payload of 6 bytes"),
        ([(0, 1)], {"payload_bytes": 1 << 16}, "payload of 65536 bytes"),
        ([(0, 1), (0, 2)], {}, "streams 0 and 1 leave place 0 over the same link"),
    ],
)
def test_streams_that_cannot_be_are_refused(streams, figures, sentence):
    cluster = catalogue.load_chip_cluster("t3000").build()
    shape = _core.FabricShape.usual(cluster)
    with pytest.raises(ValueError, match=sentence):
        _core.fabric_stream_gb_per_s(cluster, shape, streams, **{"payload_bytes": 64} | figures)


@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        ({"source": 0, "destination": 8}, "place 8 .* it has 0 to 7"),
        ({"source": 0, "destination": 1, "payload_bytes": 6}, "payload of 6 bytes"),
    ],
)
def test_pings_that_cannot_be_are_refused(ends, sentence):
    cluster = catalogue.load_chip_cluster("t3000").build()
    shape = _core.FabricShape.usual(cluster)
    with pytest.raises(ValueError, match=sentence):
        _core.fabric_round_trip(cluster, shape, **{"payload_bytes": 64} | ends)


def test_a_ping_round_a_line_is_refused():
    cluster = catalogue.load_chip_cluster("blackhole-line").build()
    shape = _core.FabricShape.usual(cluster)
    with pytest.raises(ValueError, match="goes around a ring, but the chips do not form one"):
        _core.fabric_round_trip(cluster, shape, source=2, destination=2, payload_bytes=64)


def test_two_streams_at_once_are_as_fast_as_the_slower_one():
    cluster = catalogue.load_chip_cluster("t3000").build()
    shape = _core.FabricShape.usual(cluster)

    def rate(streams):
        return _core.fabric_stream_gb_per_s(cluster, shape, streams, payload_bytes=4096, packets=40)

    alone = rate([(0, 1)])
    assert 1 < alone < 12.5
    assert rate([(0, 1), (4, 5)]) == pytest.approx(alone, rel=0.01)


def test_a_shape_with_neighbours_that_no_link_joins_is_refused():
    cluster = catalogue.load_chip_cluster("t3000").build()
    with pytest.raises(ValueError, match="no link between them is available"):
        _core.fabric_planes(cluster, _core.FabricShape.line([0, 6]))


def test_a_run_may_have_packets_of_another_size():
    cluster = catalogue.load_chip_cluster("blackhole-line").build()
    shape = _core.FabricShape.line([0, 1, 2, 3])
    plan = Call(ScheduleSource(None, "all_gather", "line_all_gather", 4).schedule()).plan(1 << 20)

    def sent(**options):
        run = _core.SimulatedRun.on_chips(cluster, plan, carries_data=False, shape=shape, **options)
        run.invoke(plan)
        return sum(messages for _, _, messages in run.loads)

    assert sent(payload_bytes=2048) > 1.5 * sent() > 1.5 * sent(payload_bytes=8192)

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of tables measured on chips: the programs they become, by hand, and what is made of runs."""

import random

import pytest

import fake_traffic
from fake_traffic import CALL, LATENCY, Spec, TrafficStep, chip
from inside.pages import validation_text
from inside.replay import replay_module
from inside.validation import (
    FLIT_HOPS_MAX,
    START_SPREAD_CYCLES,
    Amount,
    CannotSimulate,
    Cast,
    Context,
    Outcome,
    Pattern,
    amount_of,
    cast_of,
    find_table,
    half_of,
    noc_patterns,
    pattern_of,
    place_carefully,
    place_randomly,
    programs,
    read_table,
    run_scaled,
    validate,
    validate_table,
)
from inside.validation import noc as validate_noc
from towpath import ConfigError
from trace_example import event, write, zone

COLUMNS = (
    "arch,pattern,memory,mechanism,num_transactions,num_subordinates,same_axis,stateful,loopback,"
    "transaction_bytes,cycles"
)
PATTERNS, DRAM, TRACES = validate_noc.NOC_KINDS
KERNEL_CODE = noc_patterns._KERNEL_CODE
FREE = noc_patterns._LoopCode(destination_cycles=0, loop_cycles=0)


@pytest.fixture(autouse=True)
def simulator(monkeypatch):
    monkeypatch.setattr(validate_noc, "_spec", lambda name: Spec())
    monkeypatch.setattr(validate_noc, "_chip", lambda name: chip())
    monkeypatch.setattr(validate_noc, "_whole_chip", lambda name: chip())
    free = {"wormhole_b0": noc_patterns._KernelCode(of_write=FREE, of_read=FREE)}
    monkeypatch.setattr(noc_patterns, "_KERNEL_CODE", free)
    return fake_traffic.install(monkeypatch, noc_patterns, validate_noc, replay_module)


def row(text, columns=COLUMNS):
    return dict(zip(columns.split(","), text.split(","), strict=True))


def pattern(name, mechanism="unicast", subordinates=0, **changes):
    fields = {"same_axis": True, "has_state": False, "includes_source": False} | changes
    return Pattern(name, mechanism, subordinates, **fields)


def wormhole_row(pattern_name, mechanism="unicast", transactions=1, subordinates=0, loopback=False):
    return row(
        f"wormhole_b0,{pattern_name},l1,{mechanism},{transactions},{subordinates},True,False,"
        f"{loopback},64,100"
    )


# --- who moves what to whom -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "same_axis", "subordinate"),
    [("one_to_one", True, (0, 1)), ("one_to_one", False, (1, 1)), ("one_from_one", False, (1, 1))],
)
def test_a_single_subordinate_is_beside_its_master(name, same_axis, subordinate):
    assert cast_of(pattern(name, same_axis=same_axis), chip()) == Cast(((0, 0),), (subordinate,))


def test_the_master_of_a_square_stands_beside_it():
    cast = cast_of(pattern("one_to_all", subordinates=9), chip())
    assert cast.masters == ((3, 0),)
    assert cast.subordinates == (
        (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["one_to_all", "one_from_all"])
def test_of_the_full_grid_the_master_is_left_out_and_dispatch_keeps_a_row(name):
    cast = cast_of(pattern(name, subordinates=55), chip())
    assert cast.masters == ((0, 0),)
    assert len(cast.subordinates) == 55 and cast.subordinates[:2] == ((0, 1), (0, 2))
    assert cast.subordinates[-1] == (7, 6)  # 8 x 7 of 8 x 8


def test_on_a_chip_that_loses_a_column_the_full_grid_is_narrower():
    wide = chip(worker_columns=12, worker_rows=10)
    cast = cast_of(pattern("all_to_all", subordinates=110), wide)
    assert cast.masters == cast.subordinates
    assert len(cast.masters) == 110 and cast.masters[-1] == (10, 9)


def test_rows_and_columns_hold_their_own_masters_when_all_are_masters():
    row_cast = cast_of(pattern("row_to_row", subordinates=8), chip())
    assert row_cast.masters == row_cast.subordinates == tuple((x, 0) for x in range(8))
    column_cast = cast_of(pattern("one_to_column", subordinates=6), chip())
    assert column_cast == Cast(((0, 0),), tuple((0, y) for y in range(1, 7)))


@pytest.mark.parametrize(
    ("name", "count", "inside", "masters", "corners"),
    [
        ("one_to_all", 25, True, [(0, 0)], [(0, 0), (4, 4)]),
        ("one_to_all", 25, False, [(5, 0)], [(0, 0), (4, 4)]),
        ("one_to_all", 56, True, [(0, 0)], [(0, 0), (7, 6)]),
        ("one_to_row", 8, True, [(0, 0)], [(0, 0), (7, 0)]),
        ("one_to_row", 8, False, [(0, 1)], [(0, 0), (7, 0)]),
        ("one_to_column", 7, False, [(1, 0)], [(0, 0), (0, 6)]),
        ("row_to_row", 8, False, [(x, 1) for x in range(8)], [(0, 0), (7, 0)]),
        ("column_to_column", 7, True, [(0, y) for y in range(7)], [(0, 0), (0, 6)]),
    ],
)
def test_a_multicast_goes_to_a_rectangle_with_its_source_in_it_or_beside_it(
    name, count, inside, masters, corners
):
    cast = cast_of(pattern(name, "multicast", count, includes_source=inside), chip())
    assert (list(cast.masters), list(cast.subordinates)) == (masters, corners)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (pattern("all_to_all", subordinates=50), "neither a square nor all of the chip's 8 x 8"),
        (
            pattern("one_to_all", subordinates=64),
            r"needs logical core \(8, 0\); the chip has 8 x 8",
        ),
        (pattern("one_to_row", "multicast", 9), r"needs logical core \(8, 0\)"),
        (pattern("all_to_all", "multicast", 4), "has no multicast"),
    ],
)
def test_cores_that_a_chip_has_not_are_named(wanted, reason):
    with pytest.raises(CannotSimulate, match=reason):
        cast_of(wanted, chip())


# --- programs -------------------------------------------------------------------------------------


def test_every_master_walks_the_same_subordinates():
    wanted = pattern("all_to_all", subordinates=4)
    every = programs(wanted, chip(), transactions=3, transaction_bytes=512)
    assert [program.core for program in every] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    fields = {"size_bytes": 512, "count": 3, "has_state": False, "first_vc": 0}
    for program in every:
        assert program.noc == 0
        assert program.steps == [
            *(TrafficStep("write", to=to, **fields) for to in [(1, 1), (1, 2), (2, 1), (2, 2)]),
            TrafficStep("write_barrier"),
        ]


def test_several_masters_start_by_chance_and_one_at_once():
    wanted = pattern("all_from_all", subordinates=56)
    starts = [
        [program.start_cycle for program in programs(wanted, chip(), 1, 64, seed)]
        for seed in (1, 1, 2)
    ]
    assert starts[0] == starts[1] != starts[2]
    assert 0 <= min(starts[0]) < 20 and 180 < max(starts[0]) <= START_SPREAD_CYCLES
    (alone,) = programs(pattern("one_to_all", subordinates=55), chip(), 1, 64, seed=2)
    assert alone.start_cycle == 0


def test_a_stateful_read_ends_in_a_read_barrier():
    (program,) = programs(pattern("one_from_one", has_state=True), chip(), 256, 64)
    assert program.steps == [
        TrafficStep("read", to=(1, 2), size_bytes=64, count=256, has_state=True),
        TrafficStep("read_barrier"),
    ]


def test_reading_an_argument_per_subordinate_costs_what_the_kernels_code_takes(monkeypatch):
    monkeypatch.setattr(noc_patterns, "_KERNEL_CODE", KERNEL_CODE)
    for transactions, cycles in (1, 13), (4, 13 + 6):
        (program,) = programs(pattern("one_to_row", subordinates=2), chip(), transactions, 64)
        assert [step.kind for step in program.steps] == [
            "work", "write", "work", "write", "write_barrier",
        ]  # fmt: skip
        assert [step.cycle for step in program.steps if step.kind == "work"] == [cycles, cycles]


def test_a_linked_multicast_is_one_step_to_physical_corners():
    # Logical rows 0 to 6 are rows 1 to 5, 7 and 8; columns 0 to 7 are 1 to 4 and 6 to 9.
    wanted = pattern("one_to_all", "multicast_linked", 56, includes_source=True)
    (program,) = programs(wanted, chip(), 16, 2048)
    assert program.core == (1, 1)
    assert program.steps == [
        TrafficStep(
            "multicast", to=(1, 1), to_last=(9, 8), size_bytes=2048, count=16, first_vc=4,
            linked=True, includes_source=True, last_call_cycles=20,
        ),
        TrafficStep("write_barrier"),
    ]  # fmt: skip
    (unlinked,) = programs(
        pattern("one_to_all", "multicast", 56, includes_source=True), chip(), 16, 2048
    )
    assert unlinked.steps[0].fields["last_call_cycles"] == 0


# --- rows -----------------------------------------------------------------------------------------


def test_a_row_says_who_and_how_much_to_each():
    own = row("wormhole_b0,one_to_all,l1,unicast,880,55,True,False,False,1024,20610")
    wanted = pattern_of(own)
    assert wanted == pattern("one_to_all", subordinates=55)
    assert amount_of(own, wanted) == Amount(16, 1024)
    own = row("blackhole,one_to_row,l1,multicast_linked,64,11,True,False,True,4096,9000")
    wanted = pattern_of(own)
    assert wanted == pattern("one_to_row", "multicast_linked", 11, includes_source=True)
    assert amount_of(own, wanted) == Amount(64, 4096)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("wormhole_b0,one_to_one,dram,unicast,1,0,True,False,False,64,9", "memory is 'dram'"),
        ("wormhole_b0,some,l1,unicast,1,0,True,False,False,64,9", "pattern is 'some'"),
        ("wormhole_b0,one_to_one,l1,magic,1,0,True,False,False,64,9", "mechanism is 'magic'"),
        ("wormhole_b0,one_to_one,l1,unicast,0,0,True,False,False,64,9", "num_transactions is '0'"),
        ("wormhole_b0,one_to_one,l1,unicast,1,0,yes,False,False,64,9", "same_axis is 'yes'"),
        ("wormhole_b0,one_to_all,l1,unicast,7,4,True,False,False,64,9", "multiple of the 4"),
        ("wormhole_b0,one_to_one,l1,unicast,1,0,True,False,False,64,0", "cycles is '0'"),
        ("grayskull,one_to_one,l1,unicast,1,0,True,False,False,64,9", "arch is 'grayskull'"),
    ],
)
def test_a_row_that_cannot_be_run_stays_in_and_says_why(tmp_path, text, reason):
    table = tmp_path / "table.csv"
    table.write_text(f"{COLUMNS}\n{text}\n")
    (result,) = validate_table(table, jobs=1).rows
    assert result["predicted"] is None and reason in result["error"]


def test_the_prediction_is_the_median_over_masters(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text(f"{COLUMNS}\nwormhole_b0,all_to_all,l1,unicast,8,4,True,False,False,64,1000\n")
    result = validate_table(table, jobs=1)
    (done,) = result.rows
    assert done["predicted"] == 8 * CALL + LATENCY  # of each, whoever else is under way
    assert done["error_pct"] == pytest.approx(16)
    assert "scaled_from" not in done
    assert done["group"] == "wormhole_b0 all_to_all unicast"
    assert "8 x 64 B, 4 sub" in validation_text(result)


@pytest.mark.parametrize(
    ("flit_hops", "runs"),
    [(1, 15), (4_000_000, 15), (5_000_000, 11), (15_000_000, 3), (30_000_000, 3), (10**12, 3)],
)
def test_long_runs_are_fewer_an_odd_number_and_never_one_alone(flit_hops, runs):
    assert validate_noc._runs(Outcome(1.0, flit_hops)) == runs


# --- runs that would take too long ----------------------------------------------------------------


def runner(flit_hops_per_packet, cycles_of):
    """A run whose cost is by packet, and the amounts it was asked for."""
    asked = []

    def run(amount):
        asked.append(amount)
        packets = amount.transactions * -(-amount.transaction_bytes // 8192)
        return Outcome(cycles_of(packets), packets * flit_hops_per_packet)

    return run, asked


def test_a_short_run_is_not_scaled():
    run, asked = runner(1000, lambda packets: 100 + 7 * packets)
    assert run_scaled(run, Amount(16, 64), 8192) == (212, {})
    assert asked == [Amount(1, 64), Amount(16, 64)]
    run, asked = runner(10**9, lambda packets: 100 + 7 * packets)
    assert run_scaled(run, Amount(1, 8192), 8192) == (107, {})  # there is nothing smaller
    assert asked == [Amount(1, 8192)]


def test_a_long_run_follows_the_line_through_two_shorter_ones():
    run, asked = runner(FLIT_HOPS_MAX // 100, lambda packets: 100 + 7 * packets)
    cycles, details = run_scaled(run, Amount(1000, 64), 8192)
    assert cycles == pytest.approx(100 + 7 * 1000)
    assert asked == [Amount(1, 64), Amount(100, 64), Amount(50, 64)]
    assert details == {"scaled_from": {"transactions": 100, "transaction_bytes": 64, "cycles": 800}}


def test_few_long_transactions_are_scaled_by_their_packets():
    # 4 transactions of 8 packets, of which 6 packets may be run: less than one transaction.
    run, asked = runner(FLIT_HOPS_MAX // 6, lambda packets: 100 + 7 * packets)
    cycles, details = run_scaled(run, Amount(4, 65536), 8192)
    assert cycles == pytest.approx(100 + 7 * 32)
    assert asked == [Amount(1, 8192), Amount(1, 6 * 8192), Amount(1, 3 * 8192)]
    assert details["scaled_from"]["transaction_bytes"] == 6 * 8192


def test_never_fewer_than_two_packets_are_run():
    run, asked = runner(10 * FLIT_HOPS_MAX, lambda packets: 100 + 7 * packets)
    cycles, _ = run_scaled(run, Amount(64, 64), 8192)
    assert cycles == pytest.approx(100 + 7 * 64)
    assert asked == [Amount(1, 64), Amount(2, 64)]


def test_whole_transactions_are_run_where_there_is_room_for_one():
    # Of 2-packet transactions 5 packets may be run: two transactions, and one.
    run, asked = runner(FLIT_HOPS_MAX // 5, lambda packets: 100 + 7 * packets)
    run_scaled(run, Amount(50, 16384), 8192)
    assert asked == [Amount(1, 8192), Amount(2, 16384), Amount(1, 16384)]


# --- DRAM -----------------------------------------------------------------------------------------

DRAM_COLUMNS = "channels,n_tiles,selection,direction,vc,noc,GBps"


def dram_row(text):
    return row(text, DRAM_COLUMNS)


def hops(pair, towards):
    (x, y), (tile_x, tile_y) = pair.worker, pair.tile
    return (tile_x - x) * towards % 10, (tile_y - y) * towards % 12


@pytest.mark.parametrize(("direction", "noc", "towards"), [
    ("read", "0", -1), ("read", "1", 1), ("write", "0", 1), ("write", "1", -1),
])  # fmt: skip
def test_careful_pairs_lie_in_a_row_with_a_tile_per_channel(direction, noc, towards):
    rows = (1, 2, 3, 4, 5, 7, 8, 9, 10, 11)
    whole = chip(workers=[(x, y) for y in rows for x in (1, 2, 3, 4, 6, 7, 8, 9)])
    own = dram_row(f"12,48,carefully,{direction},Static,{noc},100")
    pairs = place_carefully(whole, own, 12, 48)
    assert len({pair.worker for pair in pairs}) == 48
    assert len({pair.tile for pair in pairs}) == 12
    assert sum(pair.channel for pair in pairs) == 24
    ways = [hops(pair, towards) for pair in pairs]
    assert {down for _, down in ways} == {0}
    assert {across for across, _ in ways} == {1, 2, 3, 4}


def test_without_a_row_for_every_channel_the_way_between_rows_is_short():
    pairs = place_carefully(chip(), dram_row("12,12,carefully,read,Static,0,100"), 12, 12)
    assert len({pair.worker for pair in pairs}) == len({pair.tile for pair in pairs}) == 12
    # Rows 10 and 11 have no workers: second tiles of groups in rows 0, 1, 11 send one row down.
    assert sorted(hops(pair, -1)[1] for pair in pairs) == [0] * 10 + [1] * 2


def test_random_pairs_are_fair_and_the_same_for_the_same_seed():
    pairs = place_randomly(chip(), 12, 48, random.Random(3))
    assert pairs == place_randomly(chip(), 12, 48, random.Random(3))
    assert pairs != place_randomly(chip(), 12, 48, random.Random(4))
    assert len({pair.worker for pair in pairs}) == 48
    tiles = [pair.tile for pair in pairs]
    assert len(set(tiles)) == 12 and all(tiles.count(tile) == 4 for tile in tiles)
    assert len({pair.tile for pair in place_randomly(chip(), 1, 12, random.Random(3))}) == 1


def test_bandwidth_is_all_bytes_over_the_whole_time(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text(f"{DRAM_COLUMNS}\n12,12,carefully,write,Dynamic,1,100\n")
    (done,) = validate_table(table, jobs=1).rows
    assert done["predicted"] == pytest.approx(12 * (1 << 20) / (128 * CALL + LATENCY))  # 1 GHz
    table.write_text(f"{DRAM_COLUMNS}\n12,12,randomly,read,Static,0,100\n")
    (done,) = validate_table(table, jobs=1).rows
    assert done["seeds"] == 5


def test_a_dram_step_names_tile_channel_and_vc():
    pair = validate_noc.DramPair((1, 1), (0, 11), 1)
    own = dram_row("1,1,randomly,write,Dynamic,1,22")
    (program,) = validate_noc.dram_programs(own, [pair], Amount(128, 8192))
    assert (program.core, program.noc) == ((1, 1), 1)
    assert program.steps == [
        TrafficStep(
            "write", to=(0, 11), channel=1, count=128, size_bytes=8192, dynamic_vc=True
        ),
        TrafficStep("write_barrier"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "13,13,randomly,read,Static,0,9",
            "channels is '13'; it must be a whole number from 1 to 12",
        ),
        (
            "12,65,randomly,read,Static,0,9",
            "n_tiles is '65'; it must be a whole number from 1 to 64",
        ),
        ("12,13,randomly,read,Static,0,9", "multiple of the 12 channels"),
        ("1,1,nicely,read,Static,0,9", "selection is 'nicely'"),
        ("1,1,randomly,read,Static,2,9", "noc is '2'; choose one of 0, 1"),
    ],
)
def test_a_dram_row_that_cannot_be_run_says_why(text, reason):
    with pytest.raises(CannotSimulate, match=reason):
        DRAM.predict(dram_row(text), Context())


# --- traces ---------------------------------------------------------------------------------------

TRACE_COLUMNS = (
    "trace,longest_core_begin_to_last_event_cycles,median_core_begin_to_last_event_cycles,"
    "first_begin_to_last_event_cycles"
)


def trace_table(folder, *rows):
    table = folder / "table.csv"
    table.write_text("\n".join((TRACE_COLUMNS, *rows)) + "\n")
    traces = folder / "traces" / "noc"
    traces.mkdir(parents=True)
    core = (1, 1)
    events = [
        zone(core, "BRISC", 0), event(core, "BRISC", 100, "READ", (2, 2), size_bytes=64),
        event(core, "BRISC", 220, "READ_BARRIER_START"),
        event(core, "BRISC", 1500, "READ_BARRIER_END"), zone(core, "NCRISC", 10),
    ]  # fmt: skip
    write(traces / "DRAM_TO_1.json", events)
    return table


def test_a_trace_lies_beside_its_table(tmp_path):
    table = trace_table(tmp_path, "DRAM_TO_1.json,1500,750,1500")
    (done,) = validate_table(table, jobs=1).rows
    predicted = 100 + replay_module.RECORD_CYCLES + CALL + LATENCY
    assert done["predicted"] == done["predicted_first_begin_to_last_event"] == predicted
    assert done["predicted_median_core"] == predicted // 2
    assert done["group"] == "from DRAM"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("../secret.json", "trace is '../secret.json'"), ("no.json", "the trace no.json is not here")],
)
def test_a_trace_that_is_not_there_is_named(tmp_path, name, reason):
    (done,) = validate_table(trace_table(tmp_path, f"{name},1,1,1"), jobs=1).rows
    assert done["predicted"] is None and reason in done["error"]


# --- halves and groups ----------------------------------------------------------------------------


def test_the_first_byte_of_a_hash_decides_about_the_half():
    # SHA-256 by another program: the first bytes of these are odd, odd, odd and even.
    found = [half_of(PATTERNS, wormhole_row("one_to_one", transactions=n)) for n in (1, 4, 16, 64)]
    assert found == ["check", "check", "check", "fit"]


def test_halves_of_a_published_table_are_halves_and_keep_curves_whole():
    rows = read_table(find_table("noc/patterns")).rows
    halves = {
        name: [own for own in rows if half_of(PATTERNS, own) == name] for name in ("fit", "check")
    }
    # As validation/noc_patterns.md says. Constants were fitted on these: they must not move.
    assert (len(halves["fit"]), len(halves["check"])) == (1793, 1628)
    curves = {tuple(own[column] for column in PATTERNS.identity) for own in halves["fit"]}
    assert not any(
        tuple(own[column] for column in PATTERNS.identity) in curves for own in halves["check"]
    )


def test_every_published_row_becomes_programs():
    grids = {"wormhole_b0": chip(), "blackhole": chip(worker_columns=12, worker_rows=10)}
    columns = tuple(range(20))
    grids["blackhole"].worker = lambda x, y: (columns[x], columns[y])
    for own in read_table(find_table("noc/patterns")).rows:
        wanted = pattern_of(own)
        amount = amount_of(own, wanted)
        assert programs(wanted, grids[own["arch"]], amount.transactions, 64)


def test_rows_are_chosen_by_half_and_group(tmp_path):
    table = tmp_path / "table.csv"
    lines = [
        f"wormhole_b0,{name},l1,unicast,{n},0,True,False,False,64,100"
        for name in ("one_to_one", "one_from_one")
        for n in (1, 4, 16, 64)
    ]
    table.write_text("\n".join((COLUMNS, *lines)) + "\n")
    halves = [validate_table(table, half=half, jobs=1).rows for half in ("fit", "check")]
    assert [len(rows) for rows in halves] == [4, 4]
    assert len(validate_table(table, group="from", jobs=1).rows) == 4
    with pytest.raises(ConfigError, match="none of its rows is chosen"):
        validate_table(table, group="to_all", jobs=1)
    with pytest.raises(ConfigError, match=r"--group is '\('"):
        validate_table(table, group="(", jobs=1)
    with pytest.raises(ConfigError, match="--half is 'better'; choose fit or check"):
        validate_table(table, half="better", jobs=1)


def test_rows_of_several_processes_keep_their_order(tmp_path):
    table = tmp_path / "table.csv"
    rows = [f"12,{tiles},nicely,read,Static,0,{tiles}" for tiles in range(12, 60, 12)]
    table.write_text("\n".join((DRAM_COLUMNS, *rows)) + "\n")
    done = validate_table(table, jobs=2).rows
    assert [own["measured"] for own in done] == [12, 24, 36, 48]
    assert all("selection is 'nicely'" in own["error"] for own in done)


def test_what_is_no_chip_is_refused_before_any_row(tmp_path, monkeypatch):
    monkeypatch.undo()
    table = tmp_path / "table.csv"
    table.write_text(f"{DRAM_COLUMNS}\n1,1,randomly,read,Static,0,22\n")
    with pytest.raises(ConfigError, match="dgx-h100"):
        validate_table(table, "dgx-h100")
    assert set(validate_noc.NOC_KINDS) <= set(validate.KINDS)

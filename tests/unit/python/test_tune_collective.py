# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath tune COLLECTIVE`: candidates, choices, and the files they are written to."""

from dataclasses import replace

import pytest

import towpath
from conftest import towpath_command
from inside import _core
from inside.collectives import Call
from inside.pages import all_table, candidate_name, page_text, tune_collective_page, write_page
from inside.schedules import ScheduleSource, load_schedule
from inside.tuning import (
    CHUNKS_PER_CHANNEL,
    Options,
    Timing,
    candidates,
    check_nccl,
    check_xml,
    cuts,
    nccl_lines,
    ranges,
    with_chance,
    write_xml,
)
from towpath import ConfigError, Tuning


def source(algorithm, channels=1, protocol="Simple", ranks=4, chunks=1):
    return ScheduleSource(
        collective="all_reduce", algorithm=algorithm, ranks=ranks, channels=channels,
        protocol=protocol, chunks_per_channel=chunks,
    )  # fmt: skip


RING = source("ring_all_reduce", 2)
TREE = source("tree_all_reduce", 1, "LL")
SHOT = source("one_shot_all_reduce")


def tuning(*timings):
    return Tuning("all_reduce", "four <GPUs>", "simulated", 3, [Timing(*each) for each in timings])


# --- candidates -----------------------------------------------------------------------------------


def test_schedules_that_are_the_same_count_once():
    found, notes = candidates("all_reduce", Options(4, (1, 2), both_ways=(False, True)))
    names = [each.algorithm for each in found]
    assert names.count("one_shot_all_reduce") == 2  # neither chunks nor ways make a difference
    assert names.count("ring_all_reduce") == 3  # one channel has but one way round
    assert names.count("tree_all_reduce") == 2 * len(CHUNKS_PER_CHANNEL)
    assert len({_core.fingerprint(each.schedule()) for each in found}) == len(found)
    assert notes == []


def test_candidates_begin_with_the_fewest_thread_blocks():
    found, _ = candidates("all_reduce", Options(4, (1, 4)))
    blocks = [max(len(rank.blocks) for rank in each.schedule().ranks) for each in found]
    assert blocks == sorted(blocks)


@pytest.mark.parametrize(
    ("machine", "columns", "row_rings"), [("t3000", 4, False), ("galaxy-torus", 8, True)]
)
def test_grids_are_candidates_on_a_mesh_and_on_a_torus(machine, columns, row_rings):
    for collective in ("all_reduce", "all_gather", "reduce_scatter"):
        found, _ = candidates(collective, towpath.load(machine)._options_for((1,), None))
        (grid,) = [each for each in found if each.algorithm == f"grid_{collective}"]
        assert (grid.columns, grid.row_rings) == (columns, row_rings)
        assert all(each.columns == 0 for each in found if each is not grid)


@pytest.mark.parametrize("machine", ["n300", "blackhole-line", "dgx-h100"])
def test_there_are_no_grids_where_there_is_no_mesh(machine):
    found, _ = candidates("all_gather", towpath.load(machine)._options_for(None, None))
    assert not [each for each in found if each.algorithm.startswith("grid_")]
    assert [each for each in found if each.algorithm == "line_all_gather"]


@pytest.mark.parametrize("algorithm", ["grid_all_gather", "ring_all_gather"])
def test_a_candidate_takes_the_time_of_a_run(algorithm):
    machine = towpath.load("t3000")
    (asked,) = [
        each
        for each in candidates("all_gather", machine._options_for((2,), None))[0]
        if each.algorithm == algorithm and each.both_ways  # as towpath run always does
    ]
    row = machine.run(
        "all_gather", size_bytes="4K", algorithm=algorithm, protocol="Simple", channels=2,
        data=False,
    ).row  # fmt: skip
    tuned = machine.tune("all_gather", size_bytes="4K", sources=[asked], jobs=1)
    assert tuned.timings == [Timing(asked, 4096, row.out_of_place.time_us)]
    assert (tuned.kind, tuned.candidates, tuned.notes) == ("simulated", 1, [])


def test_what_cannot_be_written_is_noted_and_nothing_at_all_refused():
    found, notes = candidates("broadcast", Options(4, (1, 65)))
    assert {each.channels for each in found} == {1}
    assert notes == ["not every candidate can be: channels is 65; it must be 1 to 64"]
    with pytest.raises(ConfigError, match="channels is 65; it must be 1 to 64"):
        candidates("broadcast", Options(4, (65,)))


def test_an_array_must_be_cut_to_about_the_size_asked_for():
    source = ScheduleSource(collective="all_gather", algorithm="ring_all_gather", ranks=6)
    gather = Call(source.schedule())
    assert cuts(gather, 48)
    assert not cuts(gather, 64)
    assert cuts(gather, 1 << 20)


def test_a_candidate_has_no_chance_where_its_line_lies_above_the_fastest():
    steep = [Timing(SHOT, 1024, 10.0), Timing(SHOT, 2048, 20.0)]
    flat = [Timing(TREE, 1024, 30.0), Timing(TREE, 2048, 31.0)]
    best = [Timing(RING, 1024, 1.0), Timing(RING, 2048, 2.0)]
    timings = steep + flat + best
    # The tree takes no less than 31 at 4096, and the fastest at most 4; at 1 MiB it takes about
    # 1000, as the fastest may.
    assert with_chance([SHOT, TREE, RING], 4096, timings) == [RING]
    assert with_chance([SHOT, TREE, RING], 1 << 20, timings) == [TREE, RING]
    assert with_chance([SHOT], 2048, timings[:1]) == [SHOT]
    # With one time each: the tree takes no less than 30, the fastest at most 4 or 40.
    once = [steep[0], flat[0], best[0]]
    assert with_chance([SHOT, TREE, RING], 4096, once) == [RING]
    assert with_chance([SHOT, TREE, RING], 40960, once) == [SHOT, TREE, RING]


# --- choices --------------------------------------------------------------------------------------


def test_the_first_candidate_close_to_the_fastest_is_chosen_at_each_size():
    found = tuning((RING, 1024, 10.4), (TREE, 1024, 10.0), (RING, 4096, 20.0), (TREE, 4096, 10.0))
    assert [each.source for each in found.winners()] == [RING, TREE]
    assert [each.source for each in found.fastest()] == [TREE, TREE]
    assert [each.source for each in found.winners(lambda each: each is RING)] == [RING, RING]


def test_a_range_reaches_to_where_the_next_one_begins():
    found = tuning((RING, 8, 1.0), (RING, 16, 1.0), (TREE, 32, 1.0), (RING, 64, 1.0))
    assert [(first.source, first.size_bytes, last) for first, last in ranges(found.winners())] == [
        (RING, 8, 31), (TREE, 32, 63), (RING, 64, 64),
    ]  # fmt: skip


def test_bus_bandwidth_is_that_of_nccl_tests():
    assert Timing(RING, 4_000_000, 1000.0).bus_gb_per_s() == pytest.approx(4 * 2 * 3 / 4)


# --- NCCL and MSCCL -------------------------------------------------------------------------------


def test_nccl_gets_what_it_has_and_is_told_what_is_faster():
    found = tuning(
        (SHOT, 1024, 5.0), (RING, 1024, 20.0), (TREE, 1024, 10.0),
        (SHOT, 4096, 50.0), (RING, 4096, 20.0), (TREE, 4096, 30.0),
    )  # fmt: skip
    assert list(nccl_lines(found)) == [
        "# all_reduce on four <GPUs>, simulated by towpath tune",
        "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks",
        "# 1024 bytes: one_shot_all_reduce takes 5 us, this 10 us",
        "allreduce,1024,4095,tree,ll,1,1,4",
        "allreduce,4096,4096,ring,simple,2,1,4",
    ]


def test_every_line_is_one_that_nccls_plugin_understands():
    collectives = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"}
    for collective in collectives:
        check_nccl(collective)
        sources, _ = candidates(collective, Options(8, (1, 2), ("Simple", "LL", "LL128"), hosts=2))
        timings = [Timing(each, 1 << 20, 1.0) for each in sources]
        lines = list(nccl_lines(Tuning(collective, "x", "simulated", 1, timings)))
        name, low, high, algorithm, protocol, channels, hosts, ranks = lines[-1].split(",")
        assert name == collective.replace("_", "")
        assert int(low) <= int(high)
        assert algorithm in ("ring", "tree") and protocol in ("ll", "ll128", "simple")
        assert (int(channels) >= 1, hosts, ranks) == (True, "2", "8")
        assert all(len(line) < 256 for line in lines)
    with pytest.raises(ConfigError, match="--csv does not support all_to_all; choose one of"):
        check_nccl("all_to_all")


def test_schedules_are_written_with_their_range(tmp_path):
    found = tuning((RING, 1024, 1.0), (TREE, 4096, 1.0), (TREE, 8192, 1.0))
    assert list(write_xml(found, tmp_path / "xml")) == []
    files = sorted((tmp_path / "xml").iterdir())
    assert [file.name for file in files] == [
        "all_reduce-1024-4095.xml", "all_reduce-4096-8192.xml",
    ]  # fmt: skip
    loaded = load_schedule(files[0])
    assert (loaded.size_bytes_min, loaded.size_bytes_max) == (1024, 4095)
    loaded.size_bytes_min = loaded.size_bytes_max = 0
    assert loaded == RING.schedule()


def test_a_folder_with_schedules_of_an_earlier_run_is_refused_and_left_as_it_is(tmp_path):
    check_xml(tmp_path / "new", "all_reduce")
    (tmp_path / "all_reduce-notes.xml").write_text("mine")
    list(write_xml(tuning((RING, 1024, 1.0)), tmp_path))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    check_xml(tmp_path, "all_gather")
    with pytest.raises(ConfigError) as caught:
        check_xml(tmp_path, "all_reduce")
    assert str(caught.value) == (
        f"{tmp_path}: --xml finds all_reduce-1024-1024.xml of an earlier run; choose a folder "
        "without schedules of all_reduce"
    )
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    with pytest.raises(ConfigError, match="all_reduce-notes.xml: --xml is a folder, and this is"):
        check_xml(tmp_path / "all_reduce-notes.xml", "all_reduce")


def test_a_grid_is_not_for_msccl_which_does_not_say_where_ranks_are(tmp_path):
    grid = replace(source("grid_all_reduce"), columns=2)
    found = tuning((grid, 1024, 1.0), (RING, 1024, 9.0))
    assert list(write_xml(found, tmp_path)) == [
        "at 1024 bytes MSCCL cannot hold the choice, so --xml has another"
    ]
    assert load_schedule(tmp_path / "all_reduce-1024-1024.xml").name == "ring_all_reduce"


def test_what_msccl_cannot_hold_is_replaced_and_said(tmp_path):
    long = source("ring_all_reduce", ranks=129)  # 257 steps
    tree = source("tree_all_reduce", ranks=129)
    found = tuning((long, 1024, 1.0), (tree, 1024, 9.0))
    assert list(write_xml(found, tmp_path)) == [
        "at 1024 bytes MSCCL cannot hold the choice, so --xml has another"
    ]
    assert load_schedule(tmp_path / "all_reduce-1024-1024.xml").name == "tree_all_reduce"
    with pytest.raises(ConfigError, match="MSCCL can hold none of the candidates"):
        list(write_xml(tuning((long, 1024, 1.0)), tmp_path))


# --- text and page --------------------------------------------------------------------------------


def test_the_text_has_a_line_per_size():
    found = tuning((RING, 1024, 10.0), (SHOT, 1024, 9.9), (RING, 4096, 12.0))
    text = page_text(tune_collective_page(found, "towpath tune"))
    assert text.splitlines()[1:4] == [
        "# size (B)  choice                               time (us)  busbw (GB/s)  fastest (us)"
        "  fastest",
        "      1024  ring_all_reduce, Simple, 2 channels      10.00          0.15          9.90"
        "  one_shot_all_reduce, Simple, 1 channel",
        "      4096  ring_all_reduce, Simple, 2 channels      12.00          0.51         12.00",
    ]
    assert all_table(found).lines[1] == [candidate_name(SHOT), "9.90", ""]


def test_the_page_stands_alone_and_is_escaped(tmp_path):
    found = tuning((RING, 1024, 10.0), (TREE, 1024, 9.9))
    page = tune_collective_page(found, "towpath tune all_reduce")
    write_page(page, tmp_path / "study.html")
    html = (tmp_path / "study.html").read_text()
    assert "four &lt;GPUs&gt;" in html and "four <GPUs>" not in html
    assert html.count('class="plot"') == 2


# --- where ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "sizes", "suggested"),
    [
        ("dgx-h100", {}, (16, 2, (1, 2, 4, 8, 16, 32), 3)),
        ("dgx-h100", {"hosts": 1, "ranks_per_host": 3}, (3, 1, (1, 2, 4, 8, 14, 16, 32), 3)),
        ("t3000", {}, (8, 1, (1, 2), 1)),
        ("carvnet", {"ranks": 4}, (4, 1, (1,), 1)),
    ],
)
def test_a_machine_suggests_its_candidates(machine, sizes, suggested):
    options = towpath.load(machine, **sizes)._options_for(None, None)
    found = options.ranks, options.hosts, options.channels, len(options.protocols)
    assert found == suggested


def test_live_processes_are_tuned_with_the_channels_that_are_named():
    """Each candidate is a call between processes, so there are few of them here."""
    found = towpath.tune_live(
        "all_gather", ranks=2, size_bytes=[64, 128], channels=(3, 1, 3), iterations=2, warmup=1
    )
    assert (found.kind, found.where) == ("live", "2 processes of this host")
    assert found.sizes_bytes == [64, 128]
    assert {timing.source.channels for timing in found.timings} <= {1, 3}
    assert {timing.source.protocol for timing in found.timings} == {"Simple"}
    assert found.candidates == len({timing.source for timing in found.timings})
    assert all(timing.time_us > 0 for timing in found.timings)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "give either --machine NAME to simulate or --live RANKS to run here"),
        ("--machine t3000 --live 2", "give either --machine NAME"),
        ("--machine t3000 --ranks 4", "--ranks applies to clusters of GPUs and"),
        (
            "--machine carvnet --hosts 2",
            "--hosts applies to clusters of GPUs; 'carvnet' is a cluster",
        ),
        ("--machine wormhole", "is a chip; this command is for a cluster of"),
        (
            "--live 2 --ranks-per-host 2",
            "--ranks-per-host applies to simulations; --live measures on",
        ),
        ("--live 2 --network packets", "--network applies to simulations; --live measures on this"),
        ("--machine t3000 --iterations 9", "--iterations requires --live; a simulated call"),
        ("--live 100000", "100000 live ranks are requested"),
        ("--machine dgx-h100 --ranks-per-host 9", "--ranks-per-host is 9; it must be 1 to 8"),
    ],
)
def test_places_that_are_not_there_are_one_sentence(words, sentence):
    with pytest.raises(ConfigError, match=sentence):
        towpath_command("tune", "all_reduce", *words.split())

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machines that run collectives: what is chosen, what comes back, what is refused."""

import json
import math

import pytest

import towpath
from conftest import refusal
from inside.collectives import Call, time_us
from inside.pages import table
from inside.schedules import ScheduleSource
from inside.tuning import (
    Chooser,
    Options,
    Race,
    _told_apart_in_full,
    affordable,
    candidates,
    chooser,
)


@pytest.fixture(scope="module")
def dgx():
    return towpath.load("dgx-h100", hosts=1)


@pytest.fixture(scope="module")
def chips():
    return towpath.load("n300")


def test_an_explicit_schedule_is_taken_as_it_is(dgx):
    result = dgx.run("all_reduce", size_bytes="1M", algorithm="ring", protocol="ll", channels=2)
    assert (result.algorithm, result.protocol, result.channels) == ("ring_all_reduce", "LL", 2)
    assert result.wrong == 0
    row = result.row
    assert row.algorithm_bandwidth_gb_per_s == pytest.approx((1 << 20) / row.time_us / 1e3)
    assert row.bus_bandwidth_gb_per_s == pytest.approx(row.algorithm_bandwidth_gb_per_s * 1.75)


def test_none_is_the_first_algorithm_that_is_listed(dgx):
    result = dgx.run("broadcast", size_bytes=4096, algorithm=None, protocol="Simple", root=3)
    assert result.algorithm == towpath.algorithms("broadcast")[0].name
    assert result.root == 3
    assert result.wrong == 0


@pytest.mark.slow
def test_auto_is_the_fastest_of_all_candidates(dgx):
    for size_bytes in (1 << 10, 1 << 20, 16 << 20):
        result = dgx.run("all_reduce", size_bytes=size_bytes, data=False)
        sources, _ = candidates("all_reduce", dgx._options_for(None, None))
        fastest_us = min(
            time_us(dgx._place_for(schedule, source), Call(schedule), size_bytes)
            for source, schedule in ((source, source.schedule()) for source in sources)
        )
        assert fastest_us <= result.time_us <= fastest_us * 1.005


def test_auto_keeps_to_what_is_given(dgx):
    result = dgx.run("all_reduce", size_bytes="64K", protocol="LL", channels=4, data=False)
    assert (result.protocol, result.channels) == ("LL", 4)
    result = dgx.run("all_reduce", size_bytes="64K", algorithm="tree", data=False)
    assert result.algorithm == "tree_all_reduce"


def test_rows_are_grouped_by_the_schedule_that_served_them(dgx):
    result = dgx.run("all_reduce", size_bytes=["256M", "512M", "1K"], data=False)
    assert [row.size_bytes for row in result.rows] == [256 << 20, 512 << 20, 1 << 10]
    large, small = result.by_schedule()
    assert (large, small) == (list(result.rows[:2]), list(result.rows[2:]))
    assert large[0].schedule == large[1].schedule != small[0].schedule


@pytest.mark.slow
def test_between_chips_large_sizes_are_chosen_by_smaller_ones(chips):
    result = chips.run("all_gather", size_bytes="6M", data=False)
    assert "up to 4194304 bytes" in result.row.choice
    small = chips.run("all_gather", size_bytes="8K", data=False)
    assert small.notes == ("data is off: only time is simulated, #wrong is N/A",)
    assert small.row.choice is None


@pytest.mark.slow
@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "broadcast"])
def test_between_chips_the_choice_is_no_slower_than_any_candidate(collective):
    t3000 = towpath.load("t3000")
    chosen = t3000.run(collective, size_bytes="2M", data=False)
    sources, _ = candidates(collective, t3000._options_for(None, None))
    times_us = [
        time_us(
            t3000._place_for(source.schedule(), source).changed(by_packets=True),
            Call(source.schedule()),
            2 << 20,
        )
        for source in sources
    ]
    assert chosen.time_us <= min(times_us) * 1.1


def test_a_choice_is_remembered(chips, monkeypatch):
    first = chips.run("all_reduce", size_bytes="4K", data=False)
    monkeypatch.setattr(chooser, "time_within_us", None)
    assert chips.run("all_reduce", size_bytes="4K", data=False).time_us == first.time_us


def test_on_many_ranks_what_would_take_too_long_is_left_out():
    options = Options(ranks=512, channels=(1, 16), protocols=("Simple", "LL"), hosts=64)
    sources, left_out = affordable("all_reduce", options, None)
    named = {source.algorithm for source in sources}
    assert "tree_all_reduce" in named and "one_shot_all_reduce" not in named
    assert "one_shot_all_reduce with 16 channels" in left_out
    sources, left_out = affordable("all_reduce", options, "ring_all_reduce")
    assert {source.channels for source in sources} == {1}
    assert left_out == ["ring_all_reduce with 16 channels"]


def test_of_candidates_that_fold_the_ranks_that_stand_for_all_count():
    options = Options(ranks=512, channels=(1, 16), protocols=("Simple", "LL"), hosts=64)
    sources, left_out = affordable("all_reduce", options, None, folds=True)
    named = {(source.algorithm, source.channels) for source in sources}
    assert {("ring_all_reduce", 16), ("hierarchical_all_reduce", 16)} <= named
    assert "ring_all_reduce with 16 channels" not in left_out


def test_a_ring_that_folds_may_have_all_channels_on_many_ranks():
    machine = towpath.load("dgx-h100", hosts=64)
    chosen = machine.run(
        "all_gather", size_bytes="64M", data=False, algorithm="ring", protocol="Simple"
    )
    assert chosen.rows[0].fold.ranks_simulated < 512
    assert chosen.rows[0].channels > 1


@pytest.mark.slow
def test_a_candidate_that_is_affordable_only_folded_is_not_simulated_where_it_does_not_fold():
    machine = towpath.load("dgx-h100", hosts=64)
    found = Chooser("all_gather", machine._options_for((16,), ("Simple",)), machine._place_for)
    rings = [source for source in found._only_folded if source.algorithm == "ring_all_gather"]
    without_limit = Race(lambda *_: math.inf)
    [folded, *_] = found._times_of(rings, 16 << 20, without_limit)
    assert folded is not None and math.isfinite(folded)
    times_us = found._times_of(rings, (16 << 20) + 4 * 512, without_limit)
    assert times_us == [None] * len(rings)


@pytest.mark.slow
def test_between_the_last_steps_a_time_is_no_line():
    machine = towpath.load("dgx-h100", hosts=16)
    call = {"size_bytes": "1G", "data": False}
    chosen = machine.run("broadcast", **call)
    by_name = {
        protocol: machine.run("broadcast", **call, algorithm="ring", protocol=protocol).time_us
        for protocol in ("Simple", "LL128")
    }
    assert chosen.time_us <= min(by_name.values())


@pytest.mark.slow
def test_between_many_ranks_arrays_beyond_the_last_step_are_chosen_by_lines():
    machine = towpath.load("dgx-h100", hosts=5)
    found = Chooser("all_reduce", machine._options_for((1, 2), None), machine._place_for)
    chosen, note = found.choose(8 << 30)
    assert "up to 536870912 bytes" in note
    sizes = {size for _, size in found._times_us}
    assert sizes == {256, 128 << 10, 32 << 20, 256 << 20, 512 << 20}
    times_us = found._times_us
    at_last = {source: times_us[source, size] for source, size in times_us if size == 512 << 20}
    assert chosen == min(at_last, key=lambda source: at_last[source])
    # What takes longer at 32 MiB than the fastest may at 512 MiB is not simulated there.
    assert len(at_last) < len({source for source, _ in times_us})


def test_a_candidate_that_hangs_is_not_chosen(monkeypatch):
    def hangs(*_, **__):
        raise towpath.DeadlockError("nothing moves")

    monkeypatch.setattr(chooser, "time_within_us", hangs)
    for bytes_max in (None, 64 << 10):
        options = Options(ranks=2, channels=(1,))
        found = Chooser("all_reduce", options, lambda *_: None, bytes_max=bytes_max)
        with pytest.raises(towpath.DeadlockError, match="every candidate hangs at 4096 bytes"):
            found.choose(4096)


@pytest.mark.slow
@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "broadcast"])
def test_a_choice_does_not_depend_on_the_number_of_threads(dgx, collective):
    options = dgx._options_for((1, 2, 8), None)

    def chosen(threads):
        found = Chooser(collective, options, dgx._place_for, threads=threads)
        choices = [found.choose(size) for size in (256, 70_000, 1 << 20, 48 << 20)]
        return choices, found._times_us

    alone, times_us = chosen(1)
    assert len(times_us) > 40
    for threads in (2, 5):
        choices, found_us = chosen(threads)
        assert choices == alone
        # Which ones are given up depends on what was known by then.
        assert all(found_us[key] == times_us[key] for key in found_us.keys() & times_us.keys())


def fastest_by_flits(chips, collective, size_bytes):
    sources, _ = candidates(collective, chips._options_for(None, None))
    times_us = {}
    for source in sources:
        schedule = source.schedule()
        place = chips._place_for(schedule, source)
        times_us[source] = time_us(place, Call(schedule), size_bytes)
    return min(times_us.values())


@pytest.mark.parametrize(
    ("collective", "size_bytes"),
    [("all_reduce", 64 << 10), ("all_reduce", 256 << 10), ("all_gather", 256 << 10)],
)
def test_on_chips_auto_is_the_fastest_flit_by_flit(chips, collective, size_bytes):
    chosen = chips.run(collective, size_bytes=size_bytes, data=False)
    assert chosen.time_us == pytest.approx(fastest_by_flits(chips, collective, size_bytes))


def test_where_packets_and_flits_disagree_each_model_chooses_its_own(chips):
    call = {"size_bytes": "64K", "data": False}
    by_flits = chips.run("all_reduce", **call)
    by_packets = chips.run("all_reduce", **call, network="packets")
    names = [(result.algorithm, result.channels) for result in (by_flits, by_packets)]
    assert names[0] != names[1]
    algorithm, channels = names[1]
    other = chips.run("all_reduce", **call, algorithm=algorithm, channels=channels)
    assert by_flits.time_us < other.time_us
    choice = by_flits.row.choice
    assert choice.startswith("flit by flit the fastest of ")
    assert choice.endswith(f"packet by packet it is {algorithm} with {channels} channels")
    assert by_packets.row.choice is None
    assert f"#   choice: {choice}" in table.row_lines(by_flits, by_flits.row, explains=True)
    assert list(table.row_lines(by_flits, by_flits.row)) == [table.row(by_flits, by_flits.row)]
    again = towpath.load("n300").run("all_reduce", **call, threads=1)
    assert (again.algorithm, again.channels) == names[0]


def test_few_finalists_are_simulated_in_full_and_only_where_that_is_little_work():
    a, b, c, d, e, f = (
        ScheduleSource(algorithm="ring_all_reduce", ranks=8, channels=channels)
        for channels in range(1, 7)
    )
    order = {a: 20.0, b: 20.0, c: 20.1, d: 20.2, e: 20.3, f: 20.9}
    assert _told_apart_in_full(order, 8) == [a, c, d, e]
    assert _told_apart_in_full({a: 20.0, c: 20.8, f: 20.9}, 8) == [a, c]
    times_longer = {source: 5 * time_us for source, time_us in order.items()}
    assert _told_apart_in_full(times_longer, 16) == [a, c]
    assert _told_apart_in_full(times_longer, 32) == [a]


def test_rows_come_one_by_one(dgx):
    seen = []
    dgx.run(
        "all_gather", size_bytes=[64, 1024], algorithm="ring", protocol="Simple",
        on_row=lambda result, row: seen.append((result.collective, row and row.size_bytes)),
    )  # fmt: skip
    assert seen == [("all_gather", None), ("all_gather", 64), ("all_gather", 1024)]


def test_a_result_is_data(dgx):
    result = dgx.run("all_reduce", size_bytes="1K", algorithm="ring", protocol="Simple")
    plain = json.loads(result.to_json())
    assert plain["rows"][0]["time_us"] == result.time_us
    assert plain["rows"][0]["out_of_place"]["wrong"] == 0
    assert plain["rows"][0]["size_bytes"] == 1024
    assert (plain["kind"], plain["ranks"], plain["dtype"]) == ("simulated", 8, "float32")
    assert plain["provenance"]["towpath"] == towpath.__version__
    assert set(plain["provenance"]["machines"]) == {"dgx-h100"}
    assert plain["provenance"]["schedules"]["ring_all_reduce"]
    assert repr(result).startswith("RunResult(all_reduce on dgx-h100: 1 KiB, ")
    with pytest.raises(AttributeError):
        result.machine = "another"


def test_figures_of_several_sizes_are_those_of_rows(dgx):
    result = dgx.run("all_reduce", size_bytes="1K:4K", algorithm="ring", protocol="Simple")
    assert "3 sizes" in repr(result)
    assert ".rows" in refusal(lambda: result.time_us)


def test_links_are_those_of_the_largest_size(dgx):
    result = dgx.run("all_reduce", size_bytes=["1K", "4M"], algorithm="ring", protocol="Simple")
    carried = sum(link.size_bytes for link in result.links if link.kind == "nvlink")
    assert carried > 7 * 2 * (4 << 20)
    assert max(link.busy_fraction for link in result.links) > 0.1


def test_report_and_trace_are_files(dgx, tmp_path):
    result = dgx.run("all_reduce", size_bytes="64K", algorithm="ring", protocol="Simple")
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "dgx-h100" in page and towpath.__version__ in page
    result.trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert any(event["ph"] == "X" for event in trace["traceEvents"])
    assert "1G" in refusal(result.trace, tmp_path / "large.json", size_bytes=2 << 30)


def test_without_pandas_a_table_says_what_to_install(dgx, monkeypatch):
    import builtins

    usual = builtins.__import__

    def without(name, *arguments, **options):
        if name == "pandas":
            raise ImportError(name)
        return usual(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    result = dgx.run("all_gather", size_bytes=1024, algorithm="ring", protocol="Simple")
    assert "pip install pandas" in refusal(result.to_dataframe)


def test_with_pandas_a_table_has_a_line_per_size(dgx):
    pytest.importorskip("pandas")
    table = dgx.run(
        "all_gather", size_bytes="1K:4K", algorithm="ring", protocol="LL"
    ).to_dataframe()
    assert list(table.size_bytes) == [1024, 2048, 4096]
    assert (table.wrong == 0).all()


def test_a_schedule_of_ones_own_runs(dgx):
    schedule = towpath.Schedule.generate("all_reduce", algorithm="ring", ranks=4)
    result = dgx.run(schedule, size_bytes="64K")
    assert (result.algorithm, result.channels, result.wrong) == ("ring_all_reduce", 1, 0)
    assert result.ranks == 4


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        ({"algorithm": "rng"}, "did you mean 'ring'"),
        ({"protocol": "LL12"}, "Simple, LL, LL128"),
        ({"dtype": "float"}, None),
        ({"dtype": "flt99"}, "dtype is"),
        ({"op": "plus"}, "op is"),
        ({"size_bytes": 0}, "size_bytes is 0"),
        ({"size_bytes": []}, "at least one size"),
        ({"size_bytes": 1.5}, "bytes as an int"),
        ({"link_faults": ["0:9,every=100us"]}, "'dgx-h100' has no links between chips"),
    ],
)
def test_options_are_names_or_refused(dgx, options, phrase):
    arguments = {"size_bytes": 1024, "algorithm": "ring", "protocol": "Simple", **options}
    if phrase is None:
        assert dgx.run("all_reduce", **arguments).wrong == 0
    else:
        assert phrase in refusal(dgx.run, "all_reduce", **arguments)


def test_what_has_no_effect_is_refused(dgx, chips):
    schedule = towpath.Schedule.generate("all_reduce", ranks=4)
    for option in ({"algorithm": "ring"}, {"protocol": "LL"}, {"channels": 2}, {"root": 1}):
        assert "has its own" in refusal(dgx.run, schedule, size_bytes=64, **option)
    assert "protocol is LL" in refusal(chips.run, "all_reduce", size_bytes=64, protocol="LL")
    too_many = towpath.Schedule.generate("all_reduce", ranks=16)
    assert "only 8 GPUs" in refusal(dgx.run, too_many, size_bytes=64)


def test_a_machine_is_loaded_as_large_as_asked_for():
    assert towpath.load("dgx-h100", hosts=3).ranks == 24
    assert towpath.load("dgx-h100", hosts=2, ranks_per_host=2).ranks == 4
    assert towpath.load("carvnet", ranks=4).ranks == 4
    assert repr(towpath.load("wormhole")) == "Chip('wormhole', 8 x 8 workers)"
    assert "hosts applies to clusters of GPUs" in refusal(towpath.load, "t3000", hosts=2)
    assert "harvest_mask applies to chips" in refusal(towpath.load, "t3000", harvest_mask=1)


@pytest.mark.parametrize("info", towpath.machines(), ids=lambda info: info.name)
def test_every_machine_that_is_listed_loads_and_is_shown(info):
    machine = towpath.load(info.name)
    assert (machine.name, machine.kind) == (info.name, info.kind)
    assert machine.description == info.description
    assert len(repr(machine)) < 80
    assert machine.show().count("\n") > 5
    if info.kind == "host":
        assert "cannot be drawn" in refusal(machine.draw)
    else:
        assert machine.draw().startswith("<svg")


def test_tuning_gives_the_fastest_and_keeps_its_points(dgx, tmp_path):
    file = tmp_path / "points.jsonl"
    options = {"size_bytes": "4K", "channels": [1, 2], "protocols": ["ll"], "file": file, "jobs": 1}
    tuning = dgx.tune("all_gather", **options)
    fastest = tuning.fastest()[0]
    assert fastest.source.protocol == "LL"
    assert fastest.time_us == min(timing.time_us for timing in tuning.timings)
    lines = file.read_text().count("\n")
    assert lines >= tuning.candidates
    assert dgx.tune("all_gather", **options).fastest()[0] == fastest
    assert file.read_text().count("\n") == lines


def test_a_root_where_there_is_none_is_refused():
    machine = towpath.load("dgx-h100", hosts=1)
    for collective in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"):
        with pytest.raises(towpath.ConfigError, match=f"{collective} has no root, but root is 3"):
            machine.run(collective, size_bytes=1024, root=3)
        with pytest.raises(towpath.ConfigError, match=f"for {collective}, which has"):
            towpath.Schedule.generate(collective, ranks=4, root=3)
    with pytest.raises(towpath.ConfigError, match="has no root"):
        towpath.run_live("all_reduce", ranks=2, size_bytes=64, root=1)


def test_a_reduction_of_what_reduces_nothing_is_refused():
    machine = towpath.load("dgx-h100", hosts=1)
    sentence = (
        "op: all_gather has no reduction, but op is max; only all_reduce, reduce, "
        "reduce_scatter have one"
    )
    with pytest.raises(towpath.ConfigError, match=sentence):
        machine.run("all_gather", size_bytes=1024, op="max")
    with pytest.raises(towpath.ConfigError, match="all_gather has no reduction, but op is avg"):
        machine.run(towpath.Schedule.generate("all_gather", ranks=8), size_bytes=1024, op="mean")
    with pytest.raises(towpath.ConfigError, match="broadcast has no reduction"):
        towpath.run_live("broadcast", ranks=2, size_bytes=64, op="prod")
    assert machine.run("reduce_scatter", size_bytes=1024, op="max").rows


@pytest.mark.parametrize("channels", [0, -1, 65])
def test_no_channels_are_refused(channels):
    sentence = f"channels is {channels}; it must be 1 to 64, or omitted to use the machine's number"
    machine = towpath.load("dgx-h100", hosts=1)
    with pytest.raises(towpath.ConfigError, match=sentence):
        machine.run("all_reduce", size_bytes=1024, channels=channels)
    with pytest.raises(towpath.ConfigError, match=sentence):
        towpath.run_live("all_reduce", ranks=2, size_bytes=64, channels=channels)
    with pytest.raises(towpath.ConfigError, match=f"channels is {channels}; it must be 1 to 64"):
        towpath.Schedule.generate("all_reduce", ranks=4, channels=channels)


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_many_hosts_take_a_tree_and_it_is_correct(collective):
    machine = towpath.load("dgx-h100", hosts=4)
    for size, root in (("1K", 13), ("1M", 0)):
        chosen = machine.run(collective, size_bytes=size, root=root)
        assert chosen.algorithm == f"tree_{collective}" and chosen.wrong == 0
        ring = machine.run(collective, size_bytes=size, root=root, algorithm="ring")
        assert chosen.time_us < 0.7 * ring.time_us
    for root in range(0, 32, 5):  # both trees of hosts, all rails
        schedule = towpath.Schedule.generate(
            collective, algorithm="tree", ranks=32, hosts=4, channels=16, root=root
        )
        assert towpath.verify(schedule, size_bytes=1 << 20).is_correct


def test_a_broadcast_has_the_channels_that_its_forwarding_needs():
    """A thread block that stores what it sends on is slower than one that adds: 27.4 of 37.3 GB/s
    of NVLink's 370."""
    machine = towpath.load("dgx-h100", hosts=1)
    ring = {"size_bytes": "256M", "data": False, "algorithm": "ring", "protocol": "Simple"}
    assert machine.run("reduce", **ring).channels == 10
    found = machine.run("broadcast", **ring)
    assert found.channels == 14
    assert found.time_us < machine.run("broadcast", **ring, channels=10).time_us
    # The root's own copy is beside what it sends, not behind it.
    both = [machine.run(name, **ring, channels=16).time_us for name in ("broadcast", "reduce")]
    assert both[0] == pytest.approx(both[1], rel=0.01)

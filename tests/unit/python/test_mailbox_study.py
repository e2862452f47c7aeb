# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The published measurement of small messages on a RISC-V cluster, and how it moves."""

import json

import pytest
from typer.testing import CliRunner

from inside import _core
from inside.cli import main as cli
from inside.errors import Interruption
from inside.machines import catalogue, quantities_of
from inside.mailbox import StudyRequest, measure_latency, measure_study, settled_ns
from inside.pages import mailbox_page, page_text
from towpath import ConfigError


@pytest.fixture(scope="module")
def carvnet():
    return catalogue.load_mailbox_cluster("carvnet")


@pytest.fixture(scope="module")
def study(carvnet):
    return measure_study(carvnet, StudyRequest(iterations=300_000, calm_iterations=100_000))


@pytest.mark.slow
def test_every_event_of_the_breakdown_is_within_two_cycles(study):
    """The phase is that of the longest wait; no published figure chooses it."""
    assert max(row["seen_after_cycles"] for row in study.phases) == 8
    assert len(study.breakdown) == 9 and all(
        abs(row["cycle"] - row["published_cycle"]) <= 2 for row in study.breakdown
    )


def test_one_way_is_42_cycles_of_software_10_of_hardware_and_the_traverse(study):
    def cycles(kind):
        return sum(row["cycles"] for row in study.parts if row["kind"] == kind)

    assert (cycles("software"), cycles("hardware"), cycles("traverse")) == (42, 10, 20)


def test_a_poll_sees_the_answer_four_to_eight_cycles_after_its_header(study):
    assert sorted(row["seen_after_cycles"] for row in study.phases) == [4, 5, 6, 7, 8]
    assert {row["round_trip"] for row in study.phases} == {144}


def test_latencies_without_interrupts_are_the_published_ones(study):
    row = study.latencies["without"]
    assert row["mode_ns"] == row["min_ns"] == 720
    assert row["mean_ns"] == pytest.approx(725, abs=0.5)
    assert 980 <= row["max_ns"] <= 1000


def test_latencies_with_interrupts_have_the_published_plateaus(study):
    """The mean hangs on some 150 context switches, so that seeds differ by several percent."""
    row = study.latencies["with"]
    assert row["mode_ns"] == 720
    assert row["mean_round_trip_ns"] == pytest.approx(1860, rel=0.12)
    none, walks, interrupts, one, both = row["plateaus"]
    assert none["iterations"] > 0.95 * row["iterations"]
    assert walks["max_ns"] <= 1000
    assert 1700 <= interrupts["median_ns"] <= 2000
    assert 225_000 <= one["median_ns"] <= 251_000
    assert row["max_ns"] == both["max_ns"] <= 502_000


def test_the_projection_shows_what_must_stay_for_340_ns(study):
    values = [row["one_way_ns"] for row in study.projections]
    assert values[0] == pytest.approx(252)
    assert values[2] == pytest.approx(340, rel=0.03)  # simulated: the polls stay 50 ns apart
    assert values[-2:] == [342, 252]  # arithmetic
    assert values[0] < values[1] < values[3] < values[2] < values[-2]


def test_sweeps_move_as_they_must(study):
    hops = [row["one_way_ns"] for row in study.sweeps["nodes on the ring, to the farthest"]]
    assert hops == [720 + 200 * more for more in (0, 1, 3, 7, 15, 31)]
    rising = ("message size (B)", "polling period (cycles)")
    for name in rising:
        times = [row["one_way_ns"] for row in study.sweeps[name]]
        assert times == sorted(set(times))
    clocks = [row["one_way_ns"] for row in study.sweeps["core clock (MHz)"]]
    assert clocks == sorted(clocks, reverse=True) and clocks[1] == 720
    dropped = [row["dropped_pct"] for row in study.sweeps["mailbox depth (packets)"]]
    assert dropped == sorted(dropped, reverse=True) and dropped[-1] == 0 < dropped[-2]


def test_a_symmetrical_responder_would_have_two_round_trips(carvnet):
    """Why responder_cycles is what it is: with node 0's pace on node 1, most phases take 139."""
    symmetrical = carvnet.with_figures(software__responder_cycles=2)
    round_trips = []
    for phase in range(5):
        options = _core.PingPongOptions(
            phase_cycles=phase, has_interruptions=False, has_page_walks=False
        )
        round_trips.append(int(_core.run_ping_pong(symmetrical.build(), options)[0][-1]))
    assert sorted(round_trips) == [139, 139, 139, 139, 144]


def test_a_long_run_tells_how_far_it_is_and_can_be_ended(carvnet):
    told = []
    options = _core.PingPongOptions(iterations=50_000)
    _core.run_ping_pong(carvnet.build(), options, told.append)
    assert len(told) > 2 and told == sorted(set(told)) and 0 < told[0] and told[-1] <= 50_000

    def stop(iterations):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _core.run_ping_pong(carvnet.build(), options, stop)


def test_the_mean_moves_with_the_clock_of_the_interrupts(carvnet):
    request = StudyRequest(seed=3)
    calm = measure_latency(carvnet, request, 20_000, False)
    slow = carvnet.with_figures(page_walks__probability=0.2)
    assert measure_latency(slow, request, 20_000, False)["mean_ns"] > calm["mean_ns"] + 30
    assert settled_ns(slow) == 720


def test_another_cluster_is_not_held_against_the_document(carvnet):
    """Its software is slower and its clock faster: figures of its own, and no published ones."""
    faster = carvnet.with_figures(core_clock_mhz=200.0, software__store_cycles=2)
    other = faster.model_copy(update={"name": "mine"})
    study = measure_study(other, StudyRequest(iterations=2000, calm_iterations=2000))
    parts = {row["kind"]: 0 for row in study.parts}
    for row in study.parts:
        parts[row["kind"]] += row["cycles"]
    arithmetic = [row for row in study.projections if row["how"] == "arithmetic"]
    software, hardware = parts["software"], parts["hardware"]
    assert software != 42 and arithmetic[0]["what"].startswith(f"{software} cycles of software")
    assert [row["one_way_ns"] for row in arithmetic] == pytest.approx([
        software + 5 * hardware + 200, software + hardware + 200,
    ])  # fmt: skip
    text = page_text(mailbox_page(study, "title", "command", []))
    assert "published" not in text and "page walks" not in text and "750 to 1010 ns" in text


@pytest.mark.slow
def test_the_command_prints_tables_json_and_a_page(tmp_path):
    def run(*arguments):
        line = ["bench", "mailbox", "--machine", "carvnet", "--iterations", "2000", *arguments]
        return CliRunner().invoke(cli.app, line, standalone_mode=False, obj=Interruption())

    page = tmp_path / "study.html"
    text = run("--out", str(page)).stdout
    assert "the header of the answer arrives at node 0" in text
    assert "Over mailbox depth (packets)" in text
    html = page.read_text()
    assert "Small messages on carvnet" in html and "A round trip in cycles" in html
    result = json.loads(run("--json").stdout)["results"][0]
    assert result["breakdown"][-1]["cycle"] == 144
    assert "--machine" in str(CliRunner().invoke(
        cli.app, ["bench", "mailbox"], standalone_mode=False, obj=Interruption()
    ).exception)  # fmt: skip


# --- the spec, and the interface ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("software__poll_cycles", 4, "software.poll_cycles.value: is 4; it must be at least 5"),
        ("nodes", 0, "nodes.value: is 0; it must be greater than or equal to 1"),
        ("page_walks__cycles_max", 3, "page_walks.cycles_max.value: is 3; it must be at least 20"),
        ("ring__speed", 3, "there is no parameter ring__speed"),
    ],
)
def test_a_wrong_figure_is_named(carvnet, field, value, sentence):
    with pytest.raises(ConfigError) as error:
        carvnet.with_figures(**{field: value})
    assert sentence in str(error.value)


def test_towpath_show_describes_it(tmp_path):
    svg = tmp_path / "ring.svg"
    line = ["show", "carvnet", "--svg", str(svg)]
    text = CliRunner().invoke(cli.app, line, standalone_mode=False, obj=Interruption()).stdout
    said = " ".join(text.split())
    for path, _, source in quantities_of(catalogue.load_mailbox_cluster("carvnet")):
        if source:
            assert path.rpartition(".")[2] in said and source in said
    assert "when_full back_pressure" in said
    assert "carvnet: 2 nodes" in svg.read_text()


def test_a_program_sends_and_receives_call_by_call(carvnet):
    session = _core.MailboxSession(carvnet.build())
    one, other = session.open(0), session.open(1)
    one.send(other.address, b"a message of 29 bytes, or not")
    assert session.now_us == pytest.approx(0.18)
    assert other.receive() == (one.address, b"a message of 29 bytes, or not")
    assert other.try_receive() is None
    one.flush()
    assert one.notices == {"acknowledged": 1, "full": 0, "refused": 0}
    one.close()
    with pytest.raises(ValueError, match="the context is closed"):
        one.send(other.address, b"x")


def test_a_program_cannot_reach_the_mailbox_of_another_domain(carvnet):
    session = _core.MailboxSession(carvnet.build())
    one, other = session.open(0, domain=1), session.open(1, domain=2)
    one.send(other.address, b"x")
    one.flush()
    assert one.notices["refused"] == 1
    assert other.try_receive() is None
    with pytest.raises(ValueError, match="all 1 cores of node 0"):
        session.open(0)

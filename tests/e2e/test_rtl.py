# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The hardware of rtl/: it is linted, simulated under random traffic, and runs programs in C.

All of it is skipped where verilator or the compiler for RISC-V is absent (`make rtl-deps`).
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from conftest import ROOT
from inside.cli import main as cli
from inside.mailbox import RtlRun, Signals, check_built, iteration_cycles, run_rtl
from towpath import ConfigError

NEEDED = ("verilator", "riscv64-unknown-elf-gcc", "make")
BUILT = ROOT / "build" / "rtl"
# Tests of riscv-tests that ask for what this core does not have: debug triggers, protection of
# physical memory, and misaligned accesses in hardware.
NOT_FOR_THIS_CORE = {"rv64mi-breakpoint", "rv64mi-pmpaddr", "rv64ui-ma_data"}


@pytest.fixture(scope="module")
def rtl() -> Path:
    """Where the simulators and programs are; they are built where they are out of date."""
    absent = [name for name in NEEDED if shutil.which(name) is None]
    if absent:
        pytest.skip(f"{', '.join(absent)} not installed; `make rtl-deps` installs what rtl/ needs")
    subprocess.run(["make", "-s", "-C", ROOT / "rtl", "JOBS=1", f"OUT={BUILT}"], check=True)
    return BUILT


def traffic(rtl: Path, messages: int, seed: int, *words: str, simulator: str = "traffic"):
    command = [rtl / simulator, str(messages), str(seed), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --- packetizers, mailboxes and the ring ----------------------------------------------------------


def test_the_hardware_is_clean_of_warnings(rtl):
    done = subprocess.run(
        ["make", "-s", "-C", ROOT / "rtl", "lint"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_messages_of_four_nodes_arrive_once_whole_and_in_order(rtl, seed):
    """The bench looks at every message; what it cannot accept ends it with a sentence."""
    found = traffic(rtl, 20_000, seed)
    assert found["received"] + found["refused"] == found["messages"] == 20_000
    assert found["full"] == 0 and 100 < found["refused"] < 1000


def test_full_mailboxes_drop_and_say_so(rtl):
    found = traffic(rtl, 20_000, 4, "drop")
    assert found["received"] + found["full"] + found["refused"] == 20_000
    assert found["full"] > 1000


def test_a_payload_is_not_overwritten_when_its_notice_is_faster_than_its_last_flit(rtl):
    """On a slow line and a short link, as with this seed, the notice of a header is back first."""
    assert traffic(rtl, 110_000, 11)["messages"] == 110_000


@pytest.mark.long
def test_ten_million_random_messages_of_four_nodes(rtl):
    found = [traffic(rtl, 2_500_000, seed) for seed in (11, 12, 13)]
    found.append(traffic(rtl, 2_500_000, 14, "drop"))
    assert sum(row["messages"] for row in found) == 10_000_000
    assert all(row["received"] + row["full"] + row["refused"] == 2_500_000 for row in found)


# --- instructions ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def probed(rtl):
    return run_rtl(rtl, RtlRun(iterations=60, probed_cycles=100_000))


def test_what_the_hardware_alone_decides_is_as_published(probed):
    """The header leaves after 7 cycles, its notice is back at 47, polls are 5 apart."""
    iterations = iteration_cycles(probed)
    assert len(iterations) > 30
    for cycles in iterations:
        assert cycles[0, "last store"] == 5
        assert cycles[0, "header leaves"] == 7
        assert cycles[0, "acknowledgement arrives"] == 47
        for node in (0, 1):
            wait = cycles[node, "poll sees the message"] - cycles[node, "header arrives"]
            assert 4 <= wait <= 8
    polls = np.diff(Signals(probed).rises(0, 5))
    assert np.bincount(polls).argmax() == 5 == polls.min()


def test_the_software_is_near_the_published(probed):
    """Compilers differ, so that these have a range; gcc 12.2 makes 147 cycles of the 144."""
    for cycles in iteration_cycles(probed):
        reading = cycles[0, "last word read"] - cycles[0, "poll sees the message"]
        turning = cycles[0, "next first store"] - cycles[0, "last word read"]
        assert 18 <= reading <= 27 and 12 <= turning <= 24
        assert 134 <= cycles[0, "next first store"] <= 160


def test_page_walks_are_the_only_disturbance_without_interrupts(rtl):
    outcome = run_rtl(rtl, RtlRun(iterations=2_100))
    settled = outcome.results[20:]
    usual = np.bincount(settled).argmax()
    slow = np.flatnonzero(settled > usual + 10) + 20
    # A page of the array has 512 times; the walk for a store falls into the next iteration's time.
    # The array was made before, and the translation of its last page is still there.
    assert slow.tolist() == [513, 1025, 1537]
    assert settled.max() <= 200  # 1,000 ns one way


def test_ticks_and_a_second_process_take_the_core_away(rtl):
    asked = RtlRun(
        iterations=1_500, tick_cycles=40_000, background_ticks=2, background_loops=600
    )  # fmt: skip
    one_way_ns = run_rtl(rtl, asked).results[20:] * 5
    interrupts = one_way_ns[(one_way_ns > 1_010) & (one_way_ns < 4_000)]
    switches = one_way_ns[one_way_ns > 10_000]
    assert len(interrupts) >= 3 and len(switches) >= 2


@pytest.mark.parametrize("program", ["all_to_all", "all_reduce"])
def test_collectives_of_two_nodes_have_the_right_result(rtl, program):
    """The programs check what they receive, and end with other than 0 where it is wrong."""
    outcome = run_rtl(rtl, RtlRun(program=program, iterations=50))
    assert len(outcome.results) == 50 and outcome.results.min() > 100


def test_no_process_reaches_another_domain_or_context(rtl):
    with pytest.raises(ConfigError, match="255, 0.*touched what is not its own"):
        run_rtl(rtl, RtlRun(program="protection", iterations=1))


def test_the_same_run_takes_the_same_cycles(rtl):
    first, second = (run_rtl(rtl, RtlRun(iterations=30, phase_cycles=3)) for _ in range(2))
    assert first.cycles == second.cycles and (first.results == second.results).all()


def test_tests_of_the_instruction_set_pass(rtl, tmp_path):
    sources = os.environ.get("RISCV_TESTS")
    if not sources:
        pytest.skip("RISCV_TESTS names no checkout of riscv-tests (with its env)")
    passed = 0
    for path in sorted(Path(sources).glob("isa/rv64[um][imac]/*.S")):
        passed += run_instruction_test(rtl, Path(sources), path, tmp_path)
    for path in sorted(Path(sources).glob("isa/rv64si/*.S")):
        passed += run_instruction_test(rtl, Path(sources), path, tmp_path)
    assert passed > 90


def run_instruction_test(rtl: Path, sources: Path, path: Path, folder: Path) -> int:
    name = f"{path.parent.name}-{path.stem}"
    if name in NOT_FOR_THIS_CORE:
        return 0
    program = folder / name
    subprocess.run(
        ["riscv64-unknown-elf-gcc", "-march=rv64imac_zicsr_zifencei", "-mabi=lp64", "-static",
         "-mcmodel=medany", "-nostdlib", "-nostartfiles", f"-I{sources}/env/p",
         f"-I{sources}/isa/macros/scalar", f"-T{sources}/env/p/link.ld", path, "-o", program],
        check=True,
    )  # fmt: skip
    command = [rtl / "cluster2", "--watch", "1", "--cycles", "200000", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (name, done.stderr)
    assert json.loads(done.stdout)["codes"][0] == 1, name
    return 1


# --- the same programs elsewhere ------------------------------------------------------------------


@pytest.mark.parametrize("place", ["model", "live"])
@pytest.mark.parametrize("program", ["ping_pong", "all_to_all", "all_reduce"])
def test_the_programs_run_on_the_model_and_between_processes(place, program):
    command = [ROOT / "build" / f"rtl_{place}", program, "2", "50"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["last"] > 0


def steps_on_rtl_and_model(rtl: Path, first: int, count: int) -> tuple[list[str], list[str]]:
    commands = [rtl / "script", ROOT / "build" / "rtl_script_model"]
    outputs = [
        subprocess.run(
            [command, str(first), str(count)], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for command in commands
    ]
    return outputs[0], outputs[1]


def test_the_model_agrees_with_the_hardware_cycle_by_cycle(rtl):
    """Each line is a step of a random program and the cycle in which it is over."""
    on_rtl, on_model = steps_on_rtl_and_model(rtl, 1, 50)
    assert len(on_rtl) > 3000 and on_rtl == on_model


@pytest.mark.long
def test_the_model_agrees_with_the_hardware_in_a_thousand_programs(rtl):
    on_rtl, on_model = steps_on_rtl_and_model(rtl, 1, 1000)
    assert on_rtl == on_model


# --- the command ----------------------------------------------------------------------------------


def test_bench_mailbox_on_rtl_has_the_models_report(rtl, tmp_path):
    page, waves = tmp_path / "rtl.html", tmp_path / "waves.vcd"
    words = ["bench", "mailbox", "--machine", "carvnet", "--engine", "rtl", "-n", "400"]
    words += ["--rtl", str(rtl), "--out", str(page), "--vcd", str(waves), "--json"]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["engine"] == "rtl" and len(found["breakdown"]) == 9
    assert {row["node"] for row in found["waves"]} == {0, 1}
    assert len(found["assumptions"]) >= 5 and len(found["projections"]) == 3
    assert "signals of both nodes" in page.read_text() and "$var wire" in waves.read_text()


def test_rtl_that_is_not_built_is_named(tmp_path):
    with pytest.raises(ConfigError, match="build it with `make rtl`"):
        check_built(tmp_path)


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        (["--machine", "carvnet", "--engine", "rtl", "--seed", "1"], "the RTL has no seed"),
        (["--machine", "carvnet", "--vcd", "x"], "is for --engine rtl"),
        (["--live", "--rtl", "x"], "applies to --machine with --engine rtl"),
    ],
)
def test_options_of_the_other_engine_are_refused(words, phrase):
    done = CliRunner().invoke(cli.app, ["bench", "mailbox", *words])
    assert isinstance(done.exception, ConfigError) and phrase in str(done.exception)

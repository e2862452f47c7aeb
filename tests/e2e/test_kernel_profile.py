# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Profiles of kernels: what blocks did, which arrival ended a wait, and what limits a run."""

import json
import re
import subprocess
import sys
from collections import defaultdict

import numpy as np
import pytest

import towpath
from conftest import ROOT
from inside.kernels import ended_by
from inside.kernels import profile as columns
from inside.machines import MachineSpec
from inside.pages import write_kernel_trace

EXAMPLE = ROOT / "examples" / "gpu" / "halo_exchange.cu"
PES = 4
# Every block gives a large packet to the PE of the same number in the other host.
STREAMS = """
#include <nvshmem.h>
#include <nvshmemx.h>
__global__ void send(char* data, uint64_t* signals, int size) {
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  const int peer = (pe + n / 2) % n;
  char* const own = data + static_cast<size_t>(blockIdx.x) * 2 * size;
  nvshmemx_putmem_signal_nbi_block(own, own + size, size, signals + blockIdx.x, 1,
                                   NVSHMEM_SIGNAL_SET, peer);
  if (threadIdx.x == 0) {
    nvshmem_signal_wait_until(signals + blockIdx.x, NVSHMEM_CMP_EQ, 1);
    nvshmem_quiet();
  }
}
int main() {
  const int size = 1 << 20;
  nvshmem_init();
  char* data = static_cast<char*>(nvshmem_malloc(16 * size));
  uint64_t* signals = static_cast<uint64_t*>(nvshmem_calloc(8, 8));
  nvshmem_barrier_all();
  send<<<8, 128>>>(data, signals, size);
  cudaDeviceSynchronize();
  nvshmem_finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def kernel():
    return towpath.kernel(EXAMPLE)


@pytest.fixture(scope="module")
def run(kernel):
    return kernel.run("dgx-h100", PES, arguments=["1024", "6"], profile=True)


@pytest.fixture(scope="module")
def recorded(run):
    return run.profile.recorded


def test_recording_takes_no_simulated_time(kernel, run):
    plain = kernel.run("dgx-h100", PES, arguments=["1024", "6"])
    assert plain.profile is None
    assert run.time_us == plain.time_us


def kernel_tracks(recorded):
    return np.flatnonzero(recorded.tracks[:, columns.TRACK_IS_KERNEL] == 1).tolist()


def test_the_spans_of_a_block_are_its_time_on_the_gpu(recorded):
    launched = recorded.work[recorded.work[:, columns.WORK_IS_KERNEL] == 1]
    assert len(launched) == PES
    tracks = kernel_tracks(recorded)
    assert len(tracks) == 4 * PES
    for track in tracks:
        own = recorded.spans[recorded.spans[:, columns.TRACK] == track]
        times_ps = recorded.tracks[track, columns.TRACK_TIMES :]
        assert np.array_equal(own[1:, columns.BEGIN_PS], own[:-1, columns.END_PS])
        lengths_ps = own[:, columns.END_PS] - own[:, columns.BEGIN_PS]
        for activity, time_ps in enumerate(times_ps.tolist()):
            assert lengths_ps[own[:, columns.ACTIVITY] == activity].sum() == time_ps
        pe = recorded.tracks[track, columns.TRACK_PE]
        (grid,) = launched[launched[:, columns.WORK_PE] == pe]
        assert own[0, columns.BEGIN_PS] == grid[columns.WORK_BEGIN_PS]
        assert own[-1, columns.END_PS] <= grid[columns.WORK_END_PS]


def test_each_wait_is_ended_by_the_arrival_from_a_neighbour(recorded):
    causes = ended_by(recorded)
    activities = list(recorded.activities)
    found = 0
    for row, cause in enumerate(causes.tolist()):
        span = recorded.spans[row]
        if activities[span[columns.ACTIVITY]] != "wait":
            assert cause < 0 or activities[span[columns.ACTIVITY]] == "collective"
            continue
        assert cause >= 0
        transfer = recorded.transfers[cause]
        pe = recorded.tracks[span[columns.TRACK], columns.TRACK_PE]
        sender = recorded.tracks[transfer[columns.TRACK]]
        assert transfer[columns.PEER] == pe
        assert sender[columns.TRACK_PE] in ((pe - 1) % PES, (pe + 1) % PES)
        assert (
            sender[columns.TRACK_BLOCK] == recorded.tracks[span[columns.TRACK], columns.TRACK_BLOCK]
        )
        assert transfer[columns.BEGIN_PS] < transfer[columns.LANDED_PS] <= span[columns.END_PS]
        found += 1
    assert found >= 4 * PES


FLAGS = """
#include <nvshmemx.h>
// PE 1 sets the second flag late; PE 0 waits for both.
__global__ void flags(int* words, int* one) {
  if (nvshmem_my_pe() == 1) {
    nvshmem_putmem_nbi(words, one, 4, 0);
    nvshmem_quiet();
    __nanosleep(20000);
    nvshmem_putmem_nbi(words + 1, one, 4, 0);
    nvshmem_quiet();
  } else {
    nvshmem_int_wait_until_all(words, 2, nullptr, NVSHMEM_CMP_EQ, 1);
  }
}
__global__ void wait_for_ever(int* words) { nvshmem_int_wait_until(words, NVSHMEM_CMP_EQ, 7); }
"""


def test_a_wait_for_narrow_words_is_ended_by_the_last_of_them(tmp_path):
    file = tmp_path / "flags.cu"
    file.write_text(FLAGS, encoding="utf-8")
    gpus = towpath.kernel(file).load("dgx-h100", 2, profile=True)
    words, one = gpus.symmetric(2, "int32"), gpus.symmetric(1, "int32")
    for each in one.on:
        each[:] = 1
    gpus.launch("flags", 1, 1, [words, one])
    recorded = gpus.recorded()
    causes = ended_by(recorded)
    waits = [
        cause for row, cause in enumerate(causes.tolist())
        if recorded.activities[recorded.spans[row, columns.ACTIVITY]] == "wait"
    ]  # fmt: skip
    first, second = recorded.transfers[np.argsort(recorded.transfers[:, columns.LANDED_PS])]
    assert second[columns.TARGET] == first[columns.TARGET] + 4
    assert [recorded.transfers[cause].tolist() for cause in waits] == [second.tolist()]


def test_a_profiled_run_that_fails_says_why(tmp_path):
    file = tmp_path / "flags.cu"
    file.write_text(FLAGS, encoding="utf-8")
    gpus = towpath.kernel(file).load("dgx-h100", 2, profile=True)
    with pytest.raises(towpath.DeadlockError, match="wait_for_ever"):
        gpus.launch("wait_for_ever", 2, 32, [gpus.symmetric(1, "int32")])
    del gpus


GIVE = """
#include <nvshmemx.h>
__global__ void give(float* to, float* from, int n) {
  nvshmemx_putmem_block(to, from, n * 4, (nvshmem_my_pe() + 1) % nvshmem_n_pes());
}
"""


@pytest.fixture(scope="module")
def give(tmp_path_factory):
    file = tmp_path_factory.mktemp("give") / "give.cu"
    file.write_text(GIVE, encoding="utf-8")
    return towpath.kernel(file)


def test_counters_of_links_add_up_to_the_bytes_that_were_moved(give):
    gpus = give.load("dgx-h100", PES, profile=True)
    to, source = gpus.symmetric(1 << 20), gpus.symmetric(1 << 20)
    before = {link.name: link.size_bytes for link in gpus.recorded().links}
    gpus.launch("give", 1, 128, [to, source, 1 << 20])
    recorded = gpus.recorded()
    assert recorded.transfers[:, columns.MOVED_BYTES].tolist() == [4 << 20] * PES
    used = {f"host0/gpu{pe} > host0/nvswitch" for pe in range(PES)}
    used |= {f"host0/nvswitch > host0/gpu{pe}" for pe in range(PES)}
    assert {link.name for link in recorded.links} == used
    for link in recorded.links:
        assert link.carried_bytes.sum() == link.size_bytes
        assert link.size_bytes - before[link.name] == 4 << 20
        # Never more than the link can, but for the rounding of an interval's ends.
        least = link.rate_bytes_per_s * recorded.interval_ps / 1e12
        assert link.carried_bytes.max() <= least + 2


def test_the_verdict_names_the_pe_that_works_longest(kernel):
    busy = kernel.run("dgx-h100", PES, arguments=["1024", "6", "2"], profile=True).profile.verdict
    assert "PE 2 is what the others wait for" in busy.text
    assert next(iter(busy.causes)) == (2, "compute")
    # Its neighbours wait for it directly, and the PE that is farthest away waits for those.
    assert [pe.waits_for for pe in busy.pes][1::2] == [2, 2]
    assert busy.pes[0].waits_for in (1, 3)


def test_a_balanced_run_blames_nobody(run):
    assert "is what the others wait for" not in run.profile.verdict.text


def test_the_verdict_names_a_slow_adapter(tmp_path):
    file = tmp_path / "streams.cu"
    file.write_text(STREAMS, encoding="utf-8")
    slow = towpath.kernel(file).run(
        "dgx-h100", 16, settings=["link_types.infiniband.rate_gb_per_s=2"], profile=True
    )
    verdict = slow.profile.verdict
    assert verdict.links[0].kind == "network"
    assert verdict.links[0].share > 0.7
    # 8 packets of 1 MiB at 2 GB/s, and what PEs agree on before.
    assert verdict.bytes_bound_us == pytest.approx(8 * 2**20 / 2000, rel=0.003)
    assert verdict.time_us >= verdict.bound_us
    assert re.search(r"send fewer bytes over (host|leaf)\d", verdict.text)


MANY = """
#include <nvshmemx.h>
__global__ void send(int* data, int count) {
  const int n = nvshmem_n_pes();
  const int peer = (nvshmem_my_pe() + n / 2) % n;
  for (int i = 0; i < count; ++i) nvshmemx_int_put_nbi_warp(data + i, data + count + i, 1, peer);
  nvshmem_quiet();
}
"""


def test_the_verdict_names_a_proxy_that_has_too_many_small_packets(tmp_path):
    file = tmp_path / "many.cu"
    file.write_text(MANY, encoding="utf-8")
    gpus = towpath.kernel(file).load("dgx-h100", 16, profile=True)
    data = gpus.symmetric(2048, "int32")
    gpus.launch("send", 1, 32, [data, 1000])
    verdict = towpath.KernelProfile.of(gpus).verdict
    assert verdict.proxy.transfers == 1000
    assert verdict.bound_us == verdict.proxy.least_us <= verdict.time_us
    assert "hands 1,000 transfers to its adapter" in verdict.text


def test_both_bounds_are_below_the_time(run):
    verdict = run.profile.verdict
    assert 0 < verdict.bytes_bound_us < verdict.time_us
    assert 0 < verdict.latency_bound_us < verdict.time_us
    assert verdict.rounds >= 6  # a round for each step


def test_a_full_ring_says_what_it_dropped_and_keeps_the_sums(run):
    spec = towpath.load("dgx-h100").spec
    assert isinstance(spec, MachineSpec)
    from inside.kernels import GpuKernel

    source = GpuKernel(str(EXAMPLE), (), ())
    gpus = source.simulate(spec, PES, records_max=50)
    assert gpus.run_main([str(EXAMPLE), "1024", "6"]) == 0
    small = gpus.recorded()
    assert len(small.spans) == 50
    assert "keeps the last 50 of" in small.dropped_sentence
    assert small.verdict.shares == run.profile.verdict.shares


def events_of(profile, tmp_path):
    profile.trace(tmp_path / "trace.json")
    return json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


FIELDS = {
    "M": {"ph", "name", "pid", "tid", "args"},
    "X": {"ph", "name", "pid", "tid", "ts", "dur", "args"},
    "C": {"ph", "name", "pid", "tid", "ts", "args"},
    "s": {"ph", "cat", "name", "id", "pid", "tid", "ts"},
    "t": {"ph", "cat", "name", "id", "pid", "tid", "ts"},
    "f": {"ph", "cat", "name", "id", "bp", "pid", "tid", "ts"},
}


def check_trace(events, pes):
    """The rules of the format: fields, identifiers, durations, and arrows that bind to spans."""
    spans, arrows = defaultdict(list), defaultdict(list)
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    for event in events:
        assert set(event) == FIELDS[event["ph"]], event
        assert min(event["pid"], event["tid"]) > 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert (event["pid"], event["tid"]) in named
            spans[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] in "stf":
            arrows[event["id"]].append(event)
    for own in spans.values():
        own.sort()
        for (_, end), (begin, _) in zip(own, own[1:], strict=False):
            assert begin >= end - 1e-5
    names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert names[:pes] == [f"PE {pe}" for pe in range(pes)]
    assert arrows
    for steps in arrows.values():
        check_arrow(steps, spans)


def check_arrow(steps, spans):
    phases = [step["ph"] for step in steps]
    assert phases == ["s", *["t"] * (len(steps) - 2), "f"]
    times = [step["ts"] for step in steps]
    assert times == sorted(times)
    for step in steps:
        assert any(
            begin - 1e-5 <= step["ts"] <= end + 1e-5
            for begin, end in spans[step["pid"], step["tid"]]
        )


def test_the_trace_of_a_simulated_run_keeps_the_rules_of_its_format(run, tmp_path):
    events = events_of(run.profile, tmp_path)
    check_trace(events, PES)
    threads = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {
        "host, stream 0",
        "library calls",
        "block 3",
        "block 3 in flight",
        "arrivals",
    } <= threads
    counters = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            counters[event["name"]].append((event["ts"], event["args"]["GB/s"]))
    assert "all NVLink" in counters
    recorded = run.profile.recorded
    for name, points in counters.items():
        area = sum(
            rate * (after - ts) * 1000  # GB/s times us are kilobytes
            for (ts, rate), (after, _) in zip(points, points[1:], strict=False)
        )
        carried = sum(
            link.size_bytes
            for link in recorded.links
            if name in ("all NVLink", f"{link.name} ({link.kind})")
        )
        assert area == pytest.approx(carried, rel=0.01)


def test_a_live_run_has_a_profile_too(kernel, tmp_path):
    live = kernel.run_live(2, arguments=["1024", "4"], profile=True)
    assert live.status == 0
    assert live.time_us is None
    recorded = live.profile.recorded
    assert recorded.is_live
    assert recorded.spans[:, columns.BEGIN_PS].min() >= 0
    # The clocks of both processes are one: nothing arrives before it was sent.
    causes = ended_by(recorded)
    ended = np.flatnonzero(causes >= 0)
    assert len(ended) > 0
    sent_ps = recorded.transfers[causes[ended], columns.BEGIN_PS]
    assert np.all(sent_ps <= recorded.spans[ended, columns.END_PS])
    verdict = live.profile.verdict
    assert verdict.bound_us is None
    assert sum(verdict.shares.values()) == pytest.approx(1)
    check_trace(events_of(live.profile, tmp_path), 2)


ACTIVITIES = ["compute", "put", "get", "wait", "collective"]


def part_of_a_live_run(spans, transfers, blocks):
    return {
        "names": [("put", ""), ("wait", "")],
        "activities": ACTIVITIES,
        "spans": np.array(spans, np.int64).reshape(-1, 10),
        "transfers": np.array(transfers, np.int64).reshape(-1, 13),
        "work": np.empty((0, 10), np.int64),
        "tracks": blocks,
        "dropped": (0, 0, 0),
    }


def test_an_arrival_that_its_live_sender_notes_late_is_drawn_before_what_it_ended(tmp_path):
    put, wait = map(ACTIVITIES.index, ("put", "wait"))
    signal, word_bytes = 64, 8
    blocks = [[[pe, 0, block, 1, 1, 0, 0, 0] for block in range(2)] for pe in range(2)]
    # The first PE's put lasts until 9 us; two blocks of the second have gone on at 8 and 5 us.
    gives = part_of_a_live_run(
        [[0, put, 0, 1, 1, 1_000_000, 9_000_000, 8, 0, 0]],
        [[0, put, 0, 1, 1, 2_000_000, 9_000_000, 9_000_000, 8, 0, 0, signal, word_bytes]],
        blocks[0],
    )
    waits = part_of_a_live_run(
        [[0, wait, 1, 0, 1, 1_000_000, 8_000_000, 0, signal, word_bytes],
         [1, wait, 1, 0, 1, 1_000_000, 5_000_000, 0, signal, word_bytes]],
        [], blocks[1],
    )  # fmt: skip
    recorded = columns.recorded_live([gives, waits])
    path = tmp_path / "trace.json"
    write_kernel_trace(recorded, path)
    events = json.loads(path.read_text())["traceEvents"]
    check_trace(events, 2)
    # Nothing is at 0: times begin with the first span.
    steps = [event["ts"] for event in events if event["ph"] in "stf"]
    assert steps == pytest.approx([1, 4, 4, 4], abs=1e-5)


def test_launches_by_name_are_recorded_where_that_is_asked_for(give):
    gpus = give.load("dgx-h100", 2, profile=True)
    to, source = gpus.symmetric(4096), gpus.symmetric(4096)
    gpus.launch("give", 1, 128, [to, source, 4096])
    profile = towpath.KernelProfile.of(gpus)
    assert next(iter(profile.verdict.shares)) == "put"
    with pytest.raises(towpath.ConfigError, match="profile=True"):
        towpath.KernelProfile.of(give.load("dgx-h100", 2))


@pytest.mark.parametrize(
    "place", [["--machine", "dgx-h100"], ["--live"]], ids=["simulated", "live"]
)
def test_the_command_prints_the_verdict_and_writes_trace_and_page(place, tmp_path):
    command = [
        sys.executable, "-m", "towpath", "kernel", "run", str(EXAMPLE), "--pes", "2",
        *place, "--profile", "--trace", "trace.json", "--out", "page.html", "--", "512", "3",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "# Where the time goes" in done.stdout
    assert "Try this: " in done.stdout
    check_trace(json.loads((tmp_path / "trace.json").read_text())["traceEvents"], 2)
    page = (tmp_path / "page.html").read_text()
    assert "What each block does when" in page
    assert "halo_exchange.cu" in page
    assert ("<h3>NVLink</h3>" in page) == (place[0] == "--machine")


def test_the_page_about_kernels_shows_what_the_verdict_says(kernel):
    page = (ROOT / "docs" / "gpu_kernels.md").read_text(encoding="utf-8")
    (printed,) = re.findall(r"^```text\n(Kernels ran for.*?)^```$", page, re.MULTILINE | re.DOTALL)
    run = kernel.run("dgx-h100", PES, arguments=["4096", "8", "2"], profile=True)
    assert printed.splitlines() == run.profile.verdict.sentences

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of puts with signals: the values of the worklog, what they depend on, and the page."""

import json
from pathlib import Path

import pytest

import towpath
from inside import _core
from inside.pages import exchange_page, page_text, write_page
from inside.studies import DOCUMENT, INITIATED, INSIDE, PROXY, STAGES, exchange
from towpath import ConfigError

LARGEST = 32 << 20
# The fastest blocks and slices of the whole sweep at this size, which docs/exchange.md shows.
FASTEST = {
    (INSIDE, "plain"): (512, 16),
    (INSIDE, "separate_signal"): (128, 64),
    (INSIDE, "fused_signal"): (512, 16),
    (PROXY, "plain"): (128, 512),
    (INITIATED, "plain"): (128, 512),
    (INITIATED, "separate_signal"): (256, 512),
    (INITIATED, "fused_signal"): (1024, 64),
}


def dgx(*settings):
    return towpath.load("dgx-h100", settings=settings).spec


def rate(route, stage, threads, bytes_per_thread, spec=None):
    machine, gpus = exchange.routes(spec or dgx())[route]
    time_us = _core.kernel_exchange_us(
        machine, getattr(_core.ExchangeStage, stage), LARGEST, threads, bytes_per_thread, gpus
    )
    return 2 * LARGEST / time_us / 1e3


@pytest.mark.parametrize(("route", "stage"), DOCUMENT)
def test_the_documents_exchanges_are_met_within_four_percent(route, stage):
    assert rate(route, stage, *FASTEST[route, stage]) == pytest.approx(
        DOCUMENT[route, stage], rel=0.04
    )


def rows_of_the_page():
    page = Path(__file__).resolve().parents[3] / "docs" / "exchange.md"
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 7 and cells[1] in STAGES:
            yield cells


@pytest.mark.parametrize(
    "cells", list(rows_of_the_page()), ids=lambda cells: f"{cells[0]}, {cells[1]}"
)
def test_the_page_of_the_docs_shows_what_a_run_gives(cells):
    route, stage, size, threads, each, shown, document = cells
    assert FASTEST[route, stage] == (int(threads), int(each))
    assert (size, float(document)) == ("32 MiB", DOCUMENT[route, stage])
    assert f"{rate(route, stage, int(threads), int(each)):.1f}" == shown


def test_the_page_of_the_docs_shows_every_value_of_the_document():
    assert {(cells[0], cells[1]) for cells in rows_of_the_page()} == set(DOCUMENT)


@pytest.mark.parametrize("route", [INSIDE, INITIATED])
@pytest.mark.parametrize("threads", [128, 512])
@pytest.mark.parametrize("bytes_per_thread", [16, 128, 2048])
def test_no_other_blocks_are_faster_with_a_separate_signal(route, threads, bytes_per_thread):
    fastest = rate(route, "separate_signal", *FASTEST[route, "separate_signal"])
    assert rate(route, "separate_signal", threads, bytes_per_thread) <= fastest


def test_what_the_separate_signal_costs_inside_a_host_is_its_fences():
    free = dgx("gpu_cost.kernel.fence_ns=0")
    assert rate(INSIDE, "separate_signal", 128, 64, free) > 640
    twice = dgx("gpu_cost.kernel.fence_ns=1150")
    assert rate(INSIDE, "separate_signal", 128, 64, twice) < 450


def test_a_narrow_copy_takes_longer_the_longer_memory_takes():
    slow = dgx("gpu_cost.kernel.memory_latency_ns=1000")
    narrow = rate(INSIDE, "separate_signal", 512, 512, slow)
    assert narrow < 0.6 * rate(INSIDE, "separate_signal", 512, 512)


def test_queue_pairs_limit_small_slices():
    two = rate(INITIATED, "plain", 128, 64)
    many = rate(INITIATED, "plain", 128, 64, dgx("gpu_cost.kernel.queue_pairs=32"))
    assert two < 35
    assert many > 90


def test_every_value_of_the_kernels_cost_can_be_set():
    default = dgx().gpu_cost.kernel
    for name in type(default).model_fields:
        value = getattr(default, name)
        if value is False:
            continue
        changed = dgx(f"gpu_cost.kernel.{name}={value.value + 1}").gpu_cost.kernel
        assert getattr(changed, name).value == value.value + 1


def test_the_sweep_keeps_what_divides_the_buffer():
    rows = exchange.exchanges(towpath.load("dgx-h100", hosts=1).spec, [1 << 16])
    assert {row.route for row in rows} == {INSIDE}
    assert {row.stage for row in rows} == set(STAGES)
    assert all((1 << 16) % (row.threads * row.bytes_per_thread) == 0 for row in rows)
    fastest = exchange.best(rows)
    assert len(fastest) == 3
    for row in fastest:
        same = [one for one in rows if one.stage == row.stage]
        assert row.gb_per_s == max(one.gb_per_s for one in same)


def test_a_buffer_that_no_blocks_divide_is_refused():
    with pytest.raises(ConfigError, match="1000 bytes"):
        exchange.exchanges(towpath.load("dgx-h100", hosts=1).spec, [1000])


def test_a_machine_without_kernels_is_refused():
    with pytest.raises(ConfigError, match="costs of kernels"):
        exchange.check_kernels(towpath.load("ring").spec)
    with pytest.raises(ValueError, match="costs of kernels"):
        _core.kernel_exchange_us(
            towpath.load("ring").spec.build(), _core.ExchangeStage.plain, 4096, 128, 16, (0, 1)
        )


def test_gpus_that_there_are_not_do_not_exchange():
    machine = dgx().build(hosts=1)
    for gpus in ((0, 0), (0, 8), (-1, 1)):
        with pytest.raises(ValueError, match="cannot exchange"):
            _core.kernel_exchange_us(machine, _core.ExchangeStage.plain, 4096, 128, 16, gpus)


# --- rings ----------------------------------------------------------------------------------------


def all_reduce_us(machine, kernel, size_bytes, each, alternates=False):
    kind = getattr(_core.RingKernel, kernel)
    return _core.kernel_all_reduce_us(machine, kind, size_bytes, 512, each, alternates)


def test_a_simple_ring_is_faster_for_small_buffers_and_slower_for_large_ones():
    machine = dgx().build(hosts=1)
    small = [all_reduce_us(machine, kind, 1 << 16, 16) for kind in ("ring", "simple_ring")]
    large = [all_reduce_us(machine, kind, 16 << 20, 64) for kind in ("ring", "simple_ring")]
    assert small[1] < small[0]
    assert large[1] > 2 * large[0]


def test_alternating_rings_use_all_adapters_and_gain_from_queue_pairs():
    two, many = (
        dgx(
            "gpu_cost.kernel.gpu_initiated_adapters=true", f"gpu_cost.kernel.queue_pairs={pairs}"
        ).build(hosts=2)
        for pairs in (2, 32)
    )
    one_ring = all_reduce_us(two, "ring", 16 << 20, 128)
    alternating = all_reduce_us(two, "ring", 16 << 20, 16, True)
    assert one_ring > 2.5 * alternating
    assert all_reduce_us(many, "ring", 16 << 20, 16, True) < 0.9 * alternating


@pytest.mark.parametrize("hosts", [1, 2, 3, 4, 5])
def test_alternating_rings_close_for_every_number_of_hosts(hosts):
    machine = dgx().build(hosts=hosts)
    for ring in range(8):
        order = _core.kernel_ring_order(machine, alternates=True, ring=ring)
        assert sorted(order) == list(range(8 * hosts))
        crossings = sum(
            gpu // 8 != after // 8 for gpu, after in zip(order, order[1:] + order[:1], strict=True)
        )
        assert crossings == (hosts if hosts > 1 else 0)


def test_a_ring_that_does_not_divide_the_buffer_is_refused():
    with pytest.raises(ValueError, match="use a multiple of 65536"):
        all_reduce_us(dgx().build(hosts=1), "ring", 1000, 16)


# --- how it is shown ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study():
    return towpath.load("dgx-h100").bench_exchange("2M", "1M")


@pytest.mark.slow
def test_the_text_has_the_documents_values_beside_ours(study):
    lines = page_text(exchange_page.exchange_page(study, "towpath")).splitlines()
    inside = next(line for line in lines if "inside a host" in line and "put alone" in line)
    assert "733" in inside
    assert any("NCCL by default" in line for line in lines)


def test_another_machine_is_not_held_against_the_document():
    study = towpath.load("dgx-a100", hosts=1).bench_exchange("2M", "64K")
    assert not study.is_the_documents
    assert study.between == []
    assert "document" not in exchange_page.best_table(study).headings


def test_the_page_and_the_json_say_the_same(study, tmp_path):
    write_page(exchange_page.exchange_page(study, "towpath"), tmp_path / "study.html")
    page = (tmp_path / "study.html").read_text()
    plain = json.loads(json.dumps(study.to_dict()))
    fastest = max(
        (row for row in plain["exchanges"] if row["route"] == INSIDE and row["stage"] == "plain"),
        key=lambda row: row["gb_per_s"],
    )
    assert f"{fastest['gb_per_s']:.1f}" in page

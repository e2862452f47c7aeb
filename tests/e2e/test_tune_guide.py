# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What the multichip guide recommends, beside what `towpath tune ethernet` finds on a T3000.

docs/tune.md has the table. What does not come out is asserted too, so that a better model shows.
"""

import json

import pytest

from inside.tuning import LinkBench, link_bench
from inside.tuning import answers as tune_answers


@pytest.fixture(scope="module")
def value():
    """Runs points as they are asked for, each once."""
    bench = LinkBench.on("t3000")
    known = {}

    def measured(point):
        key = json.dumps(point)
        if key not in known:
            known[key] = bench(point)["value"]
        return known[key]

    return measured


@pytest.fixture(autouse=True)
def few_sizes(monkeypatch):
    """The small packets are far from every choice and take the time."""
    for module in (link_bench, tune_answers):
        monkeypatch.setattr(module, "PACKET_BYTES", (1024, 4096, 8192, 16384, 32768))
        monkeypatch.setattr(module, "OPERATION_BYTES", (256, 4096, 16384))


def test_packets_of_8_to_16_kib_come_out_but_4_kib_miss_by_little(value):
    found = tune_answers.packet_size(value)
    assert found.chosen == {"packet_bytes": 8192, "packet_bytes_max": 16384}
    share = {line[0]: float(line[2].rstrip("%")) for line in found.table.lines}
    assert 88 < share["4 KiB"] < 95


def test_8_kib_hide_the_latency_of_a_send_and_16_kib_that_of_an_answer(value):
    hidden = tune_answers.under_way(value, 12.5).chosen
    assert hidden["covering_bytes"] == 8192
    assert 530 < hidden["one_way_ns_max"] < 640
    outstanding = tune_answers.outstanding(value).chosen
    assert outstanding == {"one_way_bytes": 16384, "both_ways_bytes": 32768}


def test_merged_sync_words_come_out_round_a_ring_and_for_streams_up_to_16_kib(value):
    chosen = tune_answers.sync_words(value, 8).chosen
    assert chosen["sync_in_ring"] == "merged"
    merged = {size for size, kind in chosen["sync_of_packet_bytes"].items() if kind == "merged"}
    assert merged == {1024, 4096, 8192, 16384}


def test_smaller_packets_want_more_channels_and_small_operations_smaller_packets(value):
    channels = tune_answers.channels(value).chosen["channels_of_packet_bytes"]
    assert channels[4096] > channels[8192] > channels[16384] > channels[32768]
    assert channels[1024] > channels[8192]
    cut = tune_answers.small_operations(value).chosen["channels_of_operation_bytes"]
    assert cut == {256: 1, 4096: 8, 16384: 8}

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath tune ethernet`: each question on rates made up for it, and the command on few sizes."""

import json
import pickle

import pytest
from typer.testing import CliRunner

from inside.cli import main as cli
from inside.errors import Interruption
from inside.tuning import PACKET_BYTES, LinkBench, channel_counts, link_bench, steady_points
from inside.tuning import answers as tune_answers
from towpath import ConfigError


def made_up(**value_of_test):
    """Answers points by their test's function of their options."""
    return lambda point: value_of_test[point["test"]](**point["options"])


def both_ways(rate):
    return made_up(both_ways_gb_per_s=lambda **options: rate(**options))


def test_the_smallest_packet_that_comes_close_is_chosen():
    plateau = {2048: 16.5, 4096: 23.0, 8192: 23.2, 16384: 23.6, 32768: 20.6}
    found = tune_answers.packet_size(
        both_ways(lambda packet_bytes, **_: plateau.get(packet_bytes, 1.0))
    )
    assert found.chosen == {"packet_bytes": 4096, "packet_bytes_max": 16384}
    assert "4 KiB to 16 KiB reach 95% of 23.60 GB/s" in found.choice


def test_channels_are_chosen_against_the_best_of_their_packet_size():
    def rate(packet_bytes, channels, **_):
        return min(channels * packet_bytes, 16384)

    chosen = tune_answers.channels(both_ways(rate)).chosen["channels_of_packet_bytes"]
    assert (chosen[1024], chosen[4096], chosen[16384]) == (16, 4, 1)
    assert chosen[16] == 29  # of the 30 that can be, 29 reach 95 %


def test_a_window_counts_the_slots_in_use():
    value = made_up(
        one_way_gb_per_s=lambda packet_bytes, slots: min(packet_bytes * (slots - 1), 8192),
        both_ways_gb_per_s=lambda packet_bytes, channels, **_: min(packet_bytes * channels, 32768),
    )
    assert tune_answers.outstanding(value).chosen == {
        "one_way_bytes": 8192, "both_ways_bytes": 32768,
    }  # fmt: skip


def test_bytes_that_hide_a_send_are_rate_times_latency():
    value = made_up(
        one_way_gb_per_s=lambda **_: 12.0,
        # 600 ns each way, and the packet's own time on a line of 12.5 GB/s.
        ping_ns=lambda packet_bytes: 1200 + packet_bytes / 12.5,
    )
    found = tune_answers.under_way(value, 12.5)
    assert found.chosen["one_way_ns_max"] == pytest.approx(600)
    assert found.chosen["covering_bytes"] == 8192  # 7200 bytes


@pytest.mark.parametrize(
    ("gain", "sizes", "words"),
    [
        (1.0, (), "separate ones do for a stream"),
        (1.2, (1024, 2048), "merged for a stream of packets of 1 KiB to 2 KiB, separate ones do"),
        (1.2, PACKET_BYTES, "merged for packets of any size"),
    ],
)
def test_separate_sync_words_stay_unless_merged_ones_are_faster(gain, sizes, words):
    value = both_ways(
        lambda packet_bytes, merged, **_: gain if merged and packet_bytes in sizes else 1.0
    )
    assert tune_answers.sync_words(value, 0).choice.startswith(words)


def test_sync_words_round_a_ring_are_chosen_by_time():
    value = made_up(
        both_ways_gb_per_s=lambda **_: 1.0,
        ring_ns=lambda merged, **_: 5200.0 if merged else 5520.0,
    )
    found = tune_answers.sync_words(value, 8)
    assert found.chosen["sync_in_ring"] == "merged"
    assert "650 ns per hop merged against 690 ns" in found.choice


def test_operations_are_cut_where_that_is_faster():
    # A packet takes 600 ns and a byte 1/12.5 ns at each of 8 hops; the others follow it.
    def time(packet_bytes, channels, **_):
        return 8 * (600 + packet_bytes / 12.5) + (channels - 1) * (50 + packet_bytes / 12.5)

    chosen = tune_answers.small_operations(made_up(ring_ns=time)).chosen
    assert chosen["channels_of_operation_bytes"][256] == 1
    assert chosen["channels_of_operation_bytes"][16384] == 8


def test_packets_per_channel_are_those_that_come_close_to_a_steady_rate():
    value = both_ways(lambda packets, **_: packets / (packets + 1))
    found = tune_answers.packets_per_channel(value, {1024: 8, 4096: 4})
    # 8/9 is less than 95 % of 64/65, 16/17 is more.
    assert found.chosen["packets_per_channel_of_packet_bytes"] == {1024: 16, 4096: 16}
    assert found.choice.startswith("16 packets over each channel")


def test_every_point_that_an_answer_asks_for_is_measured():
    asked = []

    def value(point):
        asked.append(json.dumps(point))
        return 1.0

    tune_answers.answers(value, 12.5, 8)
    points = [json.dumps(point) for point in steady_points(has_ring=True)]
    assert set(asked) == set(points)
    assert len(points) == len(set(points))


def test_channels_fit_into_the_memory_of_both_directions():
    assert channel_counts(16)[-1] == 30
    assert channel_counts(65536)[-1] == 1


def test_a_bench_knows_link_and_ring_and_travels_without_its_cluster():
    bench = LinkBench.on("t3000")
    assert bench.link == (0, 1) and len(set(bench.ring)) == 8
    assert bench.line_gb_per_s == 12.5
    point = link_bench.round_trip(16)
    assert pickle.loads(pickle.dumps(bench))(point) == bench(point)
    assert LinkBench.on("n300").ring == ()


@pytest.fixture
def tune(monkeypatch, tmp_path):
    """Runs the command as typed after `towpath tune ethernet`, with few sizes."""
    monkeypatch.chdir(tmp_path)
    few = {"PACKET_BYTES": (8192, 16384), "WINDOW_PACKET_BYTES": (8192,), "PING_BYTES": (16,),
           "OPERATION_BYTES": (1024,), "PACKETS_PER_CHANNEL": (1, 8)}  # fmt: skip
    for module in (link_bench, tune_answers):
        for name, values in few.items():
            monkeypatch.setattr(module, name, values)

    def run(*arguments):
        line = ["tune", "ethernet", "--jobs", "1", *arguments]
        result = CliRunner().invoke(cli.app, line, standalone_mode=False, obj=Interruption())
        if result.exception is not None:
            raise result.exception
        return result

    return run


@pytest.mark.slow
def test_a_t3000_answers_every_question_and_goes_on_where_it_was(tune, tmp_path):
    text = tune().stdout
    folder = tmp_path / "tune-ethernet-t3000"
    lines = (folder / "points.jsonl").read_text().splitlines()
    assert [line for line in text.splitlines() if line.startswith("# ")][0] == "# Packet size"
    found = json.loads(tune("--json").stdout)["results"][0]
    assert [answer["title"] for answer in found["answers"]] == [
        "Packet size", "Bytes outstanding", "Bytes that hide the latency of a send", "Sync words",
        "Channels by packet size", "Small operations", "Packets for these channels",
    ]  # fmt: skip
    assert [found] == json.loads((folder / "study.json").read_text())["results"]
    assert (folder / "points.jsonl").read_text().splitlines() == lines
    assert (folder / "study.html").read_text().count('class="plot"') == 4


def test_an_n300_has_no_ring_to_ask_about(tune):
    found = json.loads(tune("--machine", "n300", "--json").stdout)["results"][0]
    assert "Small operations" not in [answer["title"] for answer in found["answers"]]


def test_a_machine_without_links_is_refused(tune, tmp_path):
    with pytest.raises(ConfigError, match="'p150' has no link between chips"):
        tune("--machine", "p150")
    assert list(tmp_path.iterdir()) == []

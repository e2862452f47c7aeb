# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath bench deepep`: dispatch and combine of experts."""

import json

import pytest

from conftest import refusal, towpath_command
from inside.validation import validate_table


def rows(*line):
    printed = json.loads(towpath_command("bench", "deepep", *line, "--json").stdout)
    return printed["results"][0]["rows"]


def test_low_latency_sends_a_message_for_each_expert():
    [row] = rows("--hosts", "2", "--tokens", "100")
    message = 7168 + 7168 // 128 * 4 + 16  # FP8, scales, header
    assert row["dispatch"]["network_bytes"] == 100 * 8 * message // 2
    assert row["combine"]["network_bytes"] == 100 * 8 * 2 * 7168 // 2
    assert row["dispatch"]["limit"] == row["combine"]["limit"] == "network"


def test_normal_sends_a_token_once_to_a_host_and_once_to_a_gpu():
    [one] = rows("--mode", "normal", "--tokens", "1000", "--topk", "1")
    assert one["combine"]["nvlink_bytes"] == 1000 * 2 * 7168 * 7 // 8
    [every] = rows("--mode", "normal", "--tokens", "1000", "--topk", "250", "--hosts", "2")
    assert every["combine"]["network_bytes"] == 1000 * 2 * 7168
    assert every["combine"]["nvlink_bytes"] == pytest.approx(1000 * 16 * 2 * 7168 * 7 / 8, rel=1e-3)


def test_more_multiprocessors_help_until_the_network_is_the_limit():
    line = ("--mode", "normal", "--hosts", "2", "--tokens", "8192", "--sms")
    few, some, many = (rows(*line, sms)[0]["dispatch"] for sms in ("4", "8", "64"))
    assert few["time_us"] > 1.9 * some["time_us"] and some["limit"] == "multiprocessors"
    assert many["limit"] in ("network", "nvlink") and many["time_us"] < some["time_us"]


def test_a_row_of_a_table_has_two_times(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "machine,mode,nodes,hidden,tokens,topk,experts,dispatch_us,combine_us\n"
        "h100_sxm,low_latency,2,7168,128,8,256,102.1,186.17\n"
        "h100_sxm,normal/20sms,1,7168,128,8,250,49.8,85.3\n"
    )
    there, back, *refused = validate_table(path).rows
    assert (there["measured"], back["measured"]) == (102.1, 186.17)
    assert abs(there["error_pct"]) < 15 and abs(back["error_pct"]) < 15
    assert all("250 experts" in row["error"] for row in refused)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (("--machine", "t3000"), "not a cluster of GPUs"),
        (("--machine", "mi300x"), "has no NVLinks"),
        (("--experts", "250"), "multiple of the GPUs"),
        (("--mode", "normal", "--sms", "5"), "even number"),
        (("--tokens", "many"), "--tokens is 'many'"),
        (("--mode", "fast"), "low_latency, normal"),
    ],
)
def test_a_layer_that_does_not_fit_is_refused_in_one_sentence(line, words):
    assert words in refusal(towpath_command, "bench", "deepep", *line)

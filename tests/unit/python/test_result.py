# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import json
from dataclasses import replace

import pytest

from inside.collectives import bus_factor, measure
from report_example import example_report, example_row, example_run
from towpath import ConfigError


@pytest.mark.parametrize(
    ("collective", "factor"),
    [("all_reduce", 1.75), ("all_gather", 0.875), ("reduce_scatter", 0.875),
     ("all_to_all", 0.875), ("broadcast", 1.0), ("reduce", 1.0),
     ("gather", 0.875), ("scatter", 0.875), ("all_to_all_v", 0.875), ("send_recv", 1.0),
     ("barrier", 0.0)],
)  # fmt: skip
def test_bus_factor_of_eight_ranks_is_that_of_nccl_tests(collective, factor):
    assert bus_factor(collective, 8) == factor


def test_bus_factor_names_what_is_allowed():
    with pytest.raises(ValueError, match="'butterfly'; choose one of all_reduce, .*, barrier$"):
        bus_factor("butterfly", 8)
    with pytest.raises(ValueError, match="ranks is 0; it must be at least 1"):
        bus_factor("all_reduce", 0)


def test_bandwidths_follow_from_size_and_time():
    # 67,108,864 B / 200 us = 335.54432 GB/s; times 2 * 7 / 8.
    measurement = measure(200.0, 67_108_864, "all_reduce", 8, 0)
    assert measurement.algbw_gb_per_s == pytest.approx(335.54432)
    assert measurement.busbw_gb_per_s == pytest.approx(587.20256)


def test_measure_refuses_a_time_of_zero():
    with pytest.raises(ValueError, match="time_us is 0; it must be above 0"):
        measure(0, 8, "reduce", 2, None)


def test_mean_bus_bandwidth_counts_every_measurement_once():
    empty = example_run("ring", "Simple", 1.0, 1.0, ranks=2, blocks=1, sizes=0)
    ten, thirty = measure(1.0, 10_000, "reduce", 2, 3), measure(1.0, 30_000, "reduce", 2, None)
    assert empty.busbw_mean_gb_per_s is None
    assert empty.wrong is None
    rows = (example_row(10_000, ten, None), example_row(30_000, ten, thirty))
    result = replace(empty, rows=rows)
    assert result.measurements == [ten, ten, thirty]
    assert result.busbw_mean_gb_per_s == pytest.approx((10 + 10 + 30) / 3)
    assert result.wrong == 6


def test_the_values_of_a_row_are_those_out_of_place_and_else_in_place():
    fast, slow = measure(1.0, 10_000, "reduce", 2, None), measure(2.0, 10_000, "reduce", 2, 4)
    both, one = example_row(10_000, fast, slow), example_row(10_000, None, slow)
    assert (both.time_us, both.wrong) == (1.0, 4)
    assert (one.time_us, one.bus_bandwidth_gb_per_s) == (2.0, 5.0)
    with pytest.raises(
        ConfigError, match="schedule ring supports neither in place nor out of place"
    ):
        print(example_row(8, None, None).time_us)


def test_json_holds_the_rows_and_leaves_out_what_has_its_own_file():
    result = json.loads(example_report(sizes=2)[0].to_json())
    assert result["command"].startswith("towpath run all_reduce")
    assert [row["size_bytes"] for row in result["rows"]] == [8, 16]
    assert result["rows"][0]["out_of_place"]["wrong"] == 0
    assert (result["rows"][0]["schedule"], result["rows"][0]["channels"]) == ("ring", 8)
    assert not {"timeline", "topology_svg", "links"} & set(result)
    with_links = example_report(sizes=2)[0].to_dict(links=True)
    assert with_links["links"][0]["kind"] == "nvlink"

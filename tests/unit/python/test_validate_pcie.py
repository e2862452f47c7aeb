# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of tables measured on host links: how they are read, and what is said of bad ones."""

import pytest

from inside.machines import catalogue
from inside.validation import PCIE_KINDS, validate_table
from towpath import ConfigError

ACCESSES = "table,operation,col2,col3,throughput_GBps,latency_ns_min"
DRIVER = "bench,case,op,bytes,ns_per_byte,bytes_per_s,err_pct"


def table(tmp_path, columns, *rows):
    path = tmp_path / "table.csv"
    path.write_text("\n".join([columns, *rows]) + "\n")
    return path


def test_a_table_is_known_by_its_columns(tmp_path):
    for columns, kind in zip((ACCESSES, DRIVER), PCIE_KINDS, strict=True):
        assert validate_table(table(tmp_path, columns)).kind == kind.name


def test_another_host_changes_the_prediction_and_the_chip_does_not(tmp_path):
    path = table(tmp_path, DRIVER, "TLB_DRAM,Static TLB,read,4,239.99,4166796.72,0.0")
    (xeon,) = validate_table(path).rows
    (ryzen,) = validate_table(path, "ryzen-host").rows
    assert xeon["measured"] == pytest.approx(4.1668, rel=1e-4)
    spec = catalogue.load_host("n300-xeon-host"), catalogue.load_host("ryzen-host")
    calls = [host.core.call_time_ns.value + host.link.read_time_ns.value for host in spec]
    assert 4e3 / xeon["predicted"] - 4e3 / ryzen["predicted"] == pytest.approx(calls[0] - calls[1])


def test_a_latency_stands_beside_the_bandwidth(tmp_path):
    rows = (
        "host_init_tlb_mode,memcpy from device,WC,Default,0.10,671",
        "device_init,NoC write,Tensix different row,,26.4,370",
    )
    read, write = validate_table(table(tmp_path, ACCESSES, *rows)).rows
    assert read["predicted_latency_ns"] == pytest.approx(671, rel=0.01)
    assert write["predicted_latency_ns"] == pytest.approx(370, rel=0.05)


@pytest.mark.parametrize(
    ("columns", "row", "sentence"),
    [
        (
            ACCESSES,
            "elsewhere,DMA to device,WC,Default,1,1",
            "table is 'elsewhere'; choose one of ",
        ),
        (
            ACCESSES,
            "host_init_tlb_mode,DMA,WC,Default,1,1",
            "operation is 'DMA'; choose one of DMA to",
        ),
        (
            ACCESSES,
            "host_init_tlb_mode,DMA to device,WB,Default,1,1",
            "col2 is 'WB'; choose one of ",
        ),
        (
            ACCESSES,
            "host_init_tlb_mode,DMA to device,WC,Loose,1,1",
            "col3 is 'Loose'; choose one of ",
        ),
        (
            ACCESSES,
            "host_init_by_target,DMA to device,ARC tile,WC posted,1,1",
            "col2 is 'ARC tile';",
        ),
        (DRIVER, "DMA_ARC,DMA,read,4,1,1,1", "bench is 'DMA_ARC'; choose one of DMA_DRAM, "),
        (
            DRIVER,
            "DMA_DRAM,PIO,read,4,1,1,1",
            "case is 'PIO'; choose one of DMA, Static TLB, Dynamic",
        ),
        (DRIVER, "DMA_DRAM,DMA,copy,4,1,1,1", "op is 'copy'; choose one of read, write"),
        (
            DRIVER,
            "DMA_DRAM,DMA,read,-4,1,1,1",
            "bytes is '-4'; it must be a whole number from 1 to ",
        ),
        (DRIVER, "DMA_DRAM,DMA,read,6,1,1,1", "a DMA of 6 bytes at address 0 is not aligned"),
        (DRIVER, "TLB_Tensix,Static TLB,read,8388608,1,1,1", "8388608 bytes at address 0 of "),
        (
            DRIVER,
            "TLB_DRAM,Static TLB,read,134217728,1,1,1",
            "bytes is 134217728; it must be 1 to",
        ),
        (DRIVER, "TLB_DRAM,Static TLB,read,4,1,0,1", "bytes_per_s is '0'; it must be a number abo"),
    ],
)
def test_a_row_that_cannot_be_simulated_says_why(tmp_path, columns, row, sentence):
    (done,) = validate_table(table(tmp_path, columns, row)).rows
    assert done["predicted"] is None and done["error"].startswith(sentence)


def test_what_is_no_host_is_refused_before_any_row(tmp_path):
    with pytest.raises(ConfigError, match="is not a host"):
        validate_table(table(tmp_path, DRIVER), "wormhole")

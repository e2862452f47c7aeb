# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Spoilt chips either load, and then build, or end in one sentence that says where."""

from pathlib import Path

import pytest

from conftest import shared_data
from inside.machines import catalogue, shipped
from inside.pages import describe_chip_cluster, draw_chip_cluster_svg
from mutate import check_mutants

REPOSITORY = Path(__file__).resolve().parents[2]

DESCRIPTOR = """\
grid: {x_size: 4, y_size: 3}
arc: [0-2]
pcie: []
dram: [[0-0, 0-1], [3-0]]
eth: [1-0]
functional_workers: [1-1, 2-1]
harvested_workers: [1-2, 2-2]
router_only: [2-0]
security: [3-1]
l2cpu: [3-2]
worker_l1_size: 1000000
dram_bank_size: 2147483648
eth_l1_size: 200000
arch_name: WORMHOLE_B0
features: {overlay: {version: 2}}
"""
CLUSTER = """\
arch: {0: wormhole_b0, 1: wormhole_b0}
chips: {0: [0, 0, 0, 0], 1: [1, 0, 0, 0]}
ethernet_connections:
  - [{chip: 0, chan: 8}, {chip: 1, chan: 0}]
  - [{chip: 0, chan: 9}, {chip: 1, chan: 1}]
chips_with_mmio: [0: 0]
boards: [[{board_id: 1}, {board_type: n300}, {chips: [0, 1]}]]
harvesting:
  0: {noc_translation: true, harvest_mask: 65}
  1: {noc_translation: true, harvest_mask: 5}
"""


def read_chip(path):
    """What loads must build: the core has no sentence that the reader does not."""
    catalogue.load_chip(path).build()


def read_chip_cluster(path):
    """Whatever loads must build, too, and must have a description and a drawing."""
    spec = catalogue.load_chip_cluster(path)
    spec.build()
    describe_chip_cluster(spec)
    draw_chip_cluster_svg(spec)


def shared(pattern):
    return sorted((shared_data() / "topologies" / "tenstorrent").glob(pattern))


def check_chips(seeds, folder):
    (folder / "descriptor.yaml").write_text(DESCRIPTOR)
    originals = [
        *(REPOSITORY / "machines" / f"{name}.yaml" for name in shipped.names("chip")),
        folder / "descriptor.yaml",
        *shared("*_b0_8x10.yaml"),
        *shared("*_140_arch.yaml"),
    ]
    check_mutants("test_bad_chip_input:read_chip", originals, seeds, folder, seconds_max=2)


def check_chip_clusters(seeds, folder):
    (folder / "cluster.yaml").write_text(CLUSTER)
    originals = [
        *(REPOSITORY / "machines" / f"{name}.yaml" for name in shipped.names("chip_cluster")),
        folder / "cluster.yaml",
        *shared("t3k_*.yaml"),
        *shared("6u_*.yaml"),
        *shared("wormhole_N300.yaml"),
        *shared("blackhole_P150.yaml"),
    ]
    check_mutants("test_bad_chip_input:read_chip_cluster", originals, seeds, folder, seconds_max=4)


def test_50_spoilt_clusters_of_chips(tmp_path):
    check_chip_clusters(range(50), tmp_path)


def test_50_spoilt_chips(tmp_path):
    check_chips(range(50), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, 6))
def test_10_000_spoilt_chips_and_clusters(tmp_path, part):
    check_chips(range(1000 * part, 1000 * (part + 1)), tmp_path)
    check_chip_clusters(range(1000 * part, 1000 * (part + 1)), tmp_path)

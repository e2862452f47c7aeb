# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Spoilt chips either load, and then build, or end in one sentence that says where."""

from pathlib import Path

import pytest

from conftest import shared_data
from mutate import check_mutants
from towpath import machines
from towpath.input_file import parse_yaml, read_text
from towpath.topology_import.soc_descriptor import harvesting_of

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
harvesting:
  0: {noc_translation: true, harvest_mask: 65}
  1: {noc_translation: true, harvest_mask: 5}
"""


def read_chip(path):
    """What loads must build: the core has no sentence that the reader does not."""
    machines.load_chip(path).core()


def read_harvesting(path):
    harvesting_of(parse_yaml(read_text(path), str(path)), str(path), 1)


def shared(pattern):
    return sorted((shared_data() / "topologies" / "tenstorrent").glob(pattern))


def check_chips(seeds, folder):
    (folder / "descriptor.yaml").write_text(DESCRIPTOR)
    originals = [
        *(REPOSITORY / "machines" / f"{name}.yaml" for name in machines.shipped_chips()),
        folder / "descriptor.yaml",
        *shared("*_b0_8x10.yaml"),
        *shared("*_140_arch.yaml"),
    ]
    check_mutants("test_bad_chip_input:read_chip", originals, seeds, folder, seconds_max=2)


def check_clusters(seeds, folder):
    (folder / "cluster.yaml").write_text(CLUSTER)
    originals = [folder / "cluster.yaml", *shared("t3k_*.yaml"), *shared("wormhole_N300.yaml")]
    check_mutants("test_bad_chip_input:read_harvesting", originals, seeds, folder, seconds_max=2)


def test_500_spoilt_chips(tmp_path):
    check_chips(range(500), tmp_path)


def test_200_spoilt_cluster_descriptors(tmp_path):
    check_clusters(range(200), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, 6))
def test_10_000_spoilt_chips_and_cluster_descriptors(tmp_path, part):
    check_chips(range(1000 * part, 1000 * (part + 1)), tmp_path)
    check_clusters(range(1000 * part, 1000 * (part + 1)), tmp_path)

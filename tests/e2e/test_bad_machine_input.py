# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Spoilt machine files either load or end in one sentence that says where; nothing else happens."""

from pathlib import Path

import pytest

from conftest import shared_data
from mutate import check_mutants

REPOSITORY = Path(__file__).resolve().parents[2]

TABLE = """\
        GPU0    GPU1    NIC0    NIC1    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV18    PIX     PXB     0-55,112-167    0               N/A
GPU1    NV18     X      PXB     PIX     0-55,112-167    0               N/A
NIC0    PIX     PXB      X      PXB
NIC1    PXB     PIX     PXB      X

Legend:

  X    = Self

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""

SYSTEM = """\
<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" modelid="143">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0001:00:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90"><nvlink target="0002:00:00.0" count="18" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0101:00:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"/>
    </pci>
  </cpu>
  <cpu numaid="1" arch="x86_64" vendor="GenuineIntel" modelid="143">
    <pci busid="0002:00:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="90"><nvlink target="0001:00:00.0" count="18" tclass="0x030200"/></gpu>
    </pci>
    <nic><net name="eth0" dev="0" speed="100000" port="0"/></nic>
  </cpu>
</system>
"""


def check(seeds, folder):
    (folder / "table.txt").write_text(TABLE)
    (folder / "system.xml").write_text(SYSTEM)
    originals = [
        *sorted((REPOSITORY / "machines").glob("*.yaml")),
        folder / "table.txt",
        folder / "system.xml",
        *sorted((shared_data() / "topologies" / "nccl").glob("*-topo.xml")),
    ]
    check_mutants("inside.machines:load", originals, seeds, folder, seconds_max=2)


def test_100_spoilt_machine_files(tmp_path):
    check(range(100), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, 11))
def test_10_000_spoilt_machine_files(tmp_path, part):
    check(range(1000 * part, 1000 * (part + 1)), tmp_path)

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Spoilt machine files either load or end in one sentence that says where; nothing else happens."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("TOWPATH_DATA", REPOSITORY.parent / "shared" / "data"))
MEMORY_MAX_BYTES = 1 << 30
SECONDS_MAX = 2  # of processor time, so that a busy machine changes nothing

# Runs in a process of its own: its memory is limited, and a crash is a finding, not the end.
CHILD = """
import json, resource, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from mutate import mutant
from towpath import machines
from towpath.errors import ConfigError

machines.shipped(machines.shipped_machines()[0])
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
first, last, folder = int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5])
originals = [Path(name).read_text() for name in sys.argv[6:]]
for seed in range(first, last):
    path = folder / "spoilt.in"
    path.write_bytes(mutant(originals[seed % len(originals)], seed))
    begin = time.process_time()
    try:
        machines.load(path)
        kind, sentence = "loaded", ""
    except ConfigError as error:
        kind, sentence = "refused", str(error)
    except BaseException as error:
        kind, sentence = "failed", repr(error)[:300]
    seconds = time.process_time() - begin
    print(json.dumps([seed, kind, sentence, seconds]))
"""

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


def check(first, last, folder):
    (folder / "table.txt").write_text(TABLE)
    (folder / "system.xml").write_text(SYSTEM)
    originals = [
        *sorted((REPOSITORY / "machines").glob("*.yaml")),
        folder / "table.txt",
        folder / "system.xml",
        *sorted((DATA / "topologies" / "nccl").glob("*-topo.xml")),
    ]
    command = [sys.executable, "-c", CHILD, str(REPOSITORY / "tests"), str(MEMORY_MAX_BYTES)]
    command += [str(first), str(last), str(folder), *map(str, originals)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    results = [json.loads(line) for line in run.stdout.splitlines()]
    assert [seed for seed, *_ in results] == list(range(first, last))
    where = re.compile(re.escape(str(folder / "spoilt.in")) + r":[0-9]+: .")
    for seed, kind, sentence, seconds in results:
        assert kind != "failed", (seed, sentence)
        assert seconds < SECONDS_MAX, (seed, sentence)
        if kind == "refused":
            assert where.match(sentence) and len(sentence.splitlines()) == 1, (seed, sentence)
    kinds = {kind for _, kind, *_ in results}
    assert kinds == {"loaded", "refused"}, "mutants that all do the same test nothing"


def test_three_hundred_spoilt_machine_files(tmp_path):
    check(0, 300, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("part", range(7))
def test_seven_thousand_spoilt_machine_files(tmp_path, part):
    check(1000 * (part + 1), 1000 * (part + 2), tmp_path)

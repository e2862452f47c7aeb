# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""tt-umd itself, as PyPI has it, reads and writes a chip of ours through our host link."""

import json
from pathlib import Path

import pytest

from conftest import towpath_command
from inside.host import simulated_time_ns, write_driver_folder
from towpath import HostCluster

tt_umd = pytest.importorskip(
    "tt_umd", reason="tt-umd is not installed (pip install tt-umd==0.9.14)"
)

CHIPS = {"blackhole": "blackhole-host", "wormhole": "ryzen-host"}
DATA = bytes(i * 7 % 251 for i in range(10_000))


class Opened:
    """A chip that the driver has opened."""

    def __init__(self, folder: Path, chip: str) -> None:
        self.library = write_driver_folder(folder, chip, CHIPS[chip])
        self.device = tt_umd.TTSimTTDevice.create(str(self.library))
        self.reference = HostCluster(CHIPS[chip], [chip])
        self.worker = self.reference.core(0, "worker")
        self.dram = self.reference.core(0, "dram")

    def time_ns(self, call, *arguments) -> float:
        begin = simulated_time_ns(self.library)
        call(*arguments)
        return simulated_time_ns(self.library) - begin


@pytest.fixture(params=CHIPS)
def opened(request, tmp_path):
    return Opened(tmp_path / request.param, request.param)


def test_the_driver_reads_back_what_it_wrote(opened):
    for core in (opened.worker, opened.dram):
        opened.device.noc_write(*core, 0x1003, DATA)
        assert opened.device.noc_read(*core, 0x1003, len(DATA)) == DATA
        opened.device.noc_write32(*core, 0x40, 0xFEEDC0DE)
        assert opened.device.noc_read32(*core, 0x40) == 0xFEEDC0DE
    # Beyond a window of either chip.
    many = DATA * 2000
    opened.device.noc_write(*opened.dram, 0, many)
    assert opened.device.noc_read(*opened.dram, 0, len(many)) == many


def test_the_driver_takes_the_time_of_the_host_link(opened):
    x, y = opened.worker
    size_bytes = 16 << 20 if opened.device.get_arch() == tt_umd.ARCH.WORMHOLE_B0 else 2 << 20
    opened.reference.configure_tlb(0, opened.worker, size_bytes, 0)
    ours = opened.reference.write_to_device(DATA[:4096], 0, opened.worker, 0)
    theirs = opened.time_ns(opened.device.noc_write, x, y, 0, DATA[:4096])
    # The driver points its window anew each time, which ours does not: a register of 8 or 12 bytes.
    registers_ns = {"blackhole": 3 * 4.5, "wormhole_b0": 4.5}[str(opened.device.get_arch())]
    assert theirs == pytest.approx(ours.time_ns + registers_ns, abs=0.01)
    assert opened.time_ns(opened.device.noc_read, x, y, 0, 4096) > 30_000  # a round trip a line


def test_the_driver_hands_our_errors_on(opened):
    with pytest.raises(ValueError, match="are beyond its memory, which has"):
        opened.device.noc_write(*opened.worker, 1 << 24, b"1234")
    # Registers that belong to programs and firmware: nothing here runs on the chip.
    with pytest.raises(ValueError, match="are beyond its memory"):
        opened.device.get_risc_reset_state(*opened.worker)
    with pytest.raises(ValueError, match="a driver cannot access offset 0x1f"):
        opened.device.init_tt_device(1.0)


def test_a_broadcast_reaches_each_worker_that_is_not_harvested(opened):
    opened.device.noc_broadcast(0x200, b"to all")
    kinds = opened.device.get_soc_descriptor().get_cores(tt_umd.CoreType.TENSIX)
    assert len(kinds) > 60
    for core in kinds:
        assert opened.device.noc_read(core.x, core.y, 0x200, 6) == b"to all"


def test_two_folders_are_two_chips(tmp_path):
    one, other = Opened(tmp_path / "one", "blackhole"), Opened(tmp_path / "other", "blackhole")
    one.device.noc_write(*one.worker, 0, b"one")
    other.device.noc_write(*one.worker, 0, b"two")
    assert one.device.noc_read(*one.worker, 0, 3) == b"one"
    assert other.device.noc_read(*one.worker, 0, 3) == b"two"


def test_the_command_writes_what_the_driver_opens(tmp_path):
    done = towpath_command("export", "driver", str(tmp_path / "chip"), "--json")
    library = json.loads(done.stdout)["results"][0]["library"]
    device = tt_umd.create_simulation_tt_device(library)
    device.noc_write(1, 2, 0, b"by name")
    assert device.noc_read(1, 2, 0, 7) == b"by name"

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Hosts for NCCL: from a machine, and from a topology file of a user."""

import re

import pytest

import towpath
from conftest import refusal
from inside.nccl import Assumptions, host_facts, host_from_file, host_of

FILE = """<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:18:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="90" rank="1" gdr="1">
          <nvlink target="0000:2a:00.0" count="4" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:2a:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1"/>
      </pci>
      <pci busid="0000:3b:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"/>
    </pci>
  </cpu>
</system>
"""


def facts(name, gpus=8):
    return host_facts(towpath.load(name, hosts=1).spec, gpus, Assumptions())


def test_a_machine_has_a_device_an_adapter_and_links_as_described():
    found = facts("dgx-h100")
    host = host_of(found.topology, found.generation, found.cpu)
    assert host.gpus == 8
    assert host.topology.count('<nvlink target="ffff:ff:00.0" count="18"') == 8
    assert host.topology.count('link_speed="32.0 GT/s PCIe" link_width="16"') == 24
    lines = host.description.splitlines()
    assert sum(line.startswith("device ") for line in lines) == 8
    assert sum("speed_mbit_per_s=400000" in line for line in lines) == 8
    buses = re.findall(r"device bus=(\S+)", host.description)
    assert all(f'<pci busid="{bus}" class="0x030200"' in host.topology for bus in buses)


def test_a_machine_of_amd_has_xgmi_links_and_accelerators():
    found = facts("mi300x")
    host = host_of(found.topology, found.generation, found.cpu)
    assert host.is_of_amd
    assert host.topology.startswith('<system version="2">')
    assert host.topology.count(' class="0x120000"') == 8
    assert host.topology.count("<xgmi ") == host.description.count("\nnvlink ") == 8 * 7
    assert host.description.count("name=gfx942 major=9 minor=4") == 8


def test_a_file_of_rccl_gives_architectures_and_must_have_one_vendor():
    file = FILE.replace('sm="90"', 'sm="228" gcn="942"').replace("nvlink", "xgmi")
    host = host_from_file(file, "topo.xml", "ampere")
    assert host.is_of_amd
    assert host.description.count("name=gfx942 major=9 minor=4 multiprocessors=228") == 2
    mixed = FILE.replace('dev="1" sm="90"', 'dev="1" sm="228" gcn="gfx942"')
    assert "another vendor" in refusal(host_from_file, mixed, "topo.xml", "ampere")
    wrong = FILE.replace('sm="90"', 'sm="90" gcn="x y"')
    assert "gcn='x y'" in refusal(host_from_file, wrong, "topo.xml", "ampere")


def test_a_file_gives_devices_in_the_order_of_their_numbers():
    host = host_from_file(FILE, "topo.xml", "ampere")
    assert re.findall(r"device bus=(\S+) .*major=(\d)", host.description) == [
        ("0000:2a:00.0", "9"), ("0000:18:00.0", "9"),
    ]  # fmt: skip
    assert 'rank="' not in host.topology
    assert '<net name="mlx5_0" keep="1"/>' in host.topology
    assert "adapter name=mlx5_0" in host.description


def test_a_file_without_nvlinks_gets_those_of_the_machine():
    bare = re.sub(r"<nvlink[^>]*/>", "", FILE)
    found = facts("dgx-h100")
    assert "nvlink" not in host_from_file(bare, "topo.xml", "hopper").topology
    host = host_from_file(bare, "topo.xml", "hopper", found.topology)
    assert host.topology.count('count="18"') == 2
    assert "multicast=1" in host.description
    assert 'count="4"' in host_from_file(FILE, "t", "hopper", found.topology).topology


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('busid="0000:18:00.0"', 'busid="18"', "must be like '0000:18:00.0'"),
        ('busid="0000:2a:00.0" class', 'busid="0000:18:00.0" class', "a second time"),
        ('sm="90" rank="1"', 'sm="9999999" rank="1"', "must be a whole number from 70"),
        ("<system version", "<graphs version", "is not the beginning"),
        ('vendor="GenuineIntel"', f'vendor="{"x" * 300}"', "300 characters"),
        ('<gpu dev="0" sm="90" rank="0" gdr="1"/>', "<net/>", "cannot be in <pci>"),
        ("</system>", "", "is not valid XML"),
        ('class="0x030200"', 'class="0x010000"', "cannot"),
    ],
)
def test_a_wrong_file_is_one_sentence(old, new, sentence):
    text = FILE.replace(old, new)
    if sentence == "cannot":
        host_from_file(text, "topo.xml", "hopper")  # its <gpu> says that it is a GPU
        return
    if new.startswith("<graphs"):
        text = text.replace("</system>", "</graphs>")
    assert sentence in refusal(host_from_file, text, "topo.xml", "hopper")


def test_a_file_without_gpus_is_refused():
    assert "has no GPU" in refusal(host_from_file, "<system/>", "topo.xml", "hopper")


def test_entities_are_not_read():
    text = '<!DOCTYPE a [<!ENTITY b "c">]><system>&b;</system>'
    assert "document type" in refusal(host_from_file, text, "topo.xml", "hopper")

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import os
from collections import Counter
from pathlib import Path

import pytest

import towpath
from conftest import refusal
from inside.collectives import channels_to_fill
from inside.machines import TemplateSpec, catalogue, shipped

REPOSITORY = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("TOWPATH_DATA", REPOSITORY.parent / "shared" / "data"))
NCCL_FILES = DATA / "topologies" / "nccl"
needs_data = pytest.mark.skipif(
    not NCCL_FILES.is_dir(), reason="TOWPATH_DATA has no topologies/nccl"
)

# What `nvidia-smi topo -m` prints on a DGX H100-like host, with five slower adapters.
NIC_COLUMNS = {
    0: "PIX PXB NODE NODE SYS SYS SYS SYS",
    1: "PXB PIX NODE NODE SYS SYS SYS SYS",
    2: "NODE NODE PIX PXB SYS SYS SYS SYS",
    3: "NODE NODE PXB PIX SYS SYS SYS SYS",
    4: "SYS SYS SYS SYS PIX PXB NODE NODE",
    5: "SYS SYS SYS SYS PXB PIX NODE NODE",
    6: "SYS SYS SYS SYS NODE NODE PIX PXB",
    7: "SYS SYS SYS SYS NODE NODE PXB PIX",
}


def hopper_cell(row, column):
    """What joins two devices: GPUs are 0 to 7, their adapters 8 to 15, the others 16 to 20."""
    if row == column:
        return " X "
    if row < 8 and column < 8:
        return "NV18"
    if row >= 16 and column >= 16:
        return "PIX"
    if row >= 16 or column >= 16:
        return "SYS" if min(row, column) % 8 < 4 else "NODE"
    return NIC_COLUMNS[row % 8].split()[column % 8]


def hopper_table():
    """Rows of 8 GPUs and 13 adapters; the last five sit together near the second CPU."""
    names = [f"GPU{n}" for n in range(8)] + [f"NIC{n}" for n in range(13)]
    lines = ["\t" + "\t".join(names) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID"]
    for row in range(21):
        cells = [hopper_cell(row, column) for column in range(21)]
        affinity = f"\t0-55,112-167\t{row // 4}\t\tN/A" if row < 8 else ""
        lines.append(f"{names[row]}\t" + "\t".join(cells) + affinity)
    legend = ["", "Legend:", "", "  X    = Self", "  PIX  = one PCIe bridge", "", "NIC Legend:", ""]
    return "\n".join([*lines, *legend, "  NIC0: mlx5_ib0", "  NIC12: mlx5_eth4", ""])


def kinds(spec):
    return Counter(device.kind for device in spec.devices)


def latencies_ns(spec, gpu):
    """From one GPU to every device of its host, over PCIe only, by name."""
    near = {}
    for wire in spec.wires:
        link_type = spec.link_types[wire.link_type]
        if link_type.kind == "nvlink":
            continue
        one, other = wire.between
        near.setdefault(one, []).append((other, link_type.latency_ns.value))
        near.setdefault(other, []).append((one, link_type.latency_ns.value))
    known, open_devices = {gpu: 0}, [gpu]
    while open_devices:
        here = open_devices.pop(0)
        for there, latency in near.get(here, []):
            if known[here] + latency < known.get(there, float("inf")):
                known[there] = known[here] + latency
                open_devices.append(there)
    return known


def nearest_nics(spec, gpu):
    known = latencies_ns(spec, gpu)
    nics = [device.name for device in spec.devices if device.kind == "nic" and device.name in known]
    least = min(known[nic] for nic in nics)
    return [nic for nic in nics if known[nic] == least]


def refused(text, file="it.xml", **options):
    return refusal(catalogue.parse, text, file, **options)


# --- nvidia-smi -------------------------------------------------------------------------------


def test_a_table_gives_devices_bridges_and_nearest_adapters():
    spec = catalogue.parse(hopper_table(), "dgx.txt")
    found = kinds(spec)
    assert (found["gpu"], found["nic"], found["nvswitch"], found["cpu"]) == (8, 13, 1, 2)
    for gpu in range(8):
        assert nearest_nics(spec, f"gpu{gpu}") == [f"nic{gpu}"]


def test_a_table_orders_adapters_by_distance():
    known = latencies_ns(catalogue.parse(hopper_table(), "dgx.txt"), "gpu0")
    pix, pxb, node, sys = (known[nic] for nic in ("nic0", "nic1", "nic2", "nic4"))
    assert pix < pxb < node < sys


def test_a_table_with_more_links_than_a_gpu_has_means_a_switch():
    machine = catalogue.parse(hopper_table(), "dgx.txt").build()
    links = [machine.links[link] for link in machine.route(0, 7)]
    assert [link.rate_gb_per_s for link in links] == [pytest.approx(18 * 20.6)] * 2


FOUR_DIRECT = """\
        GPU0 GPU1 GPU2 GPU3 CPU Affinity NUMA Affinity
GPU0     X   NV4  NV4  NV4  0-31 0
GPU1    NV4   X   NV4  NV4  0-31 0
GPU2    NV4  NV4   X   NV4  0-31 0
GPU3    NV4  NV4  NV4   X   0-31 0
"""


def test_an_imported_host_of_8_h100_is_as_fast_as_the_shipped_one(tmp_path):
    path = tmp_path / "host.txt"
    path.write_text(hopper_table())
    imported, shipped_host = towpath.load(path), towpath.load("dgx-h100", hosts=1)
    assert channels_to_fill(imported.spec) == channels_to_fill(shipped_host.spec)
    ours, theirs = (
        machine.run(size_bytes="64M", algorithm="ring", protocol="Simple", data=False)
        for machine in (imported, shipped_host)
    )
    assert ours.bus_bandwidth_gb_per_s == pytest.approx(theirs.bus_bandwidth_gb_per_s, rel=0.03)


def test_parallel_wires_between_two_devices_count_together():
    mesh = {"shape": "mesh", "link_type": "slow", "pairs": [[0, 1], [0, 1], [1, 2]]}
    data = shipped.machine("ring").model_dump()
    block_rate = data["gpu_cost"]["simple"]["block_rate_gb_per_s"]["value"]
    rate = {"rate_gb_per_s": {"value": 0.4 * block_rate, "source": "a test"}}
    data["link_types"]["slow"] = data["link_types"]["link"] | rate
    data["hosts"] |= {"gpus": 3, "gpu_interconnect": mesh}
    spec = TemplateSpec.model_validate(data)
    # GPU 1 sends over two wires to GPU 0, which one thread block fills, and over one to GPU 2.
    assert channels_to_fill(spec) == 2


def test_a_table_with_few_links_means_direct_ones():
    spec = catalogue.parse(FOUR_DIRECT, "hgx.txt")
    assert "nvswitch" not in kinds(spec)
    nvlinks = [wire for wire in spec.wires if wire.link_type.startswith("nvlink")]
    assert [(wire.between, wire.parallel) for wire in nvlinks][0] == (("gpu0", "gpu1"), 4)
    assert len(nvlinks) == 6
    assert spec.build().links[0].rate_gb_per_s == 80  # four of A100's, 20 GB/s each


def test_escapes_around_the_header_are_ignored():
    text = FOUR_DIRECT.replace("        GPU0 GPU1", "\x1b[4mGPU0\tGPU1", 1).replace(
        "Affinity\n", "Affinity\x1b[0m\n", 1
    )
    assert catalogue.parse(text, "hgx.txt").ranks == 4


def test_a_table_without_affinities_places_no_cpu():
    text = FOUR_DIRECT.replace("0-31 0", "").replace("CPU Affinity NUMA Affinity", "")
    assert kinds(catalogue.parse(text, "hgx.txt")) == {"gpu": 4}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "GPU2    NV4  NV4   X ",
            "GPU2    NV4  NVX   X ",
            "hgx.txt:4: GPU2, GPU1: is 'NVX'; it must",
        ),
        (
            "GPU2    NV4  NV4   X ",
            "GPU2    NV4  NV2   X ",
            "hgx.txt:3: GPU1, GPU2: is NV4, but the other",
        ),
        ("GPU2    NV4  NV4   X ", "GPU2    NV4  NV4  NV4 ", "GPU2, GPU2: is 'NV4'; X marks"),
        ("GPU2    NV4", "GPU1    NV4", "hgx.txt:4: GPU1: begins a second row"),
        ("GPU3    NV4  NV4  NV4   X   0-31 0", "", "hgx.txt:1: GPU3: has a column but no row"),
        (
            "GPU3    NV4  NV4  NV4   X   0-31 0",
            "GPU3 NV4",
            "hgx.txt:5: GPU3: has 1 cells; there are 4",
        ),
        ("GPU2 GPU3 CPU", "GPU2 GPU2 CPU", "hgx.txt:1: GPU2: has two columns"),
        ("        GPU0 GPU1 GPU2 GPU3 CPU Affinity NUMA Affinity", "", "has no header row"),
    ],
)
def test_a_wrong_table_is_refused_with_line_and_cell(old, new, expected):
    assert old in FOUR_DIRECT
    assert expected in refused(FOUR_DIRECT.replace(old, new, 1), "hgx.txt")


# --- NCCL -------------------------------------------------------------------------------------

TWO_GPUS = """\
<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" modelid="143">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:12:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="90" rank="1">
          <nvlink target="0000:11:00.0" count="6" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:11:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="8">
        <gpu dev="0" sm="90" rank="0">
          <nvlink target="0000:12:00.0" count="6" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:13:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_0" dev="0" speed="400000" port="1"/></nic>
      </pci>
    </pci>
  </cpu>
</system>
"""


def test_an_nvlink_that_both_ends_list_is_one_wire():
    spec = catalogue.parse(TWO_GPUS, "two.xml")
    nvlinks = [wire for wire in spec.wires if wire.link_type.startswith("nvlink")]
    assert [(set(wire.between), wire.parallel) for wire in nvlinks] == [({"gpu0", "gpu1"}, 6)]
    machine = spec.build()
    assert [machine.links[link].rate_gb_per_s for link in machine.route(0, 1)] == [
        pytest.approx(123.6)
    ]


def test_gpus_are_numbered_by_dev_and_pcie_rates_state_their_encoding():
    spec = catalogue.parse(TWO_GPUS, "two.xml")
    pcie = [wire.link_type for wire in spec.wires if wire.between == ("gpu0", "bridge0")]
    rate = spec.link_types[pcie[0]].rate_gb_per_s
    assert rate.value == pytest.approx(32 * 8 * 128 / 130 / 8, abs=1e-3)  # dev 0 has 8 lanes
    assert "128b/130b" in rate.source


def test_nvswitches_become_one_device_with_all_links():
    text = TWO_GPUS.replace(
        'target="0000:11:00.0" count="6" tclass="0x030200"',
        'target="0000:05:00.0" count="9" tclass="0x068000"',
    )
    text = text.replace(
        'target="0000:12:00.0" count="6" tclass="0x030200"',
        'target="0000:05:00.0" count="9" tclass="0x068000"',
    )
    spec = catalogue.parse(text, "two.xml")
    assert kinds(spec)["nvswitch"] == 1
    assert {w.parallel for w in spec.wires if "nvswitch" in w.between} == {9}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('class="0x030200"', 'class="gpu"', "two.xml:4: <pci>: has class='gpu'; it must be like"),
        (
            'link_width="8"',
            'link_width="800"',
            "two.xml:9: <pci>: has link_width='800'; it must be",
        ),
        (
            "16.0 GT/s",
            "17.0 GT/s",
            "two.xml:14: <pci>: has link_speed='17.0 GT/s PCIe'; it must be one",
        ),
        (
            "0000:11:00.0",
            "0000:99:00.0",
            "two.xml:6: <nvlink>: has target='0000:99:00.0', the busid",
        ),
        ('count="6"', 'count="5"', "two.xml:6: <nvlink>: has count=5, but its other end has 6"),
        (' numaid="0"', "", "two.xml:2: <cpu>: has no attribute 'numaid'"),
        (
            'busid="0000:12:00.0"',
            'busid="0000:10:00.0"',
            "two.xml:4: <pci>: has the busid of the <pci> on line 3",
        ),
        (
            "<nic>",
            "<disk/><nic>",
            "two.xml:15: <disk>: cannot be in <pci>, which may contain <pci>, <gpu>",
        ),
        ("</pci>", "", "is not valid XML: mismatched tag"),
        ('version="1"', 'version="1"><system', "is not valid XML"),
    ],
)
def test_a_wrong_system_is_refused_with_line_and_element(old, new, expected):
    assert old in TWO_GPUS
    assert expected in refused(TWO_GPUS.replace(old, new, 1), "two.xml")


def test_entities_are_refused():
    bomb = '<?xml version="1.0"?>\n<!DOCTYPE x [<!ENTITY a "b">]>\n<system>&a;</system>'
    assert refused(bomb) == "it.xml:2: declares a document type or entities, which are not read"


def test_deep_nesting_is_refused():
    text = "<system><cpu numaid='0'>" + "\n<pci busid='1' class='0x060400'>" * 100
    assert refused(text) == "it.xml:32: is nested too deeply; it must have at most 32 levels"


def test_a_system_without_gpu_is_refused():
    assert "names no GPU" in refused("<system><cpu numaid='0'/></system>")


def test_completing_from_another_number_of_gpus_is_refused():
    text = TWO_GPUS.replace("nvlink", "c2c")
    assert "has 2 GPUs, but those of dgx-h100 come in 8" in refused(text, complete_from="dgx-h100")


def test_a_graph_file_is_not_a_machine():
    assert "lists channels" in refused('<graphs version="1"></graphs>')


# --- files of real machines -------------------------------------------------------------------


@needs_data
@pytest.mark.parametrize(
    ("file", "gpus", "nics", "bridges", "cpus"),
    [
        ("azure_ncv4-topo.xml", 4, 1, 0, 4),
        ("azure_ndv2-topo.xml", 8, 1, 0, 2),
        ("azure_ndv4-topo.xml", 8, 8, 4, 4),
        ("azure_ndv5-topo.xml", 8, 8, 8, 2),
    ],
)
def test_real_systems_have_the_devices_they_list_and_no_invented_nvlink(
    file, gpus, nics, bridges, cpus
):
    spec = catalogue.load(NCCL_FILES / file)
    expected = Counter(gpu=gpus, nic=nics, pcie_bridge=bridges, cpu=cpus)
    assert kinds(spec) == +expected
    assert not any(link_type.kind == "nvlink" for link_type in spec.link_types.values())
    assert any("no NVLink" in note for note in spec.notes)
    assert spec.build().ranks == gpus


@needs_data
def test_ndv5_pairs_each_gpu_with_its_own_adapter():
    spec = catalogue.load(NCCL_FILES / "azure_ndv5-topo.xml")
    assert [nearest_nics(spec, f"gpu{n}") for n in range(8)] == [[f"nic{n}"] for n in range(8)]


@needs_data
def test_ndv4_gives_two_gpus_the_two_adapters_on_their_bridge():
    spec = catalogue.load(NCCL_FILES / "azure_ndv4-topo.xml")
    for gpu in range(8):
        first = gpu - gpu % 2
        assert nearest_nics(spec, f"gpu{gpu}") == [f"nic{first}", f"nic{first + 1}"]


@needs_data
def test_ndv5_completed_from_dgx_h100_uses_nvlink_inside_and_rails_between():
    spec = catalogue.load(NCCL_FILES / "azure_ndv5-topo.xml", hosts=3, complete_from="dgx-h100")
    machine = spec.build()
    assert machine.ranks == 24
    names = [device.name for device in machine.devices]
    links = machine.links
    assert [names[links[n].to_device] for n in machine.route(0, 1)] == [
        "host0/nvswitch",
        "host0/gpu1",
    ]
    path = [names[links[n].to_device] for n in machine.route(2, 18)]
    assert path == [
        "host0/bridge2",
        "host0/nic2",
        "leaf2",
        "host2/nic2",
        "host2/bridge2",
        "host2/gpu2",
    ]
    dgx = shipped.machine("dgx-h100").build()
    dgx_ns = sum(dgx.links[n].latency_ns for n in dgx.route(2, 10))
    assert sum(links[n].latency_ns for n in machine.route(2, 10)) == pytest.approx(dgx_ns)


@needs_data
def test_a_real_table_imports():
    seeds = sorted((DATA.parent / "seeds").glob("003_*.txt"))
    if not seeds:
        pytest.skip("no seeds beside TOWPATH_DATA")
    spec = catalogue.parse(seeds[0].read_text()[:9000], "topo.txt")
    assert kinds(spec)["gpu"] == 8 and kinds(spec)["nic"] == 13
    assert [nearest_nics(spec, f"gpu{n}") for n in range(8)] == [[f"nic{n}"] for n in range(8)]
    assert any("nic12 is mlx5_eth4" in note for note in spec.notes)
    assert spec.build().ranks == 8

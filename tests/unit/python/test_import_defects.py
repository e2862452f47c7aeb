# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Hosts whose files were read wrongly, or refused although they describe a usable host."""

import pytest
from test_import_command import block, fabric_rates, imported, topology

import towpath
from conftest import refusal, towpath_command
from operator_logs import showtopo

SWITCH = '<nvlink target="0000:c1:00.0" count="18" tclass="0x068000"/>'


def dump(speed=' speed="400000"', nvlink=SWITCH, cpu='vendor="GenuineIntel" modelid="143"', gpus=4):
    """An NCCL topology of a running job: GPUs in pairs on two sockets, an adapter each."""
    sockets = []
    for socket in range(2):
        leaves = "".join(
            f'<pci busid="{n}0" class="0x060400"><pci busid="{n}1" class="0x030200" '
            f'device="0x26b9"><gpu dev="{n}" sm="{90 if nvlink else 89}" rank="{n}">{nvlink}'
            f'</gpu></pci><pci busid="{n}2" class="0x020700"><nic><net name="mlx5_{n}" dev="{n}"'
            f"{speed}/></nic></pci></pci>"
            for n in range(socket * gpus // 2, (socket + 1) * gpus // 2)
        )
        sockets.append(f'<cpu numaid="{socket}" arch="x86_64" {cpu}>{leaves}</cpu>')
    return f'<system version="1">{"".join(sockets)}</system>'


@pytest.mark.parametrize(
    ("speed", "gb_per_s"), [("25000", 3.062), ("100000", 12.25), ("400000", 49.0), ("-1", 1.225)]
)
def test_the_rate_of_an_adapter_is_that_of_the_topology(speed, gb_per_s):
    rates = fabric_rates(imported(dump(f' speed="{speed}"')))
    assert rates == {f"nic{n}": pytest.approx(gb_per_s, abs=1e-3) for n in range(4)}


def test_a_speed_that_is_not_positive_is_noted():
    assert any("takes as 10 Gb/s" in note for note in imported(dump(' speed="-1"')).notes)


def test_ibstatus_supplies_rates_that_a_topology_omits():
    states = "".join(block(f"mlx5_{n}", "100 Gb/sec (4X EDR)") for n in range(4))
    assert set(fabric_rates(imported(dump(""), states)).values()) == {12.25}


@pytest.mark.parametrize(
    ("cpu", "gb_per_s"),
    [
        ('vendor="AuthenticAMD" familyid="26"', 32.0),
        ('vendor="AuthenticAMD" familyid="191"', 32.0),
        ('vendor="AuthenticAMD" familyid="25"', 24.0),
        ('vendor="AuthenticAMD" familyid="23"', 16.0),
        ('vendor="GenuineIntel" familyid="6" modelid="79"', 6.0),
        ('vendor="GenuineIntel" familyid="6" modelid="106"', 10.0),
        ('vendor="GenuineIntel" familyid="6" modelid="143"', 22.0),
        ('vendor="GenuineIntel" familyid="6" modelid="173"', 22.0),
        ('vendor="GenuineIntel" familyid="6" modelid="207"', 40.0),
    ],
)
def test_the_link_of_sockets_follows_from_the_processor(cpu, gb_per_s):
    spec = imported(dump(cpu=cpu))
    sockets = [each for name, each in spec.link_types.items() if name.startswith("socket")]
    assert [each.rate_gb_per_s.value for each in sockets] == [gb_per_s]


def test_nvlinks_to_several_nvswitches_are_one_wide_link():
    """A dump of a running job lists the NVSwitches of a host one by one."""
    switches = "".join(
        f'<nvlink target="0000:c{n}:00.0" count="{count}" tclass="0x068000"/>'
        for n, count in enumerate((4, 5, 5, 4), 1)
    )
    spec = imported(dump(nvlink=switches))
    wires = [wire for wire in spec.wires if "nvswitch" in wire.between]
    assert [wire.parallel for wire in wires] == [18] * 4
    assert wires == [wire for wire in imported(dump()).wires if "nvswitch" in wire.between]


def test_four_gpus_without_nvlink_take_the_costs_of_a_pcie_server():
    spec = imported(dump(nvlink=""))
    assert any("those of pcie-8gpu" in note for note in spec.notes)
    assert not any(each.kind == "nvlink" for each in spec.link_types.values())
    assert "sm_89" in spec.description


def test_completing_four_gpus_from_eight_names_a_way_out():
    assert "--complete-from pcie-8gpu" in refusal(
        imported, dump(nvlink=""), complete_from="dgx-h100"
    )


def test_a_topology_without_gpus_says_how_to_write_one():
    text = '<system version="1"><cpu numaid="0"><pci busid="0000:00:1b.0"/></cpu></system>'
    assert "names no GPU; a running job with NCCL_TOPO_DUMP_FILE" in refusal(imported, text)


# --- rocm-smi -------------------------------------------------------------------------------------


def test_rocm_smi_describes_a_mesh_of_xgmi():
    spec = imported(showtopo())
    links = [wire for wire in spec.wires if wire.link_type == "xgmi"]
    assert len(links) == 28 and spec.ranks == 8
    assert any("those of mi300x" in note for note in spec.notes)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Link Type between two GPUs", "Links", "has no table 'Link Type between two GPUs'"),
        ("GPU3   XGMI", "GPU3   PCIE", "GPU3, GPU0: is 'PCIE' one way and not the other"),
        ("GPU3   XGMI", "GPU4   XGMI", "is not the row of GPU3 with 8 cells"),
    ],
)
def test_a_damaged_output_of_rocm_smi_is_refused(old, new, expected):
    text = showtopo()
    assert old in text
    assert expected in refusal(imported, text.replace(old, new, 1))


# --- models of GPUs -------------------------------------------------------------------------------

T4 = """\
        GPU0    GPU1    CPU Affinity
GPU0     X      SYS     0-15
GPU1    SYS      X      16-31
"""
MI_Q = """\
    Product Name                          : NVIDIA B200
        GPU Link Info
            PCIe Generation
                Max                       : 6
                Current                   : 6
"""


def rates(spec, kind):
    return {
        link_type.rate_gb_per_s.value
        for link_type in spec.link_types.values()
        if link_type.kind == kind
    }


def test_a_donor_names_the_generation_of_nvlinks():
    assert rates(imported(topology(), complete_from="dgx-b200"), "nvlink") == {40.1}
    plain = imported(topology())
    assert rates(plain, "nvlink") == {20.6}
    assert any("NV18 is Hopper or Blackwell" in note for note in plain.notes)


@pytest.mark.parametrize(
    "text",
    [
        MI_Q,
        "GPU 0: NVIDIA B200 (UUID: GPU-1)\n",
        "0000:1b:00.0 3D controller: NVIDIA Corporation GB100 [B200] (rev a1)\n",
    ],
)
def test_the_model_of_a_gpu_comes_from_other_tools(text):
    for texts in ((topology(), text), (text + topology(),)):
        assert rates(imported(*texts), "nvlink") == {40.1}


def test_nvidia_smi_states_the_generation_of_pcie():
    spec = imported(topology(), MI_Q)
    assert any("PCIe 6.0 x16 follows from the stated GPU" in note for note in spec.notes)


def test_options_state_the_gpu_and_pcie(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topo.txt").write_text(T4)
    done = towpath_command("import", "topo.txt", "--gpu", "t4", "-o", "my.yaml")
    assert "PCIe 3.0 x16 follows from the stated GPU" in done.stdout
    assert towpath.load("my.yaml").ranks == 2
    done = towpath_command("import", "topo.txt", "--pcie", "4", "-o", "my.yaml")
    assert "PCIe 4.0 x16" in done.stdout


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [("--gpu", "b2", "--gpu is 'b2'; it must be"), ("--pcie", "7", "--pcie is '7'; it must be")],
)
def test_an_unknown_gpu_or_generation_is_refused(tmp_path, option, value, expected):
    path = tmp_path / "topo.txt"
    path.write_text(T4)
    assert expected in refusal(towpath_command, "import", str(path), option, value)


def test_an_adapter_far_from_every_gpu_stays_out_of_the_fabric():
    lines = topology().replace("NIC12: mlx5_eth4", "NIC12: mlx5_9").split("\n")
    text = "\n".join(
        line.replace("GPU", "GPU") if not line.startswith(("GPU", "NIC12")) else _far(line)
        for line in lines
    )
    spec = imported(text)
    assert "nic12" not in fabric_rates(spec)
    assert any("nic12, which are far from every GPU" in note for note in spec.notes)


def _far(line):
    """The row of a table with SYS between every GPU and NIC12."""
    words = line.split("\t")
    changed = range(1, 9) if words[0] == "NIC12" else [21]
    return "\t".join("SYS" if n in changed else word for n, word in enumerate(words))


def test_a_table_without_nvlink_mentions_what_hides_them():
    assert any("topo -mp" in note for note in imported(T4).notes)


# --- chips ----------------------------------------------------------------------------------------


def test_a_square_with_a_missing_side_is_a_line(tmp_path):
    links = "".join(
        f"  - [{{chip: {a}, chan: {c}}}, {{chip: {b}, chan: {d}}}]\n"
        for a, c, b, d in [(0, 8, 2, 0), (0, 9, 2, 1), (1, 8, 3, 0), (1, 9, 3, 1), (0, 14, 1, 14),
                           (0, 15, 1, 15)]
    )  # fmt: skip
    path = tmp_path / "square.yaml"
    path.write_text(
        "arch: {0: wormhole_b0, 1: wormhole_b0, 2: wormhole_b0, 3: wormhole_b0}\n"
        "chips: {0: [0, 0, 0, 0], 1: [1, 0, 0, 0], 2: [0, 1, 0, 0], 3: [1, 1, 0, 0]}\n"
        f"ethernet_connections:\n{links}chips_with_mmio: [{{0: 0}}, {{1: 1}}]\n"
    )
    machine = towpath.load(path)
    assert machine.run("all_reduce", size_bytes="4K").wrong == 0
    assert any("placed in a line" in note for note in machine.spec.notes)

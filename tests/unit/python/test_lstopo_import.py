# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The XML of hwloc's lstopo as a machine, and as a file of `towpath doctor`."""

import shutil
import subprocess

import pytest
from test_import_command import block, fabric_rates, imported

import towpath
from conftest import refusal, towpath_command
from doctor_answers import causes, diagnosed, unusual
from operator_logs import lstopo


def rates(spec, *ends):
    """The rates of the links between devices whose names begin with two words."""
    found = []
    for wire in spec.wires:
        if all(any(end.startswith(word) for end in wire.between) for word in ends):
            found.append(spec.link_types[wire.link_type].rate_gb_per_s.value * wire.parallel)
    return found


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_devices_and_links_are_read(version):
    spec = imported(lstopo(version=version))
    kinds = [device.kind for device in spec.devices]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "gpu": 4, "nic": 2, "cpu": 2, "pcie_bridge": 2, "nvswitch": 1,
    }  # fmt: skip
    assert rates(spec, "gpu", "bridge") == [pytest.approx(63.015, abs=1e-3)] * 4
    assert rates(spec, "nic", "bridge") == [pytest.approx(63.015, abs=1e-3)] * 2
    # 225,000 MB/s for each of two switches are 18 links.
    assert rates(spec, "gpu", "nvswitch") == [pytest.approx(18 * 20.6)] * 4
    assert rates(spec, "cpu0", "cpu1") == [22.0]
    assert "sm_90" in spec.description and "lstopo" in spec.description


def test_names_of_adapters_find_their_rates():
    states = block("mlx5_0", "400 Gb/sec (4X NDR)") + block("mlx5_1", "200 Gb/sec (4X HDR)")
    assert fabric_rates(imported(lstopo(), states)) == {"nic0": 49.0, "nic1": 24.5}


def test_an_idle_gpu_has_the_link_of_its_model():
    idle = lstopo(rates=(4.0, 63.015385, 4.0, 4.0), model="NVIDIA H100 80GB HBM3")
    spec = imported(idle)
    assert rates(spec, "gpu", "bridge") == [pytest.approx(63.015, abs=1e-3)] * 4
    notes = [note for note in spec.notes if "as the link of an idle GPU" in note]
    assert len(notes) == 3 and "0000:03:00.0 has 2.5 GT/s" in notes[0]


def test_a_narrow_port_above_a_device_limits_its_rate():
    text = lstopo(rates=(31.507692, 63.015385, 63.015385, 63.015385))
    assert sorted(rates(imported(text), "gpu", "bridge"))[0] == pytest.approx(31.508, abs=1e-3)


def test_without_a_library_of_nvidia_the_model_states_the_nvlinks():
    text = lstopo(has_nvlinks=False, device="20b2", model="NVIDIA A100-SXM4-80GB")
    spec = imported(text, complete_from="pcie-8gpu")
    assert "sm_80" in spec.description
    assert not any(each.kind == "nvlink" for each in spec.link_types.values())
    pcie = imported(lstopo(has_nvlinks=False, device="26b9", model="NVIDIA L40S"))
    assert any("those of pcie-8gpu" in note for note in pcie.notes)


def test_it_runs(tmp_path):
    path = tmp_path / "host.xml"
    path.write_text(lstopo())
    done = towpath_command("import", str(path), "-o", str(tmp_path / "mine.yaml"))
    assert "4 GPUs in each host" in done.stdout
    for machine in (path, tmp_path / "mine.yaml"):
        row = towpath.load(str(machine)).run("all_reduce", size_bytes="64M", data=False).rows[0]
        assert row.time_us > 0


def test_the_file_of_this_host_is_valid():
    program = shutil.which("lstopo-no-graphics")
    if program is None:
        pytest.skip("hwloc is not installed")
    text = subprocess.run(
        [program, "--of", "xml"], capture_output=True, text=True, check=True
    ).stdout
    try:
        assert imported(text).gpus_per_host > 0
    except towpath.ConfigError as error:
        assert "names no GPU; lstopo lists GPUs of NVIDIA" in str(error)


# --- doctor ---------------------------------------------------------------------------------------


def test_a_healthy_host_is_not_accused(tmp_path):
    found = diagnosed(tmp_path, lstopo())
    assert found.findings == [] and found.facts["GPUs of a host"] == "4"


def test_a_port_that_is_down_is_named(tmp_path):
    found = diagnosed(tmp_path, lstopo(ports=(4, 1)))
    assert causes(found) == ["adapter_down"]
    assert "the port of mlx5_1 is down (state 1), 1 other ports are up" in str(found.findings)


def test_a_slow_link_may_be_idle(tmp_path):
    found = diagnosed(tmp_path, lstopo(rates=(63.015385, 15.753846, 63.015385, 63.015385)))
    assert causes(found) == [] and unusual(found) == ["pcie_link"]
    assert "the GPU at 0000:04:00.0 has 15.7538 GB/s" in str(found.findings)


def test_a_host_without_gpus_is_named(tmp_path):
    found = diagnosed(tmp_path, lstopo().replace("[10de:2330]", "[1a03:2000]"))
    assert causes(found) == ["no_gpu"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("0302 [10de:2330]", "GPU [10de:2330]", "has pci_type='GPU [10de:2330] [0000:0000] a1'"),
        ('"63.015385"', '"fast"', "has pci_link_speed='fast'; it must be a rate in GB/s"),
        ('a1" pci_link_speed="63.015385"', 'a1" pci_link_speed="47"', "which no link of PCIe has"),
        ("1000000 ", "", "has 6 objects and 35 values; it must have a value for each"),
        ("225000", "-225000", "has the value '-225000'; it must be a whole number"),
        (">\n<topology v", " [<!ENTITY a 'b'>]>\n<topology v", "declares a document type"),
    ],
)
def test_a_wrong_value_is_refused(old, new, expected):
    assert expected in refusal(imported, lstopo().replace(old, new, 1))

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath import`: a machine file from what the tools of a host print."""

import pytest
from test_topology_import import hopper_table

import towpath
from conftest import refusal, towpath_command
from inside.machines import catalogue, import_host, parse_machine_spec, parse_yaml, shipped, yaml_of
from towpath import ConfigError


def legend(names):
    return "".join(f"  NIC{number}: {name}\n" for number, name in enumerate(names))


def topology():
    """The table of a host with 8 InfiniBand adapters and 5 for Ethernet."""
    table = hopper_table()
    names = [f"mlx5_ib{n}" for n in range(8)] + [f"mlx5_eth{n}" for n in range(5)]
    return table[: table.index("  NIC0:")] + legend(names)


def block(name, rate, layer="InfiniBand", state="4: ACTIVE"):
    return (
        f"Infiniband device '{name}' port 1 status:\n\tstate:\t\t {state}\n"
        f"\trate:\t\t {rate}\n\tlink_layer:\t {layer}\n\n"
    )


def ibstatus(rate="400 Gb/sec (4X NDR)"):
    slow = "25 Gb/sec (1X EDR)"
    return "".join(block(f"mlx5_ib{n}", rate) for n in range(8)) + "".join(
        block(f"mlx5_eth{n}", slow, "Ethernet") for n in range(5)
    )


def imported(*texts, **options):
    return import_host([(text, f"file{n}") for n, text in enumerate(texts)], **options)


def fabric_rates(spec):
    """Adapter -> GB/s of its link to the fabric, of those that join it."""
    own = spec.fabric.link_type
    return {
        device.name: spec.link_types[device.fabric_link_type or own].rate_gb_per_s.value
        for device in spec.devices if device.is_adapter
    }  # fmt: skip


# --- adapters without a status ---


def test_an_adapter_without_a_status_takes_the_rate_of_its_family():
    excerpt = block("mlx5_eth4", "25 Gb/sec (1X EDR)", "Ethernet") + block(
        "mlx5_ib0", "400 Gb/sec (4X NDR)"
    )
    spec = imported(topology(), excerpt)
    assert fabric_rates(spec) == {f"nic{n}": 49.0 for n in range(8)}
    assert sum("no status contains it" in note for note in spec.notes) == 11
    assert any(note.startswith("mlx5_ib7 is assumed to be like mlx5_ib0") for note in spec.notes)


def test_a_family_whose_adapters_differ_lends_no_rate():
    two_rates = block("mlx5_ib0", "400 Gb/sec (4X NDR)") + block("mlx5_ib1", "200 Gb/sec (4X HDR)")
    assert fabric_rates(imported(topology(), two_rates)) == {"nic0": 49.0, "nic1": 24.5}


# --- rates of adapters ----------------------------------------------------------------------------


def test_ethernet_adapters_are_not_taken_for_infiniband(tmp_path):
    path = tmp_path / "host.txt"
    path.write_text(topology())
    spec = catalogue.load(path, complete_from="dgx-h100")
    assert fabric_rates(spec) == {f"nic{n}": 49.0 for n in range(8)}
    assert any("nic8" in note and "Ethernet names" in note for note in spec.notes)


def test_the_rate_of_each_adapter_is_what_ibstatus_says():
    mixed = ibstatus().replace("400 Gb/sec (4X NDR)", "200 Gb/sec (4X HDR)", 2)
    rates = fabric_rates(imported(topology(), mixed))
    assert rates == {"nic0": 24.5, "nic1": 24.5, **{f"nic{n}": 49.0 for n in range(2, 8)}}


def test_a_host_with_ethernet_only_uses_it_at_its_rate():
    spec = imported(topology(), ibstatus().replace("InfiniBand\n", "Ethernet\n"))
    assert set(fabric_rates(spec).values()) == {49.0} and len(fabric_rates(spec)) == 8
    assert spec.link_types["ethernet_400g"].latency_ns.source.startswith("assumed for Ethernet")


def test_an_adapter_that_is_down_stays_out():
    states = "".join(
        f"link mlx5_ib{n}/1 subnet_prefix fe80 state {'DOWN' if n == 3 else 'ACTIVE'}\n"
        for n in range(8)
    )
    for texts in ((topology(), ibstatus(), states), (states, topology())):
        spec = imported(*texts)
        assert "nic3" not in fabric_rates(spec) and len(fabric_rates(spec)) == 7
        assert any("nic3, whose ports are down" in note for note in spec.notes)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["hello"], "file0:1: is of an unknown kind; use `nvidia-smi topo -m`"),
        ([ibstatus()], "one topology is needed"),
        ([topology(), topology()], "file1:1: is a second topology besides file0"),
        ([topology(), block("mlx9_0", "400 Gb/sec")], "names none of the adapters"),
        (["<system version='1'/>", ibstatus()], "names no GPU"),
        ([topology(), block("mlx5_ib0", "400 Gb/sec", state="1: DOWN")], "has no adapter for"),
    ],
)
def test_what_describes_no_host_is_refused(texts, expected):
    assert expected in refusal(imported, *texts)


# --- the command ----------------------------------------------------------------------------------


def test_one_command_makes_a_machine_that_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topo.txt").write_text(topology())
    (tmp_path / "ibstatus.txt").write_text(ibstatus())
    done = towpath_command("import", "topo.txt", "ibstatus.txt", "-o", "my.yaml")
    assert "written: my.yaml, 8 GPUs in each host" in done.stdout
    mine, theirs = towpath.load("my.yaml", hosts=2), towpath.load("dgx-h100", hosts=2)
    assert mine.name == "my" and mine.ranks == 16
    ours, reference = (
        machine.run(size_bytes="64M", algorithm="ring", protocol="Simple", data=False)
        for machine in (mine, theirs)
    )
    assert ours.bus_bandwidth_gb_per_s == pytest.approx(reference.bus_bandwidth_gb_per_s, rel=0.05)


def test_without_an_output_the_file_is_printed(tmp_path):
    path = tmp_path / "topo.txt"
    path.write_text(topology())
    text = towpath_command("import", str(path)).stdout
    printed = parse_machine_spec(parse_yaml(text, "stdout"), "stdout")
    assert printed == import_host([(topology(), str(path))])


@pytest.mark.parametrize("name", shipped.names("gpu_cluster"))
def test_a_written_machine_is_read_as_it_was(name):
    spec = catalogue.load(name)
    assert parse_machine_spec(parse_yaml(yaml_of(spec), "written"), "written") == spec


def test_a_folder_that_is_not_there_is_refused_first(tmp_path):
    with pytest.raises(ConfigError, match="nowhere"):
        towpath_command("import", "none.txt", "-o", str(tmp_path / "nowhere" / "my.yaml"))

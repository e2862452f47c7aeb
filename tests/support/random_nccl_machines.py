# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Random clusters of GPUs, as NCCL may meet them: a machine file per seed."""

import random

import yaml

# GB/s of PCIe 3.0, 4.0 and 5.0 with 16 lanes, and of adapters from 25 to 400 Gb/s.
_PCIE_RATES = (15.75, 31.5, 63.0)
_ADAPTER_RATES = (3.1, 12.25, 24.5, 49.0)
_DONORS = {
    "ampere": ("dgx-a100", (12, 20.0)), "hopper": ("dgx-h100", (18, 20.6)),
    "blackwell": ("dgx-b200", (18, 40.1)),
}  # fmt: skip


def random_machine(seed: int) -> tuple[str, str, str, int]:
    """A machine file, the generation of its GPUs, the vendor of its CPUs, its number of hosts."""
    draw = random.Random(seed)
    generation = draw.choice(list(_DONORS))
    donor, (links, rate) = _DONORS[generation]
    sockets = draw.choice((1, 2))
    per_bridge = draw.choice((1, 2, 4))
    bridges = sockets * draw.choice((1, 2))
    gpus = min(8, per_bridge * bridges)
    nvlink = draw.choice(("switch", "pairs", "mesh", "none"))
    hosts = draw.choice((1, 1, 2, 4, 16))
    devices, wires = _host(draw, sockets, bridges, gpus)
    gpu_names = [f"gpu{number}" for number in range(gpus)]
    if nvlink == "switch":
        devices.append({"name": "nvswitch", "kind": "nvswitch"})
        wires += [_wire(name, "nvswitch", "nvlink", links) for name in gpu_names]
    elif nvlink == "pairs":
        pairs = zip(gpu_names[::2], gpu_names[1::2], strict=False)
        wires += [_wire(one, other, "nvlink", 4) for one, other in pairs]
    elif nvlink == "mesh":
        wires += [
            _wire(one, other, "nvlink", 2)
            for place, one in enumerate(gpu_names) for other in gpu_names[place + 1 :]
        ]  # fmt: skip
    used = {wire["link_type"] for wire in wires} | {"network"}
    types = {
        "pcie": _link("pcie", draw.choice(_PCIE_RATES)), "socket": _link("socket", 22.0),
        "nvlink": _link("nvlink", rate), "network": _link("network", draw.choice(_ADAPTER_RATES)),
    }  # fmt: skip
    machine = {
        "form": "graph", "name": f"random-{seed}", "description": f"{generation} at random",
        "source": "drawn at random",
        "fabric": {"shape": "rails", "link_type": "network"},
        "devices": devices, "wires": wires,
        "link_types": {name: types[name] for name in types if name in used},
        "gpu_cost": {"like": donor},
    }  # fmt: skip
    return yaml.safe_dump(machine), generation, draw.choice(("intel", "amd", "arm")), hosts


def _host(draw: random.Random, sockets: int, bridges: int, gpus: int) -> tuple[list, list]:
    """Processors, PCIe switches, GPUs and adapters of a host, and the wires between them."""
    devices = [{"name": f"cpu{number}", "kind": "cpu"} for number in range(sockets)]
    wires = [] if sockets == 1 else [_wire("cpu0", "cpu1", "socket")]
    devices += [{"name": f"bridge{number}", "kind": "pcie_bridge"} for number in range(bridges)]
    wires += [
        _wire(f"bridge{number}", f"cpu{number * sockets // bridges}", "pcie")
        for number in range(bridges)
    ]
    devices += [{"name": f"gpu{number}", "kind": "gpu"} for number in range(gpus)]
    wires += [
        _wire(f"gpu{number}", f"bridge{number * bridges // gpus}", "pcie") for number in range(gpus)
    ]
    every = draw.choice((1, 2, gpus))
    for number, gpu in enumerate(range(0, gpus, every)):
        devices.append({"name": f"nic{number}", "kind": "nic"})
        wires.append(_wire(f"nic{number}", f"bridge{gpu * bridges // gpus}", "pcie"))
    return devices, wires


def _wire(one: str, other: str, link_type: str, parallel: int = 1) -> dict:
    return {"between": [one, other], "link_type": link_type, "parallel": parallel}


def _link(kind: str, rate_gb_per_s: float) -> dict:
    values = {"rate_gb_per_s": rate_gb_per_s, "latency_ns": 500, "message_overhead_ns": 0}
    return {"kind": kind} | {
        name: {"value": value, "source": "drawn at random"} for name, value in values.items()
    }

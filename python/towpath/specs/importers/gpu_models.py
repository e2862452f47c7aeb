# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Models of GPUs by name, by PCI device, and in the output of `nvidia-smi` and `lspci`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from towpath.errors import ConfigError, quoted
from towpath.specs.formats import COLOURS


@dataclass(frozen=True)
class GpuModel:
    """A model of GPU, with the data that topology files omit.

    Attributes:
        name: product name.
        compute_capability: 90 for sm_90.
        pcie_gigatransfers: transfers per second and lane of its PCIe interface, in 1e9.
        nvlinks: number of its NVLinks.
        donor: shipped machine whose costs are correct for this GPU, or nearest to it.
        pcie_width: lanes of the interface.
    """

    name: str
    compute_capability: int
    pcie_gigatransfers: float
    nvlinks: int
    donor: str
    pcie_width: int = 16


# NVIDIA's data sheets: capability, PCIe generation, NVLinks. A longer name precedes its prefix.
_MODELS = {
    "gb300": GpuModel("GB300", 103, 64.0, 18, "gb200-nvl72"),
    "gb200": GpuModel("GB200", 100, 32.0, 18, "gb200-nvl72"),
    "b300": GpuModel("B300", 103, 64.0, 18, "dgx-b200"),
    "b200": GpuModel("B200", 100, 32.0, 18, "dgx-b200"),
    "gh200": GpuModel("GH200", 90, 32.0, 18, "hgx-h200"),
    "h200": GpuModel("H200", 90, 32.0, 18, "hgx-h200"),
    "h100": GpuModel("H100", 90, 32.0, 18, "dgx-h100"),
    "h800": GpuModel("H800", 90, 32.0, 8, "dgx-h100"),
    "h20": GpuModel("H20", 90, 32.0, 18, "dgx-h100"),
    "a100": GpuModel("A100", 80, 16.0, 12, "dgx-a100"),
    "a800": GpuModel("A800", 80, 16.0, 8, "dgx-a100"),
    "v100": GpuModel("V100", 70, 8.0, 6, "dgx-a100"),
    "rtx pro 6000": GpuModel("RTX PRO 6000", 120, 32.0, 0, "pcie-8gpu"),
    "rtx 5090": GpuModel("RTX 5090", 120, 32.0, 0, "pcie-8gpu"),
    "rtx 4090": GpuModel("RTX 4090", 89, 16.0, 0, "pcie-8gpu"),
    "rtx 3090": GpuModel("RTX 3090", 86, 16.0, 4, "pcie-8gpu"),
    "l40s": GpuModel("L40S", 89, 16.0, 0, "pcie-8gpu"),
    "l40": GpuModel("L40", 89, 16.0, 0, "pcie-8gpu"),
    "l20": GpuModel("L20", 89, 16.0, 0, "pcie-8gpu"),
    "l4": GpuModel("L4", 89, 16.0, 0, "pcie-8gpu", 8),
    "a40": GpuModel("A40", 86, 16.0, 4, "pcie-8gpu"),
    "a30": GpuModel("A30", 80, 16.0, 4, "pcie-8gpu"),
    "a10": GpuModel("A10", 86, 16.0, 0, "pcie-8gpu"),
    "t4": GpuModel("T4", 75, 8.0, 0, "pcie-8gpu"),
}
# The chip is in the upper byte of NVIDIA's PCI device ids (pci.ids).
_CAPABILITY_OF_PCI = {
    "0x15": 60, "0x1d": 70, "0x1e": 75, "0x20": 80, "0x22": 86, "0x23": 90, "0x26": 89, "0x27": 89,
    "0x29": 100, "0x2b": 120, "0x2c": 120, "0x31": 103,
}  # fmt: skip
_CAPABILITY_OF_DONOR = {
    "dgx-a100": 80, "dgx-h100": 90, "hgx-h200": 90, "aws-p5": 90, "dgx-b200": 100,
    "gb200-nvl72": 100,
}  # fmt: skip
# Shipped machines by the product names of their GPUs. Servers without NVLinks and servers of GH200
# differ too much among themselves.
_MACHINE_OF_PRODUCT = (
    (r"gb300", "gb300-nvl72"), (r"gb200", "gb200-nvl72"), (r"b300", "dgx-b300"),
    (r"b200", "dgx-b200"), (r"h200", "hgx-h200"), (r"h100", "dgx-h100"), (r"a100", "dgx-a100"),
    (r"mi300x", "mi300x"), (r"mi325x", "mi325x"),
)  # fmt: skip
# Products with the name of another GPU, but with fewer NVLinks or a part of the GPU.
_OTHER_PRODUCTS = re.compile(r"\b(?:nvl|pcie|pg|mig|cnx|vgpu)\b")
_HWLOC = re.compile(r'<info name="GPUModel" value="([^"\n]{1,80})"')
_GENERATIONS = {"3": 8.0, "4": 16.0, "5": 32.0, "6": 64.0}
_PRODUCT = re.compile(r"(?m)^[ \t]{0,32}Product Name[ \t]{0,64}: (.{1,80})$")
_LISTED = re.compile(r"(?m)^[ \t]{0,32}GPU [0-9]{1,3}: (.{1,80}?)(?: \(UUID.*)?$")
_LSPCI = re.compile(r"(?m)^\S{1,16} (?:3D|VGA)[^\n:]{0,60}: NVIDIA[^\n\[]{0,60}\[(.{1,80}?)\]")
# A word that each form contains, which most texts do not, and the form.
_FORMS = (
    ("Product Name", _PRODUCT), ("GPU ", _LISTED), ("NVIDIA", _LSPCI), ("GPUModel", _HWLOC)
)  # fmt: skip
_MAX_GENERATION = re.compile(
    r"PCIe Generation[ \t]{0,64}\n(?:[^\n:]{1,64}: [^\n]{1,16}\n){0,3}?"
    r"[ \t]{0,64}Max[ \t]{0,64}: ([3-6])\b"
)


def gpu_named(name: str) -> GpuModel:
    """The model of a name, such as "b200".

    Raises:
        ConfigError: there is no such model.
    """
    found = _MODELS.get(name.lower().replace("-", " "))
    if found is None:
        known = ", ".join(each.replace(" ", "-") for each in _MODELS)
        raise ConfigError(f"--gpu is {quoted(name)}; it must be one of {known}")
    return found


def pcie_generation(word: str) -> float:
    """Transfers per second and lane of a generation of PCIe, "3" to "6", in 1e9.

    Raises:
        ConfigError: there is no such generation.
    """
    rate = _GENERATIONS.get(word.removesuffix(".0"))
    if rate is None:
        raise ConfigError(f"--pcie is {quoted(word)}; it must be 3, 4, 5 or 6")
    return rate


def gpu_in(text: str) -> GpuModel | None:
    """The model of GPU in the output of `nvidia-smi -q`, `nvidia-smi -L`, `lspci` or `lstopo`.

    Args:
        text: the output, possibly with other text around it.

    Returns:
        The model, with the highest PCIe generation that `nvidia-smi -q` reports. None if the text
        names no known model.
    """
    plain = COLOURS.sub("", text)
    for word, form in _FORMS:
        for match in form.finditer(plain) if word in plain else ():
            model = gpu_of_product(match[1])
            if model is not None:
                generation = _MAX_GENERATION.search(plain)
                if generation is None:
                    return model
                return replace(model, pcie_gigatransfers=_GENERATIONS[generation[1]])
    return None


def gpu_of_product(product: str) -> GpuModel | None:
    """The model of a product name, such as "NVIDIA H100 80GB HBM3". None if it is unknown.

    >>> gpu_of_product("NVIDIA A100-SXM4-80GB").name
    'A100'
    """
    words = f" {re.sub(r'[-_/]', ' ', product.lower())} "
    model = next((each for name, each in _MODELS.items() if f" {name} " in words), None)
    if model is not None and " pcie " in words and model.nvlinks > 4:
        return replace(model, nvlinks=0, donor="pcie-8gpu")
    return model


def machine_of_product(product: str) -> str | None:
    """The shipped machine whose GPUs have a product name. None if no machine is sure to have them.

    >>> machine_of_product("NVIDIA H100 80GB HBM3"), machine_of_product("NVIDIA H100 NVL")
    ('dgx-h100', None)
    """
    words = re.sub(r"[-_/]", " ", product.lower())
    if _OTHER_PRODUCTS.search(words):
        return None
    return next(
        (machine for name, machine in _MACHINE_OF_PRODUCT if re.search(rf"\b{name}\b", words)), None
    )


def capability_of_pci(device: str) -> int | None:
    """The compute capability of one of NVIDIA's PCI devices, "0x2330". None if it is unknown."""
    return _CAPABILITY_OF_PCI.get(device.lower()[:4]) if len(device) == 6 else None


def capability_of_donor(machine: str | None) -> int | None:
    """The compute capability of the GPUs of a shipped machine. None if they have no NVLinks."""
    return _CAPABILITY_OF_DONOR.get(machine or "")

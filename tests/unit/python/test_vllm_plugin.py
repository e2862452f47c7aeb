# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""How vLLM finds Towpath, with a vLLM that is only its names."""

import logging
import sys
from importlib.metadata import entry_points
from types import ModuleType

import pytest

import towpath.vllm


@pytest.fixture
def installed(monkeypatch):
    """A vLLM whose own platform of CPUs is what the test says."""

    def install(platform):
        for name in ("vllm", "vllm.platforms"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        sys.modules["vllm.platforms"].cpu_platform_plugin = lambda: platform

    return install


def test_vllm_finds_the_platform_by_its_entry_point():
    (found,) = entry_points(group="vllm.platform_plugins", name="towpath")
    assert found.load() is towpath.vllm.platform


def test_without_the_variable_vllm_has_its_own_platform(monkeypatch):
    monkeypatch.delenv("TOWPATH_VLLM", raising=False)
    assert towpath.vllm.platform() is None


@pytest.mark.parametrize("value", ["live", "dgx-h100:1"])
def test_with_the_variable_it_has_ours(monkeypatch, installed, value):
    monkeypatch.setenv("TOWPATH_VLLM", value)
    installed("vllm.platforms.cpu.CpuPlatform")
    assert towpath.vllm.platform() == "towpath.vllm.platform.TowpathPlatform"


def test_a_vllm_for_gpus_is_left_alone_with_a_warning(monkeypatch, installed, caplog):
    monkeypatch.setenv("TOWPATH_VLLM", "live")
    installed(None)
    with caplog.at_level(logging.WARNING, "vllm.towpath"):
        assert towpath.vllm.platform() is None
    assert "not built for CPUs" in caplog.text

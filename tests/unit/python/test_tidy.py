# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The house rules hold, and the program that checks them sees a breach."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_spec = importlib.util.spec_from_file_location("tidy", ROOT / "tools" / "tidy.py")
tidy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tidy)


@pytest.mark.slow
def test_the_tree_keeps_the_rules():
    assert tidy.check(ROOT) == []


def test_a_layer_that_looks_upwards_is_named():
    text = '#include "towpath/base/units.hpp"\n#include "towpath/collective/schedule/plan.hpp"\n'
    (problem,) = tidy.check_includes("sim/clock.hpp", text)
    assert "sim/clock.hpp:2" in problem
    assert "sim includes collective/schedule; it may include base" in problem


def test_a_live_transport_may_not_know_the_simulator():
    text = '#include "towpath/sim/simulation.hpp"\n'
    assert tidy.check_includes("transport/shm/shm_transport.cpp", text)
    assert not tidy.check_includes("transport/simulated/gpu/gpu_ranks.cpp", text)


def test_python_bindings_stay_out_of_the_core():
    assert tidy.check_includes("collective/schedule/plan.cpp", "#include <nanobind/nanobind.h>\n")
    assert not tidy.check_includes("bindings/run.cpp", "#include <nanobind/nanobind.h>\n")


def test_a_vendor_is_named_in_its_own_folders_only():
    text = "// What noc_async_write costs.\nint cycles = 5;\n"
    (problem,) = tidy.check_vendor("machine/host.hpp", text)
    assert "machine/host.hpp:1: names a vendor" in problem
    assert not tidy.check_vendor("tenstorrent/device/program.hpp", text)
    assert not tidy.check_vendor("tenstorrent/ccl/fabric_worker.cpp", text)
    joins = '#include "towpath/tenstorrent/cluster/cluster.hpp"\nusing tenstorrent::Cluster;\n'
    assert len(tidy.check_vendor("simulate/simulated_run.cpp", joins)) == 2
    assert not tidy.check_vendor("bindings/run.cpp", joins)


@pytest.mark.parametrize(
    "text",
    [
        "// tt-metal does so.", "// TT_METAL", "// as ttnn", "int fabric_cycles = 5;", "// the EDM",
        "// CCL kernels", "namespace ccl {", "// of an ERISC", "Fabric fabric;",
    ],
)  # fmt: skip
def test_the_vendor_s_software_is_named_in_its_own_folders_only(text):
    assert tidy.check_vendor("noc/chip_network.cpp", text)
    assert not tidy.check_vendor("tenstorrent/ccl/chips.cpp", text)


def test_a_citation_at_the_end_of_a_comment_may_name_a_vendor():
    cited = "// 23 cycles. Source: tt-metal,\n// noc_parameters.h of Wormhole.\nint cycles = 23;\n"
    assert not tidy.check_vendor("noc/niu.cpp", cited)
    assert not tidy.check_vendor("noc/niu.cpp", "int cycles = 23;  // Source: tt-metal\n")
    (problem,) = tidy.check_vendor("noc/niu.cpp", cited + "// As tt-metal does.\n")
    assert "noc/niu.cpp:4" in problem
    assert tidy.check_vendor("noc/niu.cpp", cited + "int fabric_cycles = 2;  // more\n")


@pytest.mark.parametrize("path", tidy.VENDOR_ALLOWED)
def test_a_file_that_may_name_a_vendor_does_so(path, monkeypatch):
    monkeypatch.setattr(tidy, "VENDOR_ALLOWED", {})
    assert tidy.check_vendor(path, (ROOT / "src" / "towpath" / path).read_text())


def test_a_module_that_looks_upwards_is_named():
    text = "from towpath.specs import shipped\nfrom towpath.pages import plots\n"
    (problem,) = tidy.check_imports("studies/sweep.py", text)
    assert "studies/sweep.py:2: studies imports pages" in problem


PUBLIC = {"towpath": {"load"}, "towpath.torch": {"simulate"}}


@pytest.mark.parametrize(
    "text",
    [
        "from towpath import load, _core\n",
        "import towpath.specs\n",
        "def test():\n    from towpath.torch.build import key\n",
        'PROGRAM = """\nfrom towpath.specs import shipped\n"""\n',
        'PROGRAM = f"{1}; from towpath import load, _core; load()"\n',
        'monkeypatch.setattr("towpath.specs.shipped.folder", None)\n',
    ],
)
def test_a_test_that_imports_a_private_module_is_named(text):
    (problem,) = tidy.check_doors("tests/unit/test_x.py", text, PUBLIC)
    assert "tests/unit/test_x.py" in problem and "tests/support/inside" in problem


def test_a_test_may_enter_by_the_public_door():
    text = 'import towpath.torch\nfrom towpath import load\nCODE = "from towpath import load"\n'
    assert not tidy.check_doors("tests/unit/test_x.py", text, PUBLIC)
    assert {"load", "ConfigError"} <= tidy.public_names(ROOT)["towpath"]


def test_a_folder_outside_the_map_is_named():
    assert "no layer" in tidy.check_includes("utils/strings.hpp", "")[0]


def test_long_lines_missing_licences_and_unfinished_work_are_named():
    text = "x = 1  # TO" + "DO later\n" + "y" * 101 + "\n"
    problems = tidy.check_text("python/towpath/x.py", text)
    assert len(problems) == 3

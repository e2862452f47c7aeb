# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""docs/host_link.md: its examples say what the simulator says."""

import doctest
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # runs a page

PAGE = Path(__file__).resolve().parents[3] / "docs" / "host_link.md"


def test_the_examples_run():
    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 15 and result.failed == 0

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What tests share: where other people's data lies, and how to do without."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def shared_data() -> Path:
    """The folder of data made by others: $TOWPATH_DATA, or shared/data beside the project."""
    return Path(os.environ.get("TOWPATH_DATA", ROOT.parent / "shared" / "data"))


def schedule_files() -> list[Path]:
    """Schedules that others wrote, as MSCCL XML; none where the data is absent."""
    return sorted((shared_data() / "schedules" / "azure").glob("*.xml"))


@pytest.fixture
def data_folder() -> Path:
    folder = shared_data()
    if not folder.is_dir():
        pytest.skip(f"needs data made by others in {folder} (or $TOWPATH_DATA)")
    return folder

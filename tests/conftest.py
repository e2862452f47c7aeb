# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What tests share: where other people's data lies, and how to do without."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from towpath.cli import main as cli
from towpath.errors import ConfigError, Interruption

ROOT = Path(__file__).parents[1]


def shared_data() -> Path:
    """The folder of data made by others: $TOWPATH_DATA, or shared/data beside the project."""
    return Path(os.environ.get("TOWPATH_DATA", ROOT.parent / "shared" / "data"))


def schedule_files() -> list[Path]:
    """Schedules that others wrote, as MSCCL XML; none where the data is absent."""
    return sorted((shared_data() / "schedules" / "azure").glob("*.xml"))


def refusal(call, *arguments, **options) -> str:
    """The one sentence with which a call refuses what it is given."""
    with pytest.raises(ConfigError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def joined(spec) -> list[str]:
    """Every link of a cluster of chips as its two ends, in the notation of files."""
    return [f"{link.one} {link.other}" for link in spec.links]


def towpath_command(*line: str, interruption: Interruption | None = None):
    """What the command prints; its errors are raised."""
    result = CliRunner().invoke(
        cli.app, line, standalone_mode=False, obj=interruption or Interruption()
    )
    if result.exception is not None:
        raise result.exception
    return result


@pytest.fixture
def data_folder() -> Path:
    folder = shared_data()
    if not folder.is_dir():
        pytest.skip(f"needs data made by others in {folder} (or $TOWPATH_DATA)")
    return folder

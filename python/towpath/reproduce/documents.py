# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The reader's copies of the documents and of the points read off their plots.

Neither is part of the project. A run that needs one says that it is absent.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]


class CannotRun(Exception):
    """A run is not possible on this host. The text is the reason."""


def document(number: str) -> str:
    """The text of a document.

    Args:
        number: "000" to "004".

    Raises:
        CannotRun: there is no copy in $TOWPATH_SEEDS or ../shared/seeds.
    """
    folder = Path(os.environ.get("TOWPATH_SEEDS") or _ROOT.parent / "shared" / "seeds")
    found = sorted(folder.glob(f"{number}_*.txt")) + sorted(folder.glob(f"{number}_*.md"))
    if not found:
        raise CannotRun(
            f"the text of document {number} is not on this host; $TOWPATH_SEEDS names its folder"
        )
    return found[0].read_text(encoding="utf-8")


def points(table: str) -> list[dict[str, str]]:
    """The rows of a table of published values. Empty if it is absent.

    Args:
        table: file name in $TOWPATH_DATA or ../shared/data.
    """
    folder = Path(os.environ.get("TOWPATH_DATA") or _ROOT.parent / "shared" / "data")
    path = folder / table
    if not path.is_file():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))

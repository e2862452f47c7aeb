# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Material of runs that is not part of the project: documents, published points, checkouts, tools.

A run that needs some of it says that it is absent.
"""

from __future__ import annotations

import csv
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from towpath.collectives.nccl_itself.source import git_output, is_repository
from towpath.kernels.nvshmem_home import nvshmem_home

_ROOT = Path(__file__).resolve().parents[3]


class CannotRun(Exception):
    """A run is not possible on this host. The text is the reason.

    Args:
        need: the absent material, a key of `NEEDS`.
        reason: a sentence.
    """

    def __init__(self, need: str, reason: str) -> None:
        super().__init__(reason)
        self.need = need


def _folder(variable: str, name: str) -> Path:
    return Path(os.environ.get(variable) or _ROOT.parent / "shared" / name)


def library() -> Path | None:
    """The C++ library, in the package or in the build folder."""
    from towpath import _core

    folders = (Path(_core.__file__).parent, _ROOT / "build")
    files = [folder / "libtowpath.a" for folder in folders]
    return next((file for file in files if file.is_file()), None)


def _has_documents() -> bool:
    return bool(list(_folder("TOWPATH_SEEDS", "seeds").glob("00[0-4]_*")))


# Variables with the folders of checkouts, by the need of the runs that read them.
CHECKOUTS = {"penny": "TOWPATH_PENNY_REPOSITORY", "tt-umd": "TOWPATH_UMD_REPOSITORY"}


def checkout(need: str) -> Path:
    """The folder of a checkout or of a bare repository.

    Args:
        need: a key of `CHECKOUTS`.

    Raises:
        CannotRun: the variable is not set.
    """
    place = os.environ.get(CHECKOUTS[need])
    if not place:
        raise CannotRun(need, f"${CHECKOUTS[need]} does not name a checkout of {need}")
    return Path(place)


def file_of(folder: Path, path: str) -> str:
    """The text of a file of a checkout.

    Args:
        folder: the checkout, or a bare repository.
        path: path of the file in it.

    Raises:
        ConfigError: there is no such file.
    """
    if (folder / path).is_file():
        return (folder / path).read_text(encoding="utf-8")
    return git_output(folder, "show", f"HEAD:{path}")


def names_in(folder: Path, path: str) -> list[str]:
    """The names in a folder of a checkout.

    Args:
        folder: the checkout, or a bare repository.
        path: path of the folder in it.

    Raises:
        ConfigError: there is no such folder.
    """
    if (folder / path).is_dir():
        return sorted(file.name for file in (folder / path).iterdir())
    return git_output(folder, "ls-tree", "--name-only", f"HEAD:{path}").splitlines()


def contents_of(folder: Path) -> str:
    """A digest of the files of a checkout, wherever it is, or of the last commit of a repository.

    Args:
        folder: the checkout, or a bare repository.
    """
    if is_repository(folder) and not (folder / ".git").exists():
        return git_output(folder, "rev-parse", "HEAD^{tree}").strip()
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder)
        if file.is_file() and ".git" not in path.parts:
            digest.update(f"{path}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def material() -> list[Path]:
    """The files of documents and published points that are on this host."""
    documents = sorted(_folder("TOWPATH_SEEDS", "seeds").glob("00[0-4]_*"))
    return documents + sorted(_folder("TOWPATH_DATA", "data").glob("*.csv"))


# Material by name, each with its test of presence.
NEEDS: dict[str, Callable[[], bool]] = {
    "documents": _has_documents,
    "points": lambda: (_folder("TOWPATH_DATA", "data") / "ethernet_figures.csv").is_file(),
    "library": lambda: library() is not None,
    "nvcc": lambda: shutil.which("nvcc") is not None and nvshmem_home() is not None,
    **{
        need: lambda variable=variable: bool(os.environ.get(variable))  # type: ignore[misc]
        for need, variable in CHECKOUTS.items()
    },
}


def document(number: str) -> str:
    """The text of a document.

    Args:
        number: "000" to "004".

    Raises:
        CannotRun: there is no copy in $TOWPATH_SEEDS or ../shared/seeds.
    """
    folder = _folder("TOWPATH_SEEDS", "seeds")
    found = sorted(folder.glob(f"{number}_*.txt")) + sorted(folder.glob(f"{number}_*.md"))
    if not found:
        raise CannotRun(
            "documents",
            f"the text of document {number} is not on this host; $TOWPATH_SEEDS names its folder",
        )
    return found[0].read_text(encoding="utf-8")


def points(table: str) -> list[dict[str, str]]:
    """The rows of a table of published values. Empty if it is absent.

    Args:
        table: file name in $TOWPATH_DATA or ../shared/data.
    """
    path = _folder("TOWPATH_DATA", "data") / table
    if not path.is_file():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))

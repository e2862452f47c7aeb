# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The source of NCCL or RCCL: a checkout, a bare repository or the files of an archive."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from towpath.errors import ConfigError, quoted

RCCL_PREFIX = "rccl-"
_VERSION = re.compile(r"^NCCL_(MAJOR|MINOR|PATCH|SUFFIX)[ \t]*:=[ \t]*(\w*)", re.MULTILINE)
_RELEASE = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\Z")
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}\Z")
_PARTS = ("src", "makefiles")
# RCCL's fixed rings, which NCCL does not have.
_OF_RCCL = Path("src/graph/rome_models.cc")
_GIT_TIMEOUT_S = 60.0
_ARCHIVE_BYTES_MAX = 1 << 28


@dataclass(frozen=True)
class Version:
    """The version of a source, as makefiles/version.mk has it."""

    major: int
    minor: int
    patch: int
    suffix: str
    is_rccl: bool = False

    @property
    def release(self) -> str:
        """Such as "2.28.9" or "rccl-2.21.5"."""
        prefix = RCCL_PREFIX if self.is_rccl else ""
        return f"{prefix}{self.major}.{self.minor}.{self.patch}"

    @property
    def name(self) -> str:
        """Such as "NCCL 2.28.9" or "RCCL 2.21.5"."""
        return release_name(self.release)

    @property
    def code(self) -> int:
        """The number that nccl.h has: 22809."""
        return 10000 * self.major + 100 * self.minor + self.patch


def release_name(release: str) -> str:
    """Such as "NCCL 2.28.9" or "RCCL 2.21.5"."""
    number = release.removeprefix(RCCL_PREFIX)
    return f"{'NCCL' if number == release else 'RCCL'} {number}"


def release_order(release: str) -> tuple[int, ...]:
    """A key that sorts releases of one library, the oldest first."""
    return tuple(map(int, release.removeprefix(RCCL_PREFIX).split(".")))


def unpack(path: Path, release: str | None, folder: Path) -> Version:
    """Copies the part of NCCL's source that is compiled.

    Args:
        path: a checkout, a bare repository or the files of an archive.
        release: "2.28.9", or a tag such as "rocm-6.2.2". None: the files that are checked out.
        folder: an empty folder, which gets `src` and `makefiles`.

    Raises:
        ConfigError: there is no source of NCCL, or not this release.
    """
    if not path.is_dir():
        raise ConfigError(f"there is no folder {quoted(str(path))}; name NCCL's source")
    if release is not None and not (_RELEASE.match(release) or _TAG.match(release)):
        raise ConfigError(f"the release is {quoted(release)}; it must be like 2.28.9")
    if release is None:
        _copy(path, folder)
    elif (found := _version_of(path)) is not None and found.release == release:
        _copy(path, folder)
    else:
        _extract(path, _tag_of(path, release), folder)
    version = _version_of(folder)
    if version is None or not (folder / "src" / "nccl.h.in").is_file():
        raise ConfigError(
            f"{quoted(str(path))} holds no source of NCCL: src/nccl.h.in or makefiles/version.mk "
            "is missing"
        )
    return version


def _version_of(folder: Path) -> Version | None:
    file = folder / "makefiles" / "version.mk"
    if not file.is_file():
        return None
    words = dict(_VERSION.findall(file.read_text(encoding="utf-8", errors="replace")))
    try:
        return Version(
            int(words["MAJOR"]), int(words["MINOR"]), int(words["PATCH"]), words.get("SUFFIX", ""),
            (folder / _OF_RCCL).is_file(),
        )  # fmt: skip
    except (KeyError, ValueError):
        return None


def _copy(path: Path, folder: Path) -> None:
    if not (path / "src").is_dir():
        hint = "; --release says which" if is_repository(path) else ""
        raise ConfigError(f"{quoted(str(path))} has no folder src{hint}")
    for part in _PARTS:
        if (path / part).is_dir():
            shutil.copytree(path / part, folder / part, symlinks=True)


def is_repository(path: Path) -> bool:
    """True if a folder is a checkout or a bare repository."""
    return (path / ".git").exists() or ((path / "HEAD").is_file() and (path / "objects").is_dir())


def _tag_of(path: Path, release: str) -> str:
    if not is_repository(path):
        raise ConfigError(
            f"{quoted(str(path))} is not a repository and holds another release than {release}"
        )
    tags = git_output(path, "tag", "--list").split()
    for tag in (f"v{release}-1", f"v{release}", release):
        if tag in tags:
            return tag
    near = [tag for tag in tags if tag.startswith(f"v{release.rpartition('.')[0]}.")]
    known = f"; it has {', '.join(near)}" if near else ""
    raise ConfigError(f"{quoted(str(path))} has no tag for release {quoted(release)}{known}")


def _extract(path: Path, tag: str, folder: Path) -> None:
    archive = folder / "archive.tar"
    git_output(path, "archive", "--format=tar", f"--output={archive}", tag, "--", *_PARTS)
    with tarfile.open(archive) as files:
        if sum(each.size for each in files.getmembers()) > _ARCHIVE_BYTES_MAX:
            raise ConfigError(f"tag {tag} of {quoted(str(path))} has more than 256 MiB of source")
    # The module of Python 3.11.2 and earlier takes files out of the folder.
    _output_of(
        ["tar", "--extract", "--no-same-owner", f"--file={archive}", f"--directory={folder}"], path
    )
    archive.unlink()


def git_output(path: Path, *words: str) -> str:
    """The output of a command of git in a repository.

    Args:
        path: a checkout or a bare repository.
        words: the command, such as "tag", "--list".

    Raises:
        ConfigError: there is no git, or it fails.
    """
    # The owner of a repository that the user names may be another one.
    return _output_of(
        ["git", "-c", f"safe.directory={path.resolve()}", "-C", str(path), *words], path
    )


def _output_of(command: list[str], path: Path) -> str:
    tool = command[0]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise ConfigError(f"there is no {tool}, which a repository is read with") from None
    except subprocess.TimeoutExpired:
        raise ConfigError(f"{tool} did not read {quoted(str(path))} in 60 s") from None
    if done.returncode != 0:
        why = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise ConfigError(f"{tool} cannot read {quoted(str(path))}: {why[0]}")
    return done.stdout

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The answers of `towpath doctor` as plain data."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

from conftest import towpath_command


def answer(*files, **options) -> SimpleNamespace:
    """The answer of the command about files."""
    words = [f"--{name}={value}" for name, value in options.items()]
    text = towpath_command("doctor", *map(str, files), *words, "--json").stdout
    return SimpleNamespace(**json.loads(text)["results"][0])


def causes(found: SimpleNamespace) -> list[str]:
    """The causes that are accusations."""
    return [each["cause"] for each in found.findings if each["is_fault"]]


def unusual(found: SimpleNamespace) -> list[str]:
    """The causes that are unusual facts."""
    return [each["cause"] for each in found.findings if not each["is_fault"]]


def diagnosed(folder: Path, *texts: str | bytes, names: tuple[str, ...] = (), **options):
    """The answer about texts, as files with names."""
    files = []
    for number, text in enumerate(texts):
        path = folder / (names[number] if names else f"job{number or ''}.log")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        files.append(path)
    return answer(*files, **options)

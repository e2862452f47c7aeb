# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A host as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from towpath.pages import spec_text

if TYPE_CHECKING:
    from towpath.specs.host_spec import HostSpec


def describe_host(spec: HostSpec) -> str:
    """Every value with its source, as text."""
    lines = [f"{spec.name}: {spec.description}"]
    return "\n".join(lines + spec_text.figures(spec) + spec_text.notes(spec.notes)) + "\n"

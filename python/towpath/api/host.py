# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A host: its processor, root complex and driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from towpath.api.machine import Machine

if TYPE_CHECKING:
    from towpath.specs.host_spec import HostSpec


class Host(Machine):
    """A host with slots for chips, such as n300-xeon-host. HostCluster simulates it."""

    kind = "host"
    spec: HostSpec

    def show(self) -> str:
        """The host as text, every value with its source.

        Returns:
            The text, in lines.
        """
        from towpath.pages.show_host import describe_host

        return describe_host(self.spec)

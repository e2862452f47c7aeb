# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""vLLM on CPUs with Towpath between its ranks, selected by an environment variable.

vLLM finds `platform` by the entry point `vllm.platform_plugins`, in each of its processes.
"""

from __future__ import annotations

import logging
import os

VARIABLE = "TOWPATH_VLLM"
LIVE = "live"


def platform() -> str | None:
    """The platform for vLLM: Towpath's if $TOWPATH_VLLM selects it, otherwise vLLM's own.

    $TOWPATH_VLLM is "live", or a machine on which communication is also timed: "dgx-h100:1".
    """
    if not os.environ.get(VARIABLE):
        return None
    from vllm.platforms import cpu_platform_plugin

    if cpu_platform_plugin() is None:
        logging.getLogger("vllm.towpath").warning(
            "$%s is set, but this vLLM is not built for CPUs; it goes on without Towpath", VARIABLE
        )
        return None
    return "towpath.vllm.platform.TowpathPlatform"

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Links that fail under kernels in source form: only a kernel that yields lets them be trained."""

from __future__ import annotations

import pytest

from towpath import ConfigError, HazardError, KernelRun, SourceKernel, load

SEND = """
eth_send_bytes(0x1a800, 0x1a800, 16); eth_wait_for_receiver_done();
for (int i = 0; i < 8; ++i) {
  eth_send_bytes_over_channel(0x20000, 0x20000, 4096, 1);
  eth_wait_for_receiver_channel_done(1);
}
"""
RECEIVE = """
eth_wait_for_bytes(16); eth_receiver_channel_done(0);
for (int i = 0; i < 8; ++i) {
  while (!eth_bytes_are_available_on_channel(1)) { WAIT }
  eth_receiver_channel_done(1);
}
"""
DROP = ("0:9,at=5us,training=2us",)


def run(wait: str, faults: tuple[str, ...]) -> KernelRun:
    kernels = [
        SourceKernel(
            f"end{chip}.cpp", chip=chip, core=(0, channel), processor="ethernet",
            text=f'#include "eth/dataflow_api.h"\nvoid kernel_main() {{\n{body}\n}}\n',
        )
        for chip, channel, body in ((0, 9, SEND), (1, 1, RECEIVE.replace("WAIT", wait)))
    ]  # fmt: skip
    return load("n300").run_kernels(kernels, link_faults=faults)


def test_a_dropped_link_is_trained_if_both_ends_yield() -> None:
    healthy, dropped = run("run_routing();", ()), run("run_routing();", DROP)
    assert dropped.time_ns >= healthy.time_ns + 2000


def test_a_kernel_that_never_yields_is_named() -> None:
    run("", ())
    with pytest.raises(HazardError, match=r"end1.*does not call run_routing\(\)"):
        run("", DROP)


def test_a_link_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="which has no link; channels with links are"):
        run("", ("0:3,at=5us",))
    with pytest.raises(ConfigError, match="a chip on its own has no links"):
        load("wormhole").run_kernels([SourceKernel("k.cpp", text="x")], link_faults=DROP)

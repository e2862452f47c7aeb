# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that are not ranks connect to the ports of a job over ucx: no rank is harmed."""

import contextlib
import os
import random
import re
import select
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inside import _core

if "ucx" not in _core.live_transports():
    pytest.skip("this build has no transport ucx: libucx-dev is missing", allow_module_level=True)

RANK = Path(__file__).parent / "ucx_rank.py"
HTTP = b"GET / HTTP/1.0\r\n\r\n" * 3
# The magic number of UCX's TCP transport, then a message of 2 GiB.
OVERLONG = struct.pack("<QBI", 0xCAFEBABE12345678, 0, 1 << 31)
# Long enough for idle connections to be given up.
TIMEOUT_S = 40


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def start(job, rank, descriptors=1024):
    limited = ["prlimit", f"--nofile={descriptors}", sys.executable, str(RANK)]
    return subprocess.Popen(
        [*limited, job, str(rank), "2", "hush", str(TIMEOUT_S)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


@contextlib.contextmanager
def job_of_two():
    job = free_address()
    ranks = [start(job, rank) for rank in range(2)]
    try:
        yield job, ranks
    finally:
        for process in ranks:
            process.kill()
            process.communicate()


def line_of(process):
    readable, _, _ = select.select([process.stdout], [], [], 90)
    assert readable
    return process.stdout.readline().strip()


def reduce(ranks):
    for process in ranks:
        print(20, file=process.stdin, flush=True)
    assert [line_of(process) for process in ranks] == ["right", "right"]


def listeners_of(process):
    """(address, port) of each TCP listener of a process."""
    descriptors = Path(f"/proc/{process.pid}/fd")
    inodes = set()
    for entry in descriptors.iterdir():
        with contextlib.suppress(OSError):
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(entry))
            if found:
                inodes.add(found[1])
    result = []
    for row in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = row.split()
        if fields[3] == "0A" and fields[9] in inodes:  # 0A: listens
            address, port = fields[1].split(":")
            packed = struct.pack("<I", int(address, 16))
            result.append((socket.inet_ntoa(packed), int(port, 16)))
    return result


def bother(address, data):
    """Connects and sends. Returns the socket, or None if nobody answered."""
    stranger = socket.socket()
    stranger.settimeout(0.5)
    try:
        stranger.connect(address)
        stranger.sendall(data)
    except OSError:
        stranger.close()
        return None
    return stranger


def test_ucx_listens_on_the_interface_of_the_job_alone():
    with job_of_two() as (_, ranks):
        assert [line_of(process) for process in ranks] == ["ready", "ready"]
        for process in ranks:
            assert {address for address, _ in listeners_of(process)} == {"127.0.0.1"}


def test_strangers_at_the_ports_of_a_running_job_harm_no_rank():
    chance = random.Random(1)
    pieces = [b"", HTTP, OVERLONG, *(chance.randbytes(chance.randint(1, 400)) for _ in range(8))]
    with job_of_two() as (_, ranks):
        assert [line_of(process) for process in ranks] == ["ready", "ready"]
        addresses = [address for process in ranks for address in listeners_of(process)]
        assert len(addresses) == 2
        for address in addresses:
            # UCX must not receive a byte: it ends a process that sends it anything else.
            assert all(bother(address, piece) is None for piece in pieces)
            reduce(ranks)


def test_strangers_at_the_rendezvous_do_not_keep_a_rank_from_joining():
    chance = random.Random(2)
    job = free_address()
    host, port = job.split(":")
    rank_0 = start(job, 0, descriptors=256)
    strangers = []
    try:
        deadline = time.monotonic() + 30
        while not strangers:
            assert time.monotonic() < deadline
            first = bother((host, int(port)), b"")
            strangers += [first] if first else []
        for number in range(300):
            piece = [b"", b"x", HTTP, OVERLONG, chance.randbytes(5000)][number % 5]
            strangers.append(bother((host, int(port)), piece))
        rank_1 = start(job, 1)
        try:
            assert [line_of(process) for process in (rank_0, rank_1)] == ["ready", "ready"]
            reduce([rank_0, rank_1])
        finally:
            rank_1.kill()
            rank_1.communicate()
    finally:
        rank_0.kill()
        rank_0.communicate()
        for stranger in strangers:
            if stranger is not None:
                stranger.close()


def test_a_rank_that_is_missed_is_reported_with_the_strangers():
    job = free_address()
    host, port = job.split(":")
    rank_0 = subprocess.Popen(
        [sys.executable, str(RANK), job, "0", "2", "hush", "4"], stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    strangers = []
    try:
        deadline = time.monotonic() + 30
        while len(strangers) < 2:
            assert time.monotonic() < deadline
            stranger = bother((host, int(port)), HTTP + bytes(64))
            strangers += [stranger] if stranger else []
        line = line_of(rank_0)
        assert line.startswith("timeout 1 ")
        assert "rank 1 is missing; 2 connections did not prove this job's token" in line
    finally:
        rank_0.kill()
        rank_0.communicate()
        for stranger in strangers:
            stranger.close()

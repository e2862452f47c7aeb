# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Throws bytes at what a job opens, while it is joined and later, and asks its ranks to reduce.

Usage: python tests/e2e/fuzz_ports.py TARGET SECONDS [SEED]

TARGET is "rendezvous" (HOST:PORT of ucx), "ucx" (the ports that UCX opens) or "shm" (the socket
with a name). Prints how many jobs there were, and how many connections were tried and taken. A
job whose ranks are harmed is an error.
"""

import random
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from test_ucx_strangers import HTTP, OVERLONG, free_address, line_of, listeners_of

RANK = Path(__file__).parent / "ucx_rank.py"
TIMEOUT_S = 40
OPEN_MOST = 200
SLOW_S = 0.02


def start(job: str, rank: int, transport: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, str(RANK), job, str(rank), "2", "hush", str(TIMEOUT_S), transport],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def recorded_handshake() -> bytes:
    """What rank 1 sends first to the rendezvous."""
    job = free_address()
    host, port = job.split(":")
    with socket.create_server((host, int(port))) as server:
        rank = start(job, 1, "ucx")
        try:
            server.settimeout(120)  # a loaded host starts a process slowly
            connection, _ = server.accept()
            connection.settimeout(1)
            with connection:
                try:
                    return connection.recv(1 << 12)
                except TimeoutError:
                    return b""
        finally:
            rank.kill()
            rank.communicate()


class Stranger(threading.Thread):
    """Connects again and again to the addresses that it finds."""

    def __init__(self, addresses, kind: tuple[int, int], known: bytes, seed: str) -> None:
        super().__init__(daemon=True)
        self.addresses = addresses
        self.kind = kind
        self.known = known
        self.chance = random.Random(seed)
        self.is_over = threading.Event()
        self.tried = 0
        self.taken = 0

    def piece(self) -> bytes:
        chance = self.chance
        noise = chance.randbytes(chance.choice([0, 1, 8, 13, 64, 400, 5000]))
        mutant = bytearray(self.known or noise)
        for _ in range(chance.randint(0, 4) if mutant else 0):
            mutant[chance.randrange(len(mutant))] = chance.randrange(256)
        cut = bytes(mutant[: chance.randint(0, len(mutant))])
        return chance.choice([noise, bytes(mutant), cut, bytes(mutant) + noise, HTTP, OVERLONG])

    def run(self) -> None:
        still_open: list[socket.socket] = []
        while not self.is_over.wait(0.001):
            for address in self.addresses():
                stranger = socket.socket(*self.kind)
                stranger.settimeout(0.2)
                self.tried += 1
                try:
                    stranger.connect(address)
                    self.taken += 1
                    self.speak(stranger)
                except OSError:
                    stranger.close()
                    continue
                still_open.append(stranger)  # half open, until others need its place
                if len(still_open) > OPEN_MOST or self.chance.random() < 0.2:
                    still_open.pop(self.chance.randrange(len(still_open))).close()
        for stranger in still_open:
            stranger.close()

    def speak(self, stranger: socket.socket) -> None:
        piece = self.piece()
        if self.chance.random() < 0.1:  # slowly
            for byte in piece[:20]:
                stranger.send(bytes([byte]))
                time.sleep(SLOW_S)
        elif piece:
            stranger.send(piece)
        if self.chance.random() < 0.2:
            stranger.shutdown(socket.SHUT_WR)


def addresses_of(target: str, job: str, ranks: list[subprocess.Popen]):
    """A function that gives the addresses which are open now."""
    host, _, port = job.partition(":")
    if target == "rendezvous":
        return lambda: [(host, int(port))]
    if target == "ucx":
        return lambda: [
            address for rank in ranks for address in listeners_of(rank) if address[1] != int(port)
        ]

    def named():
        names = re.findall(rf"@(towpath/\d+/{job}\S*)", Path("/proc/net/unix").read_text())
        return [f"\0{name}" for name in sorted(set(names))]

    return named


def one_job(target: str, known: bytes, seed: str) -> tuple[int, int]:
    """A job among strangers; returns how many connections were tried, and taken."""
    transport = "shm" if target == "shm" else "ucx"
    job = f"fuzz-{secrets.token_hex(6)}" if target == "shm" else free_address()
    kind = (socket.AF_UNIX, socket.SOCK_SEQPACKET) if target == "shm" else (
        socket.AF_INET, socket.SOCK_STREAM)  # fmt: skip
    ranks = [start(job, 0, transport)]
    stranger = Stranger(addresses_of(target, job, ranks), kind, known, seed)
    stranger.start()
    try:
        time.sleep(random.Random(seed).uniform(0, 1.5))  # strangers come before rank 1
        ranks.append(start(job, 1, transport))
        said = [line_of(rank) for rank in ranks]
        assert said == ["ready", "ready"], (seed, said)
        for _ in range(3):
            for rank in ranks:
                print(20, file=rank.stdin, flush=True)
            said = [line_of(rank) for rank in ranks]
            assert said == ["right", "right"], (seed, said)
    finally:
        stranger.is_over.set()
        stranger.join()
        for rank in ranks:
            rank.kill()
            rank.communicate()
    return stranger.tried, stranger.taken


def main() -> None:
    target, seconds = sys.argv[1], float(sys.argv[2])
    first = sys.argv[3] if len(sys.argv) > 3 else "0"
    known = b"" if target == "shm" else recorded_handshake()
    end = time.monotonic() + seconds
    jobs = tried = taken = 0
    while time.monotonic() < end:
        of_job = one_job(target, known, f"{first} {jobs}")
        tried, taken = tried + of_job[0], taken + of_job[1]
        jobs += 1
    print(f"{target}: {jobs} jobs, {tried} connections tried, {taken} taken, no rank harmed")


if __name__ == "__main__":
    main()

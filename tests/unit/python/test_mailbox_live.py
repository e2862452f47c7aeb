# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Mailboxes between processes of this host, seen from Python, and their measurement."""

import dataclasses
import json
import os
import threading

import pytest
from typer.testing import CliRunner

from inside.cli import main as cli
from inside.errors import Interruption
from inside.mailbox import LiveRequest, live_tables, measure_live, parse_cores, peer_measurements
from inside.pages import tables_text
from towpath import ConfigError, Mailbox

pytestmark = pytest.mark.slow  # starts processes

SMALL = LiveRequest(
    iterations=2000, cores=None, rounds=2, blocks=5, block_messages=1000
)  # where the tests run, cores may be few


def unique_name(what):
    unique_name.number = getattr(unique_name, "number", 0) + 1
    return f"{what}-{os.getpid()}-{unique_name.number}"


def test_messages_go_by_name():
    one = Mailbox(unique_name("python"))
    other = Mailbox(unique_name("python"), depth_messages=4)
    assert other.try_receive() is None
    for number in range(4):
        one.send(other.address, b"message %d" % number)
    assert not one.try_send(other.address, b"one too many")
    assert [other.receive() for _ in range(4)] == [b"message %d" % n for n in range(4)]
    assert other.receive(timeout_s=0.01) is None


def test_a_name_and_what_cannot_be_sent():
    mailbox = Mailbox(unique_name("named"))
    assert mailbox.name == mailbox.address and mailbox.name in repr(mailbox)
    with pytest.raises(ConfigError, match="depth of 3; it must be a power of two"):
        Mailbox("odd", depth_messages=3)
    with pytest.raises(TypeError):
        mailbox.send(mailbox.name, "text")


def test_a_closed_mailbox_is_not_found_and_its_name_is_free():
    with Mailbox(unique_name("closed")) as mailbox:
        name = mailbox.name
    with pytest.raises(ValueError, match="the mailbox is closed"):
        mailbox.try_receive()
    other = Mailbox(unique_name("other"))
    with pytest.raises(RuntimeError, match="there is no mailbox"):
        other.send(name, b"x")
    Mailbox(name)


def test_a_full_mailbox_whose_receiver_is_gone_is_an_error_with_fields():
    here, there = Mailbox(unique_name("here")), Mailbox(unique_name("there"), depth_messages=1)
    here.send(there.name, b"lost")
    there.close()
    with pytest.raises(RuntimeError, match="its receiver is gone") as caught:
        here.send(there.name, b"x", timeout_s=30)
    assert (caught.value.kind, caught.value.peer) == ("peer_died", None)


def test_threads_share_a_mailbox():
    """They wait without the interpreter's lock, so that several would write the same slot."""
    one = Mailbox(unique_name("python"))
    other = Mailbox(unique_name("python"), depth_messages=4)
    each, senders = 5000, 4

    def send(sender):
        for number in range(each):
            one.send(other.address, b"%d %d" % (sender, number))

    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(senders)]
    for thread in threads:
        thread.start()
    counts = [0] * senders
    for _ in range(each * senders):
        sender, number = map(int, other.receive().split())
        assert number == counts[sender]
        counts[sender] += 1
    for thread in threads:
        thread.join()
    assert other.try_receive() is None


def test_mistakes_are_sentences():
    context = Mailbox(unique_name("python"))
    with pytest.raises(RuntimeError, match='there is no mailbox "nobody" on this host'):
        context.send("nobody", b"x")
    with pytest.raises(ValueError, match="a message has 57 bytes; it must have at most 56"):
        context.send(context.address, bytes(57))
    with pytest.raises(RuntimeError, match="mailbox .* exists already"):
        Mailbox(context.address)


@pytest.fixture(scope="module")
def study():
    return measure_live(SMALL)


def test_a_measurement_counts_every_iteration(study):
    for row in (study.line, study.message):
        assert sum(row["counts"]) == SMALL.iterations
        assert row["min_ns"] <= row["median_ns"] <= row["p99_ns"] <= row["max_ns"]
    rates = study.rates_per_s
    assert 0 < rates["p10"] <= rates["median"] <= rates["best"]


def test_the_parts_of_a_message_add_up(study):
    parts = [float(line[1]) for line in live_tables(study)[1].lines]
    assert sum(parts[:-1]) == pytest.approx(parts[-1], abs=0.2)
    assert parts[-1] == study.message["median_ns"]


def test_libraries_that_are_not_there_are_skipped_with_a_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    rows = [measure() for measure in peer_measurements(SMALL, tmp_path)]
    assert [row["name"].split(",")[0] for row in rows] == ["ZeroMQ", "Open MPI", "UCX"]
    assert "zeromq_peer is not built; it needs libzmq3-dev" in rows[0]["skipped"]
    assert "ucx-utils" in rows[2]["skipped"]


def test_open_mpi_is_measured_on_the_cores_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "mpi_peer").touch()
    mpirun = tmp_path / "mpirun"
    mpirun.write_text('#!/bin/sh\necho "{\\"arguments\\": \\"$*\\"}"\n')
    mpirun.chmod(0o755)
    for cores, end in (((5, 3), " 32 5 3"), (None, " 32")):
        request = dataclasses.replace(SMALL, cores=cores)
        row = peer_measurements(request, tmp_path)[1]()
        assert "--bind-to none" in row["arguments"] and row["arguments"].endswith(end)


def test_a_library_that_is_measured_stands_beside_the_mailbox(study, tmp_path):
    program = tmp_path / "zeromq_peer"
    program.write_text(
        '#!/bin/sh\necho \'{"median_ns": 1e6, "p99_ns": 2e6, "messages_per_s": 5e5}\'\n'
    )
    program.chmod(0o755)
    rows = [measure() for measure in peer_measurements(SMALL, tmp_path)[:1]]
    assert rows[0]["median_ns"] == 1e6
    study.peers[:] = rows
    text = tables_text(live_tables(study))
    assert "ZeroMQ, ipc" in text and "0.50" in text


def test_the_command_prints_json_and_a_page(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    page = tmp_path / "live.html"
    line = [
        "bench", "mailbox", "--live", "--iterations", "500", "--json", "--out", str(page),
        "--peers", str(tmp_path),
    ]  # fmt: skip
    result = CliRunner().invoke(cli.app, line, standalone_mode=False, obj=Interruption())
    assert result.exception is None
    answer = json.loads(result.stdout)["results"][0]
    assert answer["message"]["median_ns"] > 0 and len(answer["peers"]) == 3
    assert "Messages of the same size in the same run" in page.read_text()


@pytest.mark.parametrize("arguments", [["--live", "--machine", "carvnet"], []])
def test_a_place_is_asked_for(arguments):
    line = ["bench", "mailbox", *arguments]
    result = CliRunner().invoke(cli.app, line, standalone_mode=False, obj=Interruption())
    assert "either --machine or --live" in str(result.exception)


def test_wrong_options_are_named():
    with pytest.raises(ConfigError, match="it must be two different cores of"):
        parse_cores("0,0")
    with pytest.raises(ConfigError, match="it must have 0 to 56"):
        measure_live(LiveRequest(size_bytes=57))

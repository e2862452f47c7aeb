# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What results say about their making."""

import importlib.metadata
import re

import pytest

from inside import _core
from inside.machines import catalogue, shipped
from inside.pages import machine_hash, provenance, schedule_hash


def test_version_and_date_are_those_of_the_run(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    made = provenance()
    assert made.version == importlib.metadata.version("towpath")
    assert made.date == "2026-09-21T14:13:20Z"
    assert made.lines() == [f"Towpath {made.version}, {made.date}"]


def test_every_shipped_machine_has_its_own_hash():
    hashes = [machine_hash(catalogue.load_any(name)) for name in shipped.kinds()]
    assert len(set(hashes)) == len(hashes) == len(shipped.kinds())
    assert all(re.fullmatch(r"[0-9a-f]{16}", digits) for digits in hashes)


def test_a_spec_read_twice_has_one_hash_and_a_changed_one_another():
    spec = catalogue.load("dgx-h100")
    assert machine_hash(spec) == machine_hash(catalogue.load("dgx-h100"))
    assert machine_hash(spec) != machine_hash(catalogue.load("dgx-h100", hosts=4))
    chip = catalogue.load_chip("wormhole")
    assert machine_hash(chip) != machine_hash(catalogue.load_chip("wormhole", harvest_mask=1))


def test_a_schedule_of_other_steps_has_another_hash():
    made = {
        (ranks, protocol): _core.make_schedule(
            "ring_all_reduce", ranks=ranks, channels=1, protocol=_core.protocol_from(protocol)
        )
        for ranks in (2, 3)
        for protocol in ("Simple", "LL")
    }
    assert len({schedule_hash(schedule) for schedule in made.values()}) == 4
    again = _core.make_schedule("ring_all_reduce", ranks=2, channels=1)
    assert schedule_hash(again) == schedule_hash(made[2, "Simple"])


def test_the_same_as_data_and_as_lines():
    spec = catalogue.load("ring")
    schedule = _core.make_schedule("ring_all_reduce", ranks=2, channels=1)
    made = provenance([spec], [schedule])
    assert made.to_dict() == {
        "towpath": made.version,
        "date": made.date,
        "machines": {"ring": machine_hash(spec)},
        "schedules": {"ring_all_reduce": schedule_hash(schedule)},
    }
    assert made.lines()[1:] == [
        f"machine ring {machine_hash(spec)}",
        f"schedule ring_all_reduce {schedule_hash(schedule)}",
    ]


def test_what_has_no_plain_form_is_refused():
    with pytest.raises(TypeError, match="a object in a machine has no hash"):
        machine_hash(object())

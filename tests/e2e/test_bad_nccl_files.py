# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Spoilt graph and tuner files of NCCL are read, or end in one sentence; nothing else."""

from __future__ import annotations

import pytest

from inside.nccl import (
    Channel,
    Graph,
    Path,
    Pattern,
    graphs_text,
    load_graphs,
    load_tuner,
    parse_graphs,
    parse_tuner,
)
from mutate import check_mutants

PLACE = ":[0-9]+|"
TUNER = """\
# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks
allreduce,0,65536,tree,ll,4,2,16
allgather,65537,1048576,ring,ll128,8,-1,-1,-1,0
broadcast , 1048577, 2097152, ring, simple, -1, 1, 8, 1
"""


def graphs_twice(path):
    """Reads a graph file, which must survive writing and reading."""
    graphs = load_graphs(str(path))
    assert parse_graphs(graphs_text(graphs), "again.xml") == graphs


def tuner_twice(path):
    """Reads a tuner file, which must survive writing and reading."""
    lines = load_tuner(str(path))
    assert parse_tuner("\n".join(line.text() for line in lines), "again.csv") == lines


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """A graph file with every kind of graph, and a tuner file."""
    folder = tmp_path_factory.mktemp("nccl")
    channels = (Channel((0, 1, 2, 3), (0, 1)), Channel((3, 2, 1, 0), (1, 0)))
    ring = Graph(Pattern.RING, 2, 24.0, 17.5, Path.NVL, Path.PXB, 0.5, 2, False, channels)
    heads = (Channel((0, 1, 2, 3)), Channel((1, 0, 2, 3)))
    nvls = Graph(Pattern.NVLS, 2, 40.0, 48.0, Path.NVL, channels=heads)
    (folder / "graph.xml").write_text(graphs_text({"ring": ring, "tree": ring, "nvls": nvls}))
    (folder / "tuner.csv").write_text(TUNER)
    return folder


READERS = [("graphs_twice", "graph.xml"), ("tuner_twice", "tuner.csv")]


def check(reader, file, seeds, originals, folder):
    reader = f"test_bad_nccl_files:{reader}"
    check_mutants(reader, [originals / file], seeds, folder, seconds_max=10, place=PLACE)


@pytest.mark.parametrize(("reader", "file"), READERS)
def test_100_spoilt_files(originals, tmp_path, reader, file):
    check(reader, file, range(100), originals, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, 21))
@pytest.mark.parametrize(("reader", "file"), READERS)
def test_20_000_spoilt_files(originals, tmp_path, reader, file, part):
    check(reader, file, range(1000 * part, 1000 * (part + 1)), originals, tmp_path)

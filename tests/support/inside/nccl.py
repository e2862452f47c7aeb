# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The imitation of NCCL and RCCL: topology, graphs, cost model and choice."""

from towpath.collectives.nccl import connect, rccl
from towpath.collectives.nccl import imitation as IMITATION
from towpath.collectives.nccl.choice import channels_with_work, choose
from towpath.collectives.nccl.communicator import Channel, Communicator, Graph, Path, Pattern
from towpath.collectives.nccl.cost_model import cost, time_us, times_us, why_not
from towpath.collectives.nccl.environment import Environment
from towpath.collectives.nccl.explanation import limit_of
from towpath.collectives.nccl.facts import Assumptions, facts_of, host_facts
from towpath.collectives.nccl.graph_file import check_gpus, graphs_text, load_graphs, parse_graphs
from towpath.collectives.nccl.imitation import Imitation, Library
from towpath.collectives.nccl.search import find_graph
from towpath.collectives.nccl.topology import topology_of
from towpath.collectives.nccl.tuner_file import load_tuner, parse_tuner
from towpath.collectives.nccl_itself import table as TABLES
from towpath.collectives.nccl_itself.build import NcclBuild, build, find_build
from towpath.collectives.nccl_itself.decide import Decision, Decisions, Question, decide
from towpath.collectives.nccl_itself.host import host_of
from towpath.collectives.nccl_itself.host_file import host_from_file
from towpath.collectives.nccl_itself.table import (
    GRID,
    TableWriter,
    find_entry,
    host_digest,
    node_orders,
    operations,
)
from towpath.collectives.nccl_itself.table import releases as table_releases
from towpath.collectives.nccl_itself.times import TimeServer

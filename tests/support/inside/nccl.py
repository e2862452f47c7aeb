# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The imitation of NCCL and RCCL: topology, graphs, cost model and choice."""

from towpath.collectives.nccl import connect, rccl
from towpath.collectives.nccl.choice import channels_with_work, choose
from towpath.collectives.nccl.communicator import Channel, Communicator, Graph, Path, Pattern
from towpath.collectives.nccl.cost_model import cost, time_us, times_us, why_not
from towpath.collectives.nccl.environment import Environment
from towpath.collectives.nccl.explanation import limit_of
from towpath.collectives.nccl.facts import Assumptions, facts_of
from towpath.collectives.nccl.graph_file import check_gpus, graphs_text, load_graphs, parse_graphs
from towpath.collectives.nccl.imitation import Imitation, Library
from towpath.collectives.nccl.search import find_graph
from towpath.collectives.nccl.topology import topology_of
from towpath.collectives.nccl.tuner_file import load_tuner, parse_tuner

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machine files: the catalogue, specs, importers, overrides and sizes."""

from towpath import names
from towpath.api import machine
from towpath.api.cluster import Cluster
from towpath.specs import catalogue, chip_cluster_spec, export, kinds, reference, shipped
from towpath.specs.catalogue import load, load_chip, load_chip_cluster
from towpath.specs.chip_cluster_spec import EthernetEnd
from towpath.specs.chip_spec import Coordinate, PcieParameters
from towpath.specs.export import soc_descriptor_of
from towpath.specs.importers.adapter_status import AdapterPort, is_status, merged, parse_status
from towpath.specs.importers.cluster_descriptor import reserved_links
from towpath.specs.importers.mesh_places import mesh_places
from towpath.specs.importers.own_host import import_host
from towpath.specs.input_file import parse_yaml, read_text
from towpath.specs.kinds import KINDS, SpecFile, SpecKind
from towpath.specs.machine_spec import (
    DEVICES_MAX,
    GraphSpec,
    MachineSpec,
    TemplateSpec,
    parse_machine_spec,
)
from towpath.specs.override import combinations, with_settings
from towpath.specs.parameter_models import tables
from towpath.specs.sizes import format_size, parse_size, parse_sizes
from towpath.specs.spec_model import Quantity, quantities_of
from towpath.specs.write import yaml_of

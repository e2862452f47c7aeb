# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Names of modules, for tests of what a process loads."""

CORE = "towpath._core"

# The module of the class below which all machine specs are.
MODELS = "towpath.specs.spec_model"

# The module of each kind of machine file.
SPECS = {
    kind: f"towpath.specs.{kind}_spec"
    for kind in ("machine", "chip_cluster", "chip", "mailbox_cluster", "host", "mixed")
}

# What no run of one collective on one machine needs.
UNNEEDED = {
    "towpath.cli.bench",
    "towpath.cli.tune",
    "towpath.collectives.live",
    "towpath.collectives.link_faults",
    "towpath.collectives.nccl.imitation",
    "towpath.schedules.msccl_xml",
    "towpath.schedules.mscclpp_json",
    "towpath.specs.importers.nccl_xml",
    "towpath.specs.importers.soc_descriptor",
    "towpath.studies.sweep",
    "towpath.validation.table_file",
    "towpath.validation.validate",
}

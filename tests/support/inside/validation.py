# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of measurements: files, kinds, statistics and the comparison with models."""

from towpath.validation import (
    accuracy,
    chip_systems,
    ethernet,
    fabric,
    noc,
    noc_patterns,
    shipped,
    validate,
)
from towpath.validation.chip_systems import form_of, named_system, system_of
from towpath.validation.fabric import FABRIC_KINDS, ChipCall
from towpath.validation.noc import (
    FLIT_HOPS_MAX,
    Amount,
    DramPair,
    Outcome,
    amount_of,
    dram_programs,
    pattern_of,
    place_carefully,
    place_randomly,
    run_scaled,
)
from towpath.validation.noc_patterns import START_SPREAD_CYCLES, Cast, Pattern, cast_of, programs
from towpath.validation.pcie import PCIE_KINDS
from towpath.validation.shipped import find_table, folder, names
from towpath.validation.statistics import ErrorStatistics, error_statistics
from towpath.validation.table_file import Tolerance, read_table
from towpath.validation.table_kind import CannotSimulate, Context, half_of
from towpath.validation.validate import validate as validate_table

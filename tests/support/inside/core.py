# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Types and functions of the compiled core by name."""

from towpath._core import (
    Buffer,
    Collective,
    FindingKind,
    Holder,
    Protocol,
    RankProgram,
    Schedule,
    Step,
    StepType,
    ThreadBlock,
    element_granularity,
    smallest_hanging_size,
    verify,
)

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "group_api.h"

// torch.distributed._symmetric_memory for CPU tensors: arrays that all ranks of a host map, with
// signal pads behind them.

namespace towpath_torch {

// Makes it what torch uses for CPU tensors, unless something else is already. The table stays
// valid for as long as the process runs.
void register_symmetric_memory(const towpath_group_api& api);

}  // namespace towpath_torch

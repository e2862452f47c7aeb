// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace towpath_torch {

// The name of the group's job, which rank 0 makes and the store hands to the others. Throws where
// this rank is on another host than rank 0.
std::string job_name(c10d::Store& store, int rank, std::chrono::milliseconds timeout);

}  // namespace towpath_torch

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include "towpath/gpu/profile.hpp"
#include "towpath/gpu/run/simulated.hpp"

namespace towpath::bindings {

// A profile as arrays of 64-bit integers, one row per record. python/towpath/kernels/profile.py
// names the columns. Times are in picoseconds.
nanobind::dict profile_of(const gpu::Profile& profile);
// Also has the traffic of each link in each interval.
nanobind::dict profile_of(gpu::SimulatedPes& pes);

}  // namespace towpath::bindings

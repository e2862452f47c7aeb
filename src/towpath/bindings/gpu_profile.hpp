// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include "towpath/gpu/profile.hpp"
#include "towpath/gpu/run/simulated.hpp"

namespace towpath::bindings {

// What a profile holds, as arrays of 64-bit integers, a row for each record; the columns are those
// that python/towpath/kernels/profile.py names. Times are in picoseconds.
nanobind::dict profile_of(const gpu::Profile& profile);
// The same with the links of the machine: what each carried in each interval.
nanobind::dict profile_of(gpu::SimulatedPes& pes);

}  // namespace towpath::bindings

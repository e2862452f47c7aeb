// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

// Python types for one-sided steps.
void bind_access(nanobind::module_& module);

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

// What one-sided steps consist of, as Python sees it.
void bind_access(nanobind::module_& module);

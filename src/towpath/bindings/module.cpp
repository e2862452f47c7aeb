// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

NB_MODULE(_core, module) { module.doc() = "The C++ core of towpath."; }

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/group_api.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_group_api(nb::module_& module) {
  module.def(
      "group_api", [] { return nb::capsule(towpath_get_group_api(), TOWPATH_GROUP_API_NAME); },
      "The table of live/group_api.h, for extensions of other programs.");
}

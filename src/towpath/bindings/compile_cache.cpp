// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/compile_cache.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

void bind_compile_cache(nb::module_& module) {
  using namespace towpath::os;
  module.def(
      "compile_cache", [](const std::string& kind) { return compile_cache(kind).string(); },
      "kind"_a,
      "The user's cache folder for one kind of compiled code, made if it is absent. Raises\n"
      "RuntimeError if others may write to it.");
  module.def(
      "check_private", [](const std::string& folder) { check_private(folder); }, "folder"_a,
      "Raises RuntimeError unless the folder is this user's alone to write.");
  module.def(
      "manifest",
      [](const std::vector<std::string>& files) {
        Manifest manifest;
        for (const std::string& file : files) manifest.add(file);
        return manifest.text();
      },
      "files"_a, "The content of files at this time, for is_current.");
  module.def(
      "is_current", [](const std::string& manifest) { return Manifest::is_current(manifest); },
      "manifest"_a, "Whether every file of a written manifest is unchanged.");
}

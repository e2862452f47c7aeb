// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/load.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <memory>
#include <string>
#include <string_view>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace towpath::machine;

// Binds the parser of a description from Python's specs: the JSON of load.hpp.
template <typename Described>
void bind_parse(nb::module_& module, const char* name,
                std::shared_ptr<const Described> (*parse)(std::string_view, const std::string&)) {
  module.def(
      name,
      [parse](const std::string& json, const std::string& origin) {
        return std::const_pointer_cast<Described>(parse(json, origin));
      },
      "json"_a, "origin"_a, "The described object. Raises towpath.errors.DescriptionError.");
}

}  // namespace

void bind_load(nb::module_& module) {
  bind_parse(module, "parse_chip", &parse_chip);
  bind_parse(module, "parse_chip_cluster", &parse_chip_cluster);
  bind_parse(module, "parse_host", &parse_host);
  bind_parse(module, "parse_mailbox_cluster", &parse_mailbox_cluster);
  bind_parse(module, "parse_machine", &parse_machine);
  nb::class_<MachineParts>(module, "MachineParts",
                           "A machine whose devices and wires come one by one.")
      .def(nb::init<std::string, std::string>(), "json"_a, "origin"_a,
           "`json` is that of parse_machine and may have devices and wires of its own. Raises\n"
           "towpath.errors.DescriptionError, as all calls do.")
      .def("add", &MachineParts::add_device, "name"_a, "kind"_a, "host"_a, "forwards"_a = true,
           "The number of a device.")
      .def("join", &MachineParts::add_wire, "a"_a, "b"_a, "link_type"_a, "parallel"_a = 1.0,
           "A wire between two devices.")
      .def(
          "build",
          [](MachineParts& parts) {
            return std::const_pointer_cast<Machine>(std::move(parts).build());
          },
          "The machine; the parts must not be used afterwards.");
}

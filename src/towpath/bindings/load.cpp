// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/load.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "towpath/machine/checks.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace towpath::machine;

// A description of Python's specs, which is the JSON of load.hpp.
template <typename Described>
void bind_parse(nb::module_& module, const char* name,
                std::shared_ptr<const Described> (*parse)(std::string_view, const std::string&)) {
  module.def(
      name,
      [parse](const std::string& json, const std::string& origin) {
        return std::const_pointer_cast<Described>(parse(json, origin));
      },
      "json"_a, "origin"_a,
      "The described object. Raises DescriptionError, a ValueError with field and problem.");
}

// A subclass of ValueError whose instances carry the field and the problem.
void bind_error(nb::module_& module) {
  const nb::object type =
      nb::steal(PyErr_NewException("towpath._core.DescriptionError", PyExc_ValueError, nullptr));
  module.attr("DescriptionError") = type;
  nb::register_exception_translator(
      [](const std::exception_ptr& pointer, void* payload) {
        try {
          std::rethrow_exception(pointer);
        } catch (const DescriptionError& error) {
          const nb::handle class_of(static_cast<PyObject*>(payload));
          const nb::object instance = class_of(error.what());
          instance.attr("field") = error.field();
          instance.attr("problem") = error.problem();
          PyErr_SetObject(class_of.ptr(), instance.ptr());
        }
      },
      type.ptr());
}

}  // namespace

void bind_load(nb::module_& module) {
  bind_error(module);
  bind_parse(module, "parse_chip", &parse_chip);
  bind_parse(module, "parse_chip_cluster", &parse_chip_cluster);
  bind_parse(module, "parse_host", &parse_host);
  bind_parse(module, "parse_mailbox_cluster", &parse_mailbox_cluster);
  bind_parse(module, "parse_machine", &parse_machine);
  module.def("parameter_tables", &parameter_tables,
             "The tables of all parameters of machines, as JSON.");
}

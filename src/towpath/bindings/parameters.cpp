// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/bindings/parameters.hpp"

#include "towpath/machine/chip.hpp"
#include "towpath/machine/host.hpp"
#include "towpath/machine/machine.hpp"
#include "towpath/machine/mailbox_cluster.hpp"

namespace towpath::bindings {

namespace {

using namespace machine;

const char* name_of(Form form) {
  switch (form) {
    case Form::quantity: return "quantity";
    case Form::optional_quantity: return "optional_quantity";
    case Form::flag: return "flag";
    case Form::optional_flag: return "optional_flag";
  }
  return "unknown";
}

const char* name_of(ValueType type) {
  switch (type) {
    case ValueType::truth: return "truth";
    case ValueType::whole:
    case ValueType::large: return "whole";
    default: return "number";
  }
}

nb::str text_of(std::string_view text) { return nb::str(text.data(), text.size()); }

// `fresh` is a block with the defaults of its type.
nb::list rows_of(const void* fresh, std::span<const Parameter> table) {
  nb::list rows;
  for (const Parameter& parameter : table) {
    nb::dict row;
    row["name"] = text_of(parameter.name);
    row["type"] = name_of(parameter.member.type);
    row["min"] = parameter.allowed.min;
    row["max"] = parameter.allowed.max;
    row["is_power_of_two"] = parameter.allowed.is_power_of_two;
    row["form"] = name_of(parameter.form);
    row["default"] = value_of(fresh, parameter);
    row["default_source"] = text_of(parameter.default_source);
    row["meaning"] = text_of(parameter.meaning);
    rows.append(row);
  }
  return rows;
}

// Tables of one path are joined.
nb::dict tables_of(void* fresh, std::span<const BlockTable> tables) {
  nb::dict joined;
  for (const BlockTable& table : tables) {
    void* there = table.in(fresh);
    const void* block = table.list != nullptr ? table.list->add(there) : there;
    const nb::str path = text_of(table.path);
    if (!joined.contains(path)) joined[path] = nb::list();
    nb::cast<nb::list>(joined[path]).extend(rows_of(block, table.parameters));
  }
  return joined;
}

nb::dict parameter_tables() {
  Chip chip;
  Host host;
  MailboxCluster mailbox_cluster;
  GpuCost cost;
  const KernelCost kernel;
  const Link link;
  nb::dict link_type;
  link_type[""] = rows_of(&link, link_parameters());
  nb::dict tables;
  tables["chip"] = tables_of(&chip, chip_tables());
  tables["host"] = tables_of(&host, host_tables());
  tables["mailbox_cluster"] = tables_of(&mailbox_cluster, mailbox_cluster_tables());
  tables["gpu_cost"] = tables_of(&cost, gpu_cost_tables());
  tables["gpu_cost"]["kernel"] = rows_of(&kernel, kernel_parameters());
  tables["link_type"] = link_type;
  return tables;
}

}  // namespace

nb::dict values_of(const void* description, std::span<const BlockTable> tables,
                   std::string_view path) {
  nb::dict values;
  for (const BlockTable& table : tables) {
    if (table.path != path || table.list != nullptr) continue;
    for (const Parameter& parameter : table.parameters) {
      const double value = value_of(table.in(description), parameter);
      const nb::str name = text_of(parameter.name);
      switch (parameter.member.type) {
        case ValueType::truth: values[name] = value != 0; break;
        case ValueType::whole:
        case ValueType::large: values[name] = static_cast<std::uint64_t>(value); break;
        default: values[name] = value;
      }
    }
  }
  return values;
}

}  // namespace towpath::bindings

void bind_parameters(nanobind::module_& module) {
  module.def("parameter_tables", &towpath::bindings::parameter_tables,
             "The tables of all parameters: per kind of description and block a list of rows.");
}

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/json_reader.hpp"
#include "towpath/machine/load.hpp"

namespace towpath::machine {

namespace {

const char* name_of(Form form) {
  switch (form) {
    case Form::quantity: return "quantity";
    case Form::optional_quantity: return "optional_quantity";
    case Form::flag: return "flag";
    case Form::optional_flag: return "optional_flag";
  }
  return "unknown";
}

template <typename Block>
const char* type_of(const Parameter<Block>& parameter) {
  return parameter.member.visit([](auto member) {
    using Value = std::decay_t<decltype(std::declval<Block>().*member)>;
    if constexpr (std::is_same_v<Value, bool>) {
      return "truth";
    } else if constexpr (std::is_same_v<Value, int> || std::is_same_v<Value, std::uint64_t>) {
      return "whole";
    } else {
      return "number";
    }
  });
}

template <typename Block, std::size_t kSize>
Json rows_of(const Parameter<Block> (&table)[kSize]) {
  // Static, because gcc 12 warns of members of other types that would be uninitialized elsewhere.
  static const Block fresh{};
  Json rows = Json::array();
  for (const Parameter<Block>& parameter : table) {
    rows.push_back({{"name", parameter.name},
                    {"type", type_of(parameter)},
                    {"min", parameter.allowed.min},
                    {"max", parameter.allowed.max},
                    {"is_power_of_two", parameter.allowed.is_power_of_two},
                    {"form", name_of(parameter.form)},
                    {"default", value_of(fresh, parameter)},
                    {"meaning", parameter.meaning}});
  }
  return rows;
}

// Tables of one name are joined.
template <typename Description>
Json tables_of(const Description& description) {
  Json tables = Json::object();
  for_each_block(description, [&](const char* name, Needed, const auto&, const auto& table) {
    for (Json& row : rows_of(table)) tables[name].push_back(std::move(row));
  });
  return tables;
}

}  // namespace

std::string parameter_tables() {
  Json gpu_cost = tables_of(GpuCost());
  gpu_cost["kernel"] = rows_of(kKernelParameters);
  const Json tables = {{"chip", tables_of(Chip())},
                       {"host", tables_of(Host())},
                       {"mailbox_cluster", tables_of(MailboxCluster())},
                       {"gpu_cost", gpu_cost},
                       {"link_type", {{"", rows_of(kLinkParameters)}}}};
  return tables.dump();
}

}  // namespace towpath::machine

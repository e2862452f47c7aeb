// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/json_reader.hpp"

#include <algorithm>
#include <utility>

namespace towpath::machine {

JsonObject::JsonObject(const Json& json, std::string owner, std::string field)
    : json_(json), owner_(std::move(owner)), field_(std::move(field)), checks_(owner_) {
  if (json_.kind != Json::Kind::object) checks_.fail_at(field_, "must be a block of fields");
}

const Json& JsonObject::at(std::string_view name) const {
  const Json* const found = json_.find(name);
  if (found == nullptr) checks_.fail_at(field_, "lacks the field '{}'", name);
  return *found;
}

const std::vector<Json>& JsonObject::list(std::string_view name) const {
  const Json& value = at(name);
  if (value.kind != Json::Kind::list) checks_.fail_at(field_of(name), "must be a list");
  return value.items;
}

JsonObject JsonObject::object(std::string_view name) const {
  return JsonObject(at(name), owner_, field_of(name));
}

std::vector<JsonObject> JsonObject::objects(std::string_view name) const {
  const std::vector<Json>& items = list(name);
  std::vector<JsonObject> objects;
  for (std::size_t i = 0; i < items.size(); ++i) {
    objects.emplace_back(items[i], owner_, fmt::format("{}[{}]", field_of(name), i));
  }
  return objects;
}

std::string JsonObject::text(const char* name) const {
  const Json& value = at(name);
  if (value.kind != Json::Kind::text) {
    checks_.fail_at(field_of(name), "is {}; it must be text", value.source);
  }
  return value.text;
}

bool JsonObject::truth(std::string_view name) const {
  const Json& value = at(name);
  if (value.kind != Json::Kind::truth) {
    checks_.fail_at(field_of(name), "is {}; it must be true or false", value.source);
  }
  return value.number != 0;
}

std::int64_t JsonObject::whole(const char* name, std::int64_t min, std::int64_t max) const {
  return static_cast<std::int64_t>(
      bounded(name, true, between(static_cast<double>(min), static_cast<double>(max))));
}

double JsonObject::number(const char* name, double min, double max) const {
  return bounded(name, false, between(min, max));
}

double JsonObject::bounded(std::string_view name, bool is_whole, const Allowed& allowed) const {
  const Json& value = at(name);
  if (value.kind != Json::Kind::number || (is_whole && !value.is_whole)) {
    checks_.fail_at(field_of(name), "is {}; it must be a {}", value.source,
                    is_whole ? "whole number" : "number");
  }
  const std::string problem = problem_of(value.number, allowed);
  if (!problem.empty()) checks_.fail_at(field_of(name), "{}", problem);
  return value.number;
}

std::vector<int> JsonObject::numbers(const Json& list, const char* name, int max) const {
  const auto is_number = [&](const Json& value) {
    return value.kind == Json::Kind::number && value.is_whole && value.number >= 0 &&
           value.number <= max;
  };
  const bool is_list = list.kind == Json::Kind::list;
  if (!is_list || !std::all_of(list.items.begin(), list.items.end(), is_number)) {
    checks_.fail_at(field_of(name), "must hold lists of whole numbers from 0 to {}", max);
  }
  std::vector<int> numbers;
  for (const Json& item : list.items) numbers.push_back(static_cast<int>(item.number));
  return numbers;
}

std::vector<int> JsonObject::numbers(const char* name, int max) const {
  return numbers(at(name), name, max);
}

std::vector<std::vector<int>> JsonObject::tuples(const char* name, std::size_t size,
                                                 int max) const {
  std::vector<std::vector<int>> tuples;
  for (const Json& entry : list(name)) {
    tuples.push_back(numbers(entry, name, max));
    if (tuples.back().size() != size) {
      checks_.fail_at(field_of(name), "must hold lists of {} numbers", size);
    }
  }
  return tuples;
}

void JsonObject::read(void* block, std::span<const Parameter> table) const {
  for (const Parameter& parameter : table) {
    if (parameter.is_optional() && !has(parameter.name)) continue;
    const ValueType type = parameter.member.type;
    const bool is_whole = type == ValueType::whole || type == ValueType::large;
    const double value = type == ValueType::truth
                             ? static_cast<double>(truth(parameter.name))
                             : bounded(parameter.name, is_whole, parameter.allowed);
    set_value(block, parameter, value);
  }
}

void JsonObject::check_names(std::span<const Parameter> table,
                             std::initializer_list<std::string_view> others) const {
  std::vector<std::string_view> known(others);
  for (const Parameter& parameter : table) known.push_back(parameter.name);
  check_names(known);
}

void JsonObject::check_names(const std::vector<std::string_view>& known) const {
  for (const std::string& name : json_.names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string allowed;
    for (const std::string_view one : known) {
      allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", one);
    }
    checks_.fail_at(field_, "has no field '{}'; allowed are {}", name, allowed);
  }
}

}  // namespace towpath::machine

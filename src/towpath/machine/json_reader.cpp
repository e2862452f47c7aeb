// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/json_reader.hpp"

#include <utility>

namespace towpath::machine {

JsonObject::JsonObject(const Json& json, std::string owner, std::string field)
    : json_(json), owner_(std::move(owner)), field_(std::move(field)), checks_(owner_) {
  if (!json_.is_object()) checks_.fail_at(field_, "must be a block of fields");
}

const Json& JsonObject::at(std::string_view name) const {
  const auto found = json_.find(name);
  if (found == json_.end()) checks_.fail_at(field_, "lacks the field '{}'", name);
  return *found;
}

std::vector<std::string> JsonObject::names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : json_.items()) names.push_back(name);
  return names;
}

JsonObject JsonObject::object(std::string_view name) const {
  return JsonObject(at(name), owner_, field_of(name));
}

std::vector<JsonObject> JsonObject::objects(std::string_view name) const {
  const Json& list = at(name);
  if (!list.is_array()) checks_.fail_at(field_of(name), "must be a list");
  std::vector<JsonObject> objects;
  for (std::size_t i = 0; i < list.size(); ++i) {
    objects.emplace_back(list[i], owner_, fmt::format("{}[{}]", field_of(name), i));
  }
  return objects;
}

std::string JsonObject::text(const char* name) const {
  const Json& value = at(name);
  if (!value.is_string()) checks_.fail_at(field_of(name), "is {}; it must be text", value.dump());
  return value.get<std::string>();
}

bool JsonObject::truth(std::string_view name) const {
  const Json& value = at(name);
  if (!value.is_boolean()) {
    checks_.fail_at(field_of(name), "is {}; it must be true or false", value.dump());
  }
  return value.get<bool>();
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
  if (is_whole ? !value.is_number_integer() : !value.is_number()) {
    checks_.fail_at(field_of(name), "is {}; it must be a {}", value.dump(),
                    is_whole ? "whole number" : "number");
  }
  const std::string problem = problem_of(value.get<double>(), allowed);
  if (!problem.empty()) checks_.fail_at(field_of(name), "{}", problem);
  return value.get<double>();
}

std::vector<int> JsonObject::numbers(const Json& list, const char* name, int max) const {
  const auto is_number = [&](const Json& value) {
    return value.is_number_integer() && value.get<double>() >= 0 && value.get<double>() <= max;
  };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_number)) {
    checks_.fail_at(field_of(name), "must hold lists of whole numbers from 0 to {}", max);
  }
  return list.get<std::vector<int>>();
}

std::vector<int> JsonObject::numbers(const char* name, int max) const {
  return numbers(at(name), name, max);
}

std::vector<std::vector<int>> JsonObject::tuples(const char* name, std::size_t size,
                                                 int max) const {
  const Json& list = at(name);
  if (!list.is_array()) checks_.fail_at(field_of(name), "must be a list");
  std::vector<std::vector<int>> tuples;
  for (const Json& entry : list) {
    tuples.push_back(numbers(entry, name, max));
    if (tuples.back().size() != size) {
      checks_.fail_at(field_of(name), "must hold lists of {} numbers", size);
    }
  }
  return tuples;
}

void JsonObject::check_names(const std::vector<std::string_view>& known) const {
  for (const auto& [name, value] : json_.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string allowed;
    for (const std::string_view one : known) {
      allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", one);
    }
    checks_.fail_at(field_, "has no field '{}'; allowed are {}", name, allowed);
  }
}

}  // namespace towpath::machine

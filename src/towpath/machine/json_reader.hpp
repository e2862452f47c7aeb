// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/machine/checks.hpp"

// Reads the blocks of a description from JSON. The input is untrusted: every type, name and bound
// is checked before a value is used.

namespace towpath::machine {

// A reader of JSON for descriptions of machines.

// A value of a JSON text.
struct Json {
  enum class Kind : std::uint8_t { null, truth, number, text, list, object };

  Kind kind = Kind::null;
  bool is_whole = false;           // a number without fraction and exponent
  double number = 0;               // of a number; 1 for true
  std::string text;                // of a text, without quotes and escapes
  std::vector<Json> items;         // of a list, or the values of an object
  std::vector<std::string> names;  // of an object, one for each item
  std::string_view source;         // its place in the parsed text, which must outlive it

  // Null if the object has no field of that name.
  const Json* find(std::string_view name) const;
};

// Throws std::invalid_argument with the line and the problem of the first error.
Json parse_json(std::string_view text);

// One JSON object of a description, with its path for error messages.
class JsonObject {
 public:
  JsonObject(const Json& json, std::string owner, std::string field);

  bool has(std::string_view name) const { return json_.find(name) != nullptr; }
  const std::vector<std::string>& names() const { return json_.names; }
  // A required member.
  const Json& at(std::string_view name) const;
  const std::vector<Json>& list(std::string_view name) const;
  JsonObject object(std::string_view name) const {
    return JsonObject(at(name), owner_, field_of(name));
  }
  std::vector<JsonObject> objects(std::string_view name) const;
  std::string text(const char* name) const;
  bool truth(std::string_view name) const;
  std::int64_t whole(const char* name, std::int64_t min, std::int64_t max) const {
    return static_cast<std::int64_t>(
        bounded(name, true, between(static_cast<double>(min), static_cast<double>(max))));
  }
  double number(const char* name, double min, double max) const {
    return bounded(name, false, between(min, max));
  }
  // Whole numbers from 0 to `max`, and lists of tuples with `size` of them.
  std::vector<int> numbers(const char* name, int max) const { return numbers(at(name), name, max); }
  std::vector<std::vector<int>> tuples(const char* name, std::size_t size, int max) const;

  // All parameters of a block. A missing optional parameter keeps its default.
  void read(void* block, std::span<const Parameter> table) const;

  // Throws if the object has a name that is neither in a table nor in `others`.
  void check_names(std::span<const Parameter> table,
                   std::initializer_list<std::string_view> others) const;
  void check_names(const std::vector<std::string_view>& known) const;

  const Checks& checks() const { return checks_; }
  std::string field_of(std::string_view name) const { return joined(field_, name); }

 private:
  double bounded(std::string_view name, bool is_whole, const Allowed& allowed) const;
  std::vector<int> numbers(const Json& list, const char* name, int max) const;

  const Json& json_;
  std::string owner_;
  std::string field_;
  Checks checks_;
};

}  // namespace towpath::machine

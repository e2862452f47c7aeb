// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// A reader of JSON for descriptions of machines.

namespace towpath::machine {

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

}  // namespace towpath::machine

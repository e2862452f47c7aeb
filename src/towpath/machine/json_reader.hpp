// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/machine/checks.hpp"

// Reads the blocks of a description from JSON. Nothing trusts the text: every type, name and bound
// is checked before a value is used.

namespace towpath::machine {

using Json = nlohmann::json;

inline void set(int& member, double value, std::string_view) { member = static_cast<int>(value); }
inline void set(bool& member, double value, std::string_view) { member = value != 0; }
inline void set(double& member, double value, std::string_view) { member = value; }
inline void set(std::uint64_t& member, double value, std::string_view) {
  member = static_cast<std::uint64_t>(value);
}
inline void set(BytesPerCycle& member, double value, std::string_view) {
  member = BytesPerCycle::from(value);
}
inline void set(Rate& member, double value, std::string_view) {
  member = Rate::from_gb_per_s(value);
}
inline void set(Frequency& member, double value, std::string_view) {
  member = Frequency::from_mhz(value);
}
inline void set(Time& member, double value, std::string_view name) {
  member = name.ends_with("_us") ? Time::from_us(value) : Time::from_ns(value);
}

// One JSON object of a description, which knows its place for errors.
class JsonObject {
 public:
  JsonObject(const Json& json, std::string owner, std::string field);

  bool has(std::string_view name) const { return json_.contains(name); }
  std::vector<std::string> names() const;
  // A member that must be there.
  const Json& at(std::string_view name) const;
  JsonObject object(std::string_view name) const;
  std::vector<JsonObject> objects(std::string_view name) const;
  std::string text(const char* name) const;
  bool truth(std::string_view name) const;
  std::int64_t whole(const char* name, std::int64_t min, std::int64_t max) const;
  double number(const char* name, double min, double max) const;
  // Whole numbers from 0 to `max`, and lists of `size` of them each.
  std::vector<int> numbers(const char* name, int max) const;
  std::vector<std::vector<int>> tuples(const char* name, std::size_t size, int max) const;

  // All parameters of a block. One without a value keeps its own if it is optional.
  template <typename Block, std::size_t kSize>
  void read(Block& block, const Parameter<Block> (&table)[kSize]) const {
    for (const Parameter<Block>& parameter : table) {
      const bool is_optional =
          parameter.form == Form::optional_quantity || parameter.form == Form::optional_flag;
      if (is_optional && !json_.contains(parameter.name)) continue;
      parameter.member.visit([&](auto member) {
        using Value = std::decay_t<decltype(block.*member)>;
        constexpr bool kIsWhole =
            std::is_same_v<Value, int> || std::is_same_v<Value, std::uint64_t>;
        const double value = std::is_same_v<Value, bool>
                                 ? (truth(parameter.name) ? 1.0 : 0.0)
                                 : bounded(parameter.name, kIsWhole, parameter.allowed);
        set(block.*member, value, parameter.name);
      });
    }
  }

  // Throws unless every name in the object is one of a table's, or one of `others`.
  template <typename Block, std::size_t kSize>
  void check_names(const Parameter<Block> (&table)[kSize],
                   std::initializer_list<std::string_view> others = {}) const {
    std::vector<std::string_view> known(others);
    for (const Parameter<Block>& parameter : table) known.push_back(parameter.name);
    check_names(known);
  }
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

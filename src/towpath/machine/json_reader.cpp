// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace towpath::machine {

JsonObject::JsonObject(const Json& json, std::string owner, std::string field)
    : json_(json), owner_(std::move(owner)), field_(std::move(field)), checks_(owner_) {
  if (json_.kind != Json::Kind::object) checks_.fail_at(field_, "must be a block of fields");
}

const Json& JsonObject::at(std::string_view name) const {
  const Json* const found = json_.find(name);
  if (found == nullptr) checks_.fail_at(field_, "has no field '{}'", name);
  return *found;
}

const std::vector<Json>& JsonObject::list(std::string_view name) const {
  const Json& value = at(name);
  if (value.kind != Json::Kind::list) checks_.fail_at(field_of(name), "must be a list");
  return value.items;
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
    checks_.fail_at(field_of(name), "must contain lists of whole numbers from 0 to {}", max);
  }
  std::vector<int> numbers;
  for (const Json& item : list.items) numbers.push_back(static_cast<int>(item.number));
  return numbers;
}

std::vector<std::vector<int>> JsonObject::tuples(const char* name, std::size_t size,
                                                 int max) const {
  std::vector<std::vector<int>> tuples;
  for (const Json& entry : list(name)) {
    tuples.push_back(numbers(entry, name, max));
    if (tuples.back().size() != size) {
      checks_.fail_at(field_of(name), "must contain lists of {} numbers", size);
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
    checks_.fail_at(field_, "has no field '{}'; choose one of {}", name, allowed);
  }
}

namespace {

constexpr int kDepthMax = 64;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json whole_text() {
    Json value = next_value(0);
    skip_space();
    if (at_ != text_.size()) fail("the text continues after the value");
    return value;
  }

 private:
  [[noreturn]] void fail(std::string_view problem) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<long>(at_), '\n') + 1;
    throw std::invalid_argument(fmt::format("line {}: {}", line, problem));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  bool take(char wanted) {
    skip_space();
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) fail(fmt::format("'{}' is missing", wanted));
  }

  Json next_value(int depth) {
    if (depth > kDepthMax) fail("blocks are nested too deeply");
    skip_space();
    const std::size_t begin = at_;
    Json value;
    switch (peek()) {
      case '{': read_object(value, depth); break;
      case '[': read_list(value, depth); break;
      case '"':
        value.kind = Json::Kind::text;
        value.text = quoted();
        break;
      default: read_word(value); break;
    }
    value.source = text_.substr(begin, at_ - begin);
    return value;
  }

  void read_object(Json& value, int depth) {
    value.kind = Json::Kind::object;
    expect('{');
    if (take('}')) return;
    do {
      skip_space();
      std::string name = quoted();
      if (value.find(name) != nullptr) fail(fmt::format("the field '{}' appears twice", name));
      expect(':');
      value.items.push_back(next_value(depth + 1));
      value.names.push_back(std::move(name));
    } while (take(','));
    expect('}');
  }

  void read_list(Json& value, int depth) {
    value.kind = Json::Kind::list;
    expect('[');
    if (take(']')) return;
    do {
      value.items.push_back(next_value(depth + 1));
    } while (take(','));
    expect(']');
  }

  // A number, or one of the three words of JSON.
  void read_word(Json& value) {
    const std::size_t end = std::min(text_.find_first_of(" \t\r\n,]}", at_), text_.size());
    const std::string_view word = text_.substr(at_, end - at_);
    if (word == "true" || word == "false") {
      value.kind = Json::Kind::truth;
      value.number = word == "true" ? 1 : 0;
    } else if (word != "null") {
      read_number(value, word);
    }
    at_ = end;
  }

  void read_number(Json& value, std::string_view word) const {
    constexpr std::string_view kDigits = "0123456789";
    const std::string_view digits = word.starts_with('-') ? word.substr(1) : word;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, value.number);
    const bool has_leading_zero =
        digits.size() > 1 && digits[0] == '0' && kDigits.find(digits[1]) != kDigits.npos;
    const bool begins_well = !digits.empty() && kDigits.find(digits[0]) != kDigits.npos;
    if (!begins_well || has_leading_zero || error != std::errc() || stop != end) {
      fail("a value is missing or is not valid JSON");
    }
    value.kind = Json::Kind::number;
    value.is_whole = digits.find_first_not_of(kDigits) == digits.npos;
  }

  std::string quoted() {
    if (peek() != '"') fail("a quoted text is missing");
    std::string text;
    for (++at_; peek() != '"'; ++at_) {
      if (static_cast<unsigned char>(peek()) < ' ') fail("a text does not end on its line");
      text += peek() == '\\' ? escaped() : std::string(1, peek());
    }
    ++at_;
    return text;
  }

  // The character after a backslash. Leaves the position at its last letter.
  std::string escaped() {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    ++at_;
    if (const std::size_t found = kLetters.find(peek()); found != kLetters.npos && peek() != '\0') {
      return std::string(1, kMeanings[found]);
    }
    if (peek() != 'u') fail("an escape in a text is not valid JSON");
    const std::uint32_t first = code_unit();
    if (first < 0xd800 || first > 0xdfff) return utf8_of(first);
    if (text_.substr(at_ + 1, 2) != "\\u") fail("half of a surrogate pair is missing");
    at_ += 2;
    const std::uint32_t second = code_unit();
    if (first > 0xdbff || second < 0xdc00 || second > 0xdfff) {
      fail("a surrogate pair is not valid");
    }
    return utf8_of(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00));
  }

  std::uint32_t code_unit() {
    std::uint32_t unit = 0;
    const std::string_view digits = text_.substr(std::min(at_ + 1, text_.size()), 4);
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, unit, 16);
    if (digits.size() != 4 || error != std::errc() || stop != end) {
      fail("\\u needs four hexadecimal digits");
    }
    at_ += 4;
    return unit;
  }

  static std::string utf8_of(std::uint32_t code) {
    const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
    const auto head = [&](std::uint32_t mark, int shift) {
      return static_cast<char>(mark | (code >> shift));
    };
    if (code < 0x80) return {head(0, 0)};
    if (code < 0x800) return {head(0xc0, 6), tail(0)};
    if (code < 0x10000) return {head(0xe0, 12), tail(6), tail(0)};
    return {head(0xf0, 18), tail(12), tail(6), tail(0)};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

const Json* Json::find(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? nullptr : &items[static_cast<std::size_t>(found - names.begin())];
}

Json parse_json(std::string_view text) { return Parser(text).whole_text(); }

}  // namespace towpath::machine

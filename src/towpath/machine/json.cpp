// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace towpath::machine {

namespace {

constexpr int kDepthMax = 64;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json whole_text() {
    Json value = next_value(0);
    skip_space();
    if (at_ != text_.size()) fail("nothing may follow the value");
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
      if (value.find(name) != nullptr) fail(fmt::format("the field '{}' is there twice", name));
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

  // A number, or one of JSON's three literals.
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
      fail("a value is missing or is not one of JSON");
    }
    value.kind = Json::Kind::number;
    value.is_whole = digits.find_first_not_of(kDigits) == digits.npos;
  }

  std::string quoted() {
    if (peek() != '"') fail("a text in quotes is missing");
    std::string text;
    for (++at_; peek() != '"'; ++at_) {
      if (static_cast<unsigned char>(peek()) < ' ') fail("a text does not end on its line");
      text += peek() == '\\' ? escaped() : std::string(1, peek());
    }
    ++at_;
    return text;
  }

  // The escaped character. Stops at its last letter.
  std::string escaped() {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    ++at_;
    if (const std::size_t found = kLetters.find(peek()); found != kLetters.npos && peek() != '\0') {
      return std::string(1, kMeanings[found]);
    }
    if (peek() != 'u') fail("an escape in a text is not one of JSON");
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

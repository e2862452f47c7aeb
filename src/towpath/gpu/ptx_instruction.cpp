// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/ptx_instruction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include "towpath/gpu/ptx_table.hpp"

namespace towpath::gpu {

namespace {

constexpr std::string_view kTypes[] = {
    "b8",  "b16", "b32", "b64", "b128", "u8",  "u16", "u32",   "u64",    "s8",
    "s16", "s32", "s64", "f16", "bf16", "f32", "f64", "f16x2", "bf16x2", "pred",
};

template <typename Range, typename Value>
bool has(const Range& range, const Value& value) {
  return std::find(std::begin(range), std::end(range), value) != std::end(range);
}

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Modifiers are separated by points. "L1::no_allocate" is one modifier.
std::vector<std::string_view> modifiers_of(std::string_view spelling) {
  std::vector<std::string_view> modifiers = split_at(spelling, '.');
  modifiers.erase(modifiers.begin());
  return modifiers;
}

constexpr std::string_view kHints[] = {
    "ca",
    "cg",
    "cs",
    "cv",
    "lu",
    "nc",
    "wb",
    "wt",
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
    "L2::64B",
    "L2::128B",
    "L2::256B",
    "L2::evict_first",
    "L2::evict_last",
    "L2::evict_normal",
    "L2::cache_hint",
};

// Reads the modifiers of a spelling by a pattern. PtxRow explains patterns.
class Matcher {
 public:
  explicit Matcher(const std::vector<std::string_view>& modifiers) : modifiers_(modifiers) {}

  // The captures, or nothing if the pattern is of other spellings.
  std::optional<std::vector<std::string>> match(std::string_view pattern) {
    for (const std::string_view token : split_at(pattern, ' ')) {
      if (!token.empty() && !accept(token)) return std::nullopt;
    }
    if (at_ < modifiers_.size()) return std::nullopt;
    return captures_;
  }

 private:
  std::string_view next() const {
    return at_ < modifiers_.size() ? modifiers_[at_] : std::string_view();
  }
  bool skip(std::string_view modifier) {
    if (next() != modifier) return false;
    ++at_;
    return true;
  }
  bool accept(std::string_view token) {
    switch (token.front()) {
      case '*':
        while (has(kHints, next())) ++at_;
        return true;
      case '!': captures_.emplace_back(skip(token.substr(1)) ? "true" : "false"); return true;
      case '-': return skip(token.substr(1));
      case '?': return accept_optional(token.substr(1));
      default: return accept_one(token);
    }
  }
  bool accept_one(std::string_view alternatives) {
    if (next().empty() || !has(split_at(alternatives, '|'), next())) return false;
    captures_.emplace_back(next());
    ++at_;
    return true;
  }
  bool accept_optional(std::string_view token) {
    const std::size_t equals = token.find('=');
    if (!accept_one(token.substr(0, equals))) captures_.emplace_back(token.substr(equals + 1));
    return true;
  }

  const std::vector<std::string_view>& modifiers_;
  std::size_t at_ = 0;
  std::vector<std::string> captures_;
};

// As a template argument of towpath_ptx.h.
std::string argument_of(std::string_view capture) {
  if (capture == "true" || capture == "false") return std::string(capture);
  if (has(kTypes, capture)) return fmt::format("::towpath_ptx::{}", capture);
  return fmt::format("::towpath_ptx::m_{}", capture == "shared::cta" ? "shared" : capture);
}

// "$1" becomes a template argument, "#1" the capture itself.
std::string filled(std::string_view call, const std::vector<std::string>& captures) {
  std::string text;
  for (std::size_t i = 0; i < call.size(); ++i) {
    if (call[i] != '$' && call[i] != '#') {
      text += call[i];
      continue;
    }
    const std::string& capture = captures.at(static_cast<std::size_t>(call[i + 1] - '1'));
    text += call[i] == '$' ? argument_of(capture) : capture;
    ++i;
  }
  return text;
}

// The C++ of one instruction.
class Translation {
 public:
  Translation(const PtxInstruction& instruction, const PtxRegisters& registers)
      : instruction_(instruction), registers_(registers) {}

  std::string result() {
    const std::string_view spelling = instruction_.spelling;
    const std::string_view opcode = spelling.substr(0, spelling.find('.'));
    const std::vector<std::string_view> modifiers = modifiers_of(spelling);
    for (const PtxRow& row : ptx_rows()) {
      if (row.opcode != opcode) continue;
      const auto captures = Matcher(modifiers).match(row.pattern);
      if (!captures) continue;
      captures_ = *captures;
      const std::size_t count = instruction_.operands.size();
      if (count < row.operands_min || count > row.operands_max) continue;
      return cpp_of(row);
    }
    throw PtxRefusal(fmt::format("the PTX instruction '{}', which Towpath does not model",
                                 instruction_.spelling));
  }

 private:
  std::string cpp_of(const PtxRow& row) {
    switch (row.form) {
      case PtxForm::none: return ";";
      case PtxForm::value: return value(row);
      case PtxForm::pair: return pair(row);
      case PtxForm::action: return call(row, "", 0) + ";";
      case PtxForm::vote: return vote(row);
      case PtxForm::move: return move();
      case PtxForm::load: return load();
      case PtxForm::store: return store();
      case PtxForm::atomic: return atomic(row.call == "fetch");
      case PtxForm::copy: return copy();
      case PtxForm::multimem: return multimem(row);
    }
    return {};
  }

  const std::string& operand(std::size_t index) const { return instruction_.operands.at(index); }
  std::string source(std::size_t index) const { return cpp_of_source(operand(index), registers_); }
  std::string address(std::size_t index) const {
    return cpp_of_address(operand(index), registers_);
  }
  std::string site() const {
    return fmt::format("::towpath_ptx::Site{{__builtin_FILE(), __builtin_LINE(), \"{}\"}}",
                       instruction_.spelling);
  }
  // Results for "_" are dropped.
  std::string put(const std::string& destination, const std::string& result) const {
    if (destination == "_") return fmt::format("static_cast<void>({});", result);
    return fmt::format("::towpath_ptx::put({}, {});", cpp_of_destination(destination, registers_),
                       result);
  }

  // function(first, site, operands from `begin`)
  std::string call(const PtxRow& row, const std::string& first, std::size_t begin) const {
    std::vector<std::string> arguments;
    if (row.has_carry) arguments.emplace_back("towpath_carry");
    if (!first.empty()) arguments.push_back(first);
    if (row.has_site) arguments.push_back(site());
    for (std::size_t i = begin; i < instruction_.operands.size(); ++i) {
      arguments.push_back(source(i));
    }
    return fmt::format("::towpath_ptx::{}({})", filled(row.call, captures_),
                       fmt::join(arguments, ", "));
  }

  std::string value(const PtxRow& row) const { return put(operand(0), call(row, "", 1)); }

  // "d|p" has two results.
  std::string pair(const PtxRow& row) const {
    const std::vector<std::string> results = split_outside(operand(0), '|');
    const bool has_second = results.size() == 2 && results[1] != "_";
    if (results.size() > 2) refuse_operands();
    return fmt::format("{{ bool towpath_second; {} {} }}",
                       put(results[0], call(row, "towpath_second", 1)),
                       has_second ? put(results[1], "towpath_second") : "");
  }

  // bar.red: the number of threads may be missing between the barrier and the vote.
  std::string vote(const PtxRow& row) const {
    const bool has_count = instruction_.operands.size() == 4;
    return put(operand(0),
               fmt::format("::towpath_ptx::{}({}, {}, {}, {})", filled(row.call, captures_), site(),
                           source(1), has_count ? source(2) : "0", source(has_count ? 3 : 2)));
  }

  [[noreturn]] void refuse_operands() const {
    throw PtxRefusal(
        fmt::format("the PTX instruction '{}' with operands that Towpath does not "
                    "model",
                    instruction_.spelling));
  }

  // Registers as parts of a vector, one of them, or a plain copy.
  std::string move() const {
    const std::string type = argument_of(captures_[0]);
    const std::vector<std::string> to = elements_of(operand(0));
    const std::vector<std::string> from = elements_of(operand(1));
    if (to.size() > 1 && from.size() > 1) refuse_operands();
    if (from.size() > 1) {
      std::vector<std::string> parts;
      for (const std::string& each : from) parts.push_back(cpp_of_source(each, registers_));
      return put(to[0], fmt::format("::towpath_ptx::pack<{}>({})", type, fmt::join(parts, ", ")));
    }
    if (to.size() == 1) {
      return put(to[0], fmt::format("::towpath_ptx::mov<{}>({})", type,
                                    cpp_of_source(from[0], registers_)));
    }
    if (captures_[0].front() != 'b' || captures_[0] == "bf16" || captures_[0] == "bf16x2") {
      refuse_operands();
    }
    const int bits = std::stoi(captures_[0].substr(1)) / static_cast<int>(to.size());
    std::string text =
        fmt::format("{{ const auto towpath_whole = {};", cpp_of_source(from[0], registers_));
    for (std::size_t i = 0; i < to.size(); ++i) {
      text +=
          put(to[i], fmt::format("::towpath_ptx::part<::towpath_ptx::b{}, {}>(towpath_whole, {})",
                                 bits, type, i));
    }
    return text + " }";
  }

  std::size_t elements(std::string_view vector, std::string_view type) const {
    const auto count = static_cast<std::size_t>(vector[1] - '0');
    const std::size_t digits = type.find_first_of("0123456789");
    const std::size_t bits = static_cast<std::size_t>(std::stoi(std::string(type.substr(digits))));
    if (count * bits > 256) refuse_operands();
    return count;
  }
  // "order, reach, space" of the captures at the front.
  std::string place() const {
    return fmt::format("{}, {}, {}", argument_of(captures_[0]), argument_of(captures_[1]),
                       argument_of(captures_[2]));
  }

  std::string load() {
    const std::string type = captures_[4];
    const std::size_t count = elements(captures_[3], type);
    const std::vector<std::string> to = elements_of(operand(0));
    if (to.size() != count) refuse_operands();
    // A load that fetches again may be a poll.
    if (has(modifiers_of(instruction_.spelling), "cv")) captures_[0] = "volatile";
    std::string text =
        fmt::format("{{ const auto towpath_loaded = ::towpath_ptx::load<{}, {}, {}>({}, {});",
                    place(), argument_of(type), count, address(1), site());
    for (std::size_t i = 0; i < count; ++i) {
      if (to[i] != "_") text += put(to[i], fmt::format("towpath_loaded.item[{}]", i));
    }
    return text + " }";
  }

  std::string values(std::size_t index, std::size_t count) const {
    std::vector<std::string> list;
    for (const std::string& each : elements_of(operand(index))) {
      list.push_back(cpp_of_source(each, registers_));
    }
    if (list.size() != count) refuse_operands();
    return fmt::format("{}", fmt::join(list, ", "));
  }

  std::string store() const {
    const std::string type = captures_[4];
    const std::size_t count = elements(captures_[3], type);
    return fmt::format("::towpath_ptx::store<{}, {}>({}, {}, {});", place(), argument_of(type),
                       site(), address(0), values(1, count));
  }

  // order, reach, space, operation, noftz, vector, type
  std::string atomic(bool has_result) const {
    const std::string& operation = captures_[3];
    const std::string& type = captures_[6];
    if (!ptx_has_atomic(operation, type)) refuse_operands();
    const std::size_t first = has_result ? 1 : 0;
    const std::size_t count = elements(captures_[5], type);
    std::string arguments =
        fmt::format("{}, {}, {}", site(), address(first), values(first + 1, count));
    const bool swaps = operation == "cas";
    if (swaps) {
      if (instruction_.operands.size() <= first + 2) refuse_operands();
      arguments += ", " + source(first + 2);
    }
    const std::string call =
        fmt::format("::towpath_ptx::{}<{}, {}, {}>({})", count > 1 ? "atom_vector" : "atom",
                    place(), argument_of(operation), argument_of(type), arguments);
    if (!has_result) return fmt::format("static_cast<void>({});", call);
    const std::vector<std::string> to = elements_of(operand(0));
    if (to.size() != count) refuse_operands();
    if (count == 1) return put(to[0], call);
    std::string text = fmt::format("{{ const auto towpath_before = {};", call);
    for (std::size_t i = 0; i < count; ++i) {
      if (to[i] != "_") text += put(to[i], fmt::format("towpath_before.item[{}]", i));
    }
    return text + " }";
  }

  // order, reach, space, operation, accumulator, vector, type
  std::string multimem(const PtxRow& row) const {
    const std::string& type = captures_[6];
    const std::size_t count = elements(captures_[5], type);
    const std::string how =
        fmt::format("{}, {}, {}, {}", argument_of(captures_[0]), argument_of(captures_[1]),
                    argument_of(captures_[3]), argument_of(type));
    if (row.call == "multimem_store") {
      return fmt::format("::towpath_ptx::multimem_store<{}>({}, {}, {});", how, site(), address(0),
                         values(1, count));
    }
    const std::vector<std::string> to = elements_of(operand(0));
    if (to.size() != count) refuse_operands();
    std::string text =
        fmt::format("{{ const auto towpath_loaded = ::towpath_ptx::multimem_load<{}, {}>({}, {});",
                    how, count, site(), address(1));
    for (std::size_t i = 0; i < count; ++i) {
      if (to[i] != "_") text += put(to[i], fmt::format("towpath_loaded.item[{}]", i));
    }
    return text + " }";
  }

  // cp.async [to], [from], bytes {, bytes to read}
  std::string copy() const {
    const std::string& bytes = operand(2);
    std::string read;
    if (instruction_.operands.size() > 3) read = ", static_cast<unsigned>(" + source(3) + ")";
    return fmt::format("::towpath_ptx::cp_async<static_cast<int>({})>({}, {}{});",
                       cpp_of_source(bytes, registers_), address(0), address(1), read);
  }

  const PtxInstruction& instruction_;
  const PtxRegisters& registers_;
  std::vector<std::string> captures_;
};

}  // namespace

std::string cpp_of_instruction(const PtxInstruction& instruction, const PtxRegisters& registers) {
  return Translation(instruction, registers).result();
}

}  // namespace towpath::gpu

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/ptx_operands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace towpath::gpu {

namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Special registers by their C++. "%tid" and the like have components.
struct SpecialRegister {
  std::string_view name;
  std::string_view cpp;
};
constexpr SpecialRegister kSpecialRegisters[] = {
    {"%tid.x", "::towpath_gpu::current().thread.x"},
    {"%tid.y", "::towpath_gpu::current().thread.y"},
    {"%tid.z", "::towpath_gpu::current().thread.z"},
    {"%ntid.x", "::towpath_gpu::current().block_dim.x"},
    {"%ntid.y", "::towpath_gpu::current().block_dim.y"},
    {"%ntid.z", "::towpath_gpu::current().block_dim.z"},
    {"%ctaid.x", "::towpath_gpu::current().block.x"},
    {"%ctaid.y", "::towpath_gpu::current().block.y"},
    {"%ctaid.z", "::towpath_gpu::current().block.z"},
    {"%nctaid.x", "::towpath_gpu::current().grid_dim.x"},
    {"%nctaid.y", "::towpath_gpu::current().grid_dim.y"},
    {"%nctaid.z", "::towpath_gpu::current().grid_dim.z"},
    {"%laneid", "::towpath_ptx::lane()"},
    {"%warpid", "(::towpath_gpu::current().linear / ::towpath_gpu::kWarpThreads)"},
    {"%nwarpid", "::towpath_ptx::warps()"},
    {"%smid", "::towpath_gpu::current().multiprocessor"},
    {"%nsmid", "::towpath_ptx::multiprocessors()"},
    {"%lanemask_eq", "(1u << ::towpath_ptx::lane())"},
    {"%lanemask_lt", "((1u << ::towpath_ptx::lane()) - 1)"},
    {"%lanemask_le", "((2u << ::towpath_ptx::lane()) - 1)"},
    {"%lanemask_ge", "(~0u << ::towpath_ptx::lane())"},
    {"%lanemask_gt", "(~1u << ::towpath_ptx::lane())"},
    {"%clock", "static_cast<unsigned>(::towpath_ptx::clock_ns())"},
    {"%clock_hi", "static_cast<unsigned>(::towpath_ptx::clock_ns() >> 32)"},
    {"%clock64", "::towpath_ptx::clock_ns()"},
    {"%globaltimer", "::towpath_ptx::clock_ns()"},
    {"%globaltimer_lo", "static_cast<unsigned>(::towpath_ptx::clock_ns())"},
    {"%globaltimer_hi", "static_cast<unsigned>(::towpath_ptx::clock_ns() >> 32)"},
    {"WARP_SZ", "::towpath_gpu::kWarpThreads"},
};

[[noreturn]] void refuse(const std::string& operand) {
  throw PtxRefusal(
      fmt::format("a PTX instruction with the operand '{}', which Towpath does not "
                  "model",
                  operand));
}

bool are_all(std::string_view text, int (*is_of_class)(int)) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_of_class(static_cast<unsigned char>(c)) != 0;
  });
}

// The bits of 0f3F800000 or 0d3FF0000000000000. Empty for other immediates.
std::string bits_of_float(std::string_view text) {
  const bool is_float = text.starts_with("0f") || text.starts_with("0F");
  const bool is_double = text.starts_with("0d") || text.starts_with("0D");
  if (!is_float && !is_double) return {};
  const std::string_view bits = text.substr(2);
  if (bits.size() != (is_float ? 8u : 16u) || !are_all(bits, &std::isxdigit)) return {};
  return fmt::format("0x{}{}", bits, is_float ? "u" : "ull");
}

bool is_integer(std::string_view text) {
  const std::string_view prefix = text.substr(0, 2);
  if (prefix == "0x" || prefix == "0X") return are_all(text.substr(2), &std::isxdigit);
  if (prefix == "0b" || prefix == "0B") {
    return text.size() > 2 && text.find_first_not_of("01", 2) == std::string_view::npos;
  }
  return are_all(text, &std::isdigit);
}

// 12, -3, 0x1fU, 0b101, 017, 0f3F800000, 0d3FF0000000000000, 1.5, 1e3.
std::string cpp_of_immediate(const std::string& operand) {
  const std::string sign = operand.front() == '-' ? "-" : "";
  std::string digits(trimmed(std::string_view(operand).substr(sign.size())));
  if (digits.empty() || !is_digit(digits.front())) refuse(operand);
  const std::string bits = bits_of_float(digits);
  if (!bits.empty() && sign.empty()) return bits;
  if (digits.back() == 'U') digits.pop_back();
  if (is_integer(digits)) return fmt::format("({}{}ull)", sign, digits);
  if (digits.find_first_not_of("0123456789.eE+-") != std::string::npos) refuse(operand);
  return fmt::format("::towpath_ptx::Number{{{}{}}}", sign, digits);
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

namespace {

// The position after a literal that begins at `at`, or `at` itself.
std::size_t behind_literal(std::string_view text, std::size_t at) {
  const char quote = text[at];
  if (quote != '"' && quote != '\'') return at;
  std::size_t i = at + 1;
  while (i < text.size() && text[i] != quote) i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}

}  // namespace

std::vector<std::string> split_outside(std::string_view text, char separator) {
  std::vector<std::string> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t behind = behind_literal(text, i);
    if (behind > i) {
      i = behind;
      continue;
    }
    constexpr std::string_view kOpening = "([{";
    constexpr std::string_view kClosing = ")]}";
    const char c = text[i];
    if (kOpening.find(c) != std::string_view::npos) ++depth;
    if (kClosing.find(c) != std::string_view::npos) --depth;
    if (c == separator && depth == 0) {
      parts.emplace_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
    ++i;
  }
  parts.emplace_back(trimmed(text.substr(begin)));
  if (parts.size() == 1 && parts.front().empty()) parts.clear();
  return parts;
}

std::string cpp_of_source(const std::string& operand, const PtxRegisters& registers) {
  if (operand.empty()) refuse(operand);
  if (operand.front() == '!') {
    return "!" +
           cpp_of_source(std::string(trimmed(std::string_view(operand).substr(1))), registers);
  }
  if (std::string found = registers(operand); !found.empty()) return found;
  const auto* const special =
      std::find_if(std::begin(kSpecialRegisters), std::end(kSpecialRegisters),
                   [&](const SpecialRegister& each) { return each.name == operand; });
  if (special != std::end(kSpecialRegisters)) return std::string(special->cpp);
  if (is_digit(operand.front()) || operand.front() == '-') return cpp_of_immediate(operand);
  refuse(operand);
}

std::string cpp_of_destination(const std::string& operand, const PtxRegisters& registers) {
  std::string found = registers(operand);
  if (found.empty()) refuse(operand);
  return found;
}

std::string cpp_of_address(const std::string& operand, const PtxRegisters& registers) {
  if (operand.size() < 3 || operand.front() != '[' || operand.back() != ']') refuse(operand);
  const std::string_view inside = trimmed(std::string_view(operand).substr(1, operand.size() - 2));
  const std::size_t sign = inside.find_first_of("+-", 1);
  const std::string base(trimmed(inside.substr(0, sign)));
  std::string offset = "0";
  if (sign != std::string_view::npos) {
    std::string_view text = trimmed(inside.substr(sign));
    if (text.front() == '+') text = trimmed(text.substr(1));
    offset = fmt::format("static_cast<long long>({})", cpp_of_source(std::string(text), registers));
  }
  return fmt::format("{}, {}", cpp_of_source(base, registers), offset);
}

std::vector<std::string> elements_of(const std::string& operand) {
  if (operand.size() < 2 || operand.front() != '{' || operand.back() != '}') return {operand};
  return split_outside(std::string_view(operand).substr(1, operand.size() - 2), ',');
}

}  // namespace towpath::gpu

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/ptx_statement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "towpath/gpu/ptx_instruction.hpp"

namespace towpath::gpu {

namespace {

// In the expanded template, a reference to operand 3 is this character and "3".
constexpr char kOperandMark = '\x01';

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
         c == kOperandMark;
}

struct Operand {
  std::string name;        // of "[name]"
  std::string constraint;  // without "=", "+", "&"
  std::string expression;
  bool is_output;
  bool is_read;
};

// --- the statement in C++ ------------------------------------------------------------------------

// The text of adjacent literals. Nothing if there is anything else.
std::optional<std::string> joined_literals(std::string_view text) {
  std::string joined;
  bool has_literal = false;
  for (std::size_t i = 0; i < text.size();) {
    if (std::isspace(static_cast<unsigned char>(text[i])) != 0) {
      ++i;
      continue;
    }
    has_literal = true;
    if (text.substr(i, 2) == "R\"") {
      const std::size_t open = text.find('(', i);
      const std::string end = fmt::format("){}\"", text.substr(i + 2, open - i - 2));
      const std::size_t close = text.find(end, open);
      if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
      joined += text.substr(open + 1, close - open - 1);
      i = close + end.size();
      continue;
    }
    if (text[i] != '"') return std::nullopt;
    for (++i; i < text.size() && text[i] != '"'; ++i) {
      if (text[i] != '\\') {
        joined += text[i];
        continue;
      }
      ++i;
      if (i >= text.size()) return std::nullopt;
      // A continued line leaves nothing.
      if (text[i] != '\n') joined += text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i];
    }
    ++i;
  }
  if (!has_literal) return std::nullopt;
  return joined;
}

std::optional<Operand> operand_of(std::string_view text, bool is_output) {
  Operand operand{{}, {}, {}, is_output, !is_output};
  const std::size_t quote = text.find('"');
  const std::size_t end = text.find('"', quote + 1);
  const std::size_t open = text.find('(', end);
  if (quote == std::string_view::npos || end == std::string_view::npos ||
      open == std::string_view::npos || text.back() != ')') {
    return std::nullopt;
  }
  const std::string_view name = trimmed(text.substr(0, quote));
  if (name.size() > 2) operand.name = trimmed(name.substr(1, name.size() - 2));
  for (const char c : text.substr(quote + 1, end - quote - 1)) {
    if (c == '+') operand.is_read = true;
    if (c != '+' && c != '=' && c != '&') operand.constraint += c;
  }
  operand.expression = text.substr(open, text.size() - open);
  return operand;
}

// --- the template ------------------------------------------------------------------------------

std::string without_comments(std::string_view text) {
  std::string kept;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i, 2) == "/*") {
      const std::size_t end = text.find("*/", i + 2);
      i = end == std::string_view::npos ? text.size() : end + 2;
      kept += ' ';
    } else {
      kept += text[i++];
    }
  }
  return kept;
}

// Replaces %0 and %[name] by marks, and %% by %.
std::string with_marks(std::string_view text, const std::vector<Operand>& operands) {
  std::string marked;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : ' ';
    if (text[i] != '%') {
      marked += text[i];
    } else if (next == '%') {
      marked += '%';
      ++i;
    } else if (is_digit(next)) {
      marked += kOperandMark;
    } else if (next == '[') {
      const std::size_t end = std::min(text.find(']', i), text.size() - 1);
      const std::string_view name = text.substr(i + 2, end - i - 2);
      const auto found = std::find_if(operands.begin(), operands.end(),
                                      [&](const Operand& each) { return each.name == name; });
      marked += fmt::format("{}{}", kOperandMark, found - operands.begin());
      i = end;
    } else {
      marked += '%';
    }
  }
  return marked;
}

struct Piece {
  enum class Kind : std::uint8_t { open, close, label, instruction };
  Kind kind;
  std::string text;
};

// The position after the colon of a label, or 0.
std::size_t label_end(std::string_view text, std::size_t begin, std::size_t end) {
  const std::size_t colon = std::min(text.find_first_not_of(" \t\n", end), text.size());
  const bool is_label =
      end > begin && text.substr(colon, 1) == ":" && text.substr(colon, 2) != "::";
  return is_label ? colon + 1 : 0;
}

// An instruction up to its semicolon. A scope may close after an instruction without one.
std::string_view instruction_at(std::string_view text, std::size_t begin) {
  const std::string_view found = text.substr(begin, text.find(';', begin) - begin);
  const auto opened = std::count(found.begin(), found.end(), '{');
  const auto closed = std::count(found.begin(), found.end(), '}');
  return closed > opened ? found.substr(0, found.rfind('}')) : found;
}

// Scopes, labels and instructions of a template.
std::vector<Piece> pieces_of(std::string_view text) {
  std::vector<Piece> pieces;
  std::size_t at = text.find_first_not_of("; \t\r\n");
  while (at < text.size()) {
    std::size_t end = at;
    while (end < text.size() && is_name(text[end])) ++end;
    if (text[at] == '{' || text[at] == '}') {
      pieces.push_back({text[at] == '{' ? Piece::Kind::open : Piece::Kind::close, {}});
      ++at;
    } else if (const std::size_t behind = label_end(text, at, end); behind > 0) {
      pieces.push_back({Piece::Kind::label, std::string(text.substr(at, end - at))});
      at = behind;
    } else {
      const std::string_view instruction = instruction_at(text, at);
      pieces.push_back({Piece::Kind::instruction, std::string(trimmed(instruction))});
      at += instruction.size();
    }
    at = text.find_first_not_of("; \t\r\n", at);
  }
  return pieces;
}

// Instructions without modifiers.
bool is_ptx_word(std::string_view word) {
  constexpr std::string_view kWords[] = {"trap", "exit", "ret", "brkpt", "bra", "elect"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

// An instruction of PTX has a type or another modifier. One of a host processor has none.
bool is_ptx(const std::vector<Piece>& pieces) {
  const auto found = std::find_if(pieces.begin(), pieces.end(), [](const Piece& piece) {
    return piece.kind == Piece::Kind::instruction;
  });
  if (found == pieces.end()) return false;
  const std::string_view text = found->text;
  if (text.front() == '@') return true;
  if (text.front() == '.') {
    return text.starts_with(".reg") || text.starts_with(".shared") || text.starts_with(".pragma");
  }
  const std::string_view opcode = text.substr(0, text.find_first_of(" \t\n"));
  const std::size_t point = opcode.find('.');
  if (point == std::string_view::npos) return is_ptx_word(opcode);
  return point > 0 && std::all_of(opcode.begin(), opcode.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' ||
                  c == ':';
         });
}

std::string literal(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n' || c == '\t') {
      quoted += ' ';
    } else if (c == kOperandMark) {
      quoted += '%';
    } else {
      quoted += c;
    }
  }
  return quoted;
}

class Statement {
 public:
  Statement(std::vector<Operand> operands, std::vector<Piece> pieces, int number)
      : operands_(std::move(operands)), pieces_(std::move(pieces)), number_(number) {}

  std::string result() {
    scopes_.emplace_back();
    declare_all();
    for (const Piece& piece : pieces_) translate(piece);
    std::string text = "do { ";
    if (body_.find("towpath_carry") != std::string::npos) text += "bool towpath_carry = false; ";
    return text + references() + declarations_ + body_ + results() + "} while (0)";
  }

 private:
  struct Scope {
    int number = 0;
    std::map<std::string, std::string, std::less<>> registers;
    std::map<std::string, std::string, std::less<>> labels;
  };

  // --- operands --------------------------------------------------------------------------------
  static const char* container_of(const std::string& constraint) {
    switch (constraint.empty() ? ' ' : constraint.front()) {
      case 'h': return "::towpath_ptx::u16";
      case 'r':
      case 'f': return "::towpath_ptx::u32";
      case 'q': return "::towpath_ptx::u128";
      default: return "::towpath_ptx::u64";
    }
  }
  static const char* float_of(const std::string& constraint) {
    if (constraint == "f") return "float";
    return constraint == "d" ? "double" : nullptr;
  }
  std::string references() const {
    std::string text;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const Operand& operand = operands_[i];
      const char* const container = container_of(operand.constraint);
      const char* const number = float_of(operand.constraint);
      std::string from = operand.expression;
      if (operand.is_output) {
        text += fmt::format("auto&& towpath_to_{} = {}; ", i, operand.expression);
        from = fmt::format("towpath_to_{}", i);
      }
      std::string value = "0";
      if (operand.is_read && number != nullptr) {
        value = fmt::format("::towpath_ptx::take_float<{}>({})", number, from);
      } else if (operand.is_read) {
        value = fmt::format("::towpath_ptx::take<{}>({})", container, from);
      }
      text += fmt::format("{} towpath_operand_{} = {}; ", container, i, value);
    }
    return text;
  }
  std::string results() const {
    std::string text;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (!operands_[i].is_output) continue;
      const char* const number = float_of(operands_[i].constraint);
      const std::string function =
          number == nullptr ? "give" : fmt::format("give_float<{}>", number);
      text += fmt::format("::towpath_ptx::{0}(towpath_to_{1}, towpath_operand_{1}); ", function, i);
    }
    return text;
  }

  // --- names -----------------------------------------------------------------------------------
  static std::string identifier(std::string_view prefix, int scope, std::string_view name) {
    std::string text = fmt::format("towpath_{}_{}_", prefix, scope);
    for (const char c : name) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
        text += c;
      } else {
        text += fmt::format("_{:x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
      }
    }
    return text;
  }
  std::string register_of(const std::string& name) const {
    if (!name.empty() && name.front() == kOperandMark) {
      const bool is_known = name.size() > 1 &&
                            std::all_of(name.begin() + 1, name.end(), &is_digit) &&
                            std::stoul(name.substr(1)) < operands_.size();
      return is_known ? "towpath_operand_" + name.substr(1) : std::string();
    }
    for (std::size_t i = open_.size(); i-- > 0;) {
      const auto& registers = scopes_[open_[i]].registers;
      const auto found = registers.find(name);
      if (found != registers.end()) return found->second;
    }
    return {};
  }

  // Labels may be used before they stand.
  void declare_all() {
    open_ = {0};
    for (const Piece& piece : pieces_) {
      if (piece.kind == Piece::Kind::open) {
        scopes_.push_back({static_cast<int>(scopes_.size()), {}, {}});
        open_.push_back(scopes_.size() - 1);
      } else if (piece.kind == Piece::Kind::close) {
        if (open_.size() > 1) open_.pop_back();
      } else if (piece.kind == Piece::Kind::label) {
        Scope& scope = scopes_[open_.back()];
        scope.labels[piece.text] =
            identifier(fmt::format("label_{}", number_), scope.number, piece.text);
      }
    }
    open_ = {0};
    entered_ = 0;
  }

  // .reg .b32 a, b<4>
  void declare(std::string_view text) {
    const std::size_t type_begin = text.find('.', 1);
    const std::size_t type_end = text.find_first_of(" \t\n", type_begin);
    if (type_begin == std::string_view::npos || type_end == std::string_view::npos) {
      return refuse_text(text);
    }
    const std::string type(text.substr(type_begin + 1, type_end - type_begin - 1));
    const std::string container = register_type(type);
    if (container.empty()) return refuse_text(text);
    for (const std::string& name : split_outside(text.substr(type_end), ',')) {
      const std::size_t count = name.find('<');
      if (count == std::string::npos) {
        declare_register(container, name);
        continue;
      }
      const int registers = std::atoi(name.c_str() + count + 1);
      for (int i = 0; i < registers; ++i) {
        declare_register(container, fmt::format("{}{}", name.substr(0, count), i));
      }
    }
  }
  static std::string register_type(const std::string& type) {
    if (type == "pred") return "bool";
    if (type == "f16x2" || type == "bf16x2") return "::towpath_ptx::u32";
    const std::size_t digits = type.find_first_of("0123456789");
    if (digits == std::string::npos || type.find_first_not_of("0123456789", digits) != type.npos) {
      return {};
    }
    return fmt::format("::towpath_ptx::{}{}", type == "b128" ? "b" : "u", type.substr(digits));
  }
  void declare_register(const std::string& container, const std::string& name) {
    Scope& scope = scopes_[open_.back()];
    std::string& known = scope.registers[name];
    if (!known.empty()) return;
    known = identifier("register", scope.number, name);
    declarations_ += fmt::format("{} {} = 0; ", container, known);
  }

  // --- instructions ----------------------------------------------------------------------------
  void translate(const Piece& piece) {
    switch (piece.kind) {
      case Piece::Kind::open: open_.push_back(++entered_); return;
      case Piece::Kind::close:
        if (open_.size() > 1) open_.pop_back();
        return;
      case Piece::Kind::label:
        body_ += fmt::format("{}: ; ", scopes_[open_.back()].labels.at(piece.text));
        return;
      case Piece::Kind::instruction: break;
    }
    const std::string_view text = piece.text;
    if (text.starts_with(".reg")) return declare(text);
    if (text.starts_with(".pragma")) return;
    if (text.starts_with(".")) return refuse_text(text);
    guarded(text);
  }

  void guarded(std::string_view text) {
    if (text.front() != '@') {
      body_ += instruction(text) + " ";
      return;
    }
    std::size_t begin = 1;
    while (begin < text.size() && (text[begin] == '!' || text[begin] == ' ')) ++begin;
    const bool is_negated = text.substr(1, begin - 1).find('!') != std::string_view::npos;
    std::size_t end = begin;
    while (end < text.size() && is_name(text[end])) ++end;
    const std::string predicate = register_of(std::string(text.substr(begin, end - begin)));
    if (predicate.empty()) return refuse_text(text);
    body_ += fmt::format("if ({}{}) {{ {} }} ", is_negated ? "!" : "", predicate,
                         instruction(trimmed(text.substr(end))));
  }

  std::string instruction(std::string_view text) const {
    const std::size_t end = std::min(text.find_first_of(" \t\n"), text.size());
    const std::string spelling(text.substr(0, end));
    if (spelling == "bra" || spelling == "bra.uni") {
      return branch(std::string(trimmed(text.substr(end))));
    }
    try {
      return cpp_of_instruction({spelling, split_outside(text.substr(end), ',')},
                                [this](const std::string& name) { return register_of(name); });
    } catch (const PtxRefusal& refusal) {
      return refusing(refusal.what(), spelling);
    }
  }
  std::string branch(const std::string& label) const {
    for (std::size_t i = open_.size(); i-- > 0;) {
      const auto& labels = scopes_[open_[i]].labels;
      const auto found = labels.find(label);
      if (found != labels.end()) return fmt::format("goto {};", found->second);
    }
    return refusing(
        "the PTX instruction 'bra' to a label outside of its statement, which Towpath "
        "does not model",
        "bra");
  }
  static std::string refusing(std::string_view what, std::string_view spelling) {
    return fmt::format(
        "::towpath_ptx::refuse(\"a kernel executes {}\", "
        "::towpath_ptx::Site{{__builtin_FILE(), __builtin_LINE(), \"{}\"}});",
        literal(what), literal(spelling));
  }
  void refuse_text(std::string_view text) {
    body_ += refusing(
        fmt::format("the PTX statement '{}', which Towpath does not model", literal(text)), "asm");
  }

  std::vector<Operand> operands_;
  std::vector<Piece> pieces_;
  int number_;
  std::vector<Scope> scopes_;
  std::vector<std::size_t> open_;  // the scopes around the current piece
  std::size_t entered_ = 0;
  std::string declarations_;
  std::string body_;
};

// The parts of the statement between colons.
std::vector<std::string> sections_of(std::string_view inside) { return split_outside(inside, ':'); }

}  // namespace

std::optional<std::string> cpp_from_ptx(std::string_view statement, int number) {
  const std::vector<std::string> sections = sections_of(statement.substr(1, statement.size() - 2));
  if (sections.empty()) return std::nullopt;
  const std::optional<std::string> text = joined_literals(sections.front());
  if (!text) return std::nullopt;
  std::vector<Operand> operands;
  for (std::size_t i = 1; i < sections.size() && i < 3; ++i) {
    for (const std::string& part : split_outside(sections[i], ',')) {
      const std::optional<Operand> operand = operand_of(part, i == 1);
      if (!operand) return std::nullopt;
      operands.push_back(*operand);
    }
  }
  std::vector<Piece> pieces = pieces_of(without_comments(with_marks(*text, operands)));
  if (!is_ptx(pieces)) return std::nullopt;
  return Statement(std::move(operands), std::move(pieces), number).result();
}

}  // namespace towpath::gpu

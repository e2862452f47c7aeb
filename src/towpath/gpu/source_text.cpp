// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/source_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace towpath::gpu {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::size_t skip_literal(std::string_view text, std::size_t at) {
  const char first = text[at];
  if (first == '#' && (at == 0 || text[at - 1] == '\n')) {
    return std::min(text.find('\n', at), text.size());
  }
  if (first == '"' && at > 0 && text[at - 1] == 'R') {
    const std::size_t open = text.find('(', at);
    const std::string end = fmt::format("){}\"", text.substr(at + 1, open - at - 1));
    return text.find(end, open) + end.size();
  }
  // An apostrophe between digits separates them.
  if (first == '\'' && at > 0 && std::isdigit(static_cast<unsigned char>(text[at - 1])) != 0) {
    return at;
  }
  if (first != '"' && first != '\'') return at;
  std::size_t i = at + 1;
  while (i < text.size() && text[i] != first) i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}

std::size_t skip_brackets(std::string_view text, std::size_t at) {
  int depth = 0;
  for (std::size_t i = at; i < text.size();) {
    const std::size_t behind = skip_literal(text, i);
    if (behind > i) {
      i = behind;
      continue;
    }
    if (text[i] == '(' || text[i] == '{' || text[i] == '[') ++depth;
    if (text[i] == ')' || text[i] == '}' || text[i] == ']') {
      if (--depth == 0) return i + 1;
    }
    ++i;
  }
  return text.size();
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

std::string newlines_of(std::string_view text) {
  return std::string(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), '\n');
}

std::size_t find_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_word(text[at - 1]);
    const std::size_t end = at + word.size();
    if (begins && (end == text.size() || !is_word(text[end]))) return at;
  }
  return std::string_view::npos;
}

std::vector<std::string> declarators(std::string_view declaration) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : declaration) {
    if (std::string_view("([<{").find(c) != std::string_view::npos) ++depth;
    if (std::string_view(")]>}").find(c) != std::string_view::npos) --depth;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<std::string> declared(std::string_view declaration) {
  std::vector<std::string> names;
  for (const std::string& declarator : declarators(declaration)) {
    std::size_t end = std::min(declarator.find('['), declarator.size());
    while (end > 0 && !is_word(declarator[end - 1])) --end;
    std::size_t begin = end;
    while (begin > 0 && is_word(declarator[begin - 1])) --begin;
    if (begin < end) names.push_back(declarator.substr(begin, end - begin));
  }
  return names;
}

std::string without_line_markers(std::string_view text) {
  std::string kept;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '#' && (i == 0 || text[i - 1] == '\n')) {
      i = std::min(text.find('\n', i), text.size());
    } else {
      kept += text[i++];
    }
  }
  return kept;
}

std::string one_line(std::string_view text) {
  std::string line = without_line_markers(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace towpath::gpu

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Parts of a C++ source as the source step reads them, without a syntax tree.

namespace towpath::gpu {

bool is_word(char c);
bool is_space(char c);

// The end of a literal or line marker that begins at `at`, or `at` itself.
std::size_t skip_literal(std::string_view text, std::size_t at);
// The position after the bracket that closes the one at `at`.
std::size_t skip_brackets(std::string_view text, std::size_t at);
std::size_t skip_space(std::string_view text, std::size_t at);
// `npos` if the text has no such word.
std::size_t find_word(std::string_view text, std::string_view word);

std::string newlines_of(std::string_view text);
std::string without_line_markers(std::string_view text);
std::string one_line(std::string_view text);

// Splits a declaration at commas outside brackets.
std::vector<std::string> declarators(std::string_view declaration);
// The names in a declaration: the last word of each declarator before its sizes.
std::vector<std::string> declared(std::string_view declaration);

}  // namespace towpath::gpu

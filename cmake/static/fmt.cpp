// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// The compiled part of {fmt}, for the Python module: distributions ship it as a shared library
// only, and a wheel must run where that is not installed. The headers hold all of its source.

#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

// Declared `extern template` in the headers.
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;

}  // namespace detail
FMT_END_NAMESPACE

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The macros of tests that the benchmarks use, and a main() that runs the tests named by its
// arguments, or all of them.

namespace towpath_tests {

using Test = void (*)();
inline std::vector<std::pair<std::string, Test>>& all() {
  static std::vector<std::pair<std::string, Test>> tests;
  return tests;
}
inline bool add(const char* name, Test test) {
  all().emplace_back(name, test);
  return true;
}
struct Message {
  std::ostringstream text;
  template <typename T>
  Message& operator<<(const T& value) {
    text << value;
    return *this;
  }
};
struct Skip {
  void operator=(const Message& message) const {  // NOLINT: the form of `return GTEST_SKIP() << x`
    std::cout << "skipped: " << message.text.str() << "\n";
  }
};

}  // namespace towpath_tests

#define TEST(suite, name)                                        \
  static void suite##_##name();                                  \
  [[maybe_unused]] static const bool suite##_##name##_is_added = \
      towpath_tests::add(#suite "." #name, &suite##_##name);     \
  static void suite##_##name()
#define GTEST_SKIP() \
  return towpath_tests::Skip{} = towpath_tests::Message {}

int main(int count, char** arguments) {
  int failed = 0;
  for (const auto& [name, test] : towpath_tests::all()) {
    bool is_wanted = count == 1;
    for (int i = 1; i < count; ++i) is_wanted = is_wanted || name == arguments[i];
    if (!is_wanted) continue;
    std::cout << "test: " << name << "\n";
    try {
      test();
    } catch (const std::exception& error) {
      std::cout << "error: " << error.what() << "\n";
      ++failed;
    }
  }
  return failed;
}

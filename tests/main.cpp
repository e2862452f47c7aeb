// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Runs the tests; of one source file only where TOWPATH_TEST_FILE names it, so that ctest can run
// files side by side and label them by folder.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace {

// A filter of GoogleTest's for the tests whose source file ends in `path`.
std::string tests_of(std::string_view path) {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (!std::string_view(test.file()).ends_with(path)) continue;
      filter += fmt::format("{}.{}:", suite.name(), test.name());
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (const char* path = std::getenv("TOWPATH_TEST_FILE"); path != nullptr) {
    const std::string filter = tests_of(path);
    if (filter.empty()) {
      fmt::print(stderr, "{} has no tests; it is named in TOWPATH_TEST_FILE\n", path);
      return 1;
    }
    GTEST_FLAG_SET(filter, filter);
  }
  return RUN_ALL_TESTS();
}

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

namespace {

std::string output_of(const std::string& program) {
  std::FILE* pipe = ::popen(program.c_str(), "r");
  std::string output;
  std::array<char, 4096> part;
  for (std::size_t size; (size = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
    output.append(part.data(), size);
  }
  EXPECT_EQ(::pclose(pipe), 0) << program;
  return output;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

TEST(Example, OnChipPrintsWhatStandsBesideIt) {
  EXPECT_EQ(output_of(TOWPATH_EXAMPLE_ON_CHIP),
            content_of(TOWPATH_EXAMPLES "/02_on_chip/expected_output.txt"))
      << "A change of the model changes simulated times, and so the file: build/example_on_chip > "
         "examples/02_on_chip/expected_output.txt";
}

TEST(Example, EthernetPrintsWhatStandsBesideIt) {
  EXPECT_EQ(output_of(TOWPATH_EXAMPLE_ETHERNET),
            content_of(TOWPATH_EXAMPLES "/03_ethernet/expected_output.txt"))
      << "A change of the model changes simulated times, and so the file: build/example_ethernet > "
         "examples/03_ethernet/expected_output.txt";
}

TEST(Example, HazardsPrintsWhatStandsBesideIt) {
  EXPECT_EQ(output_of(TOWPATH_EXAMPLE_HAZARDS),
            content_of(TOWPATH_EXAMPLES "/04_hazards/expected_output.txt"))
      << "build/example_hazards > examples/04_hazards/expected_output.txt";
}

TEST(Example, DataMoverPrintsWhatStandsBesideIt) {
  EXPECT_EQ(output_of(TOWPATH_EXAMPLE_DATA_MOVER),
            content_of(TOWPATH_EXAMPLES "/06_data_mover/expected_output.txt"))
      << "build/example_data_mover > examples/06_data_mover/expected_output.txt";
}

}  // namespace

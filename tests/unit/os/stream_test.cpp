// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/stream.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "towpath/os/shared_library.hpp"

namespace towpath::os {
namespace {

// Who is told the address finds somebody who listens already.
TEST(Stream, ListenAnywhereSaysTheAddressByWhichOthersCome) {
  for (const std::string host : {"127.0.0.1", "::1", "[::1]", "localhost"}) {
    std::string address;
    FileDescriptor listener;
    try {
      listener = listen_anywhere(host, address);
    } catch (const std::exception&) {
      if (host.find(':') == std::string::npos) throw;
      continue;  // this host has no IPv6
    }
    ASSERT_TRUE(is_network_address(address)) << address;
    const Deadline deadline = Clock::now() + std::chrono::seconds(5);
    EXPECT_TRUE(connect_stream(address, deadline).is_open()) << address;
  }
}

TEST(Stream, AnAddressOfAnotherHostIsRefused) {
  std::string address;
  EXPECT_THROW(listen_anywhere("192.0.2.1", address), std::invalid_argument);
}

TEST(SharedLibrary, SaysWhyItIsNotLoaded) {
  const SharedLibrary library{"libtowpath_that_nobody_has.so", "libtowpath_nor_this.so"};
  EXPECT_FALSE(library.is_loaded());
  EXPECT_NE(library.reason().find("libtowpath_that_nobody_has.so"), std::string::npos)
      << library.reason();
}

}  // namespace
}  // namespace towpath::os

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/admission.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <vector>

#include "towpath/os/stream.hpp"

namespace towpath::os {
namespace {

Ipv4Address ipv4(const char* text) {
  in_addr address{};
  ::inet_pton(AF_INET, text, &address);
  return address.s_addr;
}

class Admission : public testing::Test {
 protected:
  Admission() : socket_(listen_anywhere("127.0.0.1", address_)) {
    const std::size_t colon = address_.rfind(':');
    port_ = htons(static_cast<std::uint16_t>(std::stoi(address_.substr(colon + 1))));
    listener_ = {socket_.number(), port_};
  }

  // Whether a connection from that address of the loopback interface is accepted soon.
  bool is_admitted(const char* from) const {
    const FileDescriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // A dropped packet is sent again after a second: give up before.
    const timeval soon{.tv_sec = 0, .tv_usec = 300'000};
    ::setsockopt(client.number(), SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = ipv4(from);
    EXPECT_EQ(::bind(client.number(), reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = port_;
    there.sin_addr.s_addr = ipv4("127.0.0.1");
    return ::connect(client.number(), reinterpret_cast<sockaddr*>(&there), sizeof(there)) == 0;
  }

  std::string address_;
  FileDescriptor socket_;
  std::uint16_t port_;
  TcpListener listener_{};
};

TEST_F(Admission, FindsTheListenersOfThisProcess) {
  const std::vector<TcpListener> found = tcp_listeners();
  EXPECT_NE(std::ranges::find(found, listener_), found.end());
}

TEST_F(Admission, AdmitsTheHostsOfAListAlone) {
  EXPECT_TRUE(is_admitted("127.0.0.2"));
  const std::vector<Ipv4Address> hosts{ipv4("127.0.0.7"), ipv4("127.0.0.2")};
  ASSERT_TRUE(admit_only(listener_, hosts));
  EXPECT_TRUE(is_admitted("127.0.0.2"));
  EXPECT_TRUE(is_admitted("127.0.0.7"));
  EXPECT_FALSE(is_admitted("127.0.0.3"));
  ASSERT_TRUE(admit_only(listener_, {}));
  EXPECT_FALSE(is_admitted("127.0.0.2"));
  admit_all(listener_);
  EXPECT_TRUE(is_admitted("127.0.0.3"));
}

TEST_F(Admission, RefusesMoreHostsThanAFilterHolds) {
  EXPECT_FALSE(admit_only(listener_, std::vector<Ipv4Address>(5000, ipv4("127.0.0.2"))));
  EXPECT_TRUE(is_admitted("127.0.0.3"));
}

TEST(Ipv4Addresses, IncludeTheLoopbackAddress) {
  const std::vector<Ipv4Address> found = ipv4_addresses();
  EXPECT_NE(std::ranges::find(found, ipv4("127.0.0.1")), found.end());
}

TEST(InterfaceTowards, IsThatOfTheRoute) { EXPECT_EQ(interface_towards("127.0.0.1:9"), "lo"); }

}  // namespace
}  // namespace towpath::os

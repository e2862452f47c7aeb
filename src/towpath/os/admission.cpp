// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/admission.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

namespace towpath::os {
namespace {

int option_of(int descriptor, int option) {
  int value = -1;
  socklen_t size = sizeof(value);
  return ::getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

std::optional<TcpListener> listener_at(int descriptor) {
  if (option_of(descriptor, SO_ACCEPTCONN) != 1) return std::nullopt;
  const int family = option_of(descriptor, SO_DOMAIN);
  if (family != AF_INET && family != AF_INET6) return std::nullopt;
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return std::nullopt;
  }
  // The port has the same offset in both families.
  return TcpListener{descriptor, reinterpret_cast<const sockaddr_in*>(&bound)->sin_port};
}

// A program of the classic packet filter. It sees the IP header at SKF_NET_OFF.
std::vector<sock_filter> filter_for(std::span<const Ipv4Address> hosts) {
  constexpr auto kHeader = static_cast<std::uint32_t>(SKF_NET_OFF);
  constexpr std::uint32_t kSourceOffset = 12;
  constexpr std::uint32_t kAll = 0xffff'ffff;
  std::vector<sock_filter> program{
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kHeader),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x40, 1, 0),  // version 4
      BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kHeader + kSourceOffset),
  };
  for (const Ipv4Address host : hosts) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(host), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, kAll));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  return program;
}

}  // namespace

std::vector<TcpListener> tcp_listeners() {
  std::vector<TcpListener> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (const auto listener = listener_at(descriptor)) found.push_back(*listener);
  }
  return found;
}

bool admit_only(const TcpListener& listener, std::span<const Ipv4Address> hosts) {
  std::vector<sock_filter> program = filter_for(hosts);
  if (program.size() > BPF_MAXINSNS) return false;
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::setsockopt(listener.descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ==
         0;
}

void admit_all(const TcpListener& listener) {
  const int none = 0;
  ::setsockopt(listener.descriptor, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none));
}

std::vector<Ipv4Address> ipv4_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<Ipv4Address> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{};
    std::memcpy(&address, entry->ifa_addr, sizeof(address));
    found.push_back(address.sin_addr.s_addr);
  }
  return found;
}

}  // namespace towpath::os

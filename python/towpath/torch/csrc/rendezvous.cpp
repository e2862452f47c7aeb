// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous.hpp"

#include <arpa/inet.h>
#include <c10/util/Exception.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <iomanip>
#include <memory>
#include <random>
#include <sstream>

namespace towpath_torch {

namespace {

constexpr const char* kKey = "towpath/job";

// The same in all processes of one running system, and in no other.
std::string host_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

// 128 random bits, so that no stranger can guess them.
std::string secret() {
  std::random_device device;
  std::ostringstream words;
  words << std::hex << std::setfill('0');
  for (int word = 0; word < 4; ++word) words << std::setw(8) << device();
  return words.str();
}

// Of this host, at an address of its own.
uint16_t free_port(const std::string& address) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  TORCH_CHECK(::getaddrinfo(address.c_str(), nullptr, &hints, &found) == 0, "'", address,
              "' has no IPv4 address; name one of this host in TOWPATH_ADDRESS");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> place(found, &::freeaddrinfo);
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in bound{};
  socklen_t size = sizeof(bound);
  const bool is_bound = ::bind(probe, place->ai_addr, place->ai_addrlen) == 0 &&
                        ::getsockname(probe, reinterpret_cast<sockaddr*>(&bound), &size) == 0;
  ::close(probe);
  TORCH_CHECK(is_bound, "'", address, "' is no address of this host; name one in TOWPATH_ADDRESS");
  return ntohs(bound.sin_port);
}

Job new_job(const Wish& wish) {
  if (wish.transport == "shm") {
    return {wish.transport, "torch-" + std::to_string(::getpid()) + '-' + secret(), ""};
  }
  return {wish.transport, wish.address + ':' + std::to_string(free_port(wish.address)), secret()};
}

}  // namespace

Job meet(c10d::Store& store, int rank, const Wish& wish, std::chrono::milliseconds timeout) {
  if (rank == 0) {
    Job job = new_job(wish);
    store.set(kKey, job.transport + ' ' + job.name + ' ' + host_id() + ' ' + host_name() + ' ' +
                        job.token);
    return job;
  }
  store.wait({kKey}, timeout);
  const std::vector<uint8_t> said = store.get(kKey);
  std::istringstream words(std::string(said.begin(), said.end()));
  Job job;
  std::string host, name;
  words >> job.transport >> job.name >> host >> name >> job.token;
  TORCH_CHECK(job.transport != "shm" || host == host_id(),
              "towpath joins the processes of one host, but rank ", rank, " runs on ", host_name(),
              " and rank 0 on ", name,
              "; TOWPATH_TRANSPORT=ucx joins several hosts, which share no memory");
  return job;
}

}  // namespace towpath_torch

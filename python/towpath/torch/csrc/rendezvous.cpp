// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous.hpp"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <fstream>
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

// 128 random bits, so that no stranger can guess the name.
std::string new_job() {
  std::random_device device;
  std::ostringstream name;
  name << "torch-" << ::getpid() << '-' << std::hex;
  for (int word = 0; word < 4; ++word) name << device();
  return name.str();
}

}  // namespace

std::string job_name(c10d::Store& store, int rank, std::chrono::milliseconds timeout) {
  if (rank == 0) {
    const std::string job = new_job();
    store.set(kKey, job + ' ' + host_id() + ' ' + host_name());
    return job;
  }
  store.wait({kKey}, timeout);
  const std::vector<uint8_t> said = store.get(kKey);
  std::istringstream words(std::string(said.begin(), said.end()));
  std::string job, host, name;
  words >> job >> host >> name;
  TORCH_CHECK(host == host_id(), "towpath joins the processes of one host, but rank ", rank,
              " runs on ", host_name(), " and rank 0 on ", name);
  return job;
}

}  // namespace towpath_torch

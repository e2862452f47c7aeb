// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous.hpp"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <fstream>
#include <iomanip>
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

Job new_job(const towpath_group_api& api, const Wish& wish) {
  if (wish.transport == "shm") {
    return {wish.transport, "torch-" + std::to_string(::getpid()) + '-' + secret(), "", -1};
  }
  // It listens before anybody is told of it, so that nobody else can take the port.
  char name[64];
  towpath_error error{};
  const int listener = api.listen(wish.address.c_str(), name, sizeof(name), &error);
  TORCH_CHECK(listener >= 0, error.sentence, "; name one of this host in TOWPATH_ADDRESS");
  return {wish.transport, name, secret(), listener};
}

}  // namespace

Job meet(const towpath_group_api& api, c10d::Store& store, int rank, const Wish& wish,
         std::chrono::milliseconds timeout) {
  if (rank == 0) {
    Job job = new_job(api, wish);
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
              " and rank 0 on ", name, "; set TOWPATH_TRANSPORT=ucx for several hosts");
  return job;
}

}  // namespace towpath_torch

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/ucx/host_memory.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <span>
#include <string_view>

#include "towpath/os/keyed_digest.hpp"

namespace towpath::transport::ucx {

namespace {

// A name derived from the key, so that only ranks of the job can compute it, and that does not
// reveal it. `first`: the first rank of the group; a host may have several such groups.
std::string rendezvous_name(const Job& job, int first) {
  const std::string_view key(reinterpret_cast<const char*>(job.key.data()), job.key.size());
  const std::string_view purpose = "host memory";
  const os::KeyedDigest digest = os::keyed_digest(key, std::as_bytes(std::span(purpose)));
  constexpr std::size_t kNameBytes = 16;
  std::string name = fmt::format("ucx-{}-", first);
  for (std::size_t i = 0; i < kNameBytes; ++i) {
    name += fmt::format("{:02x}", static_cast<unsigned>(digest[i]));
  }
  return name;
}

}  // namespace

std::string host_place() {
  const char* const setting = std::getenv("TOWPATH_UCX_SHARED_MEMORY");
  if (setting != nullptr && std::string_view(setting) == "0") return {};
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  struct stat network {};
  if (boot.empty() || ::stat("/proc/self/ns/net", &network) != 0) return {};
  return fmt::format("{} {} {}", boot, network.st_ino, ::geteuid());
}

HostMemory::HostMemory(const LiveOptions& options, const SymmetricHeap& layout, const Job& job)
    : locals_(job.members.size(), -1) {
  const Member& self = job.members[static_cast<std::size_t>(options.rank)];
  std::vector<int> ranks;  // by number among the ranks of this host
  for (int rank = 0; rank < options.ranks; ++rank) {
    const Member& member = job.members[static_cast<std::size_t>(rank)];
    const bool is_here = !self.place.empty() && member.place == self.place;
    if (rank != options.rank && !is_here) continue;
    locals_[static_cast<std::size_t>(rank)] = static_cast<int>(ranks.size());
    ranks.push_back(rank);
  }
  LiveOptions here = options;
  here.rendezvous = rendezvous_name(job, ranks.front());
  here.rank = local(options.rank);
  here.ranks = static_cast<int>(ranks.size());
  // Notices name ranks of the whole job.
  std::exception_ptr notice;
  here.notice = nullptr;
  here.on_look = [&] {
    try {
      look_around(options);
    } catch (const TransportError& error) {
      notice = std::current_exception();
      throw TransportError(error.kind(), kNoPeer, error.what());
    }
  };
  const shm::MemoryLayout memory{layout.signal_words(), layout.size_bytes()};
  try {
    peers_.emplace(here.rank, shm::rendezvous(here, shm::this_member(shm::new_memory(memory))),
                   memory);
  } catch (const TransportError& error) {
    if (notice) std::rethrow_exception(notice);
    const int peer =
        error.peer() == kNoPeer ? kNoPeer : ranks[static_cast<std::size_t>(error.peer())];
    throw TransportError(error.kind(), peer,
                         fmt::format("the {} ranks of host {} do not share their memory: {}",
                                     here.ranks, self.host, error.what()));
  }
}

}  // namespace towpath::transport::ucx

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/shmem/runtime.hpp"

#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "towpath/live/connect.hpp"
#include "towpath/transport/shm/shm_transport.hpp"
#include "towpath/transport/symmetric_heap.hpp"

namespace towpath::shmem {

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr int kTeamsMax = 64;
constexpr std::size_t kTeamWords = 64;

std::unique_ptr<Runtime> own_runtime;

int number_from(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

std::unique_ptr<transport::LiveTransport> join(Time timeout) {
  const int pes = number_from("TOWPATH_RANKS", 1);
  const char* const name = std::getenv("TOWPATH_RENDEZVOUS");
  return live::connect(live::names().front(),
                       {.rendezvous = name != nullptr ? name : fmt::format("shmem-{}", ::getpid()),
                        .rank = number_from("TOWPATH_RANK", 0),
                        .ranks = pes,
                        .heap_bytes = transport::shm::default_heap_bytes(pes),
                        .timeout = timeout});
}

struct Bytes {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// The writable variables of the program, without the range that the loader protects. The first
// object that it lists is the program.
int find_variables(dl_phdr_info* object, std::size_t, void* found) {
  auto& variables = *static_cast<Bytes*>(found);
  std::uintptr_t protected_end = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && (header.p_flags & PF_W) != 0) {
      variables = {begin, begin + header.p_memsz};
    }
    if (header.p_type == PT_GNU_RELRO) protected_end = begin + header.p_memsz;
  }
  variables.begin = std::max(variables.begin, protected_end);
  variables.begin = variables.begin / kPageBytes * kPageBytes;
  variables.end = (variables.end + kPageBytes - 1) / kPageBytes * kPageBytes;
  return 1;
}

}  // namespace

}  // namespace towpath::shmem

int towpath_shmem_team::member(int pe) const {
  const int distance = pe - start;
  if (distance == 0) return 0;
  if (stride == 0 || distance % stride != 0) return -1;
  const int member = distance / stride;
  return member < 0 || member >= size ? -1 : member;
}

namespace towpath::shmem {

void fail(const std::string& sentence) {
  std::fprintf(stderr, "%s\n", sentence.c_str());
  std::fflush(nullptr);
  std::_Exit(1);
}

void begin(Team& world) {
  if (own_runtime != nullptr) return;
  try {
    own_runtime = std::make_unique<Runtime>(world);
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void end() { own_runtime.reset(); }

bool has_begun() { return own_runtime != nullptr; }

Runtime& runtime() {
  if (own_runtime == nullptr) fail("an OpenSHMEM function was called before shmem_init");
  if (own_runtime->is_forked()) fail("an OpenSHMEM function was called by a forked child of a PE");
  return *own_runtime;
}

Runtime::Runtime(Team& world)
    : timeout_(transport::timeout_from(number_from("TOWPATH_TIMEOUT_S", 60))), world_(world) {
  transport_ = join(timeout_);
  heap_ = transport_->data(0);
  heap_bytes_ = transport::shm::default_heap_bytes(pes());
  transport::RemoteMemory& memory = *transport_->remote_memory();
  for (int pe = 0; pe < pes(); ++pe) heaps_.push_back(memory.reach(pe, 0));
  share_variables();
  const std::size_t words = kTeamsMax * kTeamWords;
  team_words_ = reinterpret_cast<std::uint64_t*>(transport_->data(transport_->allocate(8 * words)));
  std::fill_n(team_words_, words, 0);
  // The words of team 0, of all PEs, begin after the one that says which numbers are taken.
  world_ = {0, 1, pes(), team_words_ + 1, 0};
  transport_->barrier(timeout_);
}

// The pages of the program's variables become pages of the heap, at the addresses that they have.
void Runtime::share_variables() {
  Bytes found;
  ::dl_iterate_phdr(&find_variables, &found);
  variables_ = reinterpret_cast<std::byte*>(found.begin);
  variables_bytes_ = found.end - found.begin;
  if (variables_bytes_ == 0) return;
  const transport::Offset allocated = transport_->allocate(variables_bytes_ + kPageBytes);
  variables_at_ = (allocated + kPageBytes - 1) / kPageBytes * kPageBytes;
  std::byte* const pages = heap_ + variables_at_;
  std::memcpy(pages, variables_, variables_bytes_);
  // An old size of 0 maps shared pages a second time (mremap(2)).
  void* const mapped =
      ::mremap(pages, 0, variables_bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, variables_);
  if (mapped != variables_) {
    fail("the program's global variables cannot be shared with the other PEs: mremap refused");
  }
}

// --- memory --------------------------------------------------------------------------------------

void* Runtime::allocate(std::size_t size, std::size_t alignment) {
  transport_->agree(fmt::format("to allocate {} symmetric bytes", size), timeout_);
  if (size == 0) return nullptr;
  const std::size_t more = alignment > transport::SymmetricHeap::kAlignment ? alignment : 0;
  transport::Offset allocated = 0;
  try {
    allocated = transport_->allocate(size + more);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  const transport::Offset offset =
      more == 0 ? allocated : (allocated + alignment - 1) / alignment * alignment;
  allocations_[heap_ + offset] = {size, allocated};
  return heap_ + offset;
}

void Runtime::release(void* address) {
  sync(world_);
  const auto found = allocations_.find(address);
  if (address == nullptr) return;
  if (found == allocations_.end()) {
    fail("shmem_free was given an address that no allocation returned");
  }
  transport_->release(found->second.allocated);
  allocations_.erase(found);
}

std::size_t Runtime::size_of(void* address) const {
  const auto found = allocations_.find(address);
  return found == allocations_.end() ? 0 : found->second.size;
}

std::byte* Runtime::reach(const void* address, std::size_t size, int pe) const {
  if (pe < 0 || pe >= static_cast<int>(heaps_.size())) return nullptr;
  const auto* const place = static_cast<const std::byte*>(address);
  const auto in_heap = static_cast<std::size_t>(place - heap_);
  if (in_heap < heap_bytes_ && size <= heap_bytes_ - in_heap) {
    return heaps_[static_cast<std::size_t>(pe)] + in_heap;
  }
  const auto in_variables = static_cast<std::size_t>(place - variables_);
  if (in_variables >= variables_bytes_ || size > variables_bytes_ - in_variables) return nullptr;
  return heaps_[static_cast<std::size_t>(pe)] + variables_at_ + in_variables;
}

std::byte* Runtime::remote(const void* address, std::size_t size, int pe, const char* call) const {
  std::byte* const place = reach(address, size, pe);
  if (place != nullptr || size == 0) return place;
  if (pe < 0 || pe >= pes()) {
    fail(
        fmt::format("PE {}: {} names PE {}; allowed are 0 to {}", this->pe(), call, pe, pes() - 1));
  }
  fail(fmt::format(
      "PE {}: {} names {} bytes at PE {} that are not all symmetric; use a global or static "
      "variable of the program, or memory of shmem_malloc",
      this->pe(), call, size, pe));
}

// --- waiting -------------------------------------------------------------------------------------

void Runtime::wait(const std::function<bool()>& holds, const char* call) {
  if (holds()) return;
  try {
    transport_->block_until(holds, timeout_, transport::kNoPeer,
                            [call] { return std::string(call); });
  } catch (const transport::TransportError& error) {
    fail(fmt::format("PE {}: {}", pe(), error.what()));
  }
}

// --- teams ---------------------------------------------------------------------------------------

void Runtime::sync(const Team& team) {
  const int member = team.member(pe());
  for (int round = 0, distance = 1; distance < team.size; ++round, distance *= 2) {
    const int peer = team.pe((member + distance) % team.size);
    std::uint64_t* const own = team.words + round;
    auto* const word = reinterpret_cast<std::uint64_t*>(remote(own, 8, peer, "a barrier"));
    __atomic_fetch_add(word, 1, __ATOMIC_ACQ_REL);
    // A peer that is early may have added for the next barrier already.
    wait([own] { return __atomic_load_n(own, __ATOMIC_ACQUIRE) >= 1; }, "a barrier");
    __atomic_fetch_sub(own, 1, __ATOMIC_ACQ_REL);
  }
}

Team* Runtime::split(const Team& parent, int start, int stride, int size) {
  // The first number that is free on all members of the parent. Bit n is set if n is taken.
  std::uint64_t* const taken = team_words_;
  sync(parent);
  std::uint64_t all = 1;
  for (int member = 0; member < parent.size; ++member) {
    const auto* const at =
        reinterpret_cast<std::uint64_t*>(reach(taken, sizeof(*taken), parent.pe(member)));
    all |= __atomic_load_n(at, __ATOMIC_ACQUIRE);
  }
  sync(parent);
  const int number = std::countr_one(all);
  if (number >= kTeamsMax) return nullptr;
  Team made{parent.pe(start), parent.stride * stride, size,
            team_words_ + static_cast<std::size_t>(number) * kTeamWords, number};
  if (made.member(pe()) < 0) return nullptr;
  *taken |= std::uint64_t{1} << number;
  return new Team(made);
}

void Runtime::destroy(Team* team) {
  *team_words_ &= ~(std::uint64_t{1} << team->number);
  delete team;
}

}  // namespace towpath::shmem

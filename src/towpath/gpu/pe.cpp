// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/pe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace towpath::gpu {

namespace {

// Nothing else happens in the simulation.
[[noreturn]] void refuse_agreement(const Pe& asking, const Meeting::Statement& statement) {
  std::string lines;
  for (const Pe* const pe : asking.run().pes) {
    if (pe != nullptr && pe != &asking) lines += pe->waiting();
  }
  const std::string sentence =
      fmt::format("PE {} waits for all PEs {} ({}), which will not happen{}{}", asking.rank(),
                  statement.what, statement.where, lines.empty() ? "" : "; ", joined(lines));
  if (statement.what.find("symmetric") == std::string::npos) {
    throw KernelError(KernelError::Kind::deadlock, fmt::format("deadlock: {}", sentence));
  }
  throw KernelError(Hazard::mismatched_allocation,
                    fmt::format("mismatched symmetric allocations: {}; every PE must make the same "
                                "calls with the same sizes in the same order",
                                sentence));
}

transport::RemoteMemory& remote_memory_of(transport::Transport& transport) {
  if (transport.remote_memory() != nullptr) return *transport.remote_memory();
  throw std::invalid_argument("this transport has no remote memory, which kernels need");
}

}  // namespace

Pe::Pe(Run& run, transport::Transport& transport, std::unique_ptr<LoadedObject> object,
       const Options& options)
    : run_(run),
      transport_(transport),
      remote_memory_(remote_memory_of(transport)),
      object_(std::move(object)),
      options_(options),
      device_(*this, options.cost == nullptr ? Device::live_cost() : *options.cost),
      streams_(
          run.simulation, [this] { host_.wake(); }, [this] { return transport_.now(); }),
      host_(
          run.simulation, *object_, transport.rank(), [this] { return streams_.is_idle(); },
          [this](const std::string& how) { end_program(how); }),
      heap_(transport, run.stack, options.heap_bytes),
      memory_check_(*this),
      device_memory_(memory_check_.map()),
      pollers_(*this),
      hazards_(transport.rank(), *object_) {
  run_.pes[static_cast<std::size_t>(rank())] = this;
  fill_table(*this);
  const abi::Site library{nullptr, 0, "the library's words"};
  for (int team = 0; team < abi::kTeamsMax; ++team) {
    memory_check_.map().add({reinterpret_cast<std::uintptr_t>(heap_.team_words(team)),
                             abi::kWordsPerTeam * sizeof(std::uint64_t),
                             MemoryKind::managed,
                             library,
                             {}});
  }
}

Pe::~Pe() { run_.pes[static_cast<std::size_t>(rank())] = nullptr; }

int Pe::launch(const abi::Launch& launch) {
  const abi::Index3& grid = launch.configuration.grid;
  const abi::Index3& block = launch.configuration.block;
  constexpr int kInvalidConfiguration = 9;
  constexpr int kCooperativeLaunchTooLarge = 720;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const bool is_empty = grid.x == 0 || grid.y == 0 || grid.z == 0;
  if (is_empty || threads == 0 || threads > abi::kThreadsPerBlockMax) {
    launch.destroy(launch.closure);
    return kInvalidConfiguration;
  }
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  const int resident =
      device_.resident_blocks(static_cast<int>(threads), launch.configuration.shared_bytes);
  if (launch.is_collective && blocks > static_cast<std::uint64_t>(resident)) {
    launch.destroy(launch.closure);
    return kCooperativeLaunchTooLarge;
  }
  const Time begin = run_.simulation.now() + (launch.is_internal ? Time() : options_.launch);
  const std::uint64_t number = note_work(
      {.blocks = blocks, .threads = static_cast<int>(threads), .is_kernel = !launch.is_internal},
      launch.configuration.stream, launch.name);
  streams_.add(launch.configuration.stream, begin,
               [this, launch, number](const StreamWorkPointer& work) {
                 if (run_.profile != nullptr) run_.profile->begin_work(number);
                 device_.start(launch, [this, work, number] {
                   if (run_.profile != nullptr) run_.profile->end_work(number);
                   streams_.finish(work);
                 });
               });
  return 0;
}

std::uint64_t Pe::note_work(Profile::StreamWork work, void* stream, const std::string& name) {
  if (run_.profile == nullptr) return 0;
  work.pe = rank();
  work.stream = run_.profile->stream(rank(), stream);
  work.name = run_.profile->name(name);
  work.queued = run_.profile->now();
  return run_.profile->add(work);
}

int Pe::launch_kernel(const abi::Kernel& kernel, const abi::Configuration& configuration,
                      void** arguments, bool is_collective) {
  std::vector<void*> all(arguments, arguments + kernel.parameters);
  all.push_back(const_cast<void*>(kernel.body));
  abi::Launch launch{};
  launch.configuration = configuration;
  launch.name = kernel.name;
  launch.run = kernel.run;
  launch.closure = kernel.bind(all.data());
  launch.closure_bytes = kernel.closure_bytes;
  launch.destroy = kernel.destroy;
  launch.is_collective = is_collective;
  return this->launch(launch);
}

void Pe::call_host(const abi::Kernel& function, std::vector<std::uint64_t>& arguments) {
  std::vector<void*> places;
  for (std::uint64_t& word : arguments) places.push_back(&word);
  places.push_back(const_cast<void*>(function.body));
  const std::unique_ptr<void, void (*)(void*)> closure(function.bind(places.data()),
                                                       function.destroy);
  function.run(closure.get());
}

// --- the symmetric heap --------------------------------------------------------------------------

void Pe::initialize(int rank, int ranks, const abi::Site& site) {
  if (is_initialized_) return;
  if (ranks >= 0 && (rank != this->rank() || ranks != transport_.ranks())) {
    throw KernelError(KernelError::Kind::usage,
                      fmt::format("{} at {}:{} names PE {} of {}, but this process is PE {} of {}; "
                                  "pass the launcher's rank",
                                  site.call, site.file, site.line, rank, ranks, this->rank(),
                                  transport_.ranks()));
  }
  is_initialized_ = true;
  agree({"to begin NVSHMEM", fmt::format("{} at {}:{}", site.call, site.file, site.line)});
}

void Pe::agree(const Meeting::Statement& statement) {
  host_.block_until_idle("its streams, before all PEs meet");
  if (run_.meeting != nullptr) {
    run_.meeting->enter(statement);
    host_.block([this] { return run_.meeting->is_complete(); }, "all PEs to meet");
    run_.meeting->leave();
    return;
  }
  try {
    transport_.agree(statement.what, run_.timeout);
  } catch (const transport::TransportError& error) {
    if (error.kind() == transport::TransportError::Kind::timeout)
      refuse_agreement(*this, statement);
    if (error.kind() != transport::TransportError::Kind::disagreement) throw;
    throw KernelError(Hazard::mismatched_allocation,
                      fmt::format("mismatched symmetric allocations: {}; every PE must make the "
                                  "same calls with the same sizes in the same order",
                                  error.what()));
  }
  if (is_timed()) hazards_.past().learn_everything(run_.simulation.now());
}

// In simulated time the barrier of nvshmem_finalize is the meeting.
void Pe::begin_finalize(const abi::Site& site) {
  if (run_.meeting == nullptr || !is_initialized_) return;
  agree({"to end NVSHMEM", fmt::format("{} at {}:{}", site.call, site.file, site.line)});
}

void Pe::end_program(const std::string& how) {
  if (!is_initialized_) return;
  if (run_.meeting == nullptr) {
    host_.note_end(fmt::format("has ended by {} without nvshmem_finalize", how));
    return;
  }
  agree({"to end NVSHMEM", fmt::format("{} without nvshmem_finalize", how)});
}

void* Pe::symmetric_malloc(std::uint64_t size_bytes, std::uint64_t alignment, bool is_zeroed,
                           const abi::Site& site) {
  if (!is_initialized_) {
    throw KernelError(KernelError::Kind::usage,
                      "nvshmem_malloc was called before nvshmem_init or nvshmemx_init_attr");
  }
  const std::string where = place_of(site);
  agree({fmt::format("to allocate {} symmetric bytes", size_bytes), where});
  std::byte* const address = heap_.allocate(size_bytes, alignment);
  memory_check_.map().add(
      {reinterpret_cast<std::uintptr_t>(address), size_bytes, MemoryKind::symmetric, site, {}});
  if (is_zeroed) std::memset(address, 0, size_bytes);
  if (is_zeroed) agree({"to use cleared memory", where});
  return address;
}

void Pe::symmetric_free(void* address, const abi::Site& site) {
  const Heap::Allocation allocation = heap_.allocation_at(address);
  agree({fmt::format("to free the symmetric memory at offset {}", allocation.offset),
         place_of(site)});
  hazards_.signal_words.forget(allocation.offset, allocation.size_bytes);
  memory_check_.map().free(reinterpret_cast<std::uintptr_t>(address), site);
  heap_.release(allocation);
}

// --- copies
// ----------------------------------------------------------------------------------------

Time Pe::time_of_copy(std::uint64_t size_bytes, abi::CopyKind kind) const {
  if (!is_timed() || size_bytes == 0) return Time();
  switch (kind) {
    case abi::CopyKind::on_device:
      return transfer_time(Bytes(2 * size_bytes), cost().memory_rate) + cost().memory_latency;
    case abi::CopyKind::fill:
      return transfer_time(Bytes(size_bytes), cost().memory_rate) + cost().memory_latency;
    default: return Time();  // the host program and its memory are untimed
  }
}

int Pe::copy(const CopyRequest& request, void* stream, bool is_asynchronous) {
  struct Copy {
    Pe* pe;
    StreamWorkPointer work;
    CopyRequest request;
    std::uint64_t number;  // in the profile
    void carry() const {
      if (request.kind == abi::CopyKind::fill) {
        std::memset(request.to, request.value, request.size_bytes);
      } else {
        std::memmove(request.to, request.from, request.size_bytes);
      }
      pe->pollers_.note_store(request.to, request.size_bytes);
      pe->pollers_.notify_stores();
      if (pe->run_.profile != nullptr) pe->run_.profile->end_work(number);
      pe->streams_.finish(work);
    }
  };
  constexpr const char* kNames[] = {"copy to the GPU", "copy to the host", "copy on the GPU",
                                    "copy on the host", "fill"};
  const std::uint64_t number =
      note_work({.size_bytes = request.size_bytes}, stream, kNames[static_cast<int>(request.kind)]);
  const StreamWorkPointer work =
      streams_.add(stream, Time(), [this, request, number](const StreamWorkPointer& self) {
        if (run_.profile != nullptr) run_.profile->begin_work(number);
        run_.simulation.after(
            time_of_copy(request.size_bytes, request.kind),
            [](void* context) {
              const std::unique_ptr<Copy> copy(static_cast<Copy*>(context));
              copy->carry();
            },
            new Copy{this, self, request, number});
      });
  if (!is_asynchronous) host_.block([&] { return work->has_finished; }, "a copy");
  return 0;
}

// --- blocks -------------------------------------------------------------------------------------

void Pe::forget_quiet_ranges() {
  abi::Current& running = current();
  std::fill_n(running.quiet_loads, abi::kQuietRanges, abi::Range{});
  std::fill_n(running.quiet_stores, abi::kQuietRanges, abi::Range{});
  running.quiet_shared_loads = running.quiet_shared_stores = {};
}

void Pe::note_plain(const void* address, std::uint64_t size_bytes) {
  const int owner = is_timed() ? heap_.owner_of(address) : transport::kNoPeer;
  if (owner == transport::kNoPeer) return;
  const std::uintptr_t begin = heap_.of(owner).begin;
  Pe& pe = *run_.pes[static_cast<std::size_t>(owner)];
  pe.hazards_.signal_words.note_plain(reinterpret_cast<std::uintptr_t>(address) - begin,
                                      size_bytes);
}

std::uint64_t Pe::note_flag(Block& block, volatile void* address, unsigned size_bytes) const {
  if (block.timeline() == nullptr) return 0;
  const int owner = heap_.owner_of(const_cast<const void*>(address));
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - heap_.of(owner).begin;
  return block.timeline()->start({.activity = Activity::signal,
                                  .peer = owner,
                                  .size_bytes = size_bytes,
                                  .target = {offset, size_bytes}},
                                 {nullptr, 0, "a store of volatile memory"});
}

std::string Pe::waiting() const { return device_.waiting() + host_.waiting(); }

}  // namespace towpath::gpu

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/pe.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "towpath/gpu/operation.hpp"

extern char** environ;

namespace towpath::gpu {

namespace {

constexpr std::size_t kHostStackBytes = 8 << 20;

// Ends the host program where it calls exit().
struct Exit {
  int status;
};

}  // namespace

Pe::Pe(Run& run, transport::Transport& transport, std::unique_ptr<LoadedObject> object,
       const Options& options)
    : run_(run),
      transport_(transport),
      remote_memory_(transport.remote_memory()),
      object_(std::move(object)),
      options_(options),
      device_(*this, options.cost == nullptr ? Device::live_cost() : *options.cost),
      streams_(
          run.simulation, [this] { wake_host(); }, [this] { return transport_.now(); }),
      memory_ranges_(0, kMemoryBytes, 256),
      past_(transport.rank()) {
  if (remote_memory_ == nullptr) {
    throw std::invalid_argument("this transport has no remote memory; kernels need one");
  }
  void* const mapped = ::mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(mapped);
  const std::uint64_t words_bytes = abi::kTeamsMax * abi::kWordsPerTeam * sizeof(std::uint64_t);
  words_ = transport_.data(transport_.allocate(words_bytes));
  std::memset(words_, 0, words_bytes);
  find_heaps();
  allocations_.emplace(offset_of(words_), Allocation{words_bytes, offset_of(words_)});
  run_.pes[static_cast<std::size_t>(rank())] = this;
  fill_table();
}

Pe::~Pe() {
  run_.pes[static_cast<std::size_t>(rank())] = nullptr;
  ::munmap(memory_, kMemoryBytes);
}

// --- the host program ---------------------------------------------------------------------------

std::runtime_error Pe::named(const os::CodeFault& fault, const std::string& who) const {
  // The place is that before an address, which is usually one to return to.
  const std::string place = object_->place_of(static_cast<const char*>(fault.address()) + 1);
  return std::runtime_error(
      fmt::format("{}{}{} {}", who, place.empty() ? "" : " at ", place, fault.what()));
}

void Pe::start_host(std::function<void()> body) {
  is_finished_ = false;
  host_ = &run_.simulation.spawn(
      fmt::format("host program of PE {}", rank()),
      [this, body = std::move(body)] {
        os::throw_code_faults();
        try {
          body();
          block_host([this] { return streams_.is_idle(); }, "its streams");
        } catch (const Exit& ended) {
          status_ = ended.status;
        } catch (const os::CodeFault& fault) {
          throw named(fault, fmt::format("the host program of PE {}", rank()));
        }
        is_finished_ = true;
        host_ = nullptr;
      },
      kHostStackBytes);
}

void Pe::start_main(std::vector<std::string> arguments) {
  const auto main = object_->object().main;
  if (main == nullptr) {
    throw KernelError(KernelError::Kind::usage,
                      "the source has no main(); launch its kernels by name, from Python or C++");
  }
  start_host([this, main, arguments = std::move(arguments)]() mutable {
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    status_ = main(static_cast<int>(arguments.size()), words.data(), environ);
  });
}

void Pe::exit(int status) { throw Exit{status}; }

void Pe::block_host(const std::function<bool()>& holds, const char* what) {
  while (!is_closing_ && !holds()) {
    host_waits_for_ = what;
    run_.simulation.suspend(what);
    host_waits_for_ = nullptr;
  }
}

void Pe::wake_host() {
  if (host_ != nullptr) run_.simulation.wake(*host_);
}

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

const abi::Kernel* Pe::find_kernel(const void* function) const {
  const abi::Object& object = object_->object();
  for (int i = 0; i < object.kernel_count; ++i) {
    if (object.kernels[i]->function == function) return object.kernels[i];
  }
  return nullptr;
}

const abi::Kernel* Pe::find_kernel(const std::string& name) const {
  const abi::Object& object = object_->object();
  for (int i = 0; i < object.kernel_count; ++i) {
    if (object.kernels[i]->name == name) return object.kernels[i];
  }
  return nullptr;
}

int Pe::launch_kernel(const abi::Kernel& kernel, const abi::Configuration& configuration,
                      void** arguments, bool is_collective) {
  std::vector<void*> all(arguments, arguments + kernel.parameters);
  all.push_back(const_cast<void*>(kernel.function));
  abi::Launch launch{};
  launch.configuration = configuration;
  launch.name = kernel.name;
  launch.run = kernel.run;
  launch.closure = kernel.bind(all.data());
  launch.destroy = kernel.destroy;
  launch.is_collective = is_collective;
  return this->launch(launch);
}

void Pe::call_host(const abi::Kernel& function, std::vector<std::uint64_t>& arguments) {
  std::vector<void*> places;
  for (std::uint64_t& word : arguments) places.push_back(&word);
  places.push_back(const_cast<void*>(function.function));
  const std::unique_ptr<void, void (*)(void*)> closure(function.bind(places.data()),
                                                       function.destroy);
  function.run(closure.get());
}

void* Pe::device_malloc(std::uint64_t size_bytes) {
  try {
    return memory_ + memory_ranges_.allocate(size_bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool Pe::device_free(void* address) {
  const auto offset = static_cast<std::byte*>(address) - memory_;
  if (offset < 0 || static_cast<std::uint64_t>(offset) >= kMemoryBytes) return false;
  block_host([this] { return streams_.is_idle(); }, "its streams, to free memory");
  return memory_ranges_.release(static_cast<std::uint64_t>(offset)) > 0;
}

Time Pe::time_of_copy(std::uint64_t size_bytes, abi::CopyKind kind) const {
  if (!is_timed() || size_bytes == 0) return Time();
  switch (kind) {
    case abi::CopyKind::on_device:
      return transfer_time(Bytes(2 * size_bytes), cost().memory_rate) + cost().memory_latency;
    case abi::CopyKind::fill:
      return transfer_time(Bytes(size_bytes), cost().memory_rate) + cost().memory_latency;
    default: return Time();  // the host program is not timed, and neither is its memory
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
      pe->note_store(request.to, request.size_bytes);
      pe->notify_stores();
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
  if (!is_asynchronous) block_host([&] { return work->has_finished; }, "a copy");
  return 0;
}

// --- quiet, polling, stores ----------------------------------------------------------------------

void Pe::operation_visible(std::uint64_t number) {
  outstanding_.erase(number);
  const std::uint64_t oldest = outstanding_.empty() ? UINT64_MAX : *outstanding_.begin();
  std::vector<std::function<void()>> ready;
  std::erase_if(quiet_waits_, [&](QuietWait& wait) {
    if (wait.until >= oldest) return false;
    ready.push_back(std::move(wait.then));
    return true;
  });
  for (const auto& then : ready) then();
}

void Pe::when_quiet(std::function<void()> then) {
  if (outstanding_.empty()) return then();
  quiet_waits_.push_back({operations_, std::move(then)});
}

void Pe::add_poller(Block& block, int thread, unsigned size_bytes) {
  const Thread& polling = block.thread(thread);
  const bool is_shared =
      current().shared.contains(reinterpret_cast<std::uintptr_t>(polling.polled));
  auto poller = std::make_unique<Poller>(Poller{this, &block, thread, size_bytes, is_shared});
  if (is_in_heap(const_cast<const void*>(polling.polled))) {
    poller->wait.first = offset_of(const_cast<const void*>(polling.polled));
    poller->wait.size_bytes = size_bytes;
    poller->wait.context = poller.get();
    poller->wait.holds = [](const transport::MemoryWait& wait) {
      return static_cast<const Poller*>(wait.context)->has_changed();
    };
    poller->wait.ready = [](transport::MemoryWait& wait) {
      auto& found = *static_cast<Poller*>(wait.context);
      found.pe->wake_poller(found);
    };
    Poller& added = *poller;
    pollers_.push_back(std::move(poller));
    remote_memory_->wait(added.wait);
    return;
  }
  pollers_.push_back(std::move(poller));
}

bool Pe::Poller::has_changed() const {
  const Thread& polling = block->thread(thread);
  std::uint64_t value = 0;
  std::memcpy(&value, const_cast<const void*>(polling.polled), std::min(size_bytes, 8u));
  return value != polling.polled_value;
}

void Pe::wake_poller(const Poller& poller) {
  poller.block->woken(poller.thread, {poller.wait.first, poller.wait.size_bytes});
  std::erase_if(pollers_, [&](const auto& each) { return each.get() == &poller; });
}

void Pe::look_again() {
  for (std::size_t i = pollers_.size(); i-- > 0;) {
    if (i < pollers_.size() && pollers_[i]->has_changed()) notice(*pollers_[i]);
  }
}

// The word has another value; the thread sees that with its next look. In simulated time the
// transport tells of words of the heap, which takes as long.
void Pe::notice(Poller& poller) {
  if (!is_timed() || poller.is_shared) {
    if (poller.wait.is_waiting) remote_memory_->cancel(poller.wait);
    return wake_poller(poller);
  }
  if (poller.wait.is_waiting || std::exchange(poller.is_looking, true)) return;
  run_.simulation.after(
      cost().poll,
      [](void* context) {
        auto& looking = *static_cast<Poller*>(context);
        looking.is_looking = false;
        if (looking.has_changed()) looking.pe->wake_poller(looking);
      },
      &poller);
}

std::size_t Pe::wake_all_pollers() {
  const std::size_t count = pollers_.size();
  while (!pollers_.empty()) {
    if (pollers_.back()->wait.is_waiting) remote_memory_->cancel(pollers_.back()->wait);
    wake_poller(*pollers_.back());
  }
  return count;
}

void Pe::note_store(const volatile void* address, std::uint64_t size_bytes) {
  const void* const plain = const_cast<const void*>(address);
  const int owner = owner_of(plain);
  if (owner == transport::kNoPeer) {
    has_stored_ = true;
    return;
  }
  const auto begin = heaps_[static_cast<std::size_t>(owner)].begin;
  stored_.push_back({owner, reinterpret_cast<std::uintptr_t>(plain) - begin, size_bytes});
}

std::uint64_t Pe::note_flag(Block& block, volatile void* address, unsigned size_bytes) const {
  if (block.timeline() == nullptr) return 0;
  const int owner = owner_of(const_cast<const void*>(address));
  const abi::Range& heap = heaps_[static_cast<std::size_t>(owner)];
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - heap.begin;
  return block.timeline()->start({.activity = Activity::signal,
                                  .peer = owner,
                                  .size_bytes = size_bytes,
                                  .target = {offset, size_bytes}},
                                 {nullptr, 0, "a store of volatile memory"});
}

// After the stores themselves: those who wait for them look.
void Pe::notify_stores() {
  if (!stored_.empty()) {
    const std::vector<StoredRange> ranges = std::move(stored_);
    stored_.clear();
    for (const StoredRange& range : ranges) {
      Pe* const owner = run_.pes[static_cast<std::size_t>(range.owner)];
      if (owner == nullptr) continue;
      owner->remote_memory_->stored(range.first, range.size_bytes);
      if (owner != this) owner->look_again();
    }
    has_stored_ = true;
  }
  if (std::exchange(has_stored_, false) && !pollers_.empty()) look_again();
}

std::string Pe::waiting() const {
  std::string lines = device_.waiting();
  if (host_waits_for_ != nullptr) {
    lines += fmt::format("PE {}: its host program waits for {}\n", rank(), host_waits_for_);
  }
  return lines;
}

}  // namespace towpath::gpu

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/shmem/runtime.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
constexpr unsigned kLauncherSeconds = 5;
constexpr int kTeamsMax = 64;
constexpr std::size_t kTeamWords = 64;
constexpr std::size_t kAllTeamWords = kTeamsMax * kTeamWords;
// After the words of the teams: the last collective call of this PE, and the function in which it
// waits.
enum CallWord : std::size_t { kFunction, kSizeBytes, kRoot, kWait, kCallWords };

std::unique_ptr<Runtime> own_runtime;

// The names of functions have the same distance from this one in all PEs, because they load the
// same library.
constexpr char kAnchor[] = "no collective call";

std::uint64_t distance_of(const char* function) {
  return reinterpret_cast<std::uintptr_t>(function) - reinterpret_cast<std::uintptr_t>(kAnchor);
}

const char* at_distance(std::uint64_t distance) {
  return reinterpret_cast<const char*>(reinterpret_cast<std::uintptr_t>(kAnchor) + distance);
}

std::string describe(const char* function, std::uint64_t size_bytes, std::int64_t root) {
  std::string text = function;
  if (size_bytes > 0) text += fmt::format(" of {} bytes", size_bytes);
  if (root >= 0) text += fmt::format(" from root {}", root);
  return text;
}

// The addend of a member for the word of a peer in each round of a barrier: 1, and above its low
// byte a digest of the call. Independent products, whose constants are digits of pi.
std::uint64_t token_of(const Team& team, const Call& call) {
  const auto word = [](int number) { return static_cast<std::uint64_t>(number); };
  const std::uint64_t mixed =
      distance_of(call.function) * 0x243f6a8885a308d3 + call.size_bytes * 0x13198a2e03707345 +
      word(call.root) * 0xa4093822299f31d1 + call.others * 0x082efa98ec4e6c89 +
      (word(team.start) << 42 ^ word(team.stride) << 21 ^ word(team.size)) * 0x452821e638d01377;
  return (mixed ^ mixed >> 32) << 8 | 1;
}

double number_from(const char* variable, double otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtod(text, nullptr);
}

int descriptor_from(const char* variable) { return static_cast<int>(number_from(variable, -1)); }

// A PE that ended before it joined, as reported by the launcher: "1 was killed by SIGSEGV".
void read_notice(transport::FailureNotice& notice) {
  std::array<char, 200> text{};
  const ssize_t size =
      ::pread(descriptor_from("TOWPATH_NOTICE_FD"), text.data(), text.size() - 1, 0);
  char* end = nullptr;
  const long pe = std::strtol(text.data(), &end, 10);
  if (size <= 0 || end == text.data() || *end == '\0') return;
  notice.post({static_cast<int>(pe), std::string(end + 1) + " before shmem_init"});
}

// Sends a line to the launcher. Returns false if there is none.
bool notify_launcher(const std::string& line) {
  const int descriptor = descriptor_from("TOWPATH_LAUNCHER_FD");
  return descriptor >= 0 && ::write(descriptor, line.data(), line.size()) > 0;
}

std::unique_ptr<transport::LiveTransport> join(Time timeout) {
  const int pes = static_cast<int>(number_from("TOWPATH_RANKS", 1));
  const char* const name = std::getenv("TOWPATH_RENDEZVOUS");
  const auto notice = std::make_shared<transport::FailureNotice>();
  return live::connect(live::names().front(),
                       {.rendezvous = name != nullptr ? name : fmt::format("shmem-{}", ::getpid()),
                        .rank = static_cast<int>(number_from("TOWPATH_RANK", 0)),
                        .ranks = pes,
                        .heap_bytes = transport::shm::default_heap_bytes(pes),
                        .timeout = timeout,
                        .notice = notice,
                        .on_look = [notice] { read_notice(*notice); }});
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

namespace {

[[noreturn]] void stop(const std::string& sentence) {
  const auto pe = static_cast<int>(number_from("TOWPATH_RANK", 0));
  std::fprintf(stderr, "PE %d: %s\n", pe, sentence.c_str());
  std::fflush(nullptr);
  const bool is_forked = own_runtime != nullptr && own_runtime->is_forked();
  if (!is_forked) notify_launcher(fmt::format("failed {}\n", pe));
  std::_Exit(1);
}

void abandon_at_exit() {
  if (own_runtime == nullptr || own_runtime->is_forked()) return;
  own_runtime->abandon("exited before shmem_finalize");
}

}  // namespace

void fail(const std::string& sentence) {
  if (own_runtime == nullptr || own_runtime->is_forked()) stop(sentence);
  own_runtime->abandon(fmt::format("failed ({})", sentence));
  stop(sentence);
}

void exit_all(int status) {
  std::fflush(nullptr);
  // The launcher kills all PEs. The other PEs would otherwise report the death of this one.
  if (notify_launcher(fmt::format("exit {}\n", status))) ::sleep(kLauncherSeconds);
  std::_Exit(status);
}

void begin(Team& world) {
  if (own_runtime != nullptr) return;
  static const int registered = std::atexit(&abandon_at_exit);
  static_cast<void>(registered);
  try {
    own_runtime = std::make_unique<Runtime>(world);
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void end() {
  notify_launcher(fmt::format("finished {}\n", own_runtime->pe()));
  own_runtime.reset();
}

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
  const std::size_t words = kAllTeamWords + kCallWords;
  team_words_ = reinterpret_cast<std::uint64_t*>(transport_->data(transport_->allocate(8 * words)));
  std::fill_n(team_words_, words, 0);
  // The words of team 0, of all PEs, begin after the word that records the numbers in use.
  world_ = {0, 1, pes(), team_words_ + 1, 0};
  publish({kAnchor});
  transport_->barrier(timeout_);
  notify_launcher(fmt::format("joined {}\n", pe()));
}

// The pages of the program's variables become pages of the heap, at their current addresses.
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

void* Runtime::allocate(std::size_t size, std::size_t alignment, const char* call) {
  sync(world_, {call, size});
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

void Runtime::release(void* address, const char* call) {
  const auto found = allocations_.find(static_cast<std::byte*>(address));
  if (address != nullptr && found == allocations_.end()) {
    fail(fmt::format("{} has an address that no allocation returned, or that was freed", call));
  }
  // Offsets are the same on all PEs.
  const std::uint64_t offset = address == nullptr ? 0 : found->second.allocated;
  sync(world_, {call, 0, -1, offset});
  if (address == nullptr) return;
  transport_->release(found->second.allocated);
  allocations_.erase(found);
  recent_ = {};
}

std::size_t Runtime::size_of(void* address) const {
  const auto found = allocations_.find(static_cast<std::byte*>(address));
  return found == allocations_.end() ? 0 : found->second.size;
}

std::ptrdiff_t Runtime::find_offset(const std::byte* place, std::size_t size) const {
  Range found{variables_, variables_bytes_, static_cast<std::ptrdiff_t>(variables_at_)};
  if (!found.holds(place, size)) {
    const auto next = allocations_.upper_bound(place);
    if (next == allocations_.begin()) return -1;
    const auto& [begin, allocation] = *std::prev(next);
    found = {begin, allocation.size, begin - heap_};
    if (!found.holds(place, size)) return -1;
  }
  recent_[replaced_++ % recent_.size()] = found;
  return found.offset + (place - found.begin);
}

void Runtime::fail_to_reach(const void* address, std::size_t size, int pe, const char* call) const {
  if (pe < 0 || pe >= pes()) {
    fail(fmt::format("{} names PE {}; it must be 0 to {}", call, pe, pes() - 1));
  }
  fail(
      fmt::format("{} names {} bytes at PE {} that are not all symmetric{}; use a global or static "
                  "variable of the program, or memory of shmem_malloc",
                  call, size, pe, describe_place(address)));
}

// The nearest allocation below an address in the heap.
std::string Runtime::describe_place(const void* address) const {
  const auto* const place = static_cast<const std::byte*>(address);
  if (static_cast<std::size_t>(place - heap_) >= heap_bytes_) return "";
  const auto next = allocations_.upper_bound(place);
  if (next == allocations_.begin()) return " (in the heap, outside all allocations)";
  const auto& [begin, allocation] = *std::prev(next);
  return fmt::format(" (they begin {} bytes after the start of an allocation of {} bytes)",
                     place - begin, allocation.size);
}

std::uint64_t* Runtime::word_at(std::uint64_t* word, int pe, const char* call) const {
  const auto in_words = static_cast<std::size_t>(word - team_words_);
  if (in_words >= kAllTeamWords + kCallWords) {  // of an active set
    return reinterpret_cast<std::uint64_t*>(remote(word, sizeof(*word), pe, call));
  }
  const auto offset = reinterpret_cast<std::byte*>(word) - heap_;
  return reinterpret_cast<std::uint64_t*>(heaps_[static_cast<std::size_t>(pe)] + offset);
}

// --- waiting -------------------------------------------------------------------------------------

void Runtime::block(const std::function<bool()>& holds, const char* function,
                    const std::function<std::string()>& details) {
  std::uint64_t* const waits = team_words_ + kAllTeamWords + kWait;
  __atomic_store_n(waits, distance_of(function), __ATOMIC_RELAXED);
  try {
    transport_->block_until(holds, timeout_, transport::kNoPeer, [&] {
      return function + (details ? ", " + details() : std::string());
    });
  } catch (const transport::TransportError& error) {
    const bool is_late = error.kind() == transport::TransportError::Kind::timeout;
    const std::string sentence = error.what() + (is_late ? describe_all() : "");
    abandon(fmt::format("gave up ({})", sentence), error.peer());
    stop(sentence);
  }
  __atomic_store_n(waits, 0, __ATOMIC_RELAXED);
}

void Runtime::abandon(const std::string& reason, int culprit) {
  transport_->abandon(reason, culprit);
}

// --- calls of the PEs ----------------------------------------------------------------------------

void Runtime::publish(const Call& call) {
  std::uint64_t* const words = team_words_ + kAllTeamWords;
  const auto store = [words](CallWord word, std::uint64_t value) {
    __atomic_store_n(words + word, value, __ATOMIC_RELAXED);
  };
  store(kFunction, distance_of(call.function));
  store(kSizeBytes, call.size_bytes);
  store(kRoot, static_cast<std::uint64_t>(call.root));
}

std::string Runtime::describe_call(int pe) const {
  const std::uint64_t* const words = word_at(team_words_ + kAllTeamWords, pe, kAnchor);
  const auto load = [words](CallWord word) {
    return __atomic_load_n(words + word, __ATOMIC_RELAXED);
  };
  return describe(at_distance(load(kFunction)), load(kSizeBytes),
                  static_cast<std::int64_t>(load(kRoot)));
}

std::string Runtime::describe_all() const {
  std::map<std::string, std::vector<int>> places;
  for (int pe = 0; pe < pes(); ++pe) {
    const std::uint64_t* const waits = word_at(team_words_ + kAllTeamWords + kWait, pe, kAnchor);
    const std::uint64_t wait = __atomic_load_n(waits, __ATOMIC_RELAXED);
    const std::string place = wait != 0 ? fmt::format("waiting in {}", at_distance(wait))
                                        : fmt::format("elsewhere after {}", describe_call(pe));
    places[place].push_back(pe);
  }
  std::string text;
  for (const auto& [place, members] : places) {
    const bool is_one = members.size() == 1;
    text += fmt::format("; {} {} {} {}", is_one ? "PE" : "PEs", fmt::join(members, ", "),
                        is_one ? "is" : "are", place);
  }
  return text;
}

// --- teams ---------------------------------------------------------------------------------------

const Team& Runtime::known(const Team* team, const char* call) const {
  const bool is_known = team == &world_ || team == SHMEM_TEAM_SHARED ||
                        std::find(teams_.begin(), teams_.end(), team) != teams_.end();
  if (!is_known) fail(fmt::format("{} has a handle that is not a team's", call));
  return *team;
}

// A dissemination barrier. A member compares its call with its source's call in each round, so a
// member that passes has compared the calls of all others.
void Runtime::sync(const Team& team, const Call& call) {
  const int member = team.member(pe());
  if (member < 0) {
    fail(fmt::format("{} was called by a PE that is not a member of the team", call.function));
  }
  publish(call);
  const std::uint64_t token = token_of(team, call);
  for (int round = 0, distance = 1; distance < team.size; ++round, distance *= 2) {
    const int target = team.pe((member + distance) % team.size);
    const int source = team.pe((member - distance + team.size) % team.size);
    std::uint64_t* const own = team.words + round;
    __atomic_fetch_add(word_at(own, target, call.function), token, __ATOMIC_ACQ_REL);
    std::uint64_t arrived = 0;
    const auto has_arrived = [own, &arrived] {
      arrived = __atomic_load_n(own, __ATOMIC_ACQUIRE);
      return (arrived & 0xff) != 0;
    };
    wait(has_arrived, call.function);
    // An early source has passed this barrier, and has already added for the next one.
    if ((arrived & 0xff) == 1 && arrived != token) end_in_disagreement(source);
    __atomic_fetch_sub(own, token, __ATOMIC_ACQ_REL);
  }
}

void Runtime::end_in_disagreement(int other) {
  const std::string own = describe_call(pe());
  const std::string theirs = describe_call(other);
  const std::string sentence =
      fmt::format("PEs disagree: PE {} calls {}, but PE {} calls {}{}", pe(), own, other, theirs,
                  own == theirs ? " with other arguments" : "");
  abandon(fmt::format("found that {}", sentence));
  stop(sentence);
}

Team* Runtime::split(const Team& parent, int start, int stride, int size, const char* call) {
  const Call stated{call, 0, start,
                    static_cast<std::uint64_t>(stride) << 32 | static_cast<unsigned>(size)};
  // The first number that is free on all members of the parent. Bit n is set if n is in use.
  std::uint64_t* const taken = team_words_;
  sync(parent, stated);
  std::uint64_t all = 1;
  for (int member = 0; member < parent.size; ++member) {
    const std::uint64_t* const at = word_at(taken, parent.pe(member), call);
    all |= __atomic_load_n(at, __ATOMIC_ACQUIRE);
  }
  sync(parent, stated);
  const int number = std::countr_one(all);
  if (number >= kTeamsMax) return nullptr;
  Team made{parent.pe(start), parent.stride * stride, size,
            team_words_ + static_cast<std::size_t>(number) * kTeamWords, number};
  if (made.member(pe()) < 0) return nullptr;
  *taken |= std::uint64_t{1} << number;
  teams_.push_back(new Team(made));
  return teams_.back();
}

void Runtime::destroy(Team* team) {
  *team_words_ &= ~(std::uint64_t{1} << team->number);
  teams_.erase(std::find(teams_.begin(), teams_.end(), team));
  delete team;
}

}  // namespace towpath::shmem

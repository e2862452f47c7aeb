// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/riscv_mailbox/live/mailbox.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "towpath/os/socket.hpp"
#include "towpath/transport/transport.hpp"

namespace towpath::riscv_mailbox::live {

namespace {

using Clock = std::chrono::steady_clock;
using namespace literals;
using transport::TransportError;

constexpr std::size_t kNameBytesMax = 64;
constexpr std::uint32_t kDepthMax = 1 << 16;
constexpr std::uint32_t kSendersMax = 1024;
// Messages that a receiver takes from one lane before it looks at the next.
constexpr std::uint32_t kInRowMax = 32;
// Polls before the clock is read: a peer on another core answers within this number.
constexpr int kQuickLooks = 4000;
// Polls of the only lane before all lanes of a receiver are polled: one load each, some tens of ns.
constexpr int kLooksAtOneLane = 16;
// Time that a receiver, or its successor, has to arrive before senders give up.
constexpr Time kGrace = 500_ms;
constexpr Time kLookInterval = 1_ms;
// Polls between two calls of serve_lookups by a receiver that never waits, a power of two.
constexpr std::uint32_t kLooksPerServing = 1 << 16;

Time steady_now() {
  const auto since = Clock::now().time_since_epoch();
  return Time::from_ps(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count() * 1000);
}

// Contains the time of creation, which identifies the youngest of several.
constexpr std::string_view kMemoryPrefix = "towpath-mailbox ";
constexpr std::size_t kStampDigits = 16;
std::string memory_name(const std::string& name) {
  return fmt::format("{}{:016x} {}", kMemoryPrefix, steady_now().ps() / 1000, name);
}
std::string socket_address(const std::string& name) {
  return fmt::format("towpath-mailbox/{}/{}", ::geteuid(), name);
}

void check(const std::string& name, const MailboxOptions& options) {
  const auto reject = [](const std::string& sentence) { throw std::invalid_argument(sentence); };
  if (name.empty() || name.size() > kNameBytesMax || name.find('\0') != std::string::npos) {
    reject(
        fmt::format("the name of a mailbox has {} bytes; it must have 1 to {}, none of them zero",
                    name.size(), kNameBytesMax));
  }
  if (!std::has_single_bit(options.depth_messages) || options.depth_messages > kDepthMax) {
    reject(fmt::format("mailbox \"{}\" has a depth of {}; it must be a power of two up to {}", name,
                       options.depth_messages, kDepthMax));
  }
  if (options.senders_max < 1 || options.senders_max > kSendersMax) {
    reject(fmt::format("mailbox \"{}\" has a limit of {} senders; it must be 1 to {}", name,
                       options.senders_max, kSendersMax));
  }
}

// Path of the mailbox's memory among the open files of a process: the youngest one, because the
// process may still send to an older one. Empty if there is none.
std::string memory_path(pid_t pid, const std::string& name) {
  const std::string folder = fmt::format("/proc/{}/fd", pid);
  const std::string prefix = fmt::format("/memfd:{}", kMemoryPrefix);
  const std::string suffix = fmt::format(" {} (deleted)", name);
  DIR* const entries = ::opendir(folder.c_str());
  if (entries == nullptr) return {};
  std::string found, youngest;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string path = folder + "/" + entry->d_name;
    std::array<char, 256> target;
    const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
    if (size <= 0) continue;
    const std::string_view memory(target.data(), static_cast<std::size_t>(size));
    if (memory.size() != prefix.size() + kStampDigits + suffix.size()) continue;
    if (!memory.starts_with(prefix) || !memory.ends_with(suffix) || memory <= youngest) continue;
    youngest = memory;
    found = path;
  }
  ::closedir(entries);
  return found;
}

// Spins, then yields, then naps, until `holds`. Returns false if the time was up first. `look` is
// called occasionally.
template <class Holds, class Look>
bool wait_until(os::SpinWait& spin_wait, Time timeout, const Holds& holds, const Look& look) {
  for (int i = 0; i < kQuickLooks; ++i) {
    if (holds()) return true;
  }
  const Time begin = steady_now();
  Time next_look = begin + kLookInterval;
  for (spin_wait.renew(); !holds();) {
    if (spin_wait.spin()) continue;
    const Time now = steady_now();
    if (now - begin >= timeout) return false;
    if (now >= next_look) {
      look();
      next_look = now + kLookInterval;
    }
    spin_wait.rest_or_nap(now);
  }
  return true;
}

}  // namespace

// --- Mailbox

Mailbox::Mailbox(std::string name, std::shared_ptr<Memory> memory)
    : name_(std::move(name)), memory_(std::move(memory)) {}

Mailbox::Mailbox(const std::string& name, const MailboxOptions& options) : name_(name) {
  check(name, options);
  FileDescriptor listener = os::bind_to(socket_address(name));
  if (!listener.is_open()) {
    throw std::runtime_error(
        fmt::format("mailbox \"{}\" exists already; choose another name", name));
  }
  // The owner of the name creates the memory. Others find it when it is complete.
  memory_ = Memory::create(memory_name(name), options.depth_messages, options.senders_max);
  os::listen_on(listener);
  listener_ = std::make_shared<FileDescriptor>(std::move(listener));
}

// The kernel identifies the owner of the name. The owner need not answer.
Mailbox Mailbox::find(const std::string& name) {
  check(name, {});
  const FileDescriptor connection = os::connect_to(socket_address(name));
  if (!connection.is_open() && errno == EAGAIN) {
    throw std::runtime_error(
        fmt::format("mailbox \"{}\" has had too many look-ups while its maker did not receive; it "
                    "must receive or call serve_lookups",
                    name));
  }
  ucred owner{};
  socklen_t size = sizeof(owner);
  const bool is_known = connection.is_open() && ::getsockopt(connection.number(), SOL_SOCKET,
                                                             SO_PEERCRED, &owner, &size) == 0;
  const std::string path = is_known ? memory_path(owner.pid, name) : std::string();
  if (path.empty()) {
    throw std::runtime_error(fmt::format("there is no mailbox \"{}\" on this host", name));
  }
  return Mailbox(name, Memory::open(path));
}

void Mailbox::serve_lookups() const {
  while (listener_ != nullptr && os::accept_from(*listener_).is_open()) continue;
}

// --- Sender

Sender::Sender(const Mailbox& mailbox)
    : name_(mailbox.name()), memory_(mailbox.memory()->reopened()) {
  Control& control = memory_->control();
  while (lane_ < control.lanes && !memory_->lock_lane(lane_)) ++lane_;
  if (lane_ == control.lanes) {
    throw std::runtime_error(
        fmt::format("mailbox \"{}\" already has {} senders, its maximum", name_, control.lanes));
  }
  state_ = &memory_->state(lane_);
  slots_ = memory_->slots(lane_);
  mask_ = control.depth - 1;
  // The lane's previous owner may have sent more than was released.
  credit_ = state_->credit.load(std::memory_order_acquire);
  position_ = credit_;
  const auto is_sent = [&](std::uint64_t number) {
    const Slot& slot = slots_[place_of(number - 1, mask_)];
    return slot.tag.load(std::memory_order_acquire) >> 8 == number;
  };
  while (position_ - credit_ <= mask_ && is_sent(position_ + 1)) ++position_;
  std::uint32_t used = control.lanes_used.load();
  while (used <= lane_ && !control.lanes_used.compare_exchange_weak(used, lane_ + 1)) continue;
}

void Sender::write(std::span<const std::byte> payload) {
  Slot& slot = slots_[place_of(position_, mask_)];
  if (!payload.empty()) std::memcpy(slot.payload, payload.data(), payload.size());
  ++position_;
  slot.tag.store(tag_of(position_, payload.size()), std::memory_order_release);
}

bool Sender::has_new_credit() {
  credit_ = state_->credit.load(std::memory_order_acquire);
  return position_ - credit_ <= mask_;
}

void Sender::throw_too_large(std::size_t size_bytes) {
  throw std::invalid_argument(
      fmt::format("a message has {} bytes; it must have at most {}", size_bytes, kPayloadBytesMax));
}

void Sender::send(std::span<const std::byte> payload, Time timeout) {
  if (try_send(payload)) return;
  Time alone_since = Time::max();
  const auto throw_if_alone = [&] {
    const Time now = steady_now();
    alone_since = memory_->has_reader() ? Time::max() : std::min(alone_since, now);
    if (alone_since == Time::max() || now - alone_since < kGrace || has_new_credit()) return;
    throw TransportError(TransportError::Kind::peer_died, transport::kNoPeer,
                         fmt::format("mailbox \"{}\" is full, and its receiver is gone", name_));
  };
  if (!wait_until(spin_wait_, timeout, [&] { return has_new_credit(); }, throw_if_alone)) {
    throw TransportError(
        TransportError::Kind::timeout, transport::kNoPeer,
        fmt::format("mailbox \"{}\" was full for {:g} s; its receiver is {}", name_,
                    timeout.seconds(), has_receiver() ? "alive, but slow or stopped" : "gone"));
  }
  write(payload);
}

// --- Receiver

Receiver::Receiver(const Mailbox& mailbox)
    : mailbox_(mailbox), memory_(mailbox.memory()->reopened()) {
  if (!memory_->lock_reader()) {
    throw std::runtime_error(fmt::format("mailbox \"{}\" already has a receiver", mailbox.name()));
  }
  mask_ = memory_->control().depth - 1;
  credit_step_ = std::max<std::uint64_t>(memory_->control().depth / 4, 1);
  lanes_.reserve(memory_->control().lanes);
  add_lanes();
}

void Receiver::add_lanes() {
  const std::uint32_t used = memory_->control().lanes_used.load(std::memory_order_acquire);
  for (auto lane = static_cast<std::uint32_t>(lanes_.size()); lane < used; ++lane) {
    LaneState& state = memory_->state(lane);
    const std::uint64_t head = state.head.load(std::memory_order_acquire);
    state.credit.store(head, std::memory_order_release);
    lanes_.push_back({&state, memory_->slots(lane), head, head});
  }
}

void Receiver::release() {
  if (unreleased_ == nullptr) return;
  Lane& lane = *std::exchange(unreleased_, nullptr);
  lane.state->head.store(lane.head, std::memory_order_release);
  if (lane.head - lane.credited < credit_step_) return;
  lane.credited = lane.head;
  lane.state->credit.store(lane.head, std::memory_order_release);
}

bool Receiver::take(std::uint32_t number, Message& message) {
  Lane& lane = lanes_[number];
  const Slot& slot = lane.slots[place_of(lane.head, mask_)];
  const std::uint64_t tag = slot.tag.load(std::memory_order_acquire);
  if (tag >> 8 != lane.head + 1) return false;
  ++lane.head;
  message.lane = number;
  message.number = lane.head;
  message.size_bytes = tag & 0xff;
  std::memcpy(message.bytes.data(), slot.payload, kPayloadBytesMax);
  unreleased_ = &lane;
  return true;
}

bool Receiver::try_receive(Message& message) {
  if (++looks_ % kLooksPerServing == 0) mailbox_.serve_lookups();
  release();
  const auto lanes = static_cast<std::uint32_t>(lanes_.size());
  for (std::uint32_t i = 0; i < lanes; ++i) {
    const bool is_enough = taken_in_row_ == kInRowMax;
    if (!is_enough && take(next_, message)) {
      ++taken_in_row_;
      return true;
    }
    next_ = next_ + 1 < lanes ? next_ + 1 : 0;
    taken_in_row_ = 0;
  }
  if (lanes > 0 && take(next_, message)) return true;
  if (memory_->control().lanes_used.load(std::memory_order_relaxed) == lanes) return false;
  add_lanes();
  return try_receive(message);
}

// A shorter check detects a message sooner. Ends when there is one.
void Receiver::look_at_one_lane() const {
  if (lanes_.size() != 1) return;
  const Lane& lane = lanes_.front();
  const Slot& slot = lane.slots[place_of(lane.head, mask_)];
  for (int i = 0; i < kLooksAtOneLane; ++i) {
    if (slot.tag.load(std::memory_order_acquire) >> 8 == lane.head + 1) return;
  }
}

bool Receiver::receive(Message& message, Time timeout) {
  const auto has_come = [&] {
    release();
    look_at_one_lane();
    return try_receive(message);
  };
  return wait_until(spin_wait_, timeout, has_come, [&] { mailbox_.serve_lookups(); });
}

// --- Context

Sender& Context::sender_to(const std::string& name) {
  auto found = senders_.find(name);
  if (found == senders_.end()) {
    found = senders_.emplace(name, Sender(Mailbox::find(name))).first;
  }
  return found->second;
}

// A mailbox without a receiver may never be read again: the next call looks the name up again.
void Context::send(const std::string& to, std::span<const std::byte> payload, Time timeout) {
  Sender& sender = sender_to(to);
  try {
    sender.send(payload, timeout);
  } catch (const TransportError&) {
    if (!sender.has_receiver()) senders_.erase(to);
    throw;
  }
}

bool Context::try_send(const std::string& to, std::span<const std::byte> payload) {
  Sender& sender = sender_to(to);
  if (sender.try_send(payload)) return true;
  if (!sender.has_receiver()) senders_.erase(to);
  return false;
}

namespace {

constexpr std::uint64_t kVersion = 0x6d61'696c'626f'7802;  // the last byte is the version number
constexpr std::size_t kControlBytes = 4096;
static_assert(sizeof(Control) <= kControlBytes);

std::size_t size_of(std::uint32_t depth, std::uint32_t lanes) {
  return kControlBytes + lanes * (sizeof(LaneState) + depth * sizeof(Slot));
}

[[noreturn]] void throw_system_error(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// Locks of an open file description, which fork() and dup() share and open() does not.
struct flock lock_of(short type, std::uint32_t byte) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

}  // namespace

std::shared_ptr<Memory> Memory::create(const std::string& name, std::uint32_t depth,
                                       std::uint32_t lanes) {
  const std::size_t size_bytes = size_of(depth, lanes);
  const FileDescriptor file = os::create_shared_memory(name, size_bytes);
  const os::SharedMapping mapping(file, size_bytes);
  Control& control = *reinterpret_cast<Control*>(mapping.data());
  control.depth = depth;
  control.lanes = lanes;
  control.version = kVersion;
  return open(fmt::format("/proc/self/fd/{}", file.number()));
}

std::shared_ptr<Memory> Memory::open(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.is_open()) throw_system_error("cannot open a mailbox");
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) throw_system_error("cannot look at a mailbox");
  const auto size_bytes = static_cast<std::size_t>(status.st_size);
  if (size_bytes < kControlBytes) throw std::runtime_error("the file is not a mailbox");
  auto memory = std::make_shared<Memory>(std::move(file), size_bytes);
  const Control& control = memory->control();
  if (control.version != kVersion || size_of(control.depth, control.lanes) != size_bytes) {
    throw std::runtime_error("the file is not a mailbox of this version");
  }
  memory->states_ = reinterpret_cast<LaneState*>(memory->mapping_.data() + kControlBytes);
  memory->slots_ = reinterpret_cast<Slot*>(memory->states_ + control.lanes);
  return memory;
}

std::shared_ptr<Memory> Memory::reopened() const {
  return open(fmt::format("/proc/self/fd/{}", file_.number()));
}

bool Memory::lock(std::uint32_t byte) {
  struct flock wanted = lock_of(F_WRLCK, byte);
  return ::fcntl(file_.number(), F_OFD_SETLK, &wanted) == 0;
}

bool Memory::has_reader() const {
  struct flock found = lock_of(F_WRLCK, 0);
  return ::fcntl(file_.number(), F_OFD_GETLK, &found) == 0 && found.l_type != F_UNLCK;
}

}  // namespace towpath::riscv_mailbox::live

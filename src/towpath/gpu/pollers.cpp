// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/pollers.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "towpath/gpu/pe.hpp"

namespace towpath::gpu {

namespace {

PolledValue value_of(const volatile void* address, std::size_t size_bytes) {
  PolledValue value;
  std::memcpy(&value, const_cast<const void*>(address), std::min(size_bytes, sizeof(value)));
  return value;
}

}  // namespace

void Pollers::poll(Block& block, const volatile void* address, unsigned size_bytes) {
  Thread& thread = block.running();
  const auto is_as_it_was = [&] {
    return thread.polled == address && thread.polled_value == value_of(address, size_bytes);
  };
  if (is_as_it_was()) block.reach(block.work().thread_time());
  // Other threads may have stored to it in the meantime.
  if (is_as_it_was()) {
    thread.state = Thread::State::waiting;
    thread.is_polling = true;
    add(block, block.running_index(), size_bytes);
    thread.site = {nullptr, 0, "a poll of volatile memory"};
    block.suspend_for(Activity::wait, thread.site);
    thread.is_polling = false;
  }
  thread.polled = address;
  thread.polled_value = value_of(address, size_bytes);
}

void Pollers::add(Block& block, int thread, unsigned size_bytes) {
  pe_.current().quiet_shared_stores = {};
  const Thread& polling = block.thread(thread);
  const bool is_shared =
      pe_.current().shared.contains(reinterpret_cast<std::uintptr_t>(polling.polled));
  auto poller = std::make_unique<Poller>(Poller{this, &block, thread, size_bytes, is_shared});
  if (pe_.heap().contains(const_cast<const void*>(polling.polled))) {
    poller->wait.first = pe_.heap().offset_of(const_cast<const void*>(polling.polled));
    poller->wait.size_bytes = size_bytes;
    poller->wait.context = poller.get();
    poller->wait.holds = [](const transport::MemoryWait& wait) {
      return static_cast<const Poller*>(wait.context)->has_changed();
    };
    poller->wait.ready = [](transport::MemoryWait& wait) {
      auto& found = *static_cast<Poller*>(wait.context);
      found.of->wake(found);
    };
    Poller& added = *poller;
    pollers_.push_back(std::move(poller));
    pe_.remote_memory().wait(added.wait);
    return;
  }
  pollers_.push_back(std::move(poller));
}

bool Pollers::Poller::has_changed() const {
  const Thread& polling = block->thread(thread);
  return value_of(polling.polled, size_bytes) != polling.polled_value;
}

void Pollers::wake(const Poller& poller) {
  poller.block->woken(poller.thread, {poller.wait.first, poller.wait.size_bytes});
  std::erase_if(pollers_, [&](const auto& each) { return each.get() == &poller; });
}

void Pollers::look_again() {
  for (std::size_t i = pollers_.size(); i-- > 0;) {
    if (i < pollers_.size() && pollers_[i]->has_changed()) notice(*pollers_[i]);
  }
}

// The word has a new value, which the thread sees with its next poll. In simulated time the
// transport reports heap words after the same delay.
void Pollers::notice(Poller& poller) {
  if (!pe_.is_timed() || poller.is_shared) {
    if (poller.wait.is_waiting) pe_.remote_memory().cancel(poller.wait);
    return wake(poller);
  }
  if (poller.wait.is_waiting || std::exchange(poller.is_looking, true)) return;
  pe_.simulation().after(
      pe_.cost().poll,
      [](void* context) {
        auto& looking = *static_cast<Poller*>(context);
        looking.is_looking = false;
        if (looking.has_changed()) looking.of->wake(looking);
      },
      &poller);
}

std::size_t Pollers::wake_all() {
  const std::size_t count = pollers_.size();
  while (!pollers_.empty()) {
    if (pollers_.back()->wait.is_waiting) pe_.remote_memory().cancel(pollers_.back()->wait);
    wake(*pollers_.back());
  }
  return count;
}

void Pollers::note_store(const volatile void* address, std::uint64_t size_bytes) {
  const void* const plain = const_cast<const void*>(address);
  const int owner = pe_.heap().owner_of(plain);
  if (owner == transport::kNoPeer) {
    has_stored_ = true;
    return;
  }
  const std::uintptr_t begin = pe_.heap().of(owner).begin;
  stored_.push_back({owner, reinterpret_cast<std::uintptr_t>(plain) - begin, size_bytes});
}

void Pollers::notify_stores() {
  if (!stored_.empty()) {
    const std::vector<StoredRange> ranges = std::move(stored_);
    stored_.clear();
    for (const StoredRange& range : ranges) {
      Pe* const owner = pe_.run().pes[static_cast<std::size_t>(range.owner)];
      if (owner == nullptr) continue;
      owner->remote_memory().stored(range.first, range.size_bytes);
      if (owner != &pe_) owner->pollers().look_again();
    }
    has_stored_ = true;
  }
  if (std::exchange(has_stored_, false) && !pollers_.empty()) look_again();
}

}  // namespace towpath::gpu

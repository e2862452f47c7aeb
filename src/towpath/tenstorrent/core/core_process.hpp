// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "towpath/noc/chip_network.hpp"
#include "towpath/noc/niu/request.hpp"
#include "towpath/tenstorrent/core/core_observer.hpp"

namespace towpath::tenstorrent {

// The configuration of a kernel, its addresses, and the options of its calls.

// Source: tt-metal, dataflow_api.h: NOC_UNICAST_WRITE_VC and NOC_MULTICAST_WRITE_VC.
inline constexpr int kUnicastWriteVc = 1;
inline constexpr int kMulticastWriteVc = 4;
inline constexpr int kKernelNoc = -1;
// The NoC of a kernel on the compute cores, which have none.
inline constexpr int kNoNoc = -2;
inline constexpr int kOnlyChip = -1;

using NocAddress = noc::Address;

// The workers of a rectangle, and the same offset in each. A packet goes from the first corner to
// the last: right and down on NoC 0, left and up on NoC 1.
struct NocMulticastAddress {
  machine::Coordinate first;
  machine::Coordinate last;
  std::uint64_t offset = 0;

  noc::MulticastRectangle on(int noc) const { return {first, last, noc}; }
};

// Number of workers that a multicast from `source` reaches, which its call must state.
int multicast_destinations(const machine::Chip& chip, machine::Coordinate source,
                           const noc::MulticastRectangle& to, bool includes_source);

struct KernelConfig {
  machine::Coordinate core{};
  std::string name;
  int noc_index = 0;
  std::vector<std::uint32_t> compile_args{};
  std::vector<std::uint32_t> runtime_args{};
  std::vector<std::uint64_t> semaphores{};  // offset of each, from its Program
  noc::Cycle start_cycle = 0;
  int chip = kOnlyChip;    // in its cluster, from its Program
  bool is_watched = true;  // for hazards
  // It continues during later programs of its chip, on an Ethernet core. Its program ends without
  // it.
  bool is_resident = false;
};

struct WriteOptions {
  int vc = kUnicastWriteVc;
  bool is_static_vc = true;
  bool is_posted = false;
  int noc = kKernelNoc;
};
struct ReadOptions {
  int vc = kUnicastWriteVc;
  int noc = kKernelNoc;
};
struct MulticastOptions {
  int vc = kMulticastWriteVc;
  bool is_linked = false;
  int noc = kKernelNoc;
};

// A kernel as a process on a core: its time, its L1, its waits, and the names in its errors. The
// calls of a kernel are in derived classes.
class CoreProcess {
 public:
  // Throws std::invalid_argument if no kernel can run there. `observer` outlives the core,
  // and may be null.
  CoreProcess(noc::ChipNetwork& network, KernelConfig config, CoreObserver* observer);
  CoreProcess(const CoreProcess&) = delete;
  CoreProcess& operator=(const CoreProcess&) = delete;

  const KernelConfig& config() const { return config_; }
  CoreObserver& observer() const { return *observer_; }
  noc::ChipNetwork& network() const { return network_; }
  noc::Cycle cycle() const { return network_.cycle(); }
  // Keeps the core busy with other work for this number of cycles, or until a cycle.
  void work(noc::Cycle cycles);
  void work_until(noc::Cycle cycle);

  // "kernel 'a' on core (1, 1) in noc_async_read": the start of every error message. For a kernel
  // with lines, "... in noc_async_read at reader.cpp:7".
  std::string where() const;
  // Places in the kernel's code: of its call in progress, set by the kernel's runtime, and their
  // text, " at reader.cpp:7" or empty.
  using PlaceWords = std::function<std::string(const void* place)>;
  void name_places_by(PlaceWords words) { place_words_ = std::move(words); }
  void come_to(const void* place) { place_ = place; }
  const void* place() const { return place_; }
  std::string words_of(const void* place) const;
  // Called with each request before it is issued.
  using RequestWatch = std::function<void(const noc::Request& request)>;
  void watch_requests_by(RequestWatch watch) { request_watch_ = std::move(watch); }
  // The kernel is at a place outside its calls.
  void leave_call(const void* place = nullptr) {
    call_ = {};
    place_ = place;
  }
  bool is_waiting() const { return wait_.kind != Wait::Kind::nothing; }
  // True if it waits and is idle until its condition holds.
  bool is_suspended() const { return is_waiting() && !wait_.has_turn; }
  // While it waits: "kernel 'a' on core (1, 1) in noc_semaphore_wait since cycle 12: ..."
  std::string describe_wait() const;
  // Bytes of its L1, one of which must change for it to continue. Empty if it waits for another
  // event, or does not wait.
  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
  };
  Range awaited() const;

 protected:
  friend class NocRequester;
  ~CoreProcess() = default;

  // The name of the starting call, a literal.
  void begin_call(std::string_view call) { call_ = call; }
  // The NoC of an option.
  int noc_of(int noc) const;
  // Waits, without polling.
  void suspend_until(noc::ChipNetwork::Condition condition, int noc);
  // Polls every poll_cycles, from now on, until the condition holds.
  void poll_counters(noc::ChipNetwork::Condition condition, int noc);
  void poll_word(std::uint64_t word, std::uint32_t value, bool is_minimum);
  // Sleeps until its L1 is written.
  void poll_l1(std::uint64_t word);
  // Reads and writes a word of the core's L1, which the observer receives. `minimum` is the
  // smallest value that the kernel waits for.
  std::uint32_t look(std::uint64_t offset, std::uint32_t minimum = ~std::uint32_t{0});
  void change(std::uint64_t offset, std::uint32_t value);
  template <typename... Arguments>
  [[noreturn]] void refuse(fmt::format_string<Arguments...> format, Arguments&&... arguments) const;
  // Runs an action that the network may reject.
  template <typename Action>
  decltype(auto) named(Action action) const;

  struct Wait {
    enum class Kind : std::uint8_t { nothing, network, word, change };
    Kind kind = Kind::nothing;
    noc::Cycle since = 0;
    int noc = 0;
    std::uint64_t word = 0;  // or, with `change`, the whole L1
    std::uint32_t value = 0;
    std::string_view relation{};  // "", "at least "
    std::string_view change{};    // the awaited event
    bool has_turn = false;        // it continues by itself to yield to the base firmware
  };
  Wait wait_;

 private:
  void finish_polling(noc::Cycle first);

  noc::ChipNetwork& network_;
  KernelConfig config_;
  CoreObserver ignores_everything_;
  CoreObserver* observer_;
  std::string_view call_;  // current call, or the last one
  const void* place_ = nullptr;
  PlaceWords place_words_;
  RequestWatch request_watch_;
};

template <typename... Arguments>
void CoreProcess::refuse(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
  throw std::invalid_argument(
      fmt::format("{}: {}", where(), fmt::format(format, std::forward<Arguments>(arguments)...)));
}

template <typename Action>
decltype(auto) CoreProcess::named(Action action) const {
  try {
    return action();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{}: {}", where(), error.what()));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", where(), error.what()));
  }
}

}  // namespace towpath::tenstorrent

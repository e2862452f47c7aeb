// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "towpath/causality/knowledge.hpp"
#include "towpath/causality/range_map.hpp"
#include "towpath/tenstorrent/core/ethernet_memory_map.hpp"

namespace towpath::tenstorrent {

class KernelWatch;

using causality::Knowledge;
using causality::Learner;
using causality::Place;
using causality::RangeMap;
using causality::Stamp;
using causality::Stream;

// Bytes in flight: their positions in the stream are their offsets plus `shift`.
struct Incoming {
  Stream stream = 0;
  std::uint64_t shift = 0;
  const KernelWatch* sender = nullptr;
  // The shift of the replaced bytes if they are unused.
  std::optional<std::uint64_t> unread_shift{};
};

// Bytes that have arrived, with the observations of their sender.
struct Arrived {
  Stamp stamp;
  Stream stream = 0;
  std::uint64_t shift = 0;
};

// Bytes that a send reads. All of the send has arrived when `end` has.
struct Source {
  Stream stream = 0;
  std::uint64_t end = 0;
  const KernelWatch* sender = nullptr;
};

// A write over the NoC, or a store.
struct Pushed {
  const KernelWatch* writer = nullptr;
  Stamp stamp;
};

// The first and the last use of bytes since they were last sent.
struct Used {
  const KernelWatch* user = nullptr;
  Stamp first;
  Stamp last;
};

// A send that its receiver must await, up to a position of the stream.
struct Awaited {
  std::uint64_t end = 0;
  const KernelWatch* sender = nullptr;
  std::uint64_t destination = 0;
  std::uint64_t size_bytes = 0;
};

// A word that is changed by atomics or whole stores.
struct Word {
  struct Increment {
    std::uint32_t total = 0;  // since the last store
    const KernelWatch* writer = nullptr;
    Stamp stamp;
  };
  std::uint32_t base = 0;
  std::vector<Increment> increments;  // not yet in `seen`
  Knowledge seen;                     // the knowledge of increments observed earlier
  bool is_counted = true;             // no increment was negative
  std::optional<Pushed> store;        // the last one by a kernel of this core
  std::optional<Pushed> inline_write;
  std::uint32_t inline_value = 0;
  std::vector<const KernelWatch*> writers;
};

// The record of one tile's memory.
struct Ledger {
  // The latest arrival in the sync word of each channel until a kernel observes it.
  std::array<std::optional<Awaited>, ethernet_memory_map::kChannels> unseen_syncs;
  RangeMap<Incoming> incoming;
  RangeMap<Arrived> arrived;
  RangeMap<Source> sources;
  RangeMap<Pushed> pushed;
  RangeMap<Used> used;  // if kernels use routers
  std::map<std::uint64_t, Word> words;
};

}  // namespace towpath::tenstorrent

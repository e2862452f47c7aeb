// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "towpath/transport/simulated/gpu/step_cost.hpp"

// Progress of a direct move through its range in pieces: the next piece is requested when the
// previous one has been sent, and up to two are in flight. Without loads, a piece is stored
// immediately.

namespace towpath::transport::simulated {

struct PieceWindow {
  Bytes size;
  Bytes piece;
  bool has_loads = false;   // from elsewhere
  bool has_stores = false;  // to elsewhere
  Bytes issued;
  Bytes loaded;             // by all loads
  Bytes stored;             // by all stores
  std::size_t sending = 0;  // messages whose last byte has not left
  bool is_done = false;     // the thread block continues

  PieceWindow() = default;
  PieceWindow(Bytes whole, bool loads, bool stores)
      : size(whole), piece(StepCost::piece_of(whole)), has_loads(loads), has_stores(stores) {}

  bool is_local() const { return (!has_loads && !has_stores) || size == Bytes(0); }
  // The size of the next piece, or zero if none may be issued now.
  Bytes issue() {
    const Bytes complete = has_stores ? stored : loaded;
    if (sending > 0 || issued == size || issued - complete >= piece * 2) return Bytes(0);
    const Bytes next = std::min(piece, size - issued);
    issued += next;
    if (!has_loads) loaded += next;
    return next;
  }
  bool is_stored() const { return stored == size; }
  // True if all data is loaded and has left.
  bool may_go_on() const { return !is_done && sending == 0 && loaded == size; }
};

}  // namespace towpath::transport::simulated

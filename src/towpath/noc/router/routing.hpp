// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/router/packet.hpp"
#include "towpath/noc/router/torus.hpp"

namespace towpath::noc {

// The route of a packet: dimension order on a torus, with a dateline on each ring. A VC number is
// (dateline bit, class, buddy bit).
class Routing {
 public:
  Routing(const machine::Chip& chip, int noc)
      : torus_(chip.width, chip.height, noc),
        classes_(chip.router.classes),
        has_dateline_(chip.router.has_dateline) {}

  const Torus& torus() const { return torus_; }
  int classes() const { return classes_; }

  int vc_of(int dateline, int packet_class, int buddy) const {
    return (dateline * classes_ + packet_class) << 1 | buddy;
  }
  int dateline_of(int vc) const { return (vc >> 1) >= classes_ ? 1 : 0; }
  int class_of(int vc) const { return (vc >> 1) % classes_; }
  // VCs whose packets a NIU accepts interleaved. Multicasts require this, because each waits for
  // all of its receivers.
  std::uint16_t interleaved_vcs() const {
    unsigned vcs = 0;
    for (int vc = 0; vc < kVcsMax; ++vc) {
      if (class_of(vc) >= static_cast<int>(PacketClass::broadcast)) vcs |= 1u << vc;
    }
    return static_cast<std::uint16_t>(vcs);
  }
  // VC on which a packet leaves a router: of the same class and buddy bit.
  int next_vc(int input, int vc, int output, bool crosses_dateline) const {
    const int dateline = dateline_of(vc);
    const int keeps = input == output || output == kNiu ? 1 : 0;
    const int next = (crosses_dateline ? 1 : 0) | (dateline & keeps);
    return vc + 2 * classes_ * (next - dateline);
  }
  bool crosses_dateline(int node, int output) const {
    if (!has_dateline_ || output == kNiu) return false;
    return output == kX ? torus_.x_of(node) + 1 == torus_.width()
                        : torus_.y_of(node) + 1 == torus_.height();
  }
  // Output of a packet at (x, y). Arithmetic instead of branches, which would be unpredictable.
  static int output_to(int x, int y, int destination_x, int destination_y) {
    static_assert(kX == 0 && kY == 1 && kNiu == 2);
    const int is_x = destination_x == x ? 1 : 0;
    const int is_y = destination_y == y ? 1 : 0;
    return is_x << is_y;
  }

 private:
  Torus torus_;
  int classes_;
  bool has_dateline_;
};

}  // namespace towpath::noc

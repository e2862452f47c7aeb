// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/collective/schedule/schedule.hpp"
#include "towpath/tenstorrent/ccl/chips.hpp"

// Deliveries to one rank. A delivery is divided into parts for the workers toward its peer, whose
// parts arrive in order. Increments of a word at the far chip, one word for each source and plane,
// announce parts.

namespace towpath::tenstorrent::ccl {

class Unicasts {
 public:
  explicit Unicasts(Chips& chips) : chips_(chips) {}

  // The receiver is notified after this number of packets of a delivery, and after the last one.
  void set_notification(collective::Notification notification, std::uint64_t packets) {
    notification_ = notification;
    packets_per_notification_ = packets;
  }
  void send(Delivery& delivery);
  // At its destination: takes the bytes from the place where the router wrote them.
  void arrived(DeliveryPart& part);

  DeliveryPart& new_part(Delivery& delivery, std::uint64_t offset, std::uint64_t size_bytes);
  // Its destination expects the part on its stream. The part itself takes longer.
  void announce(DeliveryPart& part);

 private:
  struct Route {
    std::vector<fabric::Direction> hops;
    fabric::Header header;
  };
  // Parts of a delivery on one stream since its last increment.
  struct Run {
    DeliveryPart* last = nullptr;
    std::uint64_t packets = 0;
  };
  void add_local(DeliveryPart& part);
  void add_remote(DeliveryPart& part);
  void extend(Run& run, DeliveryPart& part) const;
  Route route_of(int from, int to) const;
  std::uint64_t packets_of(const DeliveryPart& part) const {
    return (part.size_bytes + chips_.payload_bytes_max() - 1) / chips_.payload_bytes_max();
  }
  void stage(DeliveryPart& part);
  void unstage(const DeliveryPart& part) {
    chips_.at(part.from_place).workers.staging().release(part.staged_pages);
  }
  void returned(DeliveryPart& part);

  Chips& chips_;
  collective::Notification notification_ = collective::Notification::trailing;
  std::uint64_t packets_per_notification_ = 1;
};

}  // namespace towpath::tenstorrent::ccl

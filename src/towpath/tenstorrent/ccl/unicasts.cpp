// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/unicasts.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <span>
#include <utility>

#include "towpath/tenstorrent/ccl/endpoint.hpp"

namespace towpath::tenstorrent::ccl {

using collective::Notification;
using fabric::Direction;

namespace {

// Maximum number of bytes that a worker takes at a time, so that workers share a large Move. Chosen
// here, without a source.
constexpr std::uint64_t kPartBytesMax = 64 << 10;

}  // namespace

DeliveryPart& Unicasts::new_part(Delivery& delivery, std::uint64_t offset,
                                 std::uint64_t size_bytes) {
  const int from = delivery.from->place();
  DeliveryPart& part = chips_.at(from).parts.take();
  part = {};
  part.size_bytes = size_bytes;
  part.unicasts = this;
  part.delivery = &delivery;
  part.from_place = from;
  part.offset = offset;
  part.packet_bytes = chips_.payload_bytes_max();
  return part;
}

void Unicasts::announce(DeliveryPart& part) {
  chips_.notify(
      part.from_place, part.delivery->to->place(),
      [](void* context) {
        DeliveryPart& expected = *static_cast<DeliveryPart*>(context);
        expected.stream->in_flight.push_back(&expected);
      },
      &part);
}

void Unicasts::send(Delivery& delivery) {
  // All parts are counted before the first can finish.
  const std::uint64_t count =
      std::max<std::uint64_t>((delivery.size_bytes + kPartBytesMax - 1) / kPartBytesMax, 1);
  delivery.to_leave = static_cast<int>(count);
  delivery.to_arrive = static_cast<int>(count);
  std::map<const Stream*, Run> runs;
  for (std::uint64_t number = 0; number < count; ++number) {
    const std::uint64_t offset = number * kPartBytesMax;
    DeliveryPart& part =
        new_part(delivery, offset, std::min(delivery.size_bytes - offset, kPartBytesMax));
    part.work = delivery.work;
    stage(part);
    if (delivery.to == nullptr || delivery.to == delivery.from) {
      add_local(part);
    } else {
      add_remote(part);
      extend(runs[part.stream], part);
    }
  }
}

// No simulated time has passed since the previous part was added, so none of it has left.
void Unicasts::extend(Run& run, DeliveryPart& part) const {
  part.arrivals = 1;
  part.notification = notification_;
  if (run.last != nullptr && run.packets < packets_per_notification_) {
    part.arrivals += std::exchange(run.last->arrivals, 0);
  } else {
    run.packets = 0;
  }
  run.packets += packets_of(part);
  run.last = &part;
}

void Unicasts::add_local(DeliveryPart& part) {
  part.left = [](Part& left) {
    DeliveryPart& done = static_cast<DeliveryPart&>(left);
    Delivery& delivery = *done.delivery;
    const bool arrives = delivery.to != nullptr;
    done.unicasts->returned(done);
    delivery.from->part_left(delivery);
    if (arrives) delivery.from->part_arrived(delivery);
  };
  part.work.has_destination = !part.work.stays_in_l1;
  chips_.at(part.from_place).workers.local().add(part);
}

void Unicasts::add_remote(DeliveryPart& part) {
  part.left = [](Part& left) {
    DeliveryPart& done = static_cast<DeliveryPart&>(left);
    if (!done.work.has_destination) done.unicasts->unstage(done);
    done.delivery->from->part_left(*done.delivery);
  };
  const int from = part.from_place;
  const int to = part.delivery->to->place();
  const Route route = route_of(from, to);
  ChipWorkers& workers = chips_.at(from).workers;
  const int plane = workers.plane_for(route.hops.front(), part.size_bytes);
  Place& there = chips_.at(to);
  part.stream = &there.arrivals.unicasts(from, plane);
  part.landing_pages = chips_.take_pages(part.stream->landings, packets_of(part), to);
  part.landing = part.stream->landings.first_page(part.landing_pages);
  announce(part);
  part.pages = &there.workers.pages();
  part.lander = chips_.fabric().port(to, fabric::opposite(route.hops.back()), plane).tile;
  part.header = route.header;
  // The same for all of a stream, which stay in order.
  if (chips_.topology().shape().dimensions.front().is_ring) {
    part.hops = static_cast<int>(route.hops.size());
  }
  part.arrival_word = fabric::pack(there.arrivals.unicast_word(from, plane));
  workers.toward(route.hops.front(), plane).add(part);
}

// Half way around a ring, the reduce-scatter takes the same direction at each rank, and puts more
// load on the links of one direction. Source: tt-metal, reduce_scatter_minimal_direct_factory.cpp.
Unicasts::Route Unicasts::route_of(int from, int to) const {
  const fabric::Topology& topology = chips_.topology();
  const fabric::Dimension& line = topology.shape().dimensions.front();
  Route route{topology.route(from, to), {}};
  const bool is_halfway =
      !topology.is_two_dimensional() && line.is_ring && 2 * std::abs(to - from) == line.size;
  if (is_halfway && notification_ == Notification::attached) {
    constexpr Direction kUp = 0;
    route.hops.assign(route.hops.size(), kUp);
    route.header = chips_.fabric().header_along(from, kUp, line.size / 2);
  } else {
    route.header = chips_.fabric().header(from, to);
  }
  return route;
}

// Copies the bytes to the pages from which the worker reads them.
void Unicasts::stage(DeliveryPart& part) {
  ChipWorkers& workers = chips_.at(part.from_place).workers;
  part.staged_pages = chips_.take_pages(workers.staging(), packets_of(part), part.from_place);
  part.staging = workers.staging().first_page(part.staged_pages);
  const std::span<const std::byte> payload(part.delivery->payload);
  if (payload.empty()) return;
  workers.write_pages(part.staging, payload.subspan(part.offset, part.size_bytes),
                      part.packet_bytes);
}

void Unicasts::arrived(DeliveryPart& part) {
  Delivery& delivery = *part.delivery;
  const int place = delivery.to->place();
  if (!delivery.payload.empty()) {
    chips_.at(place).workers.read_pages(
        part.landing, std::span(delivery.payload).subspan(part.offset, part.size_bytes),
        part.packet_bytes);
  }
  // All parts of a broadcast are returned at once.
  if (delivery.broadcast == nullptr) {
    chips_.notify(
        place, part.from_place,
        [](void* context) {
          DeliveryPart& done = *static_cast<DeliveryPart*>(context);
          done.unicasts->returned(done);
        },
        &part);
  }
  delivery.to->part_arrived(delivery);
}

// At its source: the part has arrived, or has left and will not be resent.
void Unicasts::returned(DeliveryPart& part) {
  // A store to the DRAM of the source is still in flight when the last packet leaves.
  if (part.stream == nullptr || part.work.has_destination) unstage(part);
  if (part.stream != nullptr) part.stream->landings.release(part.landing_pages);
  chips_.at(part.from_place).parts.release(part);
}

}  // namespace towpath::tenstorrent::ccl

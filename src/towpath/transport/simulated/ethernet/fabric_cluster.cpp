// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/simulated/ethernet/fabric_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "towpath/noc/bits.hpp"
#include "towpath/noc/torus.hpp"
#include "towpath/transport/simulated/endpoint.hpp"

namespace towpath::transport::simulated::ethernet {

using device::tenstorrent::Device;
using kernels::fabric::Direction;
using kernels::fabric::pack;
using kernels::fabric::Shape;
using noc::index;

namespace {

// What a worker takes at a time, so that workers share a large Move.
constexpr std::uint64_t kPartBytesMax = 64 << 10;
// Workers of a chip for what stays there.
constexpr int kLocalMovers = 4;
// In the L1 of the worker whose words count arrivals.
constexpr std::uint64_t kArrivals = 0x1000;

std::vector<int> places_for(std::vector<int> places, int count) {
  if (places.empty()) {
    places.resize(index(count));
    std::iota(places.begin(), places.end(), 0);
  }
  std::vector<bool> is_taken(index(count));
  for (const int place : places) {
    if (place < 0 || place >= count || is_taken[index(place)]) {
      throw std::invalid_argument(fmt::format(
          "a rank is at place {} of the fabric; allowed are {} different ones", place, count));
    }
    is_taken[index(place)] = true;
  }
  return places;
}

FabricClusterOptions completed(FabricClusterOptions options,
                               const machine::ChipCluster& description) {
  if (options.payload_bytes_max == 0) {
    options.payload_bytes_max = static_cast<std::uint64_t>(
        description.chips.front().chip->ethernet_software.fabric_payload_bytes);
  }
  return options;
}

}  // namespace

// One Move to a peer, or to the rank's own chip, from start() until it is visible there.
struct FabricCluster::Delivery {
  Endpoint* from = nullptr;
  Endpoint* to = nullptr;
  Move* move = nullptr;  // until done
  bool has_source = false;
  bool has_addend = false;
  bool has_destination = false;
  std::vector<std::byte> payload;
  std::uint64_t size_bytes = 0;
  Offset remote = 0;
  bool has_signal = false;
  std::uint64_t signal_word = 0;
  std::uint64_t signal_value = 0;
  SignalOperation signal_operation = SignalOperation::set;
  std::uint64_t epoch = 0;
  int to_leave = 0;   // parts
  int to_arrive = 0;  // parts
};

struct FabricCluster::DeliveryPart : Part {
  FabricCluster* cluster = nullptr;
  Delivery* delivery = nullptr;
  std::uint64_t offset = 0;  // in the payload
};

// What goes from one place to another on one plane, in order.
struct FabricCluster::Stream {
  std::deque<DeliveryPart*> under_way;
  std::uint32_t arrived = 0;
  std::uint64_t next_page = 0;
};

struct FabricCluster::Place {
  Place(const machine::Chip& chip, std::uint64_t payload_bytes_max)
      : pages(chip, payload_bytes_max) {}
  Pages pages;
  std::uint64_t next_page = 0;  // to stage sources in
  // By direction, then by plane.
  std::vector<std::vector<std::unique_ptr<DataMover>>> movers{kernels::fabric::kDirections};
  std::vector<std::unique_ptr<DataMover>> local_movers;
  machine::Coordinate arrivals;  // the worker with the words
  std::vector<Stream> streams;   // to here, by source and plane
};

// What one rank knows about another: what is under way by fence epoch.
struct FabricCluster::Peer {
  struct Epoch {
    std::uint64_t number = 0;
    std::uint64_t under_way = 0;
  };
  std::deque<Epoch> epochs;     // oldest first
  std::vector<Delivery*> held;  // arrived before their turn
};

class FabricCluster::Endpoint final : public simulated::Endpoint {
 public:
  Endpoint(FabricCluster& cluster, int rank, int ranks, const FabricClusterOptions& options)
      : simulated::Endpoint(cluster.simulation(), rank, ranks,
                            {options.carries_data, options.heap_bytes, options.signals}),
        cluster_(cluster),
        peers_(index(ranks)) {}

  int place() const { return cluster_.options_.places[index(rank())]; }
  bool is_addressable(int) const override { return false; }
  void start(Move& move) override;
  void fence() override { ++epoch_; }
  bool is_quiet() const override { return under_way_ == 0; }

  void part_left(Delivery& delivery);
  void part_arrived(Delivery& delivery);

 private:
  Delivery& new_delivery(Move& move);
  void deliver(Delivery& delivery);
  void deliver_held(Peer& peer);
  void release(Delivery& delivery);

  FabricCluster& cluster_;
  std::vector<Peer> peers_;
  std::uint64_t epoch_ = 0;
  std::uint64_t under_way_ = 0;
  std::deque<Delivery> deliveries_;  // storage
  std::vector<Delivery*> free_deliveries_;
};

// --- one rank
// -------------------------------------------------------------------------------------

FabricCluster::Delivery& FabricCluster::Endpoint::new_delivery(Move& move) {
  if (free_deliveries_.empty()) free_deliveries_.push_back(&deliveries_.emplace_back());
  Delivery& delivery = *free_deliveries_.back();
  free_deliveries_.pop_back();
  delivery.from = this;
  delivery.to = nullptr;
  delivery.move = &move;
  delivery.has_source = move.has_source;
  delivery.has_addend = move.has_addend;
  delivery.has_destination = move.has_destination;
  delivery.size_bytes = move.size_bytes;
  delivery.remote = move.remote;
  delivery.has_signal = move.has_signal;
  delivery.signal_value = move.signal_value;
  delivery.signal_operation = move.signal_operation;
  delivery.epoch = epoch_;
  if (move.peer == kNoPeer) return delivery;
  if (move.peer < 0 || move.peer >= ranks()) {
    throw std::out_of_range(
        fmt::format("rank {} puts to rank {}; there are {}", rank(), move.peer, ranks()));
  }
  delivery.to = cluster_.endpoints_[index(move.peer)].get();
  if (move.has_signal) {
    heap().check_signal(move.signal);
    delivery.signal_word = heap().word_of(move.signal);
  }
  if (move.size_bytes > 0) heap().check_range(move.remote, move.size_bytes);
  Peer& peer = peers_[index(move.peer)];
  if (peer.epochs.empty() || peer.epochs.back().number != epoch_) {
    peer.epochs.push_back({epoch_, 0});
  }
  ++peer.epochs.back().under_way;
  ++under_way_;
  return delivery;
}

void FabricCluster::Endpoint::start(Move& move) {
  Delivery& delivery = new_delivery(move);
  const bool moves_bytes = carries_data() && move.has_source && move.size_bytes > 0;
  if (moves_bytes) {
    delivery.payload.resize(move.size_bytes);
    combine(move, move.has_destination ? move.destination : delivery.payload.data());
    if (move.has_destination) {
      std::memcpy(delivery.payload.data(), move.destination, move.size_bytes);
    }
  }
  // A flag alone is a posted store: its sender goes on at once.
  const bool is_flag = !move.has_source;
  if (is_flag) delivery.move = nullptr;
  cluster_.send(delivery);
  if (is_flag) finish(move);
}

void FabricCluster::Endpoint::part_left(Delivery& delivery) {
  if (--delivery.to_leave > 0) return;
  Move* move = std::exchange(delivery.move, nullptr);
  if (delivery.to == nullptr) release(delivery);
  if (move != nullptr) finish(*move);
}

void FabricCluster::Endpoint::part_arrived(Delivery& delivery) {
  if (--delivery.to_arrive > 0) return;
  Peer& peer = peers_[index(delivery.to->rank())];
  if (delivery.epoch != peer.epochs.front().number) {
    peer.held.push_back(&delivery);
    return;
  }
  deliver(delivery);
  deliver_held(peer);
}

// What a fence put behind something that was still under way to the same peer.
void FabricCluster::Endpoint::deliver_held(Peer& peer) {
  while (!peer.epochs.empty() && peer.epochs.front().under_way == 0) {
    peer.epochs.pop_front();
    std::vector<Delivery*> ready;
    std::erase_if(peer.held, [&](Delivery* held) {
      const bool is_next = !peer.epochs.empty() && held->epoch == peer.epochs.front().number;
      if (is_next) ready.push_back(held);
      return is_next;
    });
    for (Delivery* next : ready) deliver(*next);
  }
}

void FabricCluster::Endpoint::deliver(Delivery& delivery) {
  Endpoint& to = *delivery.to;
  if (!delivery.payload.empty()) {
    std::memcpy(to.data(delivery.remote), delivery.payload.data(), delivery.payload.size());
  }
  --peers_[index(to.rank())].epochs.front().under_way;
  --under_way_;
  const bool has_signal = delivery.has_signal;
  const std::uint64_t word = delivery.signal_word;
  const std::uint64_t value = delivery.signal_value;
  const SignalOperation operation = delivery.signal_operation;
  release(delivery);
  if (has_signal) to.raise(word, value, operation);
  notify_blocked();
}

void FabricCluster::Endpoint::release(Delivery& delivery) {
  delivery.payload.clear();
  free_deliveries_.push_back(&delivery);
}

// --- parts
// ----------------------------------------------------------------------------------------

FabricCluster::DeliveryPart& FabricCluster::new_part() {
  if (free_parts_.empty()) {
    parts_.push_back(std::make_unique<DeliveryPart>());
    free_parts_.push_back(parts_.back().get());
  }
  DeliveryPart& part = *free_parts_.back();
  free_parts_.pop_back();
  part = {};
  part.cluster = this;
  return part;
}

void FabricCluster::send(Delivery& delivery) {
  // All are counted before the first can be done.
  const std::uint64_t count =
      std::max<std::uint64_t>((delivery.size_bytes + kPartBytesMax - 1) / kPartBytesMax, 1);
  delivery.to_leave = static_cast<int>(count);
  delivery.to_arrive = static_cast<int>(count);
  for (std::uint64_t number = 0; number < count; ++number) {
    const std::uint64_t offset = number * kPartBytesMax;
    add_part(delivery, offset, std::min(delivery.size_bytes - offset, kPartBytesMax));
  }
}

void FabricCluster::add_part(Delivery& delivery, std::uint64_t offset, std::uint64_t size_bytes) {
  const int from = delivery.from->place();
  Place& place = *places_[index(from)];
  DeliveryPart& part = new_part();
  part.delivery = &delivery;
  part.offset = offset;
  part.size_bytes = size_bytes;
  part.has_source = delivery.has_source;
  part.has_addend = delivery.has_addend;
  part.has_destination = delivery.has_destination;
  stage(part, place);
  if (delivery.to == nullptr || delivery.to == delivery.from) {
    part.left = [](Part& left) {
      DeliveryPart& done = static_cast<DeliveryPart&>(left);
      Delivery& all = *done.delivery;
      const bool arrives = all.to != nullptr;
      done.cluster->free_parts_.push_back(&done);
      all.from->part_left(all);
      if (arrives) all.from->part_arrived(all);
    };
    part.has_destination = true;
    return least_loaded(place.local_movers).add(part);
  }
  part.left = [](Part& left) {
    Delivery& all = *static_cast<DeliveryPart&>(left).delivery;
    all.from->part_left(all);
  };
  const int to = delivery.to->place();
  const auto& movers = place.movers[fabric_.first_hop(from, to)];
  DataMover& mover = least_loaded(movers);
  const auto plane = static_cast<int>(
      std::ranges::find_if(movers, [&](const auto& each) { return each.get() == &mover; }) -
      movers.begin());
  Stream& on = stream(from, to, plane);
  const Pages& pages = places_[index(to)]->pages;
  const std::uint64_t ring = pages.pages() / 2 / places_[index(to)]->streams.size();
  const std::uint64_t needed =
      (size_bytes + options_.payload_bytes_max - 1) / options_.payload_bytes_max;
  if (on.next_page + needed > ring) on.next_page = 0;
  const auto number = static_cast<std::uint64_t>(&on - places_[index(to)]->streams.data());
  part.landing = number * ring + on.next_page;
  on.next_page += needed;
  on.under_way.push_back(&part);
  part.pages = &pages;
  const Direction last_hop = fabric_.topology().route(from, to).back();
  part.lander = fabric_.port(to, kernels::fabric::opposite(last_hop), plane).tile;
  part.header = fabric_.header(from, to);
  part.arrival_word = pack(arrival_word(from, to, plane));
  mover.add(part);
}

// The bytes where the worker will read them: in the upper half of the chip's pages.
void FabricCluster::stage(DeliveryPart& part, Place& place) {
  const std::uint64_t payload_max = options_.payload_bytes_max;
  const std::uint64_t needed = (part.size_bytes + payload_max - 1) / payload_max;
  const std::uint64_t half = place.pages.pages() / 2;
  if (place.next_page + needed > half) place.next_page = 0;
  part.staging = half + place.next_page;
  place.next_page += needed;
  const std::span<const std::byte> payload(part.delivery->payload);
  if (payload.empty()) return;
  Device& device = fabric_.device(part.delivery->from->place());
  for (std::uint64_t number = 0; number < needed; ++number) {
    const std::uint64_t begin = number * payload_max;
    const std::uint64_t size_bytes = std::min(part.size_bytes - begin, payload_max);
    const noc::Address page = place.pages.address(part.staging + number);
    device.memory(page.tile).write(page.offset, payload.subspan(part.offset + begin, size_bytes));
  }
}

DataMover& FabricCluster::least_loaded(
    const std::vector<std::unique_ptr<DataMover>>& movers) const {
  return **std::ranges::min_element(movers, {},
                                    [](const auto& mover) { return mover->queued_bytes(); });
}

FabricCluster::Stream& FabricCluster::stream(int from, int to, int plane) {
  return places_[index(to)]->streams[index(from * fabric_.topology().planes() + plane)];
}

noc::Address FabricCluster::arrival_word(int from, int to, int plane) const {
  const auto number = static_cast<std::uint64_t>(from * fabric_.topology().planes() + plane);
  return {places_[index(to)]->arrivals, kArrivals + number * noc::kWordBytes};
}

// The bytes come from where the router wrote them.
void FabricCluster::arrived(DeliveryPart& part) {
  Delivery& delivery = *part.delivery;
  if (!delivery.payload.empty()) {
    const int place = delivery.to->place();
    const std::uint64_t payload_max = options_.payload_bytes_max;
    std::span<std::byte> payload(delivery.payload);
    for (std::uint64_t begin = 0; begin < part.size_bytes; begin += payload_max) {
      const noc::Address page =
          places_[index(place)]->pages.address(part.landing + begin / payload_max);
      const std::uint64_t size_bytes = std::min(part.size_bytes - begin, payload_max);
      fabric_.device(place).memory(page.tile).read(
          page.offset, payload.subspan(part.offset + begin, size_bytes));
    }
  }
  free_parts_.push_back(&part);
  delivery.from->part_arrived(delivery);
}

// Looks at the words of a chip whenever one of them has changed.
void FabricCluster::watch_arrivals(int place) {
  Place& here = *places_[index(place)];
  noc::ChipNetwork& network = fabric_.device(place).network();
  sim::Simulation& simulation = network.simulation();
  const std::uint64_t size_bytes = here.streams.size() * noc::kWordBytes;
  while (size_bytes > 0) {
    for (std::size_t number = 0; number < here.streams.size(); ++number) {
      Stream& stream = here.streams[number];
      const std::uint32_t count =
          network.load_word(here.arrivals, kArrivals + number * noc::kWordBytes);
      while (stream.arrived != count) {
        ++stream.arrived;
        DeliveryPart& part = *stream.under_way.front();
        stream.under_way.pop_front();
        arrived(part);
      }
    }
    network.wake_on_write(here.arrivals, kArrivals, *simulation.current(), size_bytes);
    simulation.suspend("arrivals");
  }
}

// --- the cluster
// ----------------------------------------------------------------------------------

FabricCluster::FabricCluster(std::shared_ptr<const machine::ChipCluster> description,
                             const FabricClusterOptions& options)
    : options_(completed(options, *description)),
      description_(std::move(description)),
      cluster_(description_, options.run),
      fabric_(cluster_,
              options.shape ? *options.shape : kernels::fabric::usual_shape_of(*description_),
              {.payload_bytes_max = options_.payload_bytes_max}) {
  const kernels::fabric::Topology& topology = fabric_.topology();
  options_.places = places_for(options.places, topology.places());
  for (int place = 0; place < topology.places(); ++place) {
    const machine::Chip& chip = fabric_.device(place).chip();
    places_.push_back(std::make_unique<Place>(chip, options_.payload_bytes_max));
    places_.back()->arrivals = chip.workers.back();
    places_.back()->streams.resize(index(topology.places() * topology.planes()));
    create_movers(place);
    simulation().spawn(fmt::format("arrivals at chip {}", topology.chip_at(place)),
                       [this, place] { watch_arrivals(place); });
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    endpoints_.push_back(std::make_unique<Endpoint>(*this, rank, ranks(), options_));
  }
}

FabricCluster::~FabricCluster() = default;

// For each link the worker that is nearest to it, then some for what stays on the chip.
void FabricCluster::create_movers(int place) {
  const kernels::fabric::Topology& topology = fabric_.topology();
  Place& here = *places_[index(place)];
  const machine::Chip& chip = fabric_.device(place).chip();
  std::vector<machine::Coordinate> free(chip.workers.begin(), chip.workers.end() - 1);
  const auto make = [&](std::optional<kernels::fabric::RouterPort> port) {
    const auto nearest = std::ranges::min_element(free, {}, [&](machine::Coordinate worker) {
      if (!port) return 0;
      return noc::hops(chip, worker, port->tile, noc::nearer_noc(chip, worker, port->tile));
    });
    const machine::Coordinate worker = *nearest;
    free.erase(nearest);
    return std::make_unique<DataMover>(
        fabric_.program(place), here.pages,
        DataMover::Config{worker, std::move(port), options_.payload_bytes_max});
  };
  for (Direction direction = 0; direction < kernels::fabric::kDirections; ++direction) {
    for (int plane = 0; plane < topology.planes(); ++plane) {
      if (!topology.end(place, direction, plane)) continue;
      here.movers[direction].push_back(make(fabric_.port(place, direction, plane)));
    }
  }
  for (int i = 0; i < kLocalMovers; ++i) here.local_movers.push_back(make(std::nullopt));
}

Transport& FabricCluster::transport(int rank) { return *endpoints_.at(index(rank)); }

Time FabricCluster::close_connections() {
  const auto each = [&](auto action) {
    for (const auto& place : places_) {
      for (const auto& movers : place->movers) std::ranges::for_each(movers, action);
    }
  };
  each([](const auto& mover) { mover->close(); });
  run();
  Time last;
  each([&](const auto& mover) { last = std::max(last, mover->closed_at()); });
  return last;
}

void FabricCluster::run() {
  if (!std::exchange(has_started_, true)) cluster_.start();
  simulation().run();
}

}  // namespace towpath::transport::simulated::ethernet

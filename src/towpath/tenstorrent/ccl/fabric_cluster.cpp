// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/fabric_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "towpath/base/deadlock_error.hpp"
#include "towpath/base/invariant.hpp"
#include "towpath/noc/router/torus.hpp"
#include "towpath/tenstorrent/ccl/fabric_cluster_parts.hpp"
#include "towpath/tenstorrent/ccl/link_faults.hpp"
#include "towpath/tenstorrent/ccl/worker_costs.hpp"
#include "towpath/tenstorrent/fabric/router_costs.hpp"

namespace towpath::tenstorrent::ccl {

using fabric::Direction;
using fabric::pack;
using fabric::Shape;

namespace {

// Most bytes that a worker takes at a time, so that workers share a large Move. Chosen here; no
// source.
constexpr std::uint64_t kPartBytesMax = 64 << 10;
// What kernels of tt-metal's all-gather take from their first instruction to the first packet,
// beside what opens connections: 930 instructions of arguments and headers as gcc 12.2 compiles
// them, and their code from L1, in lines of 16 B (multicast_writer.cpp; that of other kernels is
// assumed to be alike).
constexpr std::int64_t kStartCycles = 930;
constexpr std::int64_t kStartLines = 196;
// Workers of a chip for Moves inside it. Chosen here; no source.
constexpr int kLocalWorkers = 4;

FabricClusterOptions completed(FabricClusterOptions options,
                               const machine::ChipCluster& description) {
  if (options.payload_bytes_max == 0) {
    options.payload_bytes_max =
        fabric::kRouterCosts.of(*description.chips.front().chip).payload_bytes;
  }
  // Packets have whole pages, unless there is no room for one.
  const std::uint64_t pages = options.payload_bytes_max / kArrayPageBytes;
  if (pages > 0) options.payload_bytes_max = pages * kArrayPageBytes;
  // Collectives keep nothing in DRAM but arrays; what kernels wait for is in the cores.
  if (!options.carries_data) options.run.stores_dram = false;
  return options;
}

}  // namespace

// --- one rank ------------------------------------------------------------------------------------

FabricCluster::Delivery& FabricCluster::Endpoint::take_delivery() {
  if (free_deliveries_.empty()) free_deliveries_.push_back(&deliveries_.emplace_back());
  Delivery& delivery = *free_deliveries_.back();
  free_deliveries_.pop_back();
  delivery.from = this;
  delivery.to = nullptr;
  delivery.broadcast = nullptr;
  return delivery;
}

FabricCluster::Delivery& FabricCluster::Endpoint::new_delivery(Move& move) {
  Delivery& delivery = take_delivery();
  delivery.has_source = move.has_source;
  delivery.has_addend = move.has_addend;
  delivery.has_destination = move.has_destination && !is_there(move);
  delivery.epoch = epoch_;
  delivery.continues_reduction = continues_reduction(move);
  delivery.adds_in_pairs = delivery.continues_reduction && move.accumulates;
  delivery.adds_received =
      move.source_in == Move::Region::slot || move.addend_in == Move::Region::slot;
  delivery.reads = reads_of(move, delivery.continues_reduction);
  delivery.stays_near = move.has_destination && is_near(move, move.destination_in);
  fill(delivery, move);
  if (move.peer == kNoPeer) return delivery;
  check_peer(move.peer);
  delivery.to = cluster_.endpoints_[index(move.peer)].get();
  orders_[index(move.peer)].add(delivery);
  ++under_way_;
  return delivery;
}

// A thread block that adds up several parts does so in one pass of the compute cores.
bool FabricCluster::Endpoint::continues_reduction(const Move& move) {
  if (move.has_addend && move.peer == kNoPeer) return !reducing_.insert(&move).second;
  reducing_.erase(&move);
  return false;
}

// What works inside the chip has its scratch at hand; links' workers read from DRAM.
bool FabricCluster::Endpoint::is_near(const Move& move, Move::Region region) const {
  return move.peer == kNoPeer && region == Move::Region::scratch && cluster_.is_scratch_near_;
}

// How many operands are read from DRAM; a sum that is added to is not read again.
int FabricCluster::Endpoint::reads_of(const Move& move, bool continues_reduction) const {
  int reads = 0;
  if (move.has_source && !is_near(move, move.source_in)) ++reads;
  if (move.has_addend && !is_near(move, move.addend_in)) ++reads;
  return continues_reduction ? std::min(reads, 1) : reads;
}

// The router has written it where it is kept. tt-metal's kernels write to the arrays of the far
// chip.
bool FabricCluster::Endpoint::is_there(const Move& move) const {
  return move.source_in == Move::Region::slot && !move.has_addend && move.has_destination;
}

void FabricCluster::Endpoint::start(Move& move) {
  if (move.peer != kNoPeer) cluster_.check_unicasts();
  Delivery& delivery = new_delivery(move);
  load(delivery);
  if (move.peer == kNoPeer && is_there(move)) {
    release(delivery);
    return finish(move);
  }
  // A flag alone is a posted store: its sender continues at once.
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
  if (delivery.broadcast != nullptr) return deliver(delivery);
  delivery.from->orders_[index(rank())].arrived(delivery,
                                                [this](Delivery& visible) { deliver(visible); });
}

// At its destination.
void FabricCluster::Endpoint::deliver(Delivery& delivery) {
  land(delivery);
  if (delivery.from == this) return delivered(delivery);
  cluster_.tell(
      *this, *delivery.from,
      [](void* context) {
        Delivery& done = *static_cast<Delivery*>(context);
        done.from->delivered(done);
      },
      &delivery);
}

void FabricCluster::Endpoint::delivered(Delivery& delivery) {
  --under_way_;
  Broadcast* const broadcast = delivery.broadcast;
  release(delivery);
  if (broadcast != nullptr) cluster_.share_delivered(*broadcast);
  notify_blocked();
}

void FabricCluster::Endpoint::release(Delivery& delivery) {
  delivery.payload.clear();
  free_deliveries_.push_back(&delivery);
}

// --- parts ---------------------------------------------------------------------------------------

// Chips know nothing of each other that is newer than what a frame could have brought.
void FabricCluster::tell(const Endpoint& from, const Endpoint& to, sim::Action action,
                         void* context) {
  Place& place = *places_[index(from.place())];
  place.crossing.at(places_[index(to.place())]->simulation,
                    place.simulation.now() + cluster_.lookahead(), action, context);
}

FabricCluster::DeliveryPart& FabricCluster::new_part(Place& place) {
  if (place.free_parts.empty()) place.free_parts.push_back(&place.parts.emplace_back());
  DeliveryPart& part = *place.free_parts.back();
  place.free_parts.pop_back();
  part = {};
  part.cluster = this;
  part.packet_bytes = options_.payload_bytes_max;
  return part;
}

void FabricCluster::send(Delivery& delivery) {
  // All parts are counted before the first can finish.
  const std::uint64_t count =
      std::max<std::uint64_t>((delivery.size_bytes + kPartBytesMax - 1) / kPartBytesMax, 1);
  delivery.to_leave = static_cast<int>(count);
  delivery.to_arrive = static_cast<int>(count);
  std::map<const Stream*, Run> runs;
  for (std::uint64_t number = 0; number < count; ++number) {
    const std::uint64_t offset = number * kPartBytesMax;
    DeliveryPart& part =
        add_part(delivery, offset, std::min(delivery.size_bytes - offset, kPartBytesMax));
    if (part.stream != nullptr) extend(runs[part.stream], part);
  }
}

// No simulated time has passed since the part before was added, so that none of it has left.
void FabricCluster::extend(Run& run, DeliveryPart& part) const {
  part.arrivals = 1;
  part.telling = telling_;
  if (run.last != nullptr && run.packets < packets_per_increment_) {
    part.arrivals += std::exchange(run.last->arrivals, 0);
  } else {
    run.packets = 0;
  }
  run.packets += pages_of(part);
  run.last = &part;
}

FabricCluster::DeliveryPart& FabricCluster::add_part(Delivery& delivery, std::uint64_t offset,
                                                     std::uint64_t size_bytes) {
  const int from = delivery.from->place();
  Place& place = *places_[index(from)];
  DeliveryPart& part = new_part(place);
  part.delivery = &delivery;
  part.from_place = from;
  part.offset = offset;
  part.size_bytes = size_bytes;
  part.has_source = delivery.has_source;
  part.has_addend = delivery.has_addend;
  part.has_destination = delivery.has_destination;
  part.reads = delivery.reads;
  part.continues_reduction = delivery.continues_reduction;
  part.adds_in_pairs = delivery.adds_in_pairs;
  part.adds_received = delivery.adds_received;
  stage(part);
  if (delivery.to == nullptr || delivery.to == delivery.from) {
    part.left = [](Part& left) {
      DeliveryPart& done = static_cast<DeliveryPart&>(left);
      Delivery& all = *done.delivery;
      const bool arrives = all.to != nullptr;
      done.cluster->part_returned(done);
      all.from->part_left(all);
      if (arrives) all.from->part_arrived(all);
    };
    part.has_destination = !delivery.stays_near;
    place.local_workers[least_loaded(place.local_workers)]->add(part);
    return part;
  }
  part.left = [](Part& left) {
    DeliveryPart& done = static_cast<DeliveryPart&>(left);
    if (!done.has_destination) done.cluster->unstage(done);
    done.delivery->from->part_left(*done.delivery);
  };
  const int to = delivery.to->place();
  const Route route = route_of(from, to);
  const auto& workers = place.workers[route.hops.front()];
  const std::size_t worker = part.size_bytes > 0 ? least_loaded(workers) : next_in_turn(workers);
  const auto plane = static_cast<int>(worker);
  Stream& on = stream(from, to, plane);
  part.stream = &on;
  part.landing_pages = take_pages(on.landings, pages_of(part), to);
  part.landing = on.landings.first_page(part.landing_pages);
  // The part itself takes longer.
  const auto announced = [](void* context) {
    DeliveryPart& coming = *static_cast<DeliveryPart*>(context);
    coming.stream->under_way.push_back(&coming);
  };
  tell(*delivery.from, *delivery.to, announced, &part);
  part.pages = &places_[index(to)]->pages;
  part.lander = fabric_.port(to, fabric::opposite(route.hops.back()), plane).tile;
  part.header = route.header;
  // The same for all of a stream, which stay in order.
  if (topology().shape().dimensions.front().is_ring) {
    part.hops = static_cast<int>(route.hops.size());
  }
  part.arrival_word = pack(arrival_word(from, to, plane));
  workers[worker]->add(part);
  return part;
}

// Half way round a ring tt-metal's reduce-scatter takes the same way at each rank, and puts more on
// the links of one way (reduce_scatter_minimal_direct_factory.cpp).
FabricCluster::Route FabricCluster::route_of(int from, int to) const {
  Route route{topology().route(from, to), {}};
  const auto& line = topology().shape().dimensions.front();
  const bool is_halfway =
      !topology().is_two_dimensional() && line.is_ring && 2 * std::abs(to - from) == line.size;
  if (is_halfway && telling_ == Telling::with_last) {
    constexpr Direction kUp = 0;
    route.hops.assign(route.hops.size(), kUp);
    route.header = fabric_.header_along(from, kUp, line.size / 2);
  } else {
    route.header = fabric_.header(from, to);
  }
  return route;
}

// Pages that a part takes, one per packet.
std::uint64_t FabricCluster::pages_of(const DeliveryPart& part) const {
  return (part.size_bytes + options_.payload_bytes_max - 1) / options_.payload_bytes_max;
}

std::uint64_t FabricCluster::take_pages(PageRing& ring, std::uint64_t count, int place) const {
  if (const auto taken = ring.take(count); taken) return *taken;
  throw std::runtime_error(
      fmt::format("more is under way than the {} bytes that the DRAM of chip {} has for it; use "
                  "smaller messages",
                  ring.pages() * options_.payload_bytes_max, fabric_.topology().chip_at(place)));
}

// Copies the bytes to where the worker will read them: the upper half of the chip's pages.
void FabricCluster::stage(DeliveryPart& part) {
  const int from = part.delivery->from->place();
  Place& place = *places_[index(from)];
  const std::uint64_t payload_max = options_.payload_bytes_max;
  part.staged_pages = take_pages(place.staging, pages_of(part), from);
  part.staging = place.staging.first_page(part.staged_pages);
  const std::span<const std::byte> payload(part.delivery->payload);
  if (payload.empty()) return;
  write_pages(from, part.staging, payload.subspan(part.offset, part.size_bytes), payload_max);
}

// A packet on each page from the first one on.
void FabricCluster::write_pages(int at, std::uint64_t first, std::span<const std::byte> payload,
                                std::uint64_t packet_bytes) {
  Device& device = fabric_.device(at);
  for (; !payload.empty(); ++first) {
    const std::size_t size_bytes = std::min<std::size_t>(payload.size(), packet_bytes);
    const noc::Address page = places_[index(at)]->pages.address(first);
    device.memory(page.tile).write(page.offset, payload.first(size_bytes));
    payload = payload.subspan(size_bytes);
  }
}

void FabricCluster::unstage(const DeliveryPart& part) {
  places_[index(part.from_place)]->staging.release(part.staged_pages);
}

std::size_t FabricCluster::least_loaded(
    const std::vector<std::unique_ptr<FabricWorker>>& workers) const {
  const auto least = std::ranges::min_element(
      workers, {}, [](const auto& worker) { return worker->queued_bytes(); });
  return static_cast<std::size_t>(least - workers.begin());
}

// Signals alone, which have no bytes, take turns.
std::size_t FabricCluster::next_in_turn(
    const std::vector<std::unique_ptr<FabricWorker>>& workers) const {
  const auto least = std::ranges::min_element(
      workers, {}, [](const auto& worker) { return worker->parts_taken(); });
  return static_cast<std::size_t>(least - workers.begin());
}

FabricCluster::Stream& FabricCluster::stream(int from, int to, int plane) {
  return places_[index(to)]->streams[index(from * fabric_.topology().planes() + plane)];
}

noc::Address FabricCluster::arrival_word(int from, int to, int plane) const {
  const auto number = static_cast<std::uint64_t>(from * fabric_.topology().planes() + plane);
  return {places_[index(to)]->arrivals, kArrivals + number * noc::kWordBytes};
}

// Takes the bytes from where the router wrote them.
void FabricCluster::arrived(DeliveryPart& part) {
  Delivery& delivery = *part.delivery;
  if (!delivery.payload.empty()) {
    const int place = delivery.to->place();
    const std::uint64_t packet_bytes = part.packet_bytes;
    std::span<std::byte> payload(delivery.payload);
    for (std::uint64_t begin = 0; begin < part.size_bytes; begin += packet_bytes) {
      const noc::Address page =
          places_[index(place)]->pages.address(part.landing + begin / packet_bytes);
      const std::uint64_t size_bytes = std::min(part.size_bytes - begin, packet_bytes);
      fabric_.device(place).memory(page.tile).read(
          page.offset, payload.subspan(part.offset + begin, size_bytes));
    }
  }
  // The whole of a broadcast returns at once.
  if (delivery.broadcast == nullptr) {
    tell(
        *delivery.to, *delivery.from,
        [](void* context) {
          DeliveryPart& done = *static_cast<DeliveryPart*>(context);
          done.cluster->part_returned(done);
        },
        &part);
  }
  delivery.to->part_arrived(delivery);
}

// At its source: it has arrived, or left for good.
void FabricCluster::part_returned(DeliveryPart& part) {
  // A store to the source's own DRAM is still under way when the last packet leaves.
  if (part.stream == nullptr || part.has_destination) unstage(part);
  if (part.stream != nullptr) part.stream->landings.release(part.landing_pages);
  places_[index(part.from_place)]->free_parts.push_back(&part);
}

// Examines the words of a chip whenever one of them has changed.
void FabricCluster::watch_arrivals(int place) {
  Place& here = *places_[index(place)];
  noc::ChipNetwork& network = fabric_.device(place).network();
  sim::Simulation& simulation = network.simulation();
  std::vector<std::uint32_t> counts(here.streams.size());
  const std::uint64_t size_bytes = counts.size() * noc::kWordBytes;
  while (size_bytes > 0) {
    network.load(here.arrivals, kArrivals, std::as_writable_bytes(std::span(counts)));
    for (std::size_t number = 0; number < counts.size(); ++number) {
      Stream& stream = here.streams[number];
      while (stream.arrived != counts[number]) {
        ++stream.arrived;
        TOWPATH_CHECK(!stream.under_way.empty(), "a part arrives at place {} before it was sent",
                      place);
        DeliveryPart& part = *stream.under_way.front();
        stream.under_way.pop_front();
        arrived(part);
      }
    }
    network.wake_on_write(here.arrivals, kArrivals, *simulation.current(), size_bytes);
    simulation.suspend("arrivals");
  }
}

// --- the cluster ---------------------------------------------------------------------------------

FabricCluster::FabricCluster(std::shared_ptr<const machine::ChipCluster> description,
                             const FabricClusterOptions& options)
    : options_(completed(options, *description)),
      description_(std::move(description)),
      cluster_(description_, options_.run),
      fabric_(cluster_, options.shape ? *options.shape : fabric::default_shape(*description_),
              {.payload_bytes_max = options_.payload_bytes_max}) {
  check_link_faults(options.run.link_faults, *description_, fabric_.topology());
  const fabric::Topology& topology = fabric_.topology();
  options_.places = simulated::placement(options.places, topology.places(), [](int place) {
    return fmt::format("place {} of the fabric", place);
  });
  for (int place = 0; place < topology.places(); ++place) {
    const machine::Chip& chip = fabric_.device(place).chip();
    places_.push_back(std::make_unique<Place>(fabric_.device(place), options_.payload_bytes_max));
    Place& here = *places_.back();
    here.arrivals = chip.workers.back();
    here.streams.resize(index(topology.places() * topology.planes() * (1 + kWays)));
    share_pages(here);
    create_workers(place);
    here.simulation.spawn(fmt::format("arrivals at chip {}", topology.chip_at(place)),
                          [this, place] { watch_arrivals(place); });
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    endpoints_.push_back(std::make_unique<Endpoint>(*this, rank, ranks(), options_));
  }
}

FabricCluster::~FabricCluster() = default;

// Arrivals get the lower half, an equal share for each source and plane.
void FabricCluster::share_pages(Place& place) {
  const fabric::Topology& topology = fabric_.topology();
  const std::uint64_t half = place.pages.pages() / 2;
  const std::size_t sources = index(topology.places() * topology.planes());
  if (half < std::max<std::uint64_t>(1, sources)) {
    throw std::invalid_argument(
        fmt::format("cluster '{}': half of a chip's DRAM holds {} packets; it needs room for one "
                    "from each of {} places and links",
                    cluster_.description().name, half, sources));
  }
  place.staging = PageRing(half, half);
  std::uint64_t first = 0;
  for (std::size_t source = 0; source < sources; ++source) {
    PageRing& landings = place.streams[source].landings;
    landings = PageRing(first, half / sources);
    first += landings.pages();
  }
}

// Places one worker near each link, then some for Moves that stay on the chip.
void FabricCluster::create_workers(int place) {
  const fabric::Topology& topology = fabric_.topology();
  Place& here = *places_[index(place)];
  const machine::Chip& chip = fabric_.device(place).chip();
  std::vector<machine::Coordinate>& free = here.free_cores;
  free.assign(chip.workers.begin(), chip.workers.end() - 1);
  const auto make = [&](std::optional<fabric::RouterPort> port) {
    const auto nearest = std::ranges::min_element(free, {}, [&](machine::Coordinate worker) {
      if (!port) return 0;
      return noc::hops(chip, worker, port->tile, FabricWorker::kWriterNoc);
    });
    const machine::Coordinate worker = *nearest;
    free.erase(nearest);
    return std::make_unique<FabricWorker>(
        fabric_.program(place), here.pages,
        FabricWorker::Config{worker, std::move(port), options_.payload_bytes_max});
  };
  for (Direction direction = 0; direction < fabric::kDirections; ++direction) {
    for (int plane = 0; plane < topology.planes(); ++plane) {
      if (!topology.end(place, direction, plane)) continue;
      here.workers[direction].push_back(make(fabric_.port(place, direction, plane)));
    }
  }
  for (int i = 0; i < kLocalWorkers; ++i) here.local_workers.push_back(make(std::nullopt));
}

void FabricCluster::launch_program(int rank) {
  Place& place = *places_[index(options_.places[index(rank)])];
  const machine::Chip& chip = fabric_.device(options_.places[index(rank)]).chip();
  const std::int64_t start_cycles =
      kStartCycles + kStartLines * kInstructionFetch.of(chip).line_cycles;
  const Time started_at = place.simulation.now() +
                          chip.clock.time_of(Cycles(kWorkerCosts.of(chip).launch + start_cycles));
  for (const auto& workers : place.workers) {
    for (const auto& worker : workers) worker->start_at(started_at);
  }
  for (const auto& worker : place.multicast_workers) worker->start_at(started_at);
}

Transport& FabricCluster::transport(int rank) { return *endpoints_.at(index(rank)); }

template <typename Action>
void FabricCluster::for_each_connected_worker(Action action) const {
  for (const auto& place : places_) {
    for (const auto& workers : place->workers) {
      for (const auto& worker : workers) action(*worker);
    }
    for (const auto& worker : place->multicast_workers) action(*worker);
  }
}

sim::Simulation& FabricCluster::simulation(int rank) {
  return places_[index(options_.places.at(index(rank)))]->simulation;
}

void FabricCluster::close_connections(int rank) {
  Place& place = *places_[index(options_.places[index(rank)])];
  for (const auto& workers : place.workers) {
    for (const auto& worker : workers) worker->close();
  }
  for (const auto& worker : place.multicast_workers) worker->close();
}

Time FabricCluster::closed_at() const {
  Time last;
  bool are_all_closed = true;
  for_each_connected_worker([&](const auto& worker) {
    last = std::max(last, worker.closed_at());
    are_all_closed &= !worker.is_open();
  });
  if (!are_all_closed) {
    const std::string outages = describe_outages(cluster_);
    throw DeadlockError(fmt::format("{}{}connections of workers to their routers never close",
                                    outages, outages.empty() ? "" : "; "));
  }
  return last;
}

void FabricCluster::run(Time limit) {
  if (!std::exchange(has_started_, true)) cluster_.start();
  if (has_faults(options_.run.link_faults)) {
    deadline_.arm_in_background(
        cluster_.simulation(), cluster_.simulation().from_now(options_.deadline),
        [](void* cluster) { static_cast<FabricCluster*>(cluster)->throw_deadline_exceeded(); },
        this);
  }
  simulations().run(limit);
  deadline_.cancel();
}

void FabricCluster::throw_deadline_exceeded() const {
  throw TransportError(TransportError::Kind::timeout, kNoPeer,
                       fmt::format("the run has not ended after {} us of simulated time; {}",
                                   options_.deadline.us(), describe_drops(cluster_)));
}

}  // namespace towpath::tenstorrent::ccl

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/simulated/gpu/direct_moves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "towpath/transport/simulated/gpu/piece_window.hpp"

namespace towpath::transport::simulated {
namespace {

// A load sends a request for each line of L2, which has 128 bytes (NVIDIA, tuning guides). Assumed:
// a request takes one flit of 16 bytes. NVIDIA publishes no format of NVLink.
constexpr std::uint64_t kLineBytes = 128;
constexpr std::uint64_t kRequestBytes = 16;

}  // namespace

// The path of one remote operand.
struct DirectMoves::Path {
  const gpu_links::Route* route = nullptr;    // of the bytes
  const gpu_links::Route* request = nullptr;  // of a load's request, or a store's acknowledgement
  std::span<const int> beside_first;
  std::span<const int> beside_last;
  std::vector<int> ranks;  // whose memory it is
  Bytes arrived;
};

struct DirectMoves::Flight {
  DirectMoves* all = nullptr;
  Endpoint* from = nullptr;
  DirectMove* move = nullptr;
  Time delay;
  std::vector<Path> loads;
  std::vector<Path> stores;
  std::vector<std::uint64_t> words;  // of the raises
  std::vector<bool> is_raised;
  std::vector<std::byte> payload;
  PieceWindow window;
};

struct DirectMoves::LinkMessage : gpu_links::Message {
  Flight* flight = nullptr;
  Path* path = nullptr;
  Bytes payload;
  bool is_load = false;
};

// The requests of a piece.
struct DirectMoves::Requests : gpu_links::Message {
  DirectMoves* all = nullptr;
};

// A signal that its reader is about to see.
struct DirectMoves::PendingRaise {
  DirectMoves* all = nullptr;
  int from = kNoPeer;
  Endpoint* to = nullptr;
  std::uint64_t word = 0;
  std::uint64_t value = 0;
};

DirectMoves::DirectMoves(sim::Simulation& simulation, gpu_links::Network& network,
                         std::vector<int> places)
    : simulation_(simulation),
      network_(network),
      places_(std::move(places)),
      under_way_(places_.size(), 0) {}

DirectMoves::~DirectMoves() = default;

// --- routes ------------------------------------------------------------------------------------

const gpu_links::Route& DirectMoves::route(int from, int to) {
  return network_.route(places_[static_cast<std::size_t>(from)],
                        places_[static_cast<std::size_t>(to)]);
}

const DirectMoves::GroupRoutes& DirectMoves::routes_of(int rank, std::span<const int> group) {
  GroupRoutes& routes = groups_[{rank, std::vector<int>(group.begin(), group.end())}];
  if (routes.to_member != nullptr) return routes;
  const int member = group.front() == rank ? group[1] : group.front();
  routes.to_member = &route(rank, member);
  routes.from_member = &route(member, rank);
  for (const int other : group) {
    if (other == member) continue;
    const bool is_own = other == rank;
    routes.up.push_back(is_own ? routes.to_member->links.front()
                               : route(other, rank).links.front());
    routes.down.push_back(is_own ? routes.from_member->links.back()
                                 : route(rank, other).links.back());
  }
  return routes;
}

std::string DirectMoves::refusal(int rank, const DirectNeeds& needs) {
  const machine::Machine& machine = network_.machine();
  for (const int peer : needs.peers) {
    if (!route(rank, peer).leaves_host) continue;
    return fmt::format(
        "rank {} loads from or stores to the memory of rank {}, which is in another host of "
        "machine "
        "'{}'; use its own host, or port channels",
        rank, peer, machine.name());
  }
  for (const std::vector<int>& group : needs.groups) {
    if (group.size() == 1) continue;
    if (!gpu(rank).in_switch_reduction) {
      return fmt::format(
          "machine '{}' has no switch that combines for a group of GPUs (in_switch_reduction)",
          machine.name());
    }
    const int first = rank == group.front() ? group[1] : group.front();
    const int hub = machine.links()[static_cast<std::size_t>(route(rank, first).links.front())].to;
    for (const int member : group) {
      if (member == rank) continue;
      const std::vector<int>& links = route(rank, member).links;
      const bool is_behind_hub =
          links.size() == 2 && machine.links()[static_cast<std::size_t>(links.front())].to == hub &&
          machine.devices()[static_cast<std::size_t>(hub)].kind == machine::DeviceKind::nvswitch;
      if (is_behind_hub) continue;
      return fmt::format(
          "ranks {} and {} are not behind one NVSwitch of machine '{}', as a group "
          "must be",
          rank, member, machine.name());
    }
  }
  return {};
}

// --- a move ------------------------------------------------------------------------------------

const machine::GpuCost& DirectMoves::gpu(int rank) const {
  return network_.machine().gpu_of_rank(places_[static_cast<std::size_t>(rank)]);
}

StepCost DirectMoves::cost(const Flight& flight) const {
  return {gpu(flight.from->rank()), flight.move->protocol, kernel_};
}

void DirectMoves::add_path(Flight& flight, std::vector<Path>& paths, const Location& location,
                           bool is_load) {
  const int own = flight.from->rank();
  Path path;
  if (location.group.size() > 1) {
    const GroupRoutes& routes = routes_of(own, location.group);
    path.route = is_load ? routes.from_member : routes.to_member;
    path.request = is_load ? routes.to_member : routes.from_member;
    (is_load ? path.beside_first : path.beside_last) = is_load ? routes.up : routes.down;
    path.ranks.assign(location.group.begin(), location.group.end());
  } else {
    const int rank = location.group.empty() ? location.rank : location.group.front();
    flight.from->check_peer(rank);
    if (rank == own) return;
    path.route = is_load ? &route(rank, own) : &route(own, rank);
    path.request = is_load ? &route(own, rank) : &route(rank, own);
    path.ranks = {rank};
  }
  paths.push_back(std::move(path));
}

void DirectMoves::start(Endpoint& from, DirectMove& move, Time delay) {
  Flight& flight = flights_.take();
  flight.all = this;
  flight.from = &from;
  flight.move = &move;
  flight.delay = delay;
  for (const Location& source : move.sources) {
    from.heap().check_range(source.offset, move.size_bytes);
    add_path(flight, flight.loads, source, true);
  }
  for (const Location& destination : move.destinations) {
    from.heap().check_range(destination.offset, move.size_bytes);
    add_path(flight, flight.stores, destination, false);
  }
  for (const Raise& raise : move.raises) {
    from.check_peer(raise.rank);
    from.heap().check_signal(raise.signal);
    flight.words.push_back(from.heap().word_of(raise.signal));
    flight.is_raised.push_back(false);
  }
  flight.window =
      PieceWindow(Bytes(move.size_bytes), !flight.loads.empty(), !flight.stores.empty());
  ++under_way_[static_cast<std::size_t>(from.rank())];
  const Time before = move.is_polled ? Time() : cost(flight).before_direct();
  const Time when = simulation_.from_now(delay + before);
  const auto begin = [](void* context) {
    Flight& begun = *static_cast<Flight*>(context);
    begun.all->begin(begun);
  };
  if (move.turn == kNoTurn) return simulation_.at(when, begin, &flight);
  const std::uint64_t turn = static_cast<std::uint64_t>(from.rank()) << 16 | move.turn;
  simulation_.at_ordered(when, gpu_links::kEntryPriority, turn << 8, begin, &flight);
}

void DirectMoves::begin(Flight& flight) {
  if (flight.window.is_local()) return move_locally(flight);
  if (flight.move->is_port) {
    load_memory(flight);
    flight.window.is_done = true;
    if (flight.move->done != nullptr) flight.move->done(*flight.move);
  }
  issue_piece(flight, Request::now);
}

void DirectMoves::move_locally(Flight& flight) {
  simulation_.after(
      cost(flight).direct_locally(flight.window.size, flight.move->sources.size()),
      [](void* context) {
        Flight& moved = *static_cast<Flight*>(context);
        moved.window.loaded = moved.window.size;
        moved.all->load_memory(moved);
        moved.all->finish_loads(moved);
      },
      &flight);
}

void DirectMoves::issue_piece(Flight& flight, Request request) {
  const Bytes size = flight.window.issue();
  if (size == Bytes(0)) return;
  if (flight.window.has_loads) {
    for (Path& path : flight.loads) load_piece(flight, path, size, request);
    return;
  }
  if (flight.window.loaded == flight.window.size && !flight.window.is_done) load_memory(flight);
  store_piece(flight, size);
}

void DirectMoves::store_piece(Flight& flight, Bytes size) {
  for (Path& path : flight.stores) network_.send(message_on(flight, path, size, false));
}

void DirectMoves::load_piece(Flight& flight, Path& path, Bytes size, Request request) {
  LinkMessage& message = message_on(flight, path, size, true);
  if (path.ranks.size() == 1 && !flight.move->is_port) send_requests(*path.request, size);
  if (request == Request::ahead) return network_.send(message);
  simulation_.after(
      path.request->latency,
      [](void* context) {
        LinkMessage& asked = *static_cast<LinkMessage*>(context);
        asked.flight->all->network_.send(asked);
      },
      &message);
}

// They load the links to the peer and do not hold its answer up.
void DirectMoves::send_requests(const gpu_links::Route& route, Bytes size) {
  if (route.links.empty()) return;
  Requests& requests = requests_.take();
  requests.all = this;
  requests.route = &route;
  requests.size = Bytes((size.count() + kLineBytes - 1) / kLineBytes * kRequestBytes);
  requests.pace = network_.machine().links()[static_cast<std::size_t>(route.links.front())].rate;
  requests.arrived = [](gpu_links::Message& sent) {
    Requests& own = static_cast<Requests&>(sent);
    own.all->requests_.release(own);
  };
  network_.send(requests);
}

DirectMoves::LinkMessage& DirectMoves::message_on(Flight& flight, Path& path, Bytes size,
                                                  bool is_load) {
  const StepCost price = cost(flight);
  LinkMessage& message = messages_.take();
  message.flight = &flight;
  message.path = &path;
  message.payload = size;
  message.is_load = is_load;
  message.route = path.route;
  message.size = price.on_wire_of(size);
  const std::size_t paths = is_load ? flight.loads.size() : flight.stores.size();
  const auto first_link = static_cast<std::size_t>(path.route->links.front());
  // Only its links limit the pace of an adapter's move.
  message.pace =
      flight.move->is_port ? network_.machine().links()[first_link].rate : price.direct_pace(paths);
  message.protocol = flight.move->protocol;
  const bool is_of_group = !path.beside_first.empty() || !path.beside_last.empty();
  message.rate_max = is_of_group ? price.in_switch_rate() : Rate();
  message.beside_first = path.beside_first;
  message.beside_last = path.beside_last;
  message.delay = flight.delay;
  message.left = [](gpu_links::Message& sent) {
    LinkMessage& own = static_cast<LinkMessage&>(sent);
    own.flight->all->left(own);
  };
  message.arrived = [](gpu_links::Message& sent) {
    LinkMessage& own = static_cast<LinkMessage&>(sent);
    own.flight->all->arrived(own);
  };
  ++flight.window.sending;
  return message;
}

// --- progress ----------------------------------------------------------------------------------

void DirectMoves::left(LinkMessage& message) {
  Flight& flight = *message.flight;
  --flight.window.sending;
  issue_piece(flight, Request::ahead);
  finish_if_sent(flight);
}

void DirectMoves::arrived(LinkMessage& message) {
  Flight& flight = *message.flight;
  Path& path = *message.path;
  path.arrived += message.payload;
  const bool is_load = message.is_load;
  messages_.release(message);
  is_load ? note_load(flight) : note_store(flight, path);
}

// A piece is complete when the slowest of its loads is.
void DirectMoves::note_load(Flight& flight) {
  PieceWindow& window = flight.window;
  Bytes loaded = window.size;
  for (const Path& load : flight.loads) loaded = std::min(loaded, load.arrived);
  if (loaded == window.loaded) return;
  const Bytes piece = loaded - window.loaded;
  window.loaded = loaded;
  if (loaded == window.size) load_memory(flight);
  if (window.has_stores) store_piece(flight, piece);
  issue_piece(flight, Request::now);
  finish_if_sent(flight);
}

void DirectMoves::note_store(Flight& flight, Path& path) {
  PieceWindow& window = flight.window;
  window.stored = window.size;
  for (const Path& store : flight.stores) window.stored = std::min(window.stored, store.arrived);
  if (path.arrived == window.size) land(flight, path);
  if (!window.is_stored()) return issue_piece(flight, Request::now);
  await_acknowledgement(flight);
}

// --- memory ------------------------------------------------------------------------------------

// The payload of the stores, from all sources in their current state.
void DirectMoves::load_memory(Flight& flight) {
  const DirectMove& move = *flight.move;
  if (!flight.from->carries_data() || move.size_bytes == 0) return;
  flight.payload.resize(move.size_bytes);
  bool is_first = true;
  const auto load = [&](int rank, Offset offset) {
    const std::byte* source = endpoints_[static_cast<std::size_t>(rank)]->data(offset);
    if (is_first) {
      std::memcpy(flight.payload.data(), source, move.size_bytes);
    } else {
      reduce(flight.payload.data(), flight.payload.data(), source, move.size_bytes, move.reduction);
    }
    is_first = false;
  };
  for (const Location& source : move.sources) {
    if (source.group.empty()) load(source.rank, source.offset);
    for (const int rank : source.group) load(rank, source.offset);
  }
}

void DirectMoves::store_memory(Flight& flight, int rank) {
  const DirectMove& move = *flight.move;
  for (const Location& destination : move.destinations) {
    const bool is_there = destination.group.empty()
                              ? destination.rank == rank
                              : std::find(destination.group.begin(), destination.group.end(),
                                          rank) != destination.group.end();
    if (!is_there || flight.payload.empty()) continue;
    Endpoint& to = *endpoints_[static_cast<std::size_t>(rank)];
    std::memcpy(to.data(destination.offset), flight.payload.data(), move.size_bytes);
    to.changed(destination.offset, move.size_bytes);
  }
}

// --- the end -----------------------------------------------------------------------------------

void DirectMoves::finish_if_sent(Flight& flight) {
  if (flight.window.may_go_on()) finish_loads(flight);
}

// The thread block may continue.
void DirectMoves::finish_loads(Flight& flight) {
  flight.window.is_done = true;
  const int own = flight.from->rank();
  if (flight.stores.empty() || is_stored_locally(flight, own)) {
    store_memory(flight, own);
    raise(flight, own);
  }
  DirectMove& move = *flight.move;
  if (move.done != nullptr) move.done(move);
  flight.from->notify_blocked();
  if (flight.stores.empty() || move.size_bytes == 0) {
    for (Path& path : flight.stores) land(flight, path);
    make_visible(flight);
  }
}

bool DirectMoves::is_stored_locally(const Flight& flight, int own) {
  return std::any_of(flight.move->destinations.begin(), flight.move->destinations.end(),
                     [own](const Location& to) {
                       return to.group.size() <= 1 &&
                              (to.group.empty() ? to.rank : to.group.front()) == own;
                     });
}

void DirectMoves::land(Flight& flight, Path& path) {
  for (const int rank : path.ranks) {
    store_memory(flight, rank);
    raise(flight, rank);
  }
}

// The signals at a rank, as seen by its reader: one thread that polls a flag, as in LL.
void DirectMoves::raise(Flight& flight, int rank) {
  for (std::size_t i = 0; i < flight.words.size(); ++i) {
    const Raise& raise = flight.move->raises[i];
    if (raise.rank != rank || flight.is_raised[i]) continue;
    flight.is_raised[i] = true;
    PendingRaise& pending = raises_.take();
    pending = {this, flight.from->rank(), endpoints_[static_cast<std::size_t>(rank)],
               flight.words[i], raise.value};
    ++under_way_[static_cast<std::size_t>(pending.from)];
    simulation_.after(
        after_raise(gpu(rank)),
        [](void* context) {
          PendingRaise& raised = *static_cast<PendingRaise*>(context);
          --raised.all->under_way_[static_cast<std::size_t>(raised.from)];
          raised.all->raises_.release(raised);
          raised.to->raise(raised.word, raised.value, SignalOperation::add);
        },
        &pending);
  }
}

void DirectMoves::await_acknowledgement(Flight& flight) {
  Time latency;
  for (const Path& path : flight.stores) latency = std::max(latency, path.request->latency);
  simulation_.after(
      latency,
      [](void* context) {
        Flight& acknowledged = *static_cast<Flight*>(context);
        acknowledged.all->make_visible(acknowledged);
      },
      &flight);
}

void DirectMoves::make_visible(Flight& flight) {
  Endpoint& from = *flight.from;
  DirectMove& move = *flight.move;
  --under_way_[static_cast<std::size_t>(from.rank())];
  flight.loads.clear();
  flight.stores.clear();
  flight.words.clear();
  flight.is_raised.clear();
  flight.payload.clear();
  flights_.release(flight);
  if (move.visible != nullptr) move.visible(move);
  from.notify_blocked();
}

}  // namespace towpath::transport::simulated

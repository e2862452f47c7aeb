// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/one_sided.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "towpath/base/index.hpp"
#include "towpath/collective/schedule/one_sided_checks.hpp"

namespace towpath::collective {
namespace {

// The purpose of a counter at its rank.
enum class CounterKind : std::uint8_t { signal, semaphore, barrier, packet };
// Kind, then (peer, channel), (semaphore, 0), (barrier, 0) or (store number, 0).
using CounterKey = std::tuple<CounterKind, std::int32_t, std::int32_t>;

// A step and its thread block.
struct User {
  int rank = kNone;
  int block = kNone;
  int step = kNone;
};

// Packets that one step stores in a rank's scratch, in units that divide every part.
struct PacketStore {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::int32_t counter = kNone;  // number in its key
  User user;
};

struct CounterUse {
  std::uint32_t number = 0;
  std::vector<User> raisers;  // first step per thread block
  std::vector<User> takers;
};

void add_user(std::vector<User>& users, const User& user) {
  const bool is_known = std::any_of(users.begin(), users.end(), [&](const User& known) {
    return known.rank == user.rank && known.block == user.block;
  });
  if (!is_known) users.push_back(user);
}

// All counters of all ranks, with their users.
class Counters {
 public:
  explicit Counters(const Schedule& schedule)
      : schedule_(schedule),
        uses_(schedule.ranks.size()),
        stores_(schedule.ranks.size()),
        units_per_chunk_(common_parts(schedule)) {
    for_each_access(schedule, [this](const StepLocation& at, const Step& step, const Access& a) {
      if (step.type == StepType::direct) note_packets(at, step, a);
    });
    for (auto& stores : stores_) sort_stores(stores);
    for_each_access(schedule, [this](const StepLocation& at, const Step& step, const Access& a) {
      note(at, step, a);
    });
    for (auto& of_rank : uses_) {
      std::uint32_t number = 0;
      for (auto& [key, use] : of_rank) use.number = number++;
    }
  }

  void check() const;
  AccessWiring wire(int rank, const StepLocation& at, const Step& step, const Access& access) const;
  std::uint32_t most() const {
    std::size_t most = 0;
    for (const auto& of_rank : uses_) most = std::max(most, of_rank.size());
    return static_cast<std::uint32_t>(most);
  }

 private:
  CounterUse& use(int rank, const CounterKey& key) {
    return uses_[static_cast<std::size_t>(rank)][key];
  }
  const CounterUse& use(int rank, const CounterKey& key) const {
    return uses_[static_cast<std::size_t>(rank)].at(key);
  }

  std::pair<std::uint64_t, std::uint64_t> units(const Operand& operand, const Step& step,
                                                const Access& access) const {
    const std::uint64_t first = operand.chunk * units_per_chunk_;
    const std::uint64_t share = step.count * units_per_chunk_ / access.parts;
    return {first + access.part * share, first + (access.part + 1) * share};
  }

  // Stores of packets, numbered in the order of for_each_access.
  void note_packets(const StepLocation& at, const Step& step, const Access& access) {
    for (const Operand& operand : access.destinations) {
      if (!operand.is_packet) continue;
      const auto [begin, end] = units(operand, step, access);
      for (const int rank : ranks_of(schedule_, at.rank, operand)) {
        stores_[static_cast<std::size_t>(rank)].push_back(
            {begin, end, static_cast<std::int32_t>(stores_[static_cast<std::size_t>(rank)].size()),
             user_at(at)});
      }
    }
  }

  void sort_stores(std::vector<PacketStore>& stores) const {
    std::sort(stores.begin(), stores.end(), [](const PacketStore& a, const PacketStore& b) {
      return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
    });
    for (std::size_t i = 1; i < stores.size(); ++i) {
      if (stores[i].begin >= stores[i - 1].end) continue;
      const User& user = stores[i].user;
      const User& other = stores[i - 1].user;
      StepLocation{schedule_, user.rank, static_cast<std::size_t>(user.block),
                   static_cast<std::size_t>(user.step)}
          .fail(
              "it puts packets where step {} of rank {} thread block {} also puts packets; a place "
              "can receive packets only once",
              other.step, other.rank, other.block);
    }
  }

  static User user_at(const StepLocation& at) {
    return {at.rank, static_cast<int>(at.block), static_cast<int>(at.step)};
  }

  static CounterKey packet_key(std::int32_t number) { return {CounterKind::packet, number, 0}; }
  static CounterKey signal_key(std::int32_t peer, std::int32_t channel) {
    return {CounterKind::signal, peer, channel};
  }

  // Calls raise(rank, key) for each counter that the step raises, in wiring order, and take(key)
  // for each counter of its rank that it takes from.
  template <typename OnRaise, typename OnTake>
  void for_each_counter(const StepLocation& at, const Step& step, const Access& access,
                        const OnRaise& raise, const OnTake& take) const;

  template <typename OnRaise, typename OnTake>
  void for_each_packet_counter(const StepLocation& at, const Step& step, const Access& access,
                               const OnRaise& raise, const OnTake& take) const;

  void note(const StepLocation& at, const Step& step, const Access& access) {
    for_each_counter(
        at, step, access,
        [&](int rank, const CounterKey& key) { add_user(use(rank, key).raisers, user_at(at)); },
        [&](const CounterKey& key) { add_user(use(at.rank, key).takers, user_at(at)); });
  }

  // The stores that cover a range of packets.
  std::vector<const PacketStore*> stores_of(const StepLocation& at, const Operand& operand,
                                            const Step& step, const Access& access) const {
    const auto [begin, end] = units(operand, step, access);
    std::vector<const PacketStore*> found;
    std::uint64_t covered = begin;
    for (const PacketStore& store : stores_[static_cast<std::size_t>(at.rank)]) {
      if (store.end <= begin || store.begin >= end) continue;
      if (store.begin > covered) break;
      covered = store.end;
      found.push_back(&store);
    }
    if (covered < end) {
      at.fail("it reads packets from scratch chunk {} on, but no step puts all of them there",
              operand.chunk);
    }
    return found;
  }

  const Schedule& schedule_;
  std::vector<std::map<CounterKey, CounterUse>> uses_;  // per rank
  std::vector<std::vector<PacketStore>> stores_;        // per rank, by offset
  std::uint64_t units_per_chunk_;
};

template <typename OnRaise, typename OnTake>
void Counters::for_each_packet_counter(const StepLocation& at, const Step& step,
                                       const Access& access, const OnRaise& raise,
                                       const OnTake& take) const {
  for (const Operand& operand : access.sources) {
    if (!operand.is_packet) continue;
    for (const PacketStore* store : stores_of(at, operand, step, access)) {
      take(packet_key(store->counter));
    }
  }
  for (const Operand& operand : access.destinations) {
    if (!operand.is_packet) continue;
    const std::uint64_t begin = units(operand, step, access).first;
    for (const int rank : ranks_of(schedule_, at.rank, operand)) {
      const auto& stores = stores_[static_cast<std::size_t>(rank)];
      const auto found = std::lower_bound(
          stores.begin(), stores.end(), begin,
          [](const PacketStore& store, std::uint64_t place) { return store.begin < place; });
      raise(rank, packet_key(found->counter));
    }
  }
}

template <typename OnRaise, typename OnTake>
void Counters::for_each_counter(const StepLocation& at, const Step& step, const Access& access,
                                const OnRaise& raise, const OnTake& take) const {
  switch (step.type) {
    case StepType::direct:
      for_each_packet_counter(at, step, access, raise, take);
      if (!access.signals) break;
      [[fallthrough]];
    case StepType::signal:
      for (const SignalEnd& end : access.ends) raise(end.peer, signal_key(at.rank, end.channel));
      break;
    case StepType::wait:
      for (const SignalEnd& end : access.ends) take(signal_key(end.peer, end.channel));
      break;
    case StepType::barrier: {
      const CounterKey key{CounterKind::barrier, static_cast<std::int32_t>(access.barrier), 0};
      raise(at.rank, key);
      take(key);
      break;
    }
    case StepType::acquire:
      for (const std::uint32_t semaphore : access.semaphores) {
        take({CounterKind::semaphore, static_cast<std::int32_t>(semaphore), 0});
      }
      break;
    case StepType::release:
      for (const std::uint32_t semaphore : access.semaphores) {
        raise(at.rank, {CounterKind::semaphore, static_cast<std::int32_t>(semaphore), 0});
      }
      break;
    default: break;
  }
}

const char* words_of(CounterKind kind) {
  switch (kind) {
    case CounterKind::signal: return "the signals of a channel";
    case CounterKind::semaphore: return "a semaphore";
    case CounterKind::barrier: return "a barrier";
    case CounterKind::packet: return "packets";
  }
  return "";
}

void Counters::check() const {
  const auto fail_at = [&](const User& user, const std::string& what) {
    StepLocation{schedule_, user.rank, static_cast<std::size_t>(user.block),
                 static_cast<std::size_t>(user.step)}
        .fail("{}", what);
  };
  for (std::size_t rank = 0; rank < uses_.size(); ++rank) {
    for (const auto& [key, use] : uses_[rank]) {
      const CounterKind kind = std::get<0>(key);
      if (kind == CounterKind::packet) continue;
      if (kind == CounterKind::barrier) {
        const auto& blocks = schedule_.ranks[rank].blocks;
        for (const User& user : use.takers) {
          const ThreadBlock& block = blocks[static_cast<std::size_t>(user.block)];
          const std::uint32_t said =
              block.access(block.steps[static_cast<std::size_t>(user.step)]).barrier_blocks;
          if (said == use.takers.size()) continue;
          fail_at(user, fmt::format("its barrier {} is for {} thread blocks, but {} use it",
                                    std::get<1>(key), said, use.takers.size()));
        }
        continue;
      }
      // With several takers of one counter, the result depends on their order.
      if (use.takers.size() > 1 || use.raisers.size() > 1) {
        const bool takes = use.takers.size() > 1;
        const std::vector<User>& users = takes ? use.takers : use.raisers;
        fail_at(users[1],
                fmt::format("it {} {}, as thread block {} of its rank does; one may",
                            takes ? "takes from" : "raises", words_of(kind), users[0].block));
      }
      if (use.raisers.empty()) {
        if (kind == CounterKind::semaphore) continue;  // the initial value may be enough
        fail_at(use.takers[0], fmt::format("it waits for a signal of rank {} on channel {}, which "
                                           "no step there raises",
                                           std::get<1>(key), std::get<2>(key)));
      }
      if (use.takers.empty() && kind == CounterKind::signal) {
        fail_at(use.raisers[0], fmt::format("it signals rank {} on channel {}, where no step waits "
                                            "for it",
                                            rank, std::get<2>(key)));
      }
    }
  }
}

AccessWiring Counters::wire(int rank, const StepLocation& at, const Step& step,
                            const Access& access) const {
  AccessWiring wiring;
  for_each_counter(
      at, step, access,
      [&](int to, const CounterKey& key) { wiring.raises.push_back({to, use(to, key).number, 0}); },
      [&](const CounterKey& key) {
        const CounterUse& used = use(rank, key);
        CounterTake take;
        take.counter = used.number;
        const auto number = static_cast<std::size_t>(std::get<1>(key));
        switch (std::get<0>(key)) {
          case CounterKind::signal: take.reason = WaitReason::signal; break;
          case CounterKind::packet: take.reason = WaitReason::packet; break;
          case CounterKind::semaphore:
            take.reason = WaitReason::semaphore;
            take.credit = schedule_.ranks[static_cast<std::size_t>(rank)].semaphores[number];
            break;
          case CounterKind::barrier:
            take.reason = WaitReason::barrier;
            take.weight = static_cast<std::uint32_t>(used.takers.size());
            break;
        }
        take.from_rank = rank;
        if (take.reason == WaitReason::barrier) {
          const auto own = std::find_if(
              used.takers.begin(), used.takers.end(),
              [&](const User& user) { return user.block == static_cast<int>(at.block); });
          const auto place = static_cast<std::size_t>(own - used.takers.begin());
          take.from_block = used.takers[(place + 1) % used.takers.size()].block;
        } else if (!used.raisers.empty()) {
          take.from_rank = used.raisers[0].rank;
          take.from_block = used.raisers[0].block;
        }
        wiring.takes.push_back(take);
      });
  return wiring;
}

// Assigns a slot to every counter that the thread block uses.
std::uint32_t number_slots(std::vector<AccessWiring>& accesses) {
  std::map<std::pair<int, std::uint32_t>, std::uint32_t> raised;
  std::map<std::uint32_t, std::uint32_t> taken;
  std::uint32_t slots = 0;
  const auto slot_of = [&slots](auto& known, const auto& key) {
    const auto [found, is_new] = known.emplace(key, slots);
    slots += is_new;
    return found->second;
  };
  for (AccessWiring& access : accesses) {
    for (CounterRaise& raise : access.raises) {
      raise.slot = slot_of(raised, std::pair(raise.rank, raise.counter));
    }
    for (CounterTake& take : access.takes) take.slot = slot_of(taken, take.counter);
  }
  return slots;
}

}  // namespace

std::vector<int> ranks_of(const Schedule& schedule, int own, const Operand& operand) {
  switch (operand.holder) {
    case Holder::own: return {own};
    case Holder::peer: return {operand.number};
    case Holder::group: break;
  }
  const auto& group = schedule.groups[static_cast<std::size_t>(operand.number)];
  return {group.begin(), group.end()};
}

std::uint64_t common_parts(const Schedule& schedule) {
  constexpr std::uint64_t kMax = 4096;
  std::uint64_t parts = 1;
  for_each_access(schedule, [&](const StepLocation& at, const Step&, const Access& access) {
    parts = std::lcm(parts, std::uint64_t{std::max(access.parts, 1u)});
    if (parts > kMax) {
      at.fail("with its {} parts, chunks would have to be cut into more than {} equal ones",
              access.parts, kMax);
    }
  });
  return parts;
}

void check_accesses(const Schedule& schedule) {
  check_each_access(schedule);
  if (has_one_sided_steps(schedule)) Counters(schedule).check();
}

OneSidedWiring wire_one_sided(const Schedule& schedule) {
  OneSidedWiring wiring;
  if (!has_one_sided_steps(schedule)) return wiring;
  const Counters counters(schedule);
  wiring.counters = counters.most();
  wiring.ranks.resize(schedule.ranks.size());
  wiring.slots.resize(schedule.ranks.size());
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const std::size_t blocks = schedule.ranks[rank].blocks.size();
    wiring.ranks[rank].resize(blocks);
    wiring.slots[rank].resize(blocks);
  }
  for_each_access(schedule, [&](const StepLocation& at, const Step& step, const Access& access) {
    wiring.ranks[static_cast<std::size_t>(at.rank)][at.block].push_back(
        counters.wire(at.rank, at, step, access));
  });
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t b = 0; b < wiring.ranks[rank].size(); ++b) {
      wiring.slots[rank][b] = number_slots(wiring.ranks[rank][b]);
    }
  }
  return wiring;
}

std::string describe_operand(const Schedule& schedule, const Operand& operand) {
  const std::string chunk = fmt::format("{} chunk {}", name_of(operand.buffer), operand.chunk);
  if (operand.holder == Holder::own) return chunk;
  if (operand.holder == Holder::peer) return fmt::format("{} of rank {}", chunk, operand.number);
  const auto& group = schedule.groups[static_cast<std::size_t>(operand.number)];
  return fmt::format("{} of the {} ranks from {} to {}", chunk, group.size(), group.front(),
                     group.back());
}

std::uint64_t unit_elements(const Access& pipeline, std::uint64_t element_bytes) {
  return std::max<std::uint64_t>(pipeline.unit_bytes / element_bytes, 1);
}

std::uint64_t loop_count(const Access& pipeline, std::uint64_t chunk_elements,
                         std::uint64_t element_bytes) {
  const std::uint64_t unit = unit_elements(pipeline, element_bytes);
  return divide_up(pipeline.chunks * chunk_elements, unit);
}

}  // namespace towpath::collective

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>
#include <optional>
#include <stdexcept>

#include "data_mover_builder.hpp"
#include "program_generator.hpp"
#include "program_kernels.hpp"
#include "program_source.hpp"
#include "towpath/tenstorrent/kernels/handshake.hpp"

// Makes the programs of a plan and runs them.

namespace towpath::tenstorrent::kernels {

using machine::EthernetEnd;
using tenstorrent::Cluster;
using tenstorrent::HazardError;
using tenstorrent::KernelConfig;
using tenstorrent::KernelDeadlock;
using tenstorrent::KernelName;
using tenstorrent::LogicalCore;
using tenstorrent::Program;

namespace {

constexpr std::uint64_t kSyncBytes = 16;
constexpr noc::Cycle kCyclesMax = 20'000'000;

KernelConfig at(const WorkerPlace& place, const char* name) {
  return {.core = place.core, .name = name, .noc_index = place.noc_index};
}

// The programs of one generation, one for each chip.
class GenerationBuilder {
 public:
  GenerationBuilder(Cluster& cluster, const Plan& plan, RunLog& log, metalium::KernelLog& recorded)
      : cluster_(cluster),
        plan_(plan),
        log_(log),
        recorded_(recorded),
        chip_(cluster.description().chips.front().chip) {
    for (int chip = 0; chip < plan.shape.chips; ++chip) {
      programs_.push_back(&cluster.create_program(chip));
      if (plan.is_in_source_form) programs_.back()->allocate(kPointersFrom);
    }
  }

  void add(const Plan::Generation& generation) {
    for (const LinkPlan& link : generation.links) {
      if (link.mistake != Mistake::none) {
        for (const ChannelPlan& channel : link.channels) {
          log_.messages += static_cast<int>(channel.sizes.size());
        }
      }
      link.is_data_mover ? add_mover(link) : add_bare(link);
    }
    for (const auto& [place, tasks] : exchanges_) add_exchange(place, tasks);
    for (const WorkerPair& pair : generation.pairs) add_pair(pair);
  }

 private:
  struct ExchangePlace {
    int chip;
    machine::Coordinate core;
    int noc_index;
    auto operator<=>(const ExchangePlace&) const = default;
  };
  struct Exchange {
    WorkerTask sends;
    WorkerTask receives;
  };

  Program& program(int chip) { return *programs_[static_cast<std::size_t>(chip)]; }
  std::array<EthernetEnd, 2> ends(const LinkPlan& link) const {
    return cluster_.description().links[link.link].ends;
  }

  void add_mover(const LinkPlan& link) {
    const auto [one, other] = ends(link);
    DataMoverBuilder mover(cluster_, {one.chip, {0, one.channel}, &program(one.chip)},
                           program(other.chip),
                           {.sync = link.sync, .acknowledges = link.acknowledges});
    for (const ChannelPlan& channel : link.channels) add_workers(mover, link, channel);
    for (const bool is_first : {true, false}) {
      const EthernetEnd end = is_first ? one : other;
      DataMoverConfig config = mover.config(end.chip);
      const bool shakes_hands = link.mistake != Mistake::missing_handshake;
      if (link.mistake == Mistake::link_down_without_routing &&
          link.is_first_ends_mistake == is_first) {
        config.polls_per_context_switch = EthernetCore::kNever;
      }
      program(end.chip).create_kernel(LogicalCore{0, end.channel},
                                      {.name = "data mover", .noc_index = link.noc_index},
                                      [config, shakes_hands](EthernetCore& core) {
                                        data_mover_prepare(core, config);
                                        if (shakes_hands)
                                          handshake(core, config.is_handshake_master);
                                        data_mover_run(core, config);
                                      });
    }
  }

  void add_workers(DataMoverBuilder& mover, const LinkPlan& link, const ChannelPlan& channel) {
    const auto [one, other] = ends(link);
    const int from = channel.is_forward ? one.chip : other.chip;
    const int to = channel.is_forward ? other.chip : one.chip;
    const auto views = mover.add_channel(
        {.from_chip = from,
         .sender = channel.sender.core,
         .receiver = channel.receiver.core,
         .message_bytes_max = channel.size_bytes_max,
         .slots = channel.slots,
         .messages = channel.is_count_fixed ? std::optional<std::uint64_t>(channel.sizes.size())
                                            : std::nullopt});
    const bool is_counted = link.mistake != Mistake::none;
    const WorkerTask sends{channel, views.sender, program(from).allocate(channel.size_bytes_max),
                           is_counted};
    const WorkerTask receives{channel, views.receiver, program(to).allocate(channel.size_bytes_max),
                              is_counted};
    if (channel.is_exchanged) {
      exchanges_[place_of(from, channel.sender)].sends = sends;
      exchanges_[place_of(to, channel.receiver)].receives = receives;
      return;
    }
    program(from).create_kernel(at(channel.sender, "sender"), sender_of(sends));
    program(to).create_kernel(at(channel.receiver, "receiver"), receiver_of(receives));
    if (channel.mistake != Mistake::two_workers_on_one_channel) return;
    KernelConfig second = at(channel.second_sender, "second sender");
    second.start_cycle = channel.second_sender_start;
    program(from).create_kernel(
        second, plan_.is_in_source_form
                    ? source_uncalled_sender(chip_, sends, recorded_)
                    : Kernel([=](DataMovementCore& core) { send_uncalled(core, sends); }));
  }

  Kernel sender_of(const WorkerTask& task) {
    if (plan_.is_in_source_form) return source_sender(chip_, task, recorded_);
    return [task](DataMovementCore& core) { send_messages(core, task); };
  }
  Kernel receiver_of(const WorkerTask& task) {
    if (plan_.is_in_source_form) return source_receiver(chip_, task, recorded_);
    return [task, &log = log_](DataMovementCore& core) { receive_messages(core, task, log); };
  }

  static ExchangePlace place_of(int chip, const WorkerPlace& place) {
    return {chip, place.core, place.noc_index};
  }

  void add_exchange(const ExchangePlace& place, const Exchange& tasks) {
    program(place.chip)
        .create_kernel({.core = place.core, .name = "exchanger", .noc_index = place.noc_index},
                       [sends = sender_of(tasks.sends),
                        receives = receiver_of(tasks.receives)](DataMovementCore& core) mutable {
                         sends(core);
                         receives(core);
                       });
  }

  void add_bare(const LinkPlan& link) {
    const auto [one, other] = ends(link);
    BareLink sender{.plan = link, .is_first_end = link.channels.front().is_forward};
    BareLink receiver{.plan = link, .is_first_end = !sender.is_first_end};
    for (const ChannelPlan& channel : link.channels) {
      const auto end_at = [&](int chip) {
        return channel.size_bytes_max + program(chip).allocate(channel.size_bytes_max + kSyncBytes,
                                                               machine::TileKind::ethernet);
      };
      const std::uint64_t first = end_at(one.chip);
      const std::uint64_t second = end_at(other.chip);
      sender.ends.push_back(sender.is_first_end ? first : second);
      receiver.ends.push_back(sender.is_first_end ? second : first);
    }
    sender.far_ends = receiver.ends;
    receiver.far_ends = sender.ends;
    const auto create = [&](EthernetEnd end, const BareLink& view, bool is_sender) {
      program(end.chip).create_kernel(
          LogicalCore{0, end.channel},
          {.name = is_sender ? "bare sender" : "bare receiver", .noc_index = link.noc_index},
          bare_kernel_of(view, is_sender));
    };
    create(sender.is_first_end ? one : other, sender, true);
    create(sender.is_first_end ? other : one, receiver, false);
  }

  EthernetKernel bare_kernel_of(const BareLink& link, bool is_sender) {
    if (plan_.is_in_source_form) {
      return is_sender ? source_bare_sender(chip_, link, recorded_)
                       : source_bare_receiver(chip_, link, recorded_);
    }
    return [link, is_sender, &log = log_](EthernetCore& core) {
      is_sender ? send_bare(core, link) : receive_bare(core, link, log);
    };
  }

  void add_pair(const WorkerPair& pair) {
    Program& chip = program(pair.chip);
    const std::size_t full = chip.create_semaphore(0);
    const std::size_t free = chip.create_semaphore(1);
    const std::uint64_t buffer = chip.allocate(pair.size_bytes);
    chip.create_kernel(at(pair.one, "pair sender"), [=](DataMovementCore& core) {
      for (int i = 0; i < pair.messages; ++i) {
        core.noc_semaphore_wait(core.get_semaphore(free), 1);
        core.noc_semaphore_set(core.get_semaphore(free), 0);
        core.noc_async_write(buffer, {pair.other.core, buffer}, pair.size_bytes);
        core.noc_async_write_barrier();
        core.noc_semaphore_inc({pair.other.core, core.get_semaphore(full)}, 1);
      }
      core.noc_async_atomic_barrier();
    });
    chip.create_kernel(at(pair.other, "pair receiver"), [=](DataMovementCore& core) {
      for (int i = 0; i < pair.messages; ++i) {
        core.noc_semaphore_wait(core.get_semaphore(full), 1);
        core.noc_semaphore_set(core.get_semaphore(full), 0);
        core.work(200);
        if (i + 1 == pair.messages) break;
        core.noc_semaphore_inc({pair.one.core, core.get_semaphore(free)}, 1);
      }
      core.noc_async_atomic_barrier();
    });
  }

  Cluster& cluster_;
  const Plan& plan_;
  RunLog& log_;
  metalium::KernelLog& recorded_;
  ChipOf chip_;
  std::vector<Program*> programs_;
  std::map<ExchangePlace, Exchange> exchanges_;
};

}  // namespace

Outcome outcome_of(const std::function<bool()>& run) {
  Outcome outcome;
  try {
    if (!run()) outcome.hazard = "wrong data";
  } catch (const HazardError& error) {
    outcome = {std::string(name_of(error.hazard())),
               {{error.culprit().chip, error.culprit().core}},
               error.what()};
  } catch (const KernelDeadlock& error) {
    outcome = {"deadlock", {}, error.what()};
    for (const KernelName& kernel : error.kernels()) {
      outcome.cores.push_back({kernel.chip, kernel.core});
    }
  } catch (const std::exception& error) {
    outcome = {"error", {}, error.what()};
  }
  return outcome;
}

Outcome run(const Plan& plan) {
  Cluster cluster(machine::joined_chips(plan.shape),
                  {.seed = plan.seed,
                   .start_skew_cycles = plan.start_skew_cycles,
                   .program_skew_cycles = plan.program_skew_cycles,
                   .cycles_max = kCyclesMax,
                   .link_faults = plan.link_faults});
  RunLog log;
  metalium::KernelLog recorded;
  for (const Plan::Generation& generation : plan.generations) {
    GenerationBuilder(cluster, plan, log, recorded).add(generation);
  }
  Outcome outcome = outcome_of([&] {
    cluster.run();
    add_to(log, recorded, *cluster.description().chips.front().chip);
    return log.is_data_right;
  });
  outcome.half_time = log.half_time;
  return outcome;
}

}  // namespace towpath::tenstorrent::kernels

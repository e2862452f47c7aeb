// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Hierarchical all-reduce: 2(G-1) + 2(H-1) sequential steps for H hosts of G GPUs, 2 S (R-1)/R wire
// bytes per rank, including 2 S (H-1)/R between hosts. A ring in each host leaves the host's sum of
// one part on every GPU, a ring over the GPUs of each rail combines these, and a second ring in
// each host distributes the results. That ring has separate channels, so that thread blocks of all
// three run concurrently.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {
// Division of the array on one channel: G parts of H chunks. The steps are for GPU 0 of host 0.
// Other GPUs rotate the parts, other hosts the chunks.
struct Cut {
  int gpus;
  int hosts;

  // A chunk of the part `back` positions before the GPU's part.
  std::uint32_t chunk(int back, int index) const {
    const int part = (2 * gpus - back) % gpus;
    return part * hosts + (2 * hosts + index) % hosts;
  }
  std::shared_ptr<StepList> list() const {
    auto list = std::make_shared<StepList>();
    list->rows = gpus;
    list->columns = hosts;
    return list;
  }
};

// The host's sum of the GPU's part, in the rail's chunk order. The sum of a chunk completes G steps
// after the previous one.
std::shared_ptr<StepList> sums_in_host(const Cut& cut) {
  std::shared_ptr<StepList> list = cut.list();
  for (int turn = 1; turn <= cut.hosts; ++turn) {
    list->steps.push_back(step(StepType::send, input(cut.chunk(1, -turn))));
    for (int back = 2; back < cut.gpus; ++back) {
      list->steps.push_back(step(StepType::receive_reduce_send, input(cut.chunk(back, -turn))));
    }
    const std::uint32_t own = cut.chunk(0, -turn);
    list->steps.push_back(publishing(step(StepType::receive_reduce_copy, input(own), output(own))));
  }
  return list;
}

// A ring all-reduce of the part's chunks over the GPUs of the rail. `sums` is the thread block with
// the host's sum, if a host has several GPUs.
std::shared_ptr<StepList> rail(const Cut& cut, std::uint32_t sums) {
  std::shared_ptr<StepList> list = cut.list();
  const int hosts = cut.hosts;
  const bool has_sums = cut.gpus > 1;
  const auto add = [&](StepType type, int back) {
    const std::uint32_t chunk = cut.chunk(0, -back);
    const bool is_summing = back <= hosts;
    Step next = step(type, is_summing && !has_sums ? input(chunk) : output(chunk), output(chunk));
    if (is_summing && has_sums) {
      next = after(sums, back * cut.gpus - 1, next);
    }
    next.publishes = has_sums && back >= hosts;
    list->steps.push_back(next);
  };
  add(StepType::send, 1);
  for (int back = 2; back < hosts; ++back) add(StepType::receive_reduce_send, back);
  add(StepType::receive_reduce_copy_send, hosts);
  for (int back = hosts + 1; back < 2 * hosts - 1; ++back) add(StepType::receive_copy_send, back);
  add(StepType::receive, 2 * hosts - 1);
  return list;
}

// Distributes chunks in the order of their sums in the rail, or in the host. `summing` is the
// summing thread block.
std::shared_ptr<StepList> results_in_host(const Cut& cut, std::uint32_t summing) {
  std::shared_ptr<StepList> list = cut.list();
  for (int turn = 0; turn < cut.hosts; ++turn) {
    const int done = cut.hosts > 1 ? cut.hosts - 1 + turn : cut.gpus - 1;
    list->steps.push_back(after(summing, done, step(StepType::send, output(cut.chunk(0, -turn)))));
    for (int back = 1; back < cut.gpus - 1; ++back) {
      list->steps.push_back(step(StepType::receive_copy_send, output(cut.chunk(back, -turn))));
    }
    list->steps.push_back(step(StepType::receive, output(cut.chunk(cut.gpus - 1, -turn))));
  }
  return list;
}

// The steps of all ranks on a channel. Results use another channel.
class Channel {
 public:
  Channel(Schedule& schedule, const Cut& cut, int channel, int results_channel)
      : schedule_(schedule), cut_(cut), channel_(channel), results_channel_(results_channel) {
    const bool has_host = cut.gpus > 1;
    const bool has_rail = cut.hosts > 1;
    const auto first = static_cast<std::uint32_t>(schedule.ranks[0].blocks.size());
    if (has_host) sums_ = sums_in_host(cut);
    if (has_rail) rail_ = rail(cut, first);
    if (has_host) results_ = results_in_host(cut, first + (has_rail ? 1u : 0u));
  }

  void add(int rank) const {
    RankProgram& program = program_of(schedule_, rank);
    const int host = rank / cut_.gpus;
    const int gpu = rank % cut_.gpus;
    const int ranks = schedule_.rank_count();
    const int next = host * cut_.gpus + (gpu + 1) % cut_.gpus;
    const int previous = host * cut_.gpus + (gpu + cut_.gpus - 1) % cut_.gpus;
    const Rotation rotation{
        .row_shift = static_cast<std::uint32_t>(gpu),
        .column_shift = static_cast<std::uint32_t>(host),
        .first_chunk = static_cast<std::uint32_t>(channel_ * cut_.gpus * cut_.hosts)};
    if (sums_) add_block(program, previous, next, channel_).steps = Steps(sums_, rotation);
    if (rail_) {
      add_block(program, (rank + ranks - cut_.gpus) % ranks, (rank + cut_.gpus) % ranks, channel_)
          .steps = Steps(rail_, rotation);
    }
    if (results_) {
      add_block(program, previous, next, results_channel_).steps = Steps(results_, rotation);
    }
  }

 private:
  Schedule& schedule_;
  Cut cut_;
  int channel_;
  int results_channel_;
  std::shared_ptr<StepList> sums_;
  std::shared_ptr<StepList> rail_;
  std::shared_ptr<StepList> results_;
};

void build_hierarchical(Schedule& schedule, const AlgorithmOptions& options) {
  const Cut cut{options.gpus_per_host, options.ranks / options.gpus_per_host};
  if (cut.gpus > 1) take_two_channels_each(schedule);
  for (int channel = 0; channel < options.channels; ++channel) {
    const Channel all(schedule, cut, channel, options.channels + channel);
    for (int rank = 0; rank < options.ranks; ++rank) all.add(rank);
  }
}

}  // namespace

constinit const Algorithm hierarchical_all_reduce{
    .name = "hierarchical_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_hierarchical,
    .description =
        "summed round each host, then between hosts on every rail, then handed out in each host",
    .cost = "2(G-1)+2(H-1) steps, 2S(R-1)/R bytes, 2S(H-1)/R of them between hosts",
};

}  // namespace towpath::collective

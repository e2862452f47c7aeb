// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Collectives through a switch that combines and copies, straight from and to the ranks' buffers,
// as kernels with multimem instructions do it on symmetric memory. All ranks meet at the beginning,
// when all inputs are there, and at the end, when none is read and no output stored to any more.
//   one-shot all-reduce  every rank loads the whole sum; 1 step, S R bytes up, S down. The others
//                        read its input till the end, so it does not run in place.
//   two-shot all-reduce  every rank loads the sum of one part and stores it to all; 1 step,
//                        S(1 + 1/R) bytes each way.
//   all-gather           every rank stores its part to all; 1 step, S/R bytes up, S down.
//   reduce-scatter       every rank loads the sum of its part; 1 step, S bytes up, S/R down.
#include "towpath/collective/algorithms/building_one_sided.hpp"

namespace towpath::collective {
namespace {

// How many chunks of the array a rank handles per channel, and which step it takes for each.
struct Plan {
  std::string_view name;
  Collective collective;
  bool is_whole = false;  // the whole array instead of one part
  bool runs_in_place = true;
  // The step for chunk `chunk` of the array, which is chunk `own_chunk` of a rank's own part.
  void (*add)(ThreadBlock& block, std::uint32_t chunk, std::uint32_t own_chunk) = nullptr;
};

Schedule generate(const AlgorithmOptions& options, const Plan& plan) {
  check_one_sided(options);
  const auto channels = static_cast<std::uint32_t>(options.channels);
  const auto parts = static_cast<std::uint32_t>(plan.is_whole ? 1 : options.ranks);
  Schedule schedule =
      schedule_without_blocks(plan.name, plan.collective, options, channels * parts);
  if (options.ranks == 1) return local_copy(std::move(schedule));
  schedule.in_place = plan.runs_in_place;
  const std::vector<int> ranks = all_ranks(schedule);
  schedule.groups = {ranks};
  for (const int rank : ranks) {
    for (std::uint32_t channel = 0; channel < channels; ++channel) {
      const int number = static_cast<int>(channel);
      const std::uint32_t part = plan.is_whole ? 0 : static_cast<std::uint32_t>(rank);
      ThreadBlock& block = add_block_to(schedule, rank);
      add_meeting(block, rank, ranks, number, true);
      plan.add(block, part * channels + channel, channel);
      add_meeting(block, rank, ranks, number);
    }
  }
  return schedule;
}

Schedule make_one_shot_multimem_all_reduce(const AlgorithmOptions& options) {
  return generate(options, {"one_shot_multimem_all_reduce", Collective::all_reduce, true, false,
                            [](ThreadBlock& block, std::uint32_t chunk, std::uint32_t) {
                              add_direct(block, {of_group(0, input(chunk))}, {own(output(chunk))});
                            }});
}

Schedule make_two_shot_multimem_all_reduce(const AlgorithmOptions& options) {
  return generate(options, {"two_shot_multimem_all_reduce", Collective::all_reduce, false, true,
                            [](ThreadBlock& block, std::uint32_t chunk, std::uint32_t) {
                              add_direct(block, {of_group(0, input(chunk))},
                                         {of_group(0, output(chunk))});
                            }});
}

Schedule make_nvls_all_gather(const AlgorithmOptions& options) {
  return generate(options, {"nvls_all_gather", Collective::all_gather, false, true,
                            [](ThreadBlock& block, std::uint32_t chunk, std::uint32_t own_chunk) {
                              add_direct(block, {own(input(own_chunk))},
                                         {of_group(0, output(chunk))});
                            }});
}

Schedule make_nvls_reduce_scatter(const AlgorithmOptions& options) {
  return generate(options, {"nvls_reduce_scatter", Collective::reduce_scatter, false, true,
                            [](ThreadBlock& block, std::uint32_t chunk, std::uint32_t own_chunk) {
                              add_direct(block, {of_group(0, input(chunk))},
                                         {own(output(own_chunk))});
                            }});
}

}  // namespace

constinit const Algorithm one_shot_multimem_all_reduce{
    .name = "one_shot_multimem_all_reduce",
    .collective = Collective::all_reduce,
    .make = make_one_shot_multimem_all_reduce,
    .description = "every rank loads the whole sum, which the switch makes",
    .cost = "1 step, SR bytes up, S down",
    .reach = Reach::group,
};

constinit const Algorithm two_shot_multimem_all_reduce{
    .name = "two_shot_multimem_all_reduce",
    .collective = Collective::all_reduce,
    .make = make_two_shot_multimem_all_reduce,
    .description = "every rank loads the sum of one part and stores it to all, both by the switch",
    .cost = "1 step, S(1+1/R) bytes each way",
    .reach = Reach::group,
};

constinit const Algorithm nvls_all_gather{
    .name = "nvls_all_gather",
    .collective = Collective::all_gather,
    .make = make_nvls_all_gather,
    .description = "every rank stores its part to all by the switch",
    .cost = "1 step, S/R bytes up, S down",
    .reach = Reach::group,
};

constinit const Algorithm nvls_reduce_scatter{
    .name = "nvls_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .make = make_nvls_reduce_scatter,
    .description = "every rank loads the sum of its part, which the switch makes",
    .cost = "1 step, S bytes up, S/R down",
    .reach = Reach::group,
};

}  // namespace towpath::collective

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/one_sided.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "one_sided_schedules.hpp"
#include "towpath/base/deadlock_error.hpp"
#include "towpath/collective/algorithms/algorithms.hpp"
#include "towpath/collective/verify/verify.hpp"
#include "towpath/simulate/simulated_gpus.hpp"
#include "towpath/simulate/simulated_run.hpp"

namespace towpath::collective {
namespace {

using namespace literals;
using namespace samples;
using simulate::SimulatedGpus;
using simulate::SimulatedGpusOptions;
using simulate::SimulatedRun;

// Hosts of GPUs behind one NVSwitch each, with a NIC per GPU behind one network switch.
std::shared_ptr<const machine::Machine> cluster(int hosts, int gpus, bool reduces = true) {
  using machine::DeviceKind;
  using machine::LinkKind;
  machine::MachineBuilder builder("cluster");
  const int spine = builder.add_device({"spine", DeviceKind::network_switch, -1, true});
  const auto join = [&](int a, int b, LinkKind kind, Rate rate, Time latency) {
    builder.add_link({a, b, kind, rate, latency, 0_ns});
    builder.add_link({b, a, kind, rate, latency, 0_ns});
  };
  for (int host = 0; host < hosts; ++host) {
    const int hub =
        builder.add_device({fmt::format("hub{}", host), DeviceKind::nvswitch, host, true});
    for (int gpu = 0; gpu < gpus; ++gpu) {
      const int number =
          builder.add_device({fmt::format("gpu{}.{}", host, gpu), DeviceKind::gpu, host, false});
      const int nic =
          builder.add_device({fmt::format("nic{}.{}", host, gpu), DeviceKind::nic, host, true});
      join(number, hub, LinkKind::nvlink, 100_GBps, 250_ns);
      join(number, nic, LinkKind::pcie, 50_GBps, 1_us);
      join(nic, spine, LinkKind::network, 25_GBps, 500_ns);
    }
  }
  machine::GpuCost cost;
  cost.launch = 2_us;
  cost.in_switch_reduction = reduces;
  for (machine::ProtocolCost& protocol : cost.protocol) {
    protocol = {50_GBps, 100_ns, 30_ns, false, {}};
  }
  builder.set_gpu_cost(cost);
  return std::move(builder).build();
}

float value_of(int rank, std::size_t element) {
  return static_cast<float>((static_cast<std::size_t>(rank + 1) * 7 + element * 3) % 101);
}

// What a rank's output must hold at an element, for the collectives of this file.
float expected_at(const Schedule& schedule, int rank, std::size_t element, std::size_t part) {
  const int ranks = schedule.rank_count();
  if (schedule.collective == Collective::all_gather) {
    return value_of(static_cast<int>(element / part), element % part);
  }
  const bool is_scatter = schedule.collective == Collective::reduce_scatter;
  const std::size_t at = element + (is_scatter ? static_cast<std::size_t>(rank) * part : 0);
  float sum = 0;
  for (int of = 0; of < ranks; ++of) sum += value_of(of, at);
  return sum;
}

// Input and output of every rank, apart or in one memory.
class RankBuffers {
 public:
  RankBuffers(const Schedule& schedule, std::size_t elements, bool in_place)
      : schedule_(schedule), part_(elements / schedule.ranks.size()), in_place_(in_place) {
    const bool gathers = schedule.collective == Collective::all_gather;
    const bool scatters = schedule.collective == Collective::reduce_scatter;
    inputs_ = gathers ? part_ : elements;
    outputs_ = scatters ? part_ : elements;
    for (int rank = 0; rank < schedule.rank_count(); ++rank) {
      const std::size_t own = static_cast<std::size_t>(rank) * part_;
      std::vector<float>& memory = memories_.emplace_back(inputs_ + outputs_, -1.0f);
      float* input = memory.data() + (in_place && gathers ? own : 0);
      float* output = in_place ? memory.data() + (scatters ? own : 0) : memory.data() + inputs_;
      for (std::size_t i = 0; i < inputs_; ++i) input[i] = value_of(rank, i);
      buffers_.push_back(
          {reinterpret_cast<const std::byte*>(input), reinterpret_cast<std::byte*>(output)});
    }
  }

  const std::vector<Buffers>& all() const { return buffers_; }

  // The first element that is wrong, in words; empty when none is.
  std::string wrong() const {
    for (int rank = 0; rank < schedule_.rank_count(); ++rank) {
      const Buffers& buffers = buffers_[static_cast<std::size_t>(rank)];
      const auto* output = reinterpret_cast<const float*>(buffers.output);
      const auto* input = reinterpret_cast<const float*>(buffers.input);
      for (std::size_t i = 0; i < outputs_; ++i) {
        const float expected = expected_at(schedule_, rank, i, part_);
        if (output[i] == expected) continue;
        return fmt::format("rank {} output {} is {}, not {}", rank, i, output[i], expected);
      }
      for (std::size_t i = 0; !in_place_ && i < inputs_; ++i) {
        if (input[i] != value_of(rank, i)) return fmt::format("rank {} input {}", rank, i);
      }
    }
    return {};
  }

 private:
  const Schedule& schedule_;
  std::size_t part_;
  bool in_place_;
  std::size_t inputs_ = 0;
  std::size_t outputs_ = 0;
  std::vector<std::vector<float>> memories_;
  std::vector<Buffers> buffers_;
};

std::unique_ptr<SimulatedRun> run_on(const std::shared_ptr<const machine::Machine>& machine,
                                     const Schedule& schedule, std::size_t elements,
                                     const SimulatedGpusOptions& options = {}) {
  const auto shared = std::make_shared<Schedule>(schedule);
  return std::make_unique<SimulatedRun>(
      std::make_unique<SimulatedGpus>(machine, schedule.rank_count(), options),
      make_plan(shared, elements,
                {transport::DataType::float32, transport::ReductionOperation::sum}));
}

SimulatedGpusOptions time_only() {
  SimulatedGpusOptions options;
  options.carries_data = false;
  return options;
}

// Two invocations, so that what the first one leaves behind is there.
std::string wrong_data(const std::shared_ptr<const machine::Machine>& machine,
                       const Schedule& schedule, std::size_t elements, bool in_place,
                       const SimulatedGpusOptions& options = {}) {
  const auto run = run_on(machine, schedule, elements, options);
  for (int i = 0; i < 2; ++i) {
    const RankBuffers buffers(schedule, elements, in_place);
    EXPECT_GT(run->invoke(buffers.all()), 2_us);
    if (std::string wrong = buffers.wrong(); !wrong.empty()) return wrong;
  }
  return {};
}

std::vector<Algorithm> one_sided_algorithms() {
  std::vector<Algorithm> found;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.reach != Reach::fifo) found.push_back(algorithm);
  }
  return found;
}

class OneSidedAlgorithm : public testing::TestWithParam<Algorithm> {
 protected:
  // How many hosts so many ranks can be on.
  std::vector<int> hosts_of(int ranks) const {
    if (GetParam().name != "nvls_tree_all_reduce") return {1};
    return ranks < 8 ? std::vector{1, 2} : std::vector{1, 2, 4};
  }
  Schedule make(int ranks, int hosts, int channels = 2) const {
    AlgorithmOptions options;
    options.ranks = ranks;
    options.channels = channels;
    options.gpus_per_host = ranks / hosts;
    options.chunks_per_channel = 2;
    return GetParam()(options);
  }
};

TEST_P(OneSidedAlgorithm, IsVerifiedAndGivesRightData) {
  for (const int ranks : {2, 4, 8, 16}) {
    for (const int hosts : hosts_of(ranks)) {
      SCOPED_TRACE(fmt::format("{} ranks on {} hosts", ranks, hosts));
      const Schedule schedule = make(ranks, hosts);
      const std::size_t elements = 16 * 37;
      const Verdict verdict = verify(schedule, elements, 4);
      EXPECT_TRUE(verdict.is_correct()) << verdict.findings.front().sentence;
      EXPECT_TRUE(verdict.not_checked.empty()) << verdict.not_checked.front();
      EXPECT_EQ(smallest_hanging_size(schedule, 4, 1 << 22), std::nullopt);
      const auto machine = cluster(hosts, ranks / hosts);
      for (const bool in_place : {false, true}) {
        if (!(in_place ? schedule.in_place : schedule.out_of_place)) continue;
        EXPECT_EQ(wrong_data(machine, schedule, elements, in_place), "");
      }
    }
  }
}

TEST_P(OneSidedAlgorithm, GivesRightDataInOtherOrdersAndAtLargerSizes) {
  const Schedule schedule = make(4, 1);
  for (const std::size_t elements : {4u, 44u, 1u << 20}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      EXPECT_EQ(
          wrong_data(cluster(1, 4), schedule, elements, schedule.in_place, {{}, true, seed, 3_us}),
          "")
          << elements << " elements, seed " << seed;
    }
  }
}

// Readers wait no longer for the data itself; returns how many operands were packets.
int drop_packets(Schedule& schedule) {
  int dropped = 0;
  for (RankProgram& program : schedule.ranks) {
    for (ThreadBlock& block : program.blocks) {
      for (Access& access : block.accesses) {
        for (auto* operands : {&access.sources, &access.destinations}) {
          for (Operand& operand : *operands) dropped += std::exchange(operand.is_packet, false);
        }
      }
    }
  }
  return dropped;
}

TEST_P(OneSidedAlgorithm, LosesItsRightnessWithoutAnyOfItsSignals) {
  const Schedule schedule = make(4, 1, 1);
  Schedule unawaited = schedule;
  if (drop_packets(unawaited) > 0) {
    EXPECT_FALSE(verify(unawaited, 592, 4).is_correct());
    return;
  }
  const ThreadBlock& block = schedule.ranks[1].blocks.front();
  int dropped = 0;
  for (std::size_t s = 0; s < block.steps.size(); ++s) {
    if (block.steps[s].type != StepType::signal) continue;
    // A whole meeting less, or a signal and its waits, at all ranks.
    Schedule mutant = schedule;
    for (RankProgram& program : mutant.ranks) {
      const int channel = block.access(block.steps[s]).ends.front().channel;
      const auto nth = static_cast<std::size_t>(
          std::count_if(block.steps.begin(), block.steps.begin() + static_cast<std::ptrdiff_t>(s),
                        [&](const Step& step) {
                          return step.type == StepType::signal &&
                                 block.access(step).ends.front().channel == channel;
                        }));
      drop_signals(program, channel, nth);
    }
    const Verdict verdict = verify(mutant, 592, 4);
    EXPECT_FALSE(verdict.is_correct()) << "without step " << s;
    ++dropped;
  }
  EXPECT_GT(dropped, 0);
}

TEST_P(OneSidedAlgorithm, IsACopyOnASingleRank) {
  const Schedule schedule = make(1, 1);
  EXPECT_FALSE(has_one_sided_steps(schedule));
  EXPECT_TRUE(verify(schedule, 16, 4).is_correct());
}

INSTANTIATE_TEST_SUITE_P(Algorithms, OneSidedAlgorithm, testing::ValuesIn(one_sided_algorithms()),
                         [](const auto& info) { return std::string(info.param.name); });

// --- time --------------------------------------------------------------------------------------

Schedule made(const char* name, int ranks, int channels = 1) {
  AlgorithmOptions options;
  options.ranks = ranks;
  options.channels = channels;
  return make_schedule(name, options);
}

// Bytes on the links between a GPU and its switch, up and down, all GPUs alike.
std::pair<std::uint64_t, std::uint64_t> switch_bytes(const char* name, int ranks,
                                                     std::size_t elements) {
  const auto machine = cluster(1, ranks);
  const auto run = run_on(machine, made(name, ranks), elements, time_only());
  run->invoke({});
  std::uint64_t up = 0;
  std::uint64_t down = 0;
  for (std::size_t l = 0; l < machine->links().size(); ++l) {
    const machine::Link& link = machine->links()[l];
    const auto kind_of = [&](int device) {
      return machine->devices()[static_cast<std::size_t>(device)].kind;
    };
    const std::uint64_t bytes = run->loads()[l].bytes.count();
    if (kind_of(link.to) == machine::DeviceKind::nvswitch) {
      if (up == 0) up = bytes;
      EXPECT_EQ(bytes, up) << "link " << l;
    } else if (kind_of(link.from) == machine::DeviceKind::nvswitch) {
      if (down == 0) down = bytes;
      EXPECT_EQ(bytes, down) << "link " << l;
    }
  }
  return {up, down};
}

TEST(OneSidedTime, ASwitchTakesEveryPartOnceAndGivesEveryResultOnce) {
  constexpr std::size_t kElements = 1 << 18;
  constexpr std::uint64_t kBytes = kElements * 4;
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(switch_bytes("two_shot_multimem_all_reduce", 8, kElements),
            Pair(kBytes * 9 / 8, kBytes * 9 / 8));
  EXPECT_EQ(switch_bytes("one_shot_multimem_all_reduce", 8, kElements), Pair(kBytes * 8, kBytes));
  EXPECT_EQ(switch_bytes("nvls_all_gather", 8, kElements), Pair(kBytes / 8, kBytes));
  EXPECT_EQ(switch_bytes("nvls_reduce_scatter", 8, kElements), Pair(kBytes, kBytes / 8));
  EXPECT_EQ(switch_bytes("nvls_all_reduce", 8, kElements), Pair(kBytes * 9 / 8, kBytes * 9 / 8));
}

TEST(OneSidedTime, APulledAllReduceLoadsWhatItsCostSays) {
  constexpr std::size_t kElements = 1 << 18;
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  // Each load of 128 bytes has a request of 16 bytes in the other direction.
  constexpr std::uint64_t kBytes = kElements * 4 * 9 / 8;
  EXPECT_EQ(switch_bytes("one_shot_pull_all_reduce", 4, kElements), Pair(kBytes * 3, kBytes * 3));
  EXPECT_EQ(switch_bytes("two_shot_pull_all_reduce", 4, kElements),
            Pair(kBytes * 6 / 4, kBytes * 6 / 4));
}

// A put goes once over the route, a get asks first: one way more.
TEST(OneSidedTime, AGetTakesOneWayMoreThanAPut) {
  const auto time_of = [](const Schedule& schedule) {
    return run_on(cluster(1, 2), schedule, 2, time_only())->invoke({});
  };
  EXPECT_EQ(time_of(one_transfer(true)) - time_of(one_transfer(false)), 0_ns)
      << "the put's signal waits for its acknowledgement, one way as well";
  const Time get = time_of(one_transfer(true));
  // Launch, overhead, request and bytes (500 ns each, 4 bytes at 50 GB/s), then the signal.
  EXPECT_EQ(get,
            2_us + 100_ns + 500_ns + 500_ns + 500_ns + 30_ns + transfer_time(Bytes(4), 50_GBps));
}

TEST(OneSidedTime, MoreBytesTakeTheThreadBlocksRate) {
  const auto time_of = [](std::size_t elements) {
    return run_on(cluster(1, 2), one_transfer(true), elements, time_only())->invoke({});
  };
  const Time difference = time_of(8 << 20) - time_of(4 << 20);
  const Time expected = transfer_time(Bytes(4 * (4 << 20) / 2), 50_GBps);
  EXPECT_NEAR(static_cast<double>(difference.ps()), static_cast<double>(expected.ps()),
              0.02 * static_cast<double>(expected.ps()));
}

// --- refusals ----------------------------------------------------------------------------------

std::string refusal(const std::shared_ptr<const machine::Machine>& machine,
                    const Schedule& schedule) {
  try {
    run_on(machine, schedule, 64);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

TEST(OneSidedRefusal, NamesWhatTheMachineLacks) {
  const auto says = [](const std::string& sentence, const char* part) {
    return sentence.find(part) != std::string::npos && sentence.find('\n') == std::string::npos;
  };
  EXPECT_PRED2(says, refusal(cluster(1, 4, false), made("nvls_all_gather", 4)),
               "in_switch_reduction");
  EXPECT_PRED2(says, refusal(cluster(2, 2), made("nvls_all_gather", 4)), "not behind one NVSwitch");
  EXPECT_PRED2(says, refusal(cluster(2, 2), made("two_shot_pull_all_reduce", 4)),
               "in another host");
  EXPECT_EQ(refusal(cluster(1, 4, false), made("two_shot_pull_all_reduce", 4)), "");
}

}  // namespace
}  // namespace towpath::collective

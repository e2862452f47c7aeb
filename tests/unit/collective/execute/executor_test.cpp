// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/execute/executor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "schedules.hpp"
#include "towpath/base/deadlock_error.hpp"
#include "towpath/simulate/simulated_gpus.hpp"
#include "towpath/simulate/simulated_run.hpp"

namespace towpath::collective {
namespace {
using namespace literals;
using simulate::SimulatedGpus;
using simulate::SimulatedGpusOptions;
using simulate::SimulatedRun;

// Two GPUs joined by one wire of 100 GB/s and 500 ns; a block moves 50 GB/s.
std::shared_ptr<const machine::Machine> pair_machine() {
  machine::MachineBuilder builder("pair");
  const int a = builder.add_device({"a", machine::DeviceKind::gpu, 0, false});
  const int b = builder.add_device({"b", machine::DeviceKind::gpu, 0, false});
  builder.add_link({a, b, machine::LinkKind::nvlink, 100_GBps, 500_ns, 0_ns});
  builder.add_link({b, a, machine::LinkKind::nvlink, 100_GBps, 500_ns, 0_ns});
  machine::GpuCost cost;
  cost.launch = 2_us;
  cost.protocol[static_cast<std::size_t>(Protocol::simple)] = {50_GBps, 100_ns, 30_ns, true, {}};
  cost.protocol[static_cast<std::size_t>(Protocol::ll)] = {50_GBps, 100_ns, 30_ns, false, {}};
  cost.protocol[static_cast<std::size_t>(Protocol::ll128)] = {50_GBps, 100_ns, 30_ns, false, {}};
  builder.set_gpu_cost(cost);
  return std::move(builder).build();
}

// Three GPUs, each joined to the next one and back by wires as above.
std::shared_ptr<const machine::Machine> ring_of_three() {
  machine::MachineBuilder builder("ring of three");
  for (int i = 0; i < 3; ++i) {
    builder.add_device({"gpu" + std::to_string(i), machine::DeviceKind::gpu, 0, false});
  }
  for (int i = 0; i < 3; ++i) {
    const int next = (i + 1) % 3;
    builder.add_link({i, next, machine::LinkKind::nvlink, 100_GBps, 500_ns, 0_ns});
    builder.add_link({next, i, machine::LinkKind::nvlink, 100_GBps, 500_ns, 0_ns});
  }
  machine::GpuCost cost;
  for (machine::ProtocolCost& protocol : cost.protocol) {
    protocol = {50_GBps, 100_ns, 30_ns, false, {}};
  }
  builder.set_gpu_cost(cost);
  return std::move(builder).build();
}

// A step that no other depends on.
Step step(StepType type, samples::Chunk source, samples::Chunk destination,
          std::uint32_t count = 1) {
  Step made = samples::make_step(type, source, destination, count);
  made.publishes = false;
  return made;
}

// Each rank sends its input and adds what it receives to its own, out of place.
std::shared_ptr<Schedule> exchange(Protocol protocol, std::uint32_t chunks) {
  auto schedule = std::make_shared<Schedule>();
  schedule->name = "exchange";
  schedule->protocol = protocol;
  schedule->chunks = chunks;
  for (int rank = 0; rank < 2; ++rank) {
    RankProgram program;
    ThreadBlock sender;
    sender.send_peer = 1 - rank;
    sender.steps = {step(StepType::send, {Buffer::input, 0}, {Buffer::input, 0}, chunks)};
    ThreadBlock receiver;
    receiver.receive_peer = 1 - rank;
    receiver.steps = {
        step(StepType::receive_reduce_copy, {Buffer::input, 0}, {Buffer::output, 0}, chunks)};
    program.blocks = {sender, receiver};
    schedule->ranks.push_back(program);
  }
  return schedule;
}

template <typename T>
Buffers buffers_of(const std::vector<T>& input, std::vector<T>& output) {
  return {reinterpret_cast<const std::byte*>(input.data()),
          reinterpret_cast<std::byte*>(output.data())};
}

struct TwoRanks {
  explicit TwoRanks(std::size_t elements) : inputs(2), outputs(2) {
    for (std::size_t r = 0; r < 2; ++r) {
      inputs[r].resize(elements);
      outputs[r].assign(elements, -1.0f);
      for (std::size_t i = 0; i < elements; ++i) {
        inputs[r][i] = static_cast<float>((r + 1) * (i % 1000));
      }
    }
  }
  std::vector<Buffers> buffers() {
    std::vector<Buffers> all;
    for (std::size_t r = 0; r < 2; ++r) {
      all.push_back(buffers_of(inputs[r], outputs[r]));
    }
    return all;
  }
  std::vector<std::vector<float>> inputs;
  std::vector<std::vector<float>> outputs;
};

SimulatedGpusOptions time_only() {
  SimulatedGpusOptions options;
  options.carries_data = false;
  options.is_plain = true;  // executors, not TimeOnlyRun
  return options;
}

SimulatedRun run_on(const std::shared_ptr<const machine::Machine>& machine,
                    const std::shared_ptr<const Plan>& plan,
                    const SimulatedGpusOptions& options = {}, sim::Trace* trace = nullptr) {
  const int ranks = plan->schedule->rank_count();
  return {std::make_unique<SimulatedGpus>(machine, ranks, options), plan, trace};
}

TEST(Executor, AddsTheInputsOfTwoRanksForEveryProtocolSizeAndCut) {
  const auto machine = pair_machine();
  for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
    for (const std::size_t elements : {1u, 2u, 5u, 1000u, 8193u, 3'000'001u}) {
      for (const std::uint32_t chunks : {1u, 3u, 8u}) {
        TwoRanks data(elements);
        SimulatedRun run = run_on(machine, make_plan(exchange(protocol, chunks), elements, {}));
        run.invoke(data.buffers());
        run.invoke(data.buffers());
        for (std::size_t r = 0; r < 2; ++r) {
          for (std::size_t i = 0; i < elements; ++i) {
            ASSERT_EQ(data.outputs[r][i], static_cast<float>(3 * (i % 1000)))
                << "rank " << r << " element " << i << " of " << elements << ", " << chunks
                << " chunks, " << name_of(protocol);
          }
        }
      }
    }
  }
}

// The second slice of the last transfer begins beyond the end of the array: 30 transfers of 71
// chunks of 58 elements, of which the last has 1,989 elements in slices of 2,059.
TEST(Executor, ASliceBeyondTheRaggedEndMovesNothing) {
  constexpr std::size_t kElements = 2130 * 57 + 1;
  constexpr std::size_t kBeyond = 71 * 58;
  const auto plan = make_plan(exchange(Protocol::simple, 2130), kElements,
                              {transport::DataType::float64, transport::ReductionOperation::sum});
  std::vector<std::vector<double>> inputs(2, std::vector<double>(kElements + kBeyond));
  for (std::vector<double>& input : inputs) std::iota(input.begin(), input.end(), 0.0);
  std::vector<std::vector<double>> outputs(2, std::vector<double>(kElements + kBeyond, -1.0));
  SimulatedRun run = run_on(pair_machine(), plan);
  run.invoke({buffers_of(inputs[0], outputs[0]), buffers_of(inputs[1], outputs[1])});
  for (const std::vector<double>& output : outputs) {
    for (std::size_t i = 0; i < kElements; ++i) ASSERT_EQ(output[i], 2.0 * static_cast<double>(i));
    EXPECT_EQ(std::count(output.begin() + kElements, output.end(), -1.0), kBeyond);
  }
}

// In LL a chunk of 30,000 floats is walked in four pieces; what one block receives another sends
// on.
TEST(Executor, KeepsDependenciesInEveryIteration) {
  constexpr std::size_t kPart = 30'000;
  Schedule schedule = samples::relayed_all_gather(3);
  schedule.protocol = Protocol::ll;
  const auto plan = make_plan(std::make_shared<Schedule>(schedule), 3 * kPart, {});
  ASSERT_EQ(plan->chunking.iterations(), 4u);
  std::vector<std::vector<float>> inputs(3, std::vector<float>(kPart));
  std::vector<std::vector<float>> outputs(3, std::vector<float>(3 * kPart, -1));
  std::vector<Buffers> buffers;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    std::iota(inputs[rank].begin(), inputs[rank].end(), static_cast<float>(rank * kPart));
    buffers.push_back(buffers_of(inputs[rank], outputs[rank]));
  }
  SimulatedRun run = run_on(ring_of_three(), plan);
  run.invoke(buffers);
  for (const std::vector<float>& output : outputs) {
    for (std::size_t i = 0; i < output.size(); ++i) ASSERT_EQ(output[i], static_cast<float>(i));
  }
}

TEST(Executor, WakesAllBlocksThatWaitForTheSameStep) {
  Schedule schedule = samples::empty_schedule(Collective::broadcast, 2, 2);
  schedule.root = 1;
  schedule.ranks[0].scratch_chunks = 2;
  samples::add_block(schedule, 1, 0, kNone).steps = {
      samples::make_step(StepType::send, {Buffer::input, 0}, {Buffer::input, 0}, 2),
      samples::make_step(StepType::copy, {Buffer::input, 0}, {Buffer::output, 0}, 2)};
  samples::add_block(schedule, 0, kNone, 1).steps = {
      samples::make_step(StepType::receive, {Buffer::input, 0}, {Buffer::scratch, 0}, 2)};
  for (std::uint32_t chunk = 0; chunk < 2; ++chunk) {
    samples::add_block(schedule, 0, kNone, kNone).steps = {samples::after(
        samples::make_step(StepType::copy, {Buffer::scratch, chunk}, {Buffer::output, chunk}), 0,
        0)};
  }
  const auto plan = make_plan(std::make_shared<Schedule>(schedule), 4, {});
  std::vector<std::vector<float>> inputs = {{0, 0, 0, 0}, {1, 2, 3, 4}};
  std::vector<std::vector<float>> outputs(2, std::vector<float>(4, -1));
  SimulatedRun run = run_on(pair_machine(), plan);
  run.invoke({buffers_of(inputs[0], outputs[0]), buffers_of(inputs[1], outputs[1])});
  EXPECT_EQ(outputs[0], inputs[1]);
  EXPECT_EQ(outputs[1], inputs[1]);
}

// Each rank sends six transfers of four chunks before it receives any, so most wait in the FIFO.
TEST(Executor, ASlotHoldsTheLargestTransfer) {
  auto schedule = std::make_shared<Schedule>();
  schedule->name = "six transfers";
  schedule->protocol = Protocol::ll;
  schedule->chunks = 24;
  for (int rank = 0; rank < 2; ++rank) {
    ThreadBlock block;
    block.send_peer = block.receive_peer = 1 - rank;
    for (std::uint32_t chunk = 0; chunk < 24; chunk += 4) {
      block.steps.push_back(
          step(StepType::send, {Buffer::input, chunk}, {Buffer::input, chunk}, 4));
    }
    for (std::uint32_t chunk = 0; chunk < 24; chunk += 4) {
      block.steps.push_back(
          step(StepType::receive_reduce_copy, {Buffer::input, chunk}, {Buffer::output, chunk}, 4));
    }
    RankProgram program;
    program.blocks = {block};
    schedule->ranks.push_back(program);
  }
  constexpr std::size_t kElements = 24 * 1001;  // chunks that differ
  TwoRanks data(kElements);
  SimulatedRun run = run_on(pair_machine(), make_plan(schedule, kElements, {}));
  run.invoke(data.buffers());
  for (const std::vector<float>& output : data.outputs) {
    for (std::size_t i = 0; i < kElements; ++i) {
      ASSERT_EQ(output[i], static_cast<float>(3 * (i % 1000)));
    }
  }
}

// Memory is symmetric, so each rank has as much scratch as the one that needs the most.
TEST(Plan, HasTheScratchOfTheRankThatNeedsTheMost) {
  const Schedule schedule = samples::one_slot_reduce(3, 2);
  ASSERT_GT(schedule.ranks[0].scratch_chunks, schedule.ranks[2].scratch_chunks);
  const auto plan = make_plan(std::make_shared<Schedule>(schedule), 20, {});
  EXPECT_EQ(plan->scratch_bytes, schedule.ranks[0].scratch_chunks * 10 * sizeof(float));
}

// Rank 0 has 2 everywhere and rank 1 has 6. What is not a result stays as it is.
TEST(Executor, DividesAnAverageByTheRanksWhereThereIsAResult) {
  const auto averages = [](const Schedule& schedule) {
    const auto plan = make_plan(std::make_shared<Schedule>(schedule), 6,
                                {transport::DataType::float32, transport::ReductionOperation::avg});
    std::vector<std::vector<float>> inputs = {std::vector<float>(6, 2), std::vector<float>(6, 6)};
    std::vector<std::vector<float>> outputs(
        2, std::vector<float>(plan->output_bytes() / sizeof(float), -1));
    SimulatedRun run = run_on(pair_machine(), plan);
    run.invoke({buffers_of(inputs[0], outputs[0]), buffers_of(inputs[1], outputs[1])});
    return outputs;
  };
  const std::vector<float> whole(6, 4);
  const std::vector<float> part(3, 4);
  const std::vector<float> untouched(6, -1);
  using Outputs = std::vector<std::vector<float>>;
  EXPECT_EQ(averages(samples::ring_all_reduce(2, 1)), (Outputs{whole, whole}));
  EXPECT_EQ(averages(samples::ring_reduce_scatter(2)), (Outputs{part, part}));
  EXPECT_EQ(averages(samples::one_slot_reduce(2, 2)), (Outputs{whole, untouched}));
}

// launch 2 us; send overhead 100 ns; 4,500 bytes at the block's 50 GB/s: 90 ns; wire 500 ns;
// receive overhead 30 ns; then the reduction of 4,500 bytes at 50 GB/s: 90 ns.
TEST(Executor, TakesTheSumOfItsPartsInLL128) {
  SimulatedRun run =
      run_on(pair_machine(), make_plan(exchange(Protocol::ll128, 1), 1125, {}), time_only());
  EXPECT_EQ(run.invoke({}), 2_us + 100_ns + 90_ns + 500_ns + 30_ns + 90_ns);
}

// As above, and the flag travels when the payload has been acknowledged: two more trips.
TEST(Executor, PaysForTheFenceInSimple) {
  SimulatedRun run =
      run_on(pair_machine(), make_plan(exchange(Protocol::simple, 1), 1125, {}), time_only());
  EXPECT_EQ(run.invoke({}), 2_us + 100_ns + 90_ns + 1500_ns + 30_ns + 90_ns);
}

// Two GPUs on two hosts, each with an adapter; every link 100 GB/s and 1 us.
std::shared_ptr<const machine::Machine> far_pair(Rate adapter_rate) {
  machine::MachineBuilder builder("far pair");
  int previous = -1;
  const machine::DeviceKind kinds[] = {machine::DeviceKind::gpu, machine::DeviceKind::nic,
                                       machine::DeviceKind::nic, machine::DeviceKind::gpu};
  for (int i = 0; i < 4; ++i) {
    const bool is_nic = kinds[i] == machine::DeviceKind::nic;
    const int next = builder.add_device({"device" + std::to_string(i), kinds[i], i / 2, is_nic});
    const auto kind = i == 2 ? machine::LinkKind::network : machine::LinkKind::pcie;
    if (i > 0) {
      builder.add_link({previous, next, kind, 100_GBps, 1_us, 0_ns});
      builder.add_link({next, previous, kind, 100_GBps, 1_us, 0_ns});
    }
    previous = next;
  }
  machine::GpuCost cost;
  for (machine::ProtocolCost& protocol : cost.protocol) {
    protocol = {50_GBps, 100_ns, 30_ns, false, adapter_rate};
  }
  builder.set_gpu_cost(cost);
  return std::move(builder).build();
}

// Rank 0 sends `count` transfers and is done with the last one when it has left; rank 1 receives
// none before rank 0 has had every slot.
std::shared_ptr<Schedule> send_then_receive(std::uint32_t count) {
  auto schedule = std::make_shared<Schedule>();
  schedule->name = "send then receive";
  schedule->protocol = Protocol::ll;
  schedule->chunks = count;
  for (int rank = 0; rank < 2; ++rank) {
    ThreadBlock block;
    block.send_peer = block.receive_peer = 1 - rank;
    for (std::uint32_t c = 0; c < count; ++c) {
      block.steps.push_back(step(StepType::send, {Buffer::input, c}, {Buffer::input, c}));
    }
    for (std::uint32_t c = 0; c < count; ++c) {
      block.steps.push_back(
          step(StepType::receive_reduce_copy, {Buffer::input, c}, {Buffer::output, c}));
    }
    RankProgram program;
    program.blocks = {block};
    schedule->ranks.push_back(program);
  }
  return schedule;
}

TEST(Executor, HasAFifoAtEitherEndOfAConnectionBetweenHosts) {
  const auto runs = [](const std::shared_ptr<const machine::Machine>& machine,
                       std::uint32_t count) {
    SimulatedRun run =
        run_on(machine, make_plan(send_then_receive(count), count * 100, {}), time_only());
    try {
      run.invoke({});
      return true;
    } catch (const towpath::DeadlockError&) {
      return false;
    }
  };
  EXPECT_TRUE(runs(pair_machine(), 8));
  EXPECT_FALSE(runs(pair_machine(), 9));
  EXPECT_TRUE(runs(far_pair({}), 16));
  EXPECT_FALSE(runs(far_pair({}), 17));
}

// 100 ns to start; 4,500 payload bytes are 4,800 on the wire. At the block's own 50 GB/s they take
// 90 ns; an adapter that sends 5 GB/s of payload takes 900 ns. Three links; 30 ns at the reader;
// 90 ns to reduce. The head reaches the adapter 1 us after the start either way.
TEST(Executor, WaitsForAnAdapterThatAProxySlowsDown) {
  const auto time_with = [](Rate adapter_rate) {
    SimulatedRun run = run_on(far_pair(adapter_rate),
                              make_plan(exchange(Protocol::ll128, 1), 1125, {}), time_only());
    return run.invoke({});
  };
  EXPECT_EQ(time_with({}), 100_ns + 90_ns + 3_us + 30_ns + 90_ns);
  EXPECT_EQ(time_with(5_GBps), 100_ns + 900_ns + 3_us + 30_ns + 90_ns);
}

TEST(Executor, NamesTheCycleWhenEverybodyWaitsForSlots) {
  // Send 9 transfers before receiving any: LL has 8 slots.
  auto schedule = std::make_shared<Schedule>();
  schedule->name = "send first";
  schedule->protocol = Protocol::ll;
  schedule->chunks = 9;
  for (int rank = 0; rank < 2; ++rank) {
    ThreadBlock block;
    block.send_peer = block.receive_peer = 1 - rank;
    for (std::uint32_t c = 0; c < 9; ++c) {
      block.steps.push_back(step(StepType::send, {Buffer::input, c}, {Buffer::input, c}));
    }
    for (std::uint32_t c = 0; c < 9; ++c) {
      block.steps.push_back(
          step(StepType::receive_reduce_copy, {Buffer::input, c}, {Buffer::output, c}));
    }
    RankProgram program;
    program.blocks = {block};
    schedule->ranks.push_back(program);
  }
  SimulatedRun run = run_on(pair_machine(), make_plan(schedule, 9000, {}), time_only());
  try {
    run.invoke({});
    FAIL() << "it finished";
  } catch (const towpath::DeadlockError& error) {
    ASSERT_EQ(error.cycle().size(), 2u) << error.what();
    EXPECT_TRUE(error.cycle()[0].starts_with("rank 0 thread block 0")) << error.cycle()[0];
    EXPECT_TRUE(error.cycle()[1].starts_with("rank 1 thread block 0")) << error.cycle()[1];
    EXPECT_NE(error.cycle()[0].find("waits for a free slot from rank 1"), std::string::npos)
        << error.cycle()[0];
  }
}

TEST(Executor, IsTheSameRunTwice) {
  const auto run_once = [](std::uint64_t seed, Time jitter) {
    sim::Trace trace(sim::Trace::Mode::hash_only);
    SimulatedRun run =
        run_on(pair_machine(), make_plan(exchange(Protocol::simple, 8), 1 << 20, {}),
               {.places = {}, .carries_data = false, .seed = seed, .jitter_max = jitter}, &trace);
    run.invoke({});
    return trace.hash();
  };
  EXPECT_EQ(run_once(1, 0_ns), run_once(1, 0_ns));
  EXPECT_EQ(run_once(7, 90_ns), run_once(7, 90_ns));
  EXPECT_NE(run_once(7, 90_ns), run_once(8, 90_ns));
}

}  // namespace
}  // namespace towpath::collective

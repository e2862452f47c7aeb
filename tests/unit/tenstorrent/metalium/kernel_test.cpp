// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ethernet_cluster.hpp"
#include "sentence.hpp"
#include "towpath/machine/load.hpp"
#include "towpath/tenstorrent/cluster/chip_program.hpp"
#include "towpath/tenstorrent/metalium/kernel_clock.hpp"
#include "towpath/tenstorrent/metalium/source_kernel.hpp"

// Kernels in TT-Metalium's source form, compiled when they are run.

namespace towpath::tenstorrent::metalium {
namespace {

using machine::Coordinate;
using noc::Cycle;

const std::shared_ptr<const machine::Chip>& wormhole() {
  static const auto chip = machine::load_chip("wormhole");
  return chip;
}

constexpr std::uint32_t kData = 0x20000;

struct Source {
  std::string text;
  std::vector<std::uint32_t> compile_args{};
  std::vector<std::uint32_t> runtime_args{};
  CircularBuffers circular_buffers{};
};

// A chip with kernels in source form.
struct SourceProgram {
  explicit SourceProgram(const Program::Options& options = {}) : program(wormhole(), options) {}
  void add(Coordinate core, const std::string& name, const Source& source,
           Processor processor = Processor::data_movement_0) {
    const int noc = processor == Processor::data_movement_1 ? 1 : 0;
    const CompiledKernel compiled =
        compile_kernel({.file = name + ".cpp",
                        .text = source.text,
                        .compile_args = source.compile_args,
                        .circular_buffers = source.circular_buffers},
                       {.chip = wormhole(), .processor = processor, .noc_index = noc});
    program.create_kernel(
        {.core = core, .name = name, .noc_index = noc, .runtime_args = source.runtime_args},
        make_kernel(compiled, {.circular_buffers = source.circular_buffers, .log = &log}));
  }
  std::uint32_t word(Coordinate core, std::uint64_t offset) {
    return program.memory(core).load_word(offset);
  }
  KernelLog log;
  ChipProgram program;
};

std::string message_of(const std::string& text) {
  try {
    SourceProgram run;
    run.add({1, 1}, "wrong", {.text = text});
    run.program.run();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& message, const std::string& phrase) {
  return message.find(phrase) != std::string::npos;
}

constexpr const char* kWriter = R"(
#include "dataflow_api.h"
void kernel_main() {
  constexpr uint32_t size = get_compile_time_arg_val(0);
  uint32_t x = get_arg_val<uint32_t>(0);
  uint32_t y = get_arg_val<uint32_t>(1);
  volatile tt_l1_ptr uint32_t* words = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(0x20000);
  for (uint32_t i = 0; i < size / 4; ++i) words[i] = 100 + i;
  {
    DeviceZoneScopedN("write");
    noc_async_write(0x20000, get_noc_addr(x, y, 0x20000), size);
    noc_async_write_barrier();
  }
  DeviceTimestampedData("bytes", size);
}
)";

TEST(MetaliumKernel, WritesToAnotherCore) {
  SourceProgram run;
  run.add({1, 1}, "writer", {.text = kWriter, .compile_args = {64}, .runtime_args = {2, 1}});
  run.program.run();
  EXPECT_EQ(run.word({2, 1}, kData), 100u);
  EXPECT_EQ(run.word({2, 1}, kData + 60), 115u);
  ASSERT_EQ(run.log.zones.size(), 1u);
  EXPECT_EQ(run.log.zones[0].name, "write");
  ASSERT_EQ(run.log.values.size(), 1u);
  EXPECT_EQ(run.log.values[0].value, 64u);
}

// A kernel in source form takes as long as the same calls of a DataMovementCore.
TEST(MetaliumKernel, TakesTheTimeOfItsCalls) {
  SourceProgram run;
  run.add({1, 1}, "writer", {.text = kWriter, .compile_args = {64}, .runtime_args = {2, 1}});
  run.program.run();
  ChipProgram same(wormhole(), {});
  Cycle cycles = 0;
  same.create_kernel({.core = {1, 1}, .name = "writer"}, [&](DataMovementCore& core) {
    core.work_until(run.log.zones[0].begin);
    core.noc_async_write(kData, core.get_noc_addr(2, 1, kData), 64);
    core.noc_async_write_barrier();
    cycles = core.cycle();
  });
  same.run();
  EXPECT_EQ(run.log.zones[0].end, cycles);
}

TEST(MetaliumKernel, PollsAWordWithoutACall) {
  SourceProgram run;
  run.add({1, 1}, "poller", {.text = R"(
#include "dataflow_api.h"
static uint32_t polls;
void kernel_main() {
  volatile tt_l1_ptr uint32_t* flag = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(0x20000);
  while (*flag != 7) ++polls;
  *reinterpret_cast<volatile uint32_t*>(0x20010) = polls;
}
)"});
  run.program.create_kernel({.core = {2, 1}, .name = "setter"}, [](DataMovementCore& core) {
    core.work(1000);
    core.noc_inline_dw_write(core.get_noc_addr(1, 1, kData), 7);
    core.noc_async_write_barrier();
  });
  const ProgramResult result = run.program.run();
  constexpr int poll_cycles = kPollCycles;
  const std::uint32_t polls = run.word({1, 1}, kData + 16);
  EXPECT_GT(polls, 1000u / static_cast<unsigned>(poll_cycles));
  // A store of a word takes 5 cycles; the poll that sees the word is not counted.
  EXPECT_EQ(result.kernels[0].end, (polls + 1) * static_cast<unsigned>(poll_cycles) + 5);
}

// A kernel may look at what is under way with an id and go on; each look takes a poll.
TEST(MetaliumKernel, ATestOfAnIdLooksOnce) {
  SourceProgram run;
  run.add({1, 1}, "looks", {.text = R"(
#include "dataflow_api.h"
void kernel_main() {
  noc_async_write_one_packet_with_trid_set_state(get_noc_addr(2, 1, 0x20000));
  noc_async_write_one_packet_with_trid_with_state(0x20000, 0x20000, 8192, 3);
  uint32_t until_sent = 0, until_answered = 0;
  while (!ncrisc_noc_nonposted_write_with_transaction_id_sent(0, 3)) ++until_sent;
  while (!ncrisc_noc_nonposted_write_with_transaction_id_flushed(0, 3)) ++until_answered;
  volatile uint32_t* found = reinterpret_cast<volatile uint32_t*>(0x30000);
  found[0] = until_sent;
  found[1] = until_answered;
}
)"});
  run.program.run();
  // 257 flits at 25.6 bytes per cycle, then the way there and back; a look is 8 cycles.
  EXPECT_NEAR(run.word({1, 1}, 0x30000) * 8.0, 8192 / 25.6, 50);
  EXPECT_NEAR(run.word({1, 1}, 0x30004) * 8.0, 150, 60);
}

TEST(MetaliumKernel, APollThatNothingEndsIsADeadlock) {
  const std::string message = message_of(R"(
#include "dataflow_api.h"
void kernel_main() { while (*reinterpret_cast<volatile uint32_t*>(0x20000) == 0) {} }
)");
  EXPECT_TRUE(says(message, "nothing changes that it polls")) << message;
  EXPECT_TRUE(says(message, "kernel 'wrong' on core (1, 1)")) << message;
}

TEST(MetaliumKernel, EveryCoreHasItsOwnGlobals) {
  SourceProgram run;
  const Source counter{.text = R"(
#include "dataflow_api.h"
uint32_t count = 0;
void kernel_main() {
  for (int i = 0; i < 10; ++i) { ++count; riscv_wait(10); }
  *reinterpret_cast<volatile uint32_t*>(0x20000) = count;
}
)"};
  for (const Coordinate core : {Coordinate{1, 1}, {2, 1}, {3, 1}}) run.add(core, "count", counter);
  run.program.run();
  for (const Coordinate core : {Coordinate{1, 1}, {2, 1}, {3, 1}}) {
    EXPECT_EQ(run.word(core, kData), 10u);
  }
}

TEST(MetaliumKernel, CopiesBytesOfL1) {
  SourceProgram run;
  run.add({1, 1}, "copy", {.text = R"(
#include <cstring>
#include "dataflow_api.h"
struct Block { uint32_t words[40]; };
void kernel_main() {
  uint8_t local[300];
  for (int i = 0; i < 300; ++i) local[i] = uint8_t(i);
  std::memcpy((void*)0x20000, local, 300);
  *(Block*)0x21000 = *(const Block*)0x20004;
  std::memset((void*)0x21004, 0xab, 3);
  uint16_t* half = (uint16_t*)0x2100a;
  *half = *(uint16_t*)0x20000 + 1;
}
)"});
  run.program.run();
  EXPECT_EQ(run.word({1, 1}, kData + 296), 0x2b2a2928u);
  EXPECT_EQ(run.word({1, 1}, 0x21000), 0x07060504u);
  EXPECT_EQ(run.word({1, 1}, 0x21004), 0x0babababu);
  EXPECT_EQ(run.word({1, 1}, 0x21008), 0x01010d0cu);
  EXPECT_EQ(run.word({1, 1}, 0x2109c), 0xa3a2a1a0u);
}

TEST(MetaliumKernel, CircularBufferJoinsTheTwoProcessors) {
  const CircularBuffers buffers{{.offset = 0x30000, .size_bytes = 2 * 64, .page_bytes = 64}};
  SourceProgram run;
  run.add({1, 1}, "reader",
          {.text = R"(
#include "dataflow_api.h"
void kernel_main() {
  for (uint32_t page = 0; page < 8; ++page) {
    cb_reserve_back(0, 1);
    *reinterpret_cast<volatile uint32_t*>(get_write_ptr(0)) = 1000 + page;
    cb_push_back(0, 1);
  }
}
)",
           .circular_buffers = buffers});
  run.add({1, 1}, "writer",
          {.text = R"(
#include "dataflow_api.h"
void kernel_main() {
  for (uint32_t page = 0; page < 8; ++page) {
    cb_wait_front(0, 1);
    noc_async_write(get_read_ptr(0), get_noc_addr(4, 4, 0x20000 + page * 16), 16);
    noc_async_write_barrier();
    cb_pop_front(0, 1);
  }
}
)",
           .circular_buffers = buffers},
          Processor::data_movement_1);
  run.program.run();
  for (std::uint32_t page = 0; page < 8; ++page) {
    EXPECT_EQ(run.word({4, 4}, kData + page * 16), 1000 + page);
  }
}

TEST(MetaliumKernel, PagesOfAnInterleavedTensorAreInTurnInEveryBank) {
  SourceProgram run;
  run.add({1, 1}, "pages",
          {.text = R"(
#include "dataflow_api.h"
void kernel_main() {
  constexpr auto args = TensorAccessorArgs<0>();
  const auto tensor = TensorAccessor(args, 4096, 32);
  const InterleavedAddrGenFast<true> tiles = {
      .bank_base_address = 8192, .page_size = 2048, .data_format = DataFormat::Float16_b};
  for (uint32_t page = 0; page < 30; ++page) {
    *reinterpret_cast<volatile uint32_t*>(0x20000) = page;
    noc_async_write_page(page, tensor, 0x20000);
    noc_async_write_barrier();
  }
  noc_async_write_tile(13, tiles, 0x20000);
  noc_async_write_barrier();
  noc_async_read_page(17, tensor, 0x22000);
  noc_async_read_barrier();
}
)",
           .compile_args = {2, 32}});
  run.program.run();
  EXPECT_EQ(run.word({1, 1}, 0x22000), 17u);
  const Coordinate first = wormhole()->dram_groups[0][0];
  EXPECT_EQ(run.word(first, 4096 + 2 * 32), 24u);  // page 24 is the third of bank 0
  const std::uint64_t second_bank = wormhole()->dram.channel_bytes;
  EXPECT_EQ(run.word(first, second_bank + 4096 + 2 * 32), 25u);
  EXPECT_EQ(run.word(first, second_bank + 8192 + 2048), 29u);  // tile 13
}

TEST(MetaliumKernel, PrintsLines) {
  SourceProgram run;
  run.add({1, 1}, "print", {.text = R"(
#include "dataflow_api.h"
#include "debug/dprint.h"
void kernel_main() { DPRINT << "x = " << 5u << ", " << HEX() << 255 << ENDL() << F32(1.5f); }
)"});
  run.program.run();
  ASSERT_EQ(run.log.lines.size(), 2u);
  EXPECT_EQ(run.log.lines[0].text, "x = 5, ff");
  EXPECT_EQ(run.log.lines[0].from.kernel, "print");
  EXPECT_EQ(run.log.lines[1].text, "1.5");
}

// --- errors -------------------------------------------------------------------------------------

TEST(MetaliumKernel, ErrorsOfTheCompilerNameTheLine) {
  const std::string message = message_of("void kernel_main() {\n  noc_async_wriet(1, 2, 3);\n}\n");
  EXPECT_TRUE(says(message, "does not compile")) << message;
  EXPECT_TRUE(says(message, "wrong.cpp:2")) << message;
}

TEST(MetaliumKernel, ErrorsNameKernelAndCall) {
  const std::string misaligned = message_of(R"(
#include "dataflow_api.h"
void kernel_main() { noc_async_write(0x20001, get_noc_addr(2, 1, 0x20000), 16); }
)");
  EXPECT_TRUE(says(misaligned, "kernel 'wrong' on core (1, 1) in noc_async_write")) << misaligned;
  const std::string argument = message_of(R"(
#include "dataflow_api.h"
void kernel_main() { noc_semaphore_set((uint32_t*)0x20000, get_arg_val<uint32_t>(3)); }
)");
  EXPECT_TRUE(says(argument, "runtime argument")) << argument;
  const std::string beyond = message_of(R"(
#include "dataflow_api.h"
void kernel_main() { *(volatile uint32_t*)0x10000000 = 1; }
)");
  EXPECT_TRUE(says(beyond, "0x10000000")) << beyond;
  const std::string ethernet = message_of(R"(
#include "eth/dataflow_api.h"
void kernel_main() { eth_send_done(); }
)");
  EXPECT_TRUE(says(ethernet, "runs on a worker")) << ethernet;
}

TEST(MetaliumKernel, AMissingFileIsNamed) {
  try {
    compile_kernel({.file = "absent.cpp"}, {.chip = wormhole()});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_TRUE(says(error.what(), "absent.cpp")) << error.what();
  }
}

// --- the cache ----------------------------------------------------------------------------------

TEST(MetaliumKernel, IsCompiledAgainWhenAHeaderHasChanged) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "towpath_metalium_cache";
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
  };
  write("kernel.cpp",
        "#include \"value.h\"\n#include \"dataflow_api.h\"\n"
        "void kernel_main() { *(volatile uint32_t*)0x20000 = VALUE; }\n");
  const auto value = [&] {
    ChipProgram program(wormhole(), {});
    const CompiledKernel compiled =
        compile_kernel({.file = folder / "kernel.cpp"}, {.chip = wormhole()});
    program.create_kernel({.core = {1, 1}, .name = "k"}, make_kernel(compiled, {}));
    program.run();
    return program.memory({1, 1}).load_word(kData);
  };
  write("value.h", "#define VALUE 1\n");
  EXPECT_EQ(value(), 1u);
  EXPECT_EQ(value(), 1u);
  write("value.h", "#define VALUE 2\n");
  EXPECT_EQ(value(), 2u);
  std::filesystem::remove_all(folder);
}

// --- Ethernet -----------------------------------------------------------------------------------

constexpr const char* kSender = R"(
#include "eth/dataflow_api.h"
void kernel_main() {
  uint32_t scratch = eth_l1_mem::address_map::ERISC_L1_UNRESERVED_BASE;
  eth_send_bytes(scratch, scratch, 16);
  eth_wait_for_receiver_done();
  volatile tt_l1_ptr uint32_t* data = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(0x20000);
  for (uint32_t i = 0; i < 64; ++i) data[i] = i + 5;
  eth_send_bytes_over_channel(0x20000, 0x20000, 256, 1, 256, 16);
  while (!eth_is_receiver_channel_send_done(1)) run_routing();
}
)";
constexpr const char* kReceiver = R"(
#include "eth/dataflow_api.h"
void kernel_main() {
  eth_wait_for_bytes(16);
  eth_receiver_channel_done(0);
  while (erisc_info->channels[1].bytes_sent == 0) {}
  volatile tt_l1_ptr uint32_t* data = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(0x20000);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 64; ++i) sum += data[i];
  *reinterpret_cast<volatile uint32_t*>(0x21000) = sum;
  eth_receiver_channel_done(1);
}
)";

EthernetKernel ethernet_kernel(Cluster& cluster, const std::string& name, const char* text) {
  const CompiledKernel compiled = compile_kernel(
      {.file = name, .text = text},
      {.chip = cluster.description().chips[0].chip, .processor = Processor::ethernet});
  return [kernel = make_kernel(compiled, {})](EthernetCore& core) { kernel(core); };
}

TEST(MetaliumKernel, SendsOverEthernet) {
  Pair pair;
  pair.create(ethernet_kernel(pair.cluster, "sender.cpp", kSender),
              ethernet_kernel(pair.cluster, "receiver.cpp", kReceiver));
  pair.cluster.run();
  EXPECT_EQ(pair.word(1, 0x21000), 64u * 63 / 2 + 64 * 5);
}

// Code of an Ethernet core is fetched when it runs first, and again after the base firmware.
TEST(MetaliumKernel, CodeOfAnEthernetCoreIsFetchedAfterTheBaseFirmware) {
  const CompiledKernel compiled =
      compile_kernel({.file = "fetched.cpp", .text = R"(
#include "eth/dataflow_api.h"
void kernel_main() {
  volatile uint32_t* took = reinterpret_cast<volatile uint32_t*>(0x21000);
  for (uint32_t i = 0; i < 3; ++i) {
    if (i == 2) run_routing();
    const uint64_t begin = eth_read_wall_clock();
    noc_semaphore_inc(get_noc_addr(1, 1, 0x20000), 1);
    took[i] = eth_read_wall_clock() - begin;
    noc_async_atomic_barrier();
  }
}
)"},
                     {.chip = wormhole(), .processor = Processor::ethernet});
  SourceProgram run;
  const auto kernel = make_kernel(compiled, {});
  run.program.create_kernel(LogicalCore{0, 0}, {.name = "fetched"},
                            [kernel](EthernetCore& core) mutable { kernel(core); });
  run.program.run();
  const auto took = [&](int i) {
    return run.word(wormhole()->ethernet_cores[0], 0x21000 + 4 * static_cast<std::uint64_t>(i));
  };
  const auto fetch = static_cast<std::uint32_t>(lines_of(CallCode::atomic) *
                                                kInstructionFetch.of(*wormhole()).line_cycles);
  EXPECT_GT(fetch, 0u);
  EXPECT_EQ(took(0), took(1) + fetch);
  EXPECT_EQ(took(2), took(1) + fetch);
}

TEST(InstructionCache, HoldsTheLinesThatRanLast) {
  InstructionCache cache(12 * InstructionCache::kLineBytes);
  EXPECT_EQ(cache.run(1, 5), 5);
  EXPECT_EQ(cache.run(2, 6), 6);
  EXPECT_EQ(cache.run(1, 5), 0);
  EXPECT_EQ(cache.run(3, 2), 2);  // in the place of 2, which ran before 1
  EXPECT_EQ(cache.run(1, 5), 0);
  EXPECT_EQ(cache.run(2, 6), 6);
  cache.clear();
  EXPECT_EQ(cache.run(1, 5), 5);
  EXPECT_EQ(cache.run(4, 13), 13);  // longer than the cache
  EXPECT_EQ(cache.run(4, 13), 13);
}

// What is a kernel's to write begins behind the semaphores of an Ethernet core.
TEST(MetaliumKernel, TheUnreservedMemoryOfAnEthernetCoreHoldsNoSemaphore) {
  const CompiledKernel compiled =
      compile_kernel({.file = "semaphores.cpp", .text = R"(
#include "eth/dataflow_api.h"
void kernel_main() {
  using map = eth_l1_mem::address_map;
  for (uint32_t i = 0; i < 256; ++i) {
    reinterpret_cast<volatile uint32_t*>(map::ERISC_L1_UNRESERVED_BASE)[i] = 7;
  }
  *reinterpret_cast<volatile uint32_t*>(0x21000) =
      *reinterpret_cast<volatile uint32_t*>(get_semaphore<ProgrammableCoreType::ACTIVE_ETH>(15));
}
)"},
                     {.chip = wormhole(), .processor = Processor::ethernet});
  SourceProgram run;
  run.program.set_at_start({wormhole()->ethernet_cores[0]},
                           kEthernetSemaphoreBase + 15 * kSemaphoreBytes, 3);
  const auto kernel = make_kernel(compiled, {});
  run.program.create_kernel(LogicalCore{0, 0}, {.name = "semaphores"},
                            [kernel](EthernetCore& core) mutable { kernel(core); });
  run.program.run();
  EXPECT_EQ(run.word(wormhole()->ethernet_cores[0], 0x21000), 3u);
}

TEST(MetaliumKernel, IsCompiledForTheArchitectureThatTheChipNames) {
  const auto arch_of = [](const char* machine) {
    auto chip = *machine::load_chip(machine);
    chip.name = "renamed";
    const auto built = std::make_shared<const machine::Chip>(chip);
    const CompiledKernel compiled = compile_kernel({.file = "arch.cpp", .text = R"(
#ifdef ARCH_BLACKHOLE
uint32_t arch = 3;
#else
uint32_t arch = 2;
#endif
void kernel_main() { *reinterpret_cast<volatile uint32_t*>(0x20000) = arch; }
)"},
                                                   {.chip = built});
    ChipProgram program(built, {});
    program.create_kernel({.core = {1, 2}, .name = "arch"}, make_kernel(compiled, {}));
    program.run();
    return program.memory({1, 2}).load_word(kData);
  };
  EXPECT_EQ(arch_of("wormhole"), 2u);
  EXPECT_EQ(arch_of("blackhole"), 3u);
  auto nameless = *wormhole();
  nameless.architecture = "";
  const auto built = std::make_shared<const machine::Chip>(nameless);
  EXPECT_THROW(compile_kernel({.file = "k.cpp", .text = "void kernel_main() {}"}, {.chip = built}),
               std::invalid_argument);
}

TEST(MetaliumKernel, AMissingHandshakeIsNamed) {
  Pair pair;
  pair.create(ethernet_kernel(pair.cluster, "sender.cpp", R"(
#include "eth/dataflow_api.h"
void kernel_main() {
  eth_send_bytes_over_channel(0x20000, 0x20000, 256, 1, 256, 16);
  eth_wait_for_receiver_channel_done(1);
}
)"),
              ethernet_kernel(pair.cluster, "receiver.cpp", R"(
#include "eth/dataflow_api.h"
void kernel_main() {
  eth_wait_for_bytes_on_channel(256, 1);
  eth_receiver_channel_done(1);
}
)"));
  EXPECT_EQ(run_to_failure(pair.cluster).hazard, "missing_handshake");
}

}  // namespace
}  // namespace towpath::tenstorrent::metalium

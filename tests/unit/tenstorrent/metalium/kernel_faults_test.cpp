// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "towpath/machine/load.hpp"
#include "towpath/tenstorrent/cluster/chip_program.hpp"
#include "towpath/tenstorrent/metalium/source_kernel.hpp"

// What kernels in TT-Metalium's source form do wrong besides their calls: loops that never end,
// what the processor refuses.

namespace towpath::tenstorrent::metalium {
namespace {

ProgramResult run_kernel(const std::string& text) {
  static const auto chip = machine::load_chip("wormhole");
  KernelLog log;
  ChipProgram program(chip, {});
  const CompiledKernel compiled =
      compile_kernel({.file = "kernel.cpp", .text = text}, {.chip = chip});
  program.create_kernel({.core = {1, 1}, .name = "kernel"}, make_kernel(compiled, {.log = &log}));
  return program.run();
}

std::string message_of(const std::string& text) {
  try {
    run_kernel(text);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& message, const std::string& phrase) {
  return message.find(phrase) != std::string::npos;
}

TEST(MetaliumKernelFaults, WhatIsNotDefinedIsNamed) {
  EXPECT_EQ(message_of("int x;\n"),
            "kernel 'kernel.cpp' uses kernel_main() and does not define it; a kernel is a C++ file "
            "with void kernel_main(), and all that this uses");
  EXPECT_TRUE(says(message_of("int f(int);\nvoid kernel_main() { *(int*)0x20000 = f(1); }\n"),
                   "kernel 'kernel.cpp' uses f(int) and does not define it"));
}

// What a kernel does between its calls takes no time, so that only a count ends such loops.
TEST(MetaliumKernelFaults, ALoopInWhichNoTimePassesIsRefused) {
  for (const std::string loop :
       {"while (flag == 0) {}", "for (volatile uint32_t i = 0; i < 2; i = 1 - i) {}",
        "for (;;) DPRINT << 1 << ENDL();"}) {
    const std::string message = message_of(R"(
#include "dataflow_api.h"
volatile uint32_t flag;
void kernel_main() {
  riscv_wait(70);
  )" + loop + "\n}\n");
    EXPECT_TRUE(says(message, "it is still in cycle 70 after 4294967296 blocks of instructions"))
        << message;
    if (loop.find("DPRINT") == std::string::npos) {
      EXPECT_TRUE(says(message, "kernel 'kernel' on core (1, 1) at kernel.cpp:6: ")) << message;
    }
  }
}

// Nothing is left of such a loop but a jump.
TEST(MetaliumKernelFaults, AnEmptyLoopIsRefusedWhereItBegins) {
  for (const std::string loop : {"for (;;) {}", "wait: goto wait;", "while (!false) { ; }"}) {
    const std::string message = message_of(R"(
#include "dataflow_api.h"
void kernel_main() {
  riscv_wait(70);
  )" + loop + "\n}\n");
    EXPECT_TRUE(says(message,
                     "kernel 'kernel' on core (1, 1) at kernel.cpp:5: in cycle 70 it reaches an "
                     "empty loop that never ends;"))
        << message;
  }
}

// As many blocks are allowed again once time has passed, and loads let it pass.
TEST(MetaliumKernelFaults, ALongLoopWithLoadsEnds) {
  const ProgramResult result = run_kernel(R"(
#include "dataflow_api.h"
void kernel_main() {
  const uint32_t* words = reinterpret_cast<const uint32_t*>(0x20000);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 3'000'000; ++i) { sum = sum * 31 + words[i % 16]; }
  *reinterpret_cast<volatile uint32_t*>(0x30000) = sum;
}
)");
  EXPECT_EQ(result.kernels[0].end, 3'000'000 * 2 + 5);
}

TEST(MetaliumKernelFaults, ALoopThatReadsTheClockEnds) {
  for (const std::string clock :
       {"*reinterpret_cast<volatile uint32_t*>(0xffb121f0)", "get_timestamp_32b()"}) {
    const ProgramResult result = run_kernel("#define CLOCK " + clock + R"(
#include "dataflow_api.h"
void kernel_main() {
  const volatile uint32_t* never = reinterpret_cast<volatile uint32_t*>(0x20000);
  const uint32_t begin = CLOCK;
  while (*never == 0 && CLOCK - begin < 1'000'000) {}
}
)");
    EXPECT_NEAR(static_cast<double>(result.kernels[0].end), 1e6, 40) << clock;
  }
}

TEST(MetaliumKernelFaults, WhatTheProcessorRefusesIsAnErrorOfTheKernel) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has these signals";
#endif
  const std::string divided = message_of(R"(
#include "dataflow_api.h"
void kernel_main() {
  volatile int none = 0;
  *(volatile int*)0x20000 = 5 / none;
}
)");
  EXPECT_TRUE(says(divided,
                   "kernel 'kernel' on core (1, 1) at kernel.cpp:5: it divides a whole number by "
                   "zero, or by -1 where the quotient does not fit"))
      << divided;
  const std::string far = message_of(R"(
#include "dataflow_api.h"
void kernel_main() {
  uint64_t address = 0x7ffffff00000;
  *(volatile uint32_t*)address = 1;
}
)");
  EXPECT_TRUE(says(far,
                   "kernel 'kernel' on core (1, 1) at kernel.cpp:5: it stores 4 bytes at address "
                   "0x7ffffff00000, which is neither in its L1 nor memory of the kernel's own"))
      << far;
  const std::string deep = message_of(R"(
#include "dataflow_api.h"
uint32_t deep(uint32_t n) {
  volatile char large[4096];
  large[n % 4096] = n;
  return n == 0 ? large[0] : deep(n - 1) + large[1];
}
void kernel_main() { *(volatile uint32_t*)0x20000 = deep(1000000); }
)");
  EXPECT_TRUE(says(deep, "more stack than it has")) << deep;
}

}  // namespace
}  // namespace towpath::tenstorrent::metalium

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <iostream>
#include <numeric>
#include <string>
#include <tt-metalium/host_api.hpp>
#include <vector>

// A host program of TT-Metalium: four cores double the words of a DRAM buffer. It is written for
// the vendor's library; linked with Towpath it runs on a described chip.

using namespace tt::tt_metal;

int main(int count, char** arguments) {
  const std::string kernels = count > 1 ? arguments[1] : "examples/05_metalium/kernels";
  constexpr std::uint32_t kPageBytes = 1024;
  constexpr std::uint32_t kCores = 4;
  constexpr std::uint32_t kPages = 32;
  Device* const device = CreateDevice(0);
  const auto buffer = [&] {
    return CreateBuffer({.device = device, .size = kPages * kPageBytes, .page_size = kPageBytes});
  };
  const auto source = buffer();
  const auto target = buffer();
  std::vector<std::uint32_t> words(kPages * kPageBytes / sizeof(std::uint32_t));
  std::iota(words.begin(), words.end(), 0);
  EnqueueWriteBuffer(device->command_queue(), source, words, false);

  Program program = CreateProgram();
  const CoreRange cores({0, 0}, {kCores - 1, 0});
  CreateCircularBuffer(
      program, cores,
      CircularBufferConfig(kPageBytes, {{tt::CBIndex::c_0, tt::DataFormat::UInt32}})
          .set_page_size(tt::CBIndex::c_0, kPageBytes));
  std::vector<std::uint32_t> compile_args;
  TensorAccessorArgs(*source).append_to(compile_args);
  TensorAccessorArgs(*target).append_to(compile_args);
  const KernelHandle kernel = CreateKernel(program, kernels + "/doubler.cpp", cores,
                                           DataMovementConfig{.compile_args = compile_args});
  for (std::uint32_t core = 0; core < kCores; ++core) {
    SetRuntimeArgs(program, kernel, CoreCoord(core, 0),
                   {source->address(), target->address(), core * kPages / kCores, kPages / kCores});
  }
  EnqueueProgram(device->command_queue(), program, false);
  Finish(device->command_queue());

  std::vector<std::uint32_t> doubled;
  EnqueueReadBuffer(device->command_queue(), target, doubled, true);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < words.size(); ++i) wrong += doubled[i] != 2 * words[i] ? 1 : 0;
  std::cout << words.size() << " words, " << wrong << " wrong, " << simulated_time_ns() << " ns\n";
  CloseDevice(device);
  return wrong == 0 ? 0 : 1;
}

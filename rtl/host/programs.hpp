// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "program.h"

// The programs of rtl/sw, each compiled under a name of its own.

using Program = int (*)(int node, int nodes, const std::uint64_t* arguments,
                        std::uint64_t* results);

extern "C" {
int program_ping_pong(int, int, const std::uint64_t*, std::uint64_t*);
int program_all_to_all(int, int, const std::uint64_t*, std::uint64_t*);
int program_all_reduce(int, int, const std::uint64_t*, std::uint64_t*);
}

struct Request {
  Program program = nullptr;
  int nodes = 2;
  std::vector<std::uint64_t> arguments = std::vector<std::uint64_t>(ARGUMENT_COUNT);
};

// From PROGRAM NODES ITERATIONS [SIZE_BYTES]; throws std::invalid_argument.
inline Request parse_request(int argc, char** argv) {
  if (argc < 4) throw std::invalid_argument("needed are PROGRAM NODES ITERATIONS [SIZE_BYTES]");
  const std::string name = argv[1];
  Request request;
  if (name == "ping_pong")
    request.program = program_ping_pong;
  else if (name == "all_to_all")
    request.program = program_all_to_all;
  else if (name == "all_reduce")
    request.program = program_all_reduce;
  else
    throw std::invalid_argument("there is no program " + name);
  request.nodes = std::stoi(argv[2]);
  request.arguments[ARGUMENT_ITERATIONS] = std::stoull(argv[3]);
  request.arguments[ARGUMENT_SIZE_BYTES] = argc > 4 ? std::stoull(argv[4]) : 32;
  if (request.nodes < 1 || request.nodes > 64) throw std::invalid_argument("nodes are 1 to 64");
  if (request.arguments[ARGUMENT_ITERATIONS] > RESULTS_MAX)
    throw std::invalid_argument("iterations are at most " + std::to_string(RESULTS_MAX));
  return request;
}

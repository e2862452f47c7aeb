// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Runs a program on every node of a cluster, and prints what it left as JSON.
//
// Usage: cluster [--OPTION VALUE ...] PROGRAM
//   --cycles N           the run fails when it is longer
//   --bits-per-cycle N   of the line
//   --latency N          cycles of a link's transceivers
//   --memory-latency N   cycles of a read
//   --argument N         stored to the program's array `arguments`, one after the other
//   --result SYMBOL:N    prints that many words of an array, of node 0
//   --probes N           prints the probes of each cycle in which they changed, N cycles at most
//   --vcd FILE           the same as a waveform
//   --watch 1            the run ends when node 0 stores to the symbol `tohost` (riscv-tests)

#include <verilated.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "Vcluster_top.h"
#include "elf.hpp"

#ifndef CLUSTER_NODES
#define CLUSTER_NODES 2
#endif

namespace {

constexpr unsigned kNodes = CLUSTER_NODES;
constexpr std::uint64_t kMemoryBase = 0x8000'0000;
constexpr std::uint64_t kMemoryBytes = 16U << 20;
// By bit of a node's probes (hw/network_node.sv).
constexpr const char* kProbes[] = {"word_written",   "descriptor_written", "header_leaves",
                                   "notice_arrives", "header_arrives",     "poll",
                                   "poll_hit",       "last_word"};

struct Options {
  std::uint64_t cycles = 100'000'000;
  unsigned bits_per_cycle = 100;
  unsigned latency = 15;
  unsigned memory_latency = 16;
  std::vector<std::uint64_t> arguments;
  std::vector<std::string> results;
  std::uint64_t probes = 0;
  std::string vcd;
  bool watches = false;
  std::string program;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name.substr(0, 2) != "--") {
      options.program = name;
      continue;
    }
    if (++i == argc) throw std::runtime_error(name + " needs a value");
    const std::string value = argv[i];
    const auto number = [&] { return std::strtoull(value.c_str(), nullptr, 0); };
    if (name == "--cycles")
      options.cycles = number();
    else if (name == "--bits-per-cycle")
      options.bits_per_cycle = static_cast<unsigned>(number());
    else if (name == "--latency")
      options.latency = static_cast<unsigned>(number());
    else if (name == "--memory-latency")
      options.memory_latency = static_cast<unsigned>(number());
    else if (name == "--argument")
      options.arguments.push_back(number());
    else if (name == "--result")
      options.results.push_back(value);
    else if (name == "--probes")
      options.probes = number();
    else if (name == "--vcd")
      options.vcd = value;
    else if (name == "--watch")
      options.watches = number() != 0;
    else
      throw std::runtime_error("there is no option " + name);
  }
  if (options.program.empty()) throw std::runtime_error("a program is needed");
  return options;
}

class Memory {
 public:
  Memory() : words_(kMemoryBytes / 8) {}

  std::uint64_t& word(std::uint64_t address) {
    const std::uint64_t index = (address - kMemoryBase) / 8;
    if (address < kMemoryBase || index >= words_.size()) {
      char text[80];
      std::snprintf(text, sizeof text, "memory has no address 0x%llx",
                    static_cast<unsigned long long>(address));
      throw std::runtime_error(text);
    }
    return words_[index];
  }
  void store(std::uint64_t address, std::uint64_t data, unsigned mask) {
    std::uint64_t& old = word(address);
    for (unsigned byte = 0; byte < 8; ++byte) {
      if ((mask >> byte & 1) == 0) continue;
      const std::uint64_t bits = std::uint64_t{0xFF} << 8 * byte;
      old = (old & ~bits) | (data & bits);
    }
  }
  void load(const Program& program) {
    for (const Segment& segment : program.segments) {
      for (std::size_t i = 0; i < segment.bytes.size(); ++i) {
        if (segment.bytes[i] == 0) continue;  // as memory is
        const std::uint64_t address = segment.address + i;
        store(address & ~std::uint64_t{7}, std::uint64_t{segment.bytes[i]} << 8 * (address & 7),
              1U << (address & 7));
      }
    }
  }

 private:
  std::vector<std::uint64_t> words_;
};

std::vector<Memory> memories(kNodes);
std::uint64_t watched = 0;
std::uint64_t watched_value = 0;

struct Node {
  bool is_over = false;
  std::uint64_t code = 0;
  std::string console;
};

struct Change {
  std::uint64_t cycle;
  unsigned node;
  unsigned bits;
};

void write_vcd(const std::string& path, const std::vector<Change>& changes) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) throw std::runtime_error("cannot write " + path);
  const auto id = [](unsigned node, unsigned bit) {
    return static_cast<char>('!' + 8 * node + bit);
  };
  std::fprintf(file, "$timescale 10ns $end\n");
  for (unsigned node = 0; node < kNodes; ++node) {
    std::fprintf(file, "$scope module node_%u $end\n", node);
    for (unsigned bit = 0; bit < 8; ++bit)
      std::fprintf(file, "$var wire 1 %c %s $end\n", id(node, bit), kProbes[bit]);
    std::fprintf(file, "$upscope $end\n");
  }
  std::fprintf(file, "$enddefinitions $end\n");
  unsigned now[kNodes] = {};
  for (const Change& change : changes) {
    std::fprintf(file, "#%llu\n", static_cast<unsigned long long>(change.cycle));
    for (unsigned bit = 0; bit < 8; ++bit) {
      if (((now[change.node] ^ change.bits) >> bit & 1) != 0 || change.cycle == 0)
        std::fprintf(file, "%u%c\n", change.bits >> bit & 1, id(change.node, bit));
    }
    now[change.node] = change.bits;
  }
  std::fclose(file);
}

std::string json_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n')
      quoted += "\\n";
    else if (c >= ' ')
      quoted += c;
  }
  return quoted + '"';
}

void print(const Options& options, const Program& program, const std::vector<Node>& nodes,
           const std::vector<Change>& changes, std::uint64_t cycles) {
  std::printf("{\"cycles\": %llu, \"codes\": [", static_cast<unsigned long long>(cycles));
  for (unsigned node = 0; node < kNodes; ++node)
    std::printf("%s%llu", node == 0 ? "" : ", ", static_cast<unsigned long long>(nodes[node].code));
  std::printf("], \"consoles\": [");
  for (unsigned node = 0; node < kNodes; ++node)
    std::printf("%s%s", node == 0 ? "" : ", ", json_text(nodes[node].console).c_str());
  std::printf("], \"results\": {");
  for (std::size_t i = 0; i < options.results.size(); ++i) {
    const std::string& wanted = options.results[i];
    const std::size_t colon = wanted.find(':');
    const std::string name = wanted.substr(0, colon);
    const auto symbol = program.symbols.find(name);
    if (symbol == program.symbols.end()) throw std::runtime_error("no symbol " + name);
    std::printf("%s\"%s\": [", i == 0 ? "" : ", ", name.c_str());
    const std::uint64_t count = std::strtoull(wanted.c_str() + colon + 1, nullptr, 10);
    for (std::uint64_t word = 0; word < count; ++word) {
      std::printf("%s%llu", word == 0 ? "" : ", ",
                  static_cast<unsigned long long>(memories[0].word(symbol->second + 8 * word)));
    }
    std::printf("]");
  }
  std::printf("}, \"probes\": [");
  for (std::size_t i = 0; i < changes.size(); ++i) {
    std::printf("%s[%llu, %u, %u]", i == 0 ? "" : ", ",
                static_cast<unsigned long long>(changes[i].cycle), changes[i].node,
                changes[i].bits);
  }
  std::printf("]}\n");
}

void load_memories(const Options& options, const Program& program) {
  const auto arguments = program.symbols.find("arguments");
  if (arguments == program.symbols.end() && !options.arguments.empty())
    throw std::runtime_error("no symbol arguments");
  for (Memory& memory : memories) {
    memory.load(program);
    for (std::size_t i = 0; i < options.arguments.size(); ++i)
      memory.word(arguments->second + 8 * i) = options.arguments[i];
  }
}

// The cluster, cycle by cycle, and what its nodes tell the host.
class Run {
 public:
  explicit Run(const Options& options) : options_(options), top_(&context_), nodes_(kNodes) {
    top_.bits_per_cycle = options.bits_per_cycle;
    top_.latency_cycles = options.latency;
    top_.memory_latency_cycles = options.memory_latency;
    top_.rst = 1;
    for (int i = 0; i < 4; ++i) tick();
    top_.rst = 0;
  }

  void play() {
    while (running_ > 0 && watched_value == 0) {
      if (cycle_ == options_.cycles) throw std::runtime_error("the run is not over in time");
      tick();
      for (unsigned node = 0; node < kNodes; ++node) look_at(node);
      ++cycle_;
    }
    if (watched_value != 0) nodes_[0].code = watched_value;
  }

  std::uint64_t cycles() const { return cycle_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Change>& changes() const { return changes_; }

 private:
  void tick() {
    top_.clk = 0;
    top_.eval();
    top_.clk = 1;
    top_.eval();
  }

  void look_at(unsigned node) {
    if (cycle_ < options_.probes && top_.probes[node] != last_[node]) {
      last_[node] = top_.probes[node];
      changes_.push_back({cycle_, node, last_[node]});
    }
    if (!top_.host_valid[node]) return;
    if (top_.host_is_character[node]) {
      nodes_[node].console += static_cast<char>(top_.host_data[node]);
    } else if (!nodes_[node].is_over) {
      nodes_[node].is_over = true;
      nodes_[node].code = top_.host_data[node];
      --running_;
    }
  }

  const Options& options_;
  VerilatedContext context_;
  Vcluster_top top_;
  std::vector<Node> nodes_;
  std::vector<Change> changes_;
  unsigned last_[kNodes] = {};
  unsigned running_ = kNodes;
  std::uint64_t cycle_ = 0;
};

void run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const Program program = load_program(options.program);
  load_memories(options, program);
  if (options.watches) watched = program.symbols.at("tohost");
  Run run(options);
  run.play();
  if (!options.vcd.empty()) write_vcd(options.vcd, run.changes());
  print(options, program, run.nodes(), run.changes(), run.cycles());
}

}  // namespace

extern "C" void memory_read(int node, int address, long long* low, long long* high) {
  Memory& memory = memories[static_cast<unsigned>(node)];
  const std::uint64_t at = static_cast<std::uint32_t>(address) & ~std::uint64_t{15};
  *low = static_cast<long long>(memory.word(at));
  *high = static_cast<long long>(memory.word(at + 8));
}

extern "C" void memory_write(int node, int address, long long data, char mask) {
  const std::uint64_t at = static_cast<std::uint32_t>(address);
  memories[static_cast<unsigned>(node)].store(at, static_cast<std::uint64_t>(data),
                                              static_cast<unsigned char>(mask));
  if (node == 0 && watched != 0 && at == (watched & ~std::uint64_t{7}) && data != 0)
    watched_value = static_cast<std::uint64_t>(data);
}

int main(int argc, char** argv) {
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cluster: %s\n", error.what());
    return 1;
  }
}

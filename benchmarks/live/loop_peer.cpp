// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Times an all_reduce of float32 between two processes by loops that know everything beforehand:
// two ranks, one type, one operation, in place, no deadlines, nobody dies. What remains of a time
// is what memory and caches take:
//
//   loop_peer 2 all_reduce:BYTES...
//
// prints a line "all_reduce BYTES MICROSECONDS LOOP" for each size, of the fastest loop, timed as
// in towpath_peer.cpp.
#include <immintrin.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Flag = std::atomic<std::uint64_t>;

constexpr int kBatches = 9;
constexpr double kBatchSeconds = 0.004;
constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kRingBytes = 4 << 20;
constexpr std::size_t kLines = 1024;  // of up to 56 bytes beside a flag
constexpr std::size_t kLineFloats = (kLineBytes - sizeof(Flag)) / sizeof(float);

struct alignas(kLineBytes) Line {
  Flag flag;
  float values[kLineFloats];
};

// What one rank shows to the other.
struct Shown {
  alignas(2 * kLineBytes) Flag published;
  alignas(2 * kLineBytes) Flag ended;
  alignas(2 * kLineBytes) Flag meets;
  double us;
  float* array;
  int pid;
  Line lines[2][kLines];
  alignas(4096) std::byte ring[kRingBytes];
};

void wait_for(const Flag& flag, std::uint64_t value) {
  while (flag.load(std::memory_order_acquire) < value) {
  }
}

void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 32) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
  }
  _mm_sfence();
}

void add(float* __restrict to, const float* __restrict from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
}

class Loops {
 public:
  Loops(Shown& own, Shown& other) : own_(own), other_(other) {}

  void meet() {
    own_.meets.store(++meetings_, std::memory_order_release);
    wait_for(other_.meets, meetings_);
  }

  // A flag in each line of the array. Two sets take turns: who finds one has read the other.
  void in_lines(float* array, std::size_t count) {
    ++calls_;
    Line* const mine = own_.lines[calls_ % 2];
    const Line* const theirs = other_.lines[calls_ % 2];
    const std::size_t lines = (count + kLineFloats - 1) / kLineFloats;
    for (std::size_t i = 0; i < lines; ++i) {
      const std::size_t size = std::min(kLineFloats, count - i * kLineFloats);
      std::memcpy(mine[i].values, array + i * kLineFloats, size * sizeof(float));
      mine[i].flag.store(calls_, std::memory_order_release);
    }
    for (std::size_t i = 0; i < lines; ++i) {
      wait_for(theirs[i].flag, calls_);
      const std::size_t size = std::min(kLineFloats, count - i * kLineFloats);
      add(array + i * kLineFloats, theirs[i].values, size);
    }
  }

  // Blocks through a ring: one is stored while the other rank reads the one before.
  void in_blocks(float* array, std::size_t count, std::size_t block_bytes, bool streams) {
    const std::size_t bytes = count * sizeof(float);
    const std::size_t slots = kRingBytes / block_bytes;
    const std::size_t blocks = (bytes + block_bytes - 1) / block_bytes;
    const auto show = [&](std::size_t block) {
      if (shown_ >= slots) wait_for(other_.ended, shown_ + 1 - slots);
      std::byte* const to = own_.ring + shown_ % slots * block_bytes;
      const auto* const from = reinterpret_cast<const std::byte*>(array) + block * block_bytes;
      const std::size_t size = std::min(block_bytes, bytes - block * block_bytes);
      streams ? stream(to, from, size) : (void)std::memcpy(to, from, size);
      own_.published.store(++shown_, std::memory_order_release);
    };
    show(0);
    for (std::size_t block = 0; block < blocks; ++block) {
      if (block + 1 < blocks) show(block + 1);
      wait_for(other_.published, ++taken_);
      const auto* const from =
          reinterpret_cast<const float*>(other_.ring + (taken_ - 1) % slots * block_bytes);
      const std::size_t first = block * block_bytes / sizeof(float);
      add(array + first, from, std::min(block_bytes / sizeof(float), count - first));
      own_.ended.store(taken_, std::memory_order_release);
    }
  }
  // Slots of another size begin at the start of the ring.
  void restart() {
    meet();
    own_.published.store(0);
    own_.ended.store(0);
    shown_ = taken_ = 0;
    meet();
  }

  // Each rank reads half of the other's array where it is, and then the other's half of the result.
  void from_memory(float* array, std::size_t count, int rank) {
    const std::size_t half = count / 2, first = rank == 0 ? 0 : half;
    const std::size_t size = rank == 0 ? half : count - half;
    scratch_.resize(64 << 10);
    meet();
    for (std::size_t done = 0; done < size; done += scratch_.size()) {
      const std::size_t piece = std::min(scratch_.size(), size - done);
      read(scratch_.data(), other_.array + first + done, piece);
      add(array + first + done, scratch_.data(), piece);
    }
    meet();
    const std::size_t theirs = rank == 0 ? half : 0;
    read(array + theirs, other_.array + theirs, count - size);
    meet();
  }

 private:
  void read(float* to, float* from, std::size_t count) {
    iovec here{to, count * sizeof(float)}, there{from, count * sizeof(float)};
    if (process_vm_readv(other_.pid, &here, 1, &there, 1, 0) < 0) std::exit(3);
  }

  Shown& own_;
  Shown& other_;
  std::uint64_t meetings_ = 0;
  std::uint64_t calls_ = 0;
  std::uint64_t shown_ = 0;
  std::uint64_t taken_ = 0;
  std::vector<float> scratch_;
};

void pin(int rank) {
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(rank, &own);
  sched_setaffinity(0, sizeof(own), &own);
}

float* private_memory(std::size_t bytes) {
  constexpr std::size_t kHuge = 2 << 20;
  bytes = (bytes + kHuge - 1) / kHuge * kHuge;
  void* const memory = std::aligned_alloc(kHuge, bytes);
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 0, bytes);
  return static_cast<float*>(memory);
}

template <typename Call>
double median_us(Loops& loops, Shown& own, Shown& other, int rank, const Call& call) {
  const auto repeat = [&](int count) {
    loops.meet();
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i) call();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  // Of two ranks, the first one's figures hold.
  const auto agree = [&](double figure) {
    own.us = figure;
    loops.meet();
    const double agreed = rank == 0 ? own.us : other.us;
    loops.meet();
    return agreed;
  };
  repeat(2);
  const int count = static_cast<int>(std::max(1.0, agree(kBatchSeconds / (repeat(5) / 5))));
  std::vector<double> means;
  for (int batch = 0; batch < kBatches; ++batch) means.push_back(repeat(count) / count);
  std::nth_element(means.begin(), means.begin() + kBatches / 2, means.end());
  return agree(means[kBatches / 2] * 1e6);
}

void run(Shown* shown, int rank, const std::vector<std::size_t>& sizes) {
  pin(rank);
  Shown& own = shown[rank];
  Shown& other = shown[1 - rank];
  own.pid = getpid();
  Loops loops(own, other);
  for (const std::size_t size : sizes) {
    float* const array = private_memory(size);
    const std::size_t count = size / sizeof(float);
    own.array = array;
    double least_us = 1e99;
    std::string fastest;
    const auto try_loop = [&](const std::string& name, const auto& call) {
      loops.restart();
      const double us = median_us(loops, own, other, rank, call);
      if (us < least_us) fastest = name;
      least_us = std::min(least_us, us);
    };
    if (count <= kLines * kLineFloats) {
      try_loop("lines", [&] { loops.in_lines(array, count); });
    }
    for (const std::size_t block : {16 << 10, 64 << 10, 256 << 10}) {
      if (size < 2048 || (block > (16 << 10) && size <= block / 4)) continue;
      for (const bool streams : {false, true}) {
        try_loop((streams ? "streamed " : "blocks ") + std::to_string(block >> 10) + "K",
                 [&] { loops.in_blocks(array, count, block, streams); });
      }
    }
    if (size >= 1 << 20) {
      try_loop("memory", [&] { loops.from_memory(array, count, rank); });
    }
    if (rank == 0) {
      std::printf("all_reduce %zu %.4f %s\n", size, least_us, fastest.c_str());
      std::fflush(stdout);
    }
    loops.meet();
    std::free(array);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3 || std::strcmp(arguments[1], "2") != 0) {
    std::fprintf(stderr, "usage: loop_peer 2 all_reduce:BYTES...\n");
    return 2;
  }
  std::vector<std::size_t> sizes;
  for (int i = 2; i < count; ++i) {
    if (std::strncmp(arguments[i], "all_reduce:", 11) == 0) {
      sizes.push_back(std::stoull(arguments[i] + 11));
    }
  }
  void* const memory =
      mmap(nullptr, 2 * sizeof(Shown), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  madvise(memory, 2 * sizeof(Shown), MADV_HUGEPAGE);
  std::memset(memory, 0, 2 * sizeof(Shown));
  auto* const shown = static_cast<Shown*>(memory);
  if (fork() == 0) {
    run(shown, 1, sizes);
    _exit(0);
  }
  run(shown, 0, sizes);
  int status = 1;
  wait(&status);
  return status;
}

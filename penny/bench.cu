// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Runs one kernel of the library on data of which the result is known; says how long it took and
// how many elements are wrong. The same program serves described machines, processes of a host, and
// GPUs.
//
//   bench KERNEL TYPE SIZE_BYTES THREADS PACKET_BYTES RINGS [CALLS]
//
//   towpath kernel run penny/bench.cu --flag=-Ipenny/include --machine dgx-h100 --pes 8 --
//       vectorised_ring half 1048576 512 16 1
//
// PACKET_BYTES are what a thread puts at once: with the size and the threads they make the grid.
// Exchanges go between PE 0 and the first PE of the second node, or PE 1 where there is one node.
#include <penny/algorithm.hpp>
#include <penny/exchange.cuh>
#include <penny/ring.cuh>
#include <penny/shots.cuh>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

enum Kernel {
  exchange_plain, exchange_separate_signal, exchange_fused_signal, exchange_vectorised,
  ring, vectorised_ring, simple_ring, one_shot, two_shot, kernel_count
};
constexpr const char* kKernels[] = {
    "exchange_plain", "exchange_separate_signal", "exchange_fused_signal", "exchange_vectorised",
    "ring", "vectorised_ring", "simple_ring", "one_shot", "two_shot"};

struct Run {
  int kernel, type;
  uint64_t size_bytes;
  int threads, packet_bytes, rings, calls;
};
struct Result {
  double kernel_us;  // of the last call
  double wrong;      // elements, of all calls
};

struct Place {
  int pe, pes, pes_per_node, peer;
  bool takes_part;
};

Place place_of(const Run& run) {
  Place place{nvshmem_my_pe(), nvshmem_n_pes(), nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE), 0, true};
  if (place.pes % place.pes_per_node != 0) place.pes_per_node = place.pes;
  if (run.kernel > exchange_vectorised) return place;
  const int second = place.pes > place.pes_per_node ? place.pes_per_node : 1;
  place.takes_part = place.pe == 0 || place.pe == second;
  place.peer = place.pe == 0 ? second : 0;
  return place;
}

// Into how many parts the array is cut before blocks share a part.
uint64_t parts_of(const Run& run, const Place& place) {
  switch (run.kernel) {
    case ring:
    case vectorised_ring: return uint64_t(place.pes) * run.rings;
    case simple_ring: return run.rings;
    case two_shot: return place.pes;
    default: return 1;
  }
}

template <typename T>
struct Memory {
  T *destination, *buffer;
  uint64_t* signals;
};

template <typename T>
void start(const Run& run, const Place& at, const Memory<T>& memory, uint64_t stage,
           cudaStream_t stream) {
  const uint64_t vectors = run.size_bytes / penny::kVectorBytes;
  const uint64_t part = penny::divided_up(run.size_bytes, parts_of(run, at));
  const dim3 grid(penny::blocks_for(part, run.threads, run.packet_bytes, penny::kBlocksMax),
                  run.rings);
  const dim3 block(run.threads);
  T *const destination = memory.destination, *const buffer = memory.buffer;
  uint64_t* const signals = memory.signals;
  switch (run.kernel) {
    case exchange_plain:
      penny::exchange_plain<T><<<grid, block, 0, stream>>>(destination, buffer, vectors, at.peer);
      break;
    case exchange_separate_signal:
      penny::exchange_separate_signal<T>
          <<<grid, block, 0, stream>>>(destination, buffer, signals, vectors, at.peer, stage + 1);
      break;
    case exchange_fused_signal:
      penny::exchange_fused_signal<T>
          <<<grid, block, 0, stream>>>(destination, buffer, signals, vectors, at.peer, stage + 1);
      break;
    case exchange_vectorised:
      penny::exchange_vectorised<T>
          <<<grid, block, 0, stream>>>(destination, buffer, signals, vectors, at.peer, stage + 1);
      break;
    case ring:
      penny::ring<T><<<grid, block, 0, stream>>>(destination, buffer, signals, vectors,
                                                 at.pes_per_node, stage);
      break;
    case vectorised_ring:
      penny::vectorised_ring<T><<<grid, block, 0, stream>>>(destination, buffer, signals, vectors,
                                                            at.pes_per_node, stage);
      break;
    case simple_ring:
      penny::simple_ring<T><<<grid, block, 0, stream>>>(destination, buffer, signals, vectors,
                                                        at.pes_per_node, stage);
      break;
    case one_shot:
      penny::one_shot<T>
          <<<grid, block, 0, stream>>>(destination, buffer, buffer, signals, vectors, stage);
      break;
    default:
      penny::two_shot<T><<<grid, block, 0, stream>>>(buffer, signals, vectors, stage);
  }
}

// Small whole numbers, whose sums every type holds exactly.
float element(int pe, uint64_t i) { return static_cast<float>((i + 3 * pe) % 7); }

template <typename T>
uint64_t wrong_elements(const Run& run, const Place& at, const std::vector<T>& result) {
  float expected[7] = {};
  for (uint64_t i = 0; i < 7; ++i) {
    if (run.kernel <= exchange_vectorised) expected[i] = element(at.peer, i);
    for (int pe = 0; run.kernel > exchange_vectorised && pe < at.pes; ++pe) {
      expected[i] += element(pe, i);
    }
  }
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < result.size(); ++i) {
    if (static_cast<float>(result[i]) != expected[i % 7]) ++wrong;
  }
  return wrong;
}

template <typename T>
Result measure(const Run& run) {
  const Place at = place_of(run);
  const uint64_t copies = run.kernel == one_shot ? at.pes : 1;
  Memory<T> memory{};
  memory.destination = static_cast<T*>(nvshmem_malloc(copies * run.size_bytes));
  memory.buffer = static_cast<T*>(nvshmem_malloc(run.size_bytes));
  memory.signals = static_cast<uint64_t*>(
      nvshmem_calloc(uint64_t(at.pes) * penny::kBlocksMax, sizeof(uint64_t)));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaEvent_t before, after;
  cudaEventCreate(&before);
  cudaEventCreate(&after);
  std::vector<T> data(run.size_bytes / sizeof(T));
  Result result{};
  uint64_t stage = 0;
  for (int call = 0; call < run.calls; ++call) {
    for (uint64_t i = 0; i < data.size(); ++i) data[i] = static_cast<T>(element(at.pe, i));
    cudaMemcpyAsync(memory.buffer, data.data(), run.size_bytes, cudaMemcpyHostToDevice, stream);
    nvshmemx_barrier_all_on_stream(stream);
    cudaEventRecord(before, stream);
    if (at.takes_part) start(run, at, memory, stage, stream);
    cudaEventRecord(after, stream);
    stage += 2 * (at.pes - 1);
    nvshmemx_barrier_all_on_stream(stream);
    const T* const out = run.kernel == exchange_plain ? memory.destination : memory.buffer;
    cudaMemcpyAsync(data.data(), out, run.size_bytes, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    if (at.takes_part) result.wrong += static_cast<double>(wrong_elements(run, at, data));
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, before, after);
    result.kernel_us = at.takes_part ? milliseconds * 1e3 : 0;
  }
  cudaEventDestroy(after);
  cudaEventDestroy(before);
  cudaStreamDestroy(stream);
  nvshmem_free(memory.signals);
  nvshmem_free(memory.buffer);
  nvshmem_free(memory.destination);
  return result;
}

Result measure_type(const Run& run) {
  switch (run.type) {
    case 1: return measure<half>(run);
    case 2: return measure<__nv_bfloat16>(run);
    default: return measure<float>(run);
  }
}

int index_of(const char* const* names, int count, const std::string& name) {
  for (int i = 0; i < count; ++i) {
    if (name == names[i]) return i;
  }
  return -1;
}

// From the environment, where nothing else starts PEs: PENNY_RANK, PENNY_RANKS and PENNY_ID, a file
// that rank 0 writes.
void begin() {
  const char* const rank_text = getenv("PENNY_RANK");
  if (rank_text == nullptr) return nvshmem_init();
  const int rank = atoi(rank_text), ranks = atoi(getenv("PENNY_RANKS"));
  const std::string file = getenv("PENNY_ID"), unfinished = file + ".part";
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  if (rank == 0) {
    nvshmemx_get_uniqueid(&id);
    FILE* const out = fopen(unfinished.c_str(), "wb");
    fwrite(&id, sizeof(id), 1, out);
    fclose(out);
    rename(unfinished.c_str(), file.c_str());
  }
  FILE* in = nullptr;
  while ((in = fopen(file.c_str(), "rb")) == nullptr) continue;
  if (fread(&id, sizeof(id), 1, in) != 1) exit(3);
  fclose(in);
  nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
  nvshmemx_set_attr_uniqueid_args(rank, ranks, &id, &attributes);
  if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0) exit(3);
}

}  // namespace

// For programs that call it by name, on every PE: NVSHMEM begins with the first call.
void measure_kernel(int kernel, int type, uint64_t size_bytes, int threads, int packet_bytes,
                    int rings, int calls, double* result) {
  nvshmem_init();
  const Result found =
      measure_type({kernel, type, size_bytes, threads, packet_bytes, rings, calls});
  result[0] = found.kernel_us;
  result[1] = found.wrong;
}

int main(int argc, char** argv) {
  constexpr const char* kTypes[] = {"float", "half", "bfloat16"};
  const int kernel = argc > 2 ? index_of(kKernels, kernel_count, argv[1]) : -1;
  const int type = argc > 2 ? index_of(kTypes, 3, argv[2]) : -1;
  if (argc < 7 || argc > 8 || kernel < 0 || type < 0) {
    fprintf(stderr, "usage: KERNEL float|half|bfloat16 SIZE_BYTES THREADS PACKET_BYTES RINGS [CALLS]\n");
    return 2;
  }
  const Run run = {kernel, type, strtoull(argv[3], nullptr, 10) / 16 * 16, atoi(argv[4]),
                   atoi(argv[5]), atoi(argv[6]), argc > 7 ? atoi(argv[7]) : 1};
  begin();
  const Result result = measure_type(run);
  const int pe = nvshmem_my_pe();
  if (pe == 0) {
    printf("%s of %llu bytes on %d PEs: %.3f us\n", argv[1], (unsigned long long)run.size_bytes,
           nvshmem_n_pes(), result.kernel_us);
  }
  if (result.wrong > 0) printf("PE %d: %.0f elements are wrong\n", pe, result.wrong);
  nvshmem_finalize();
  return result.wrong > 0 ? 1 : 0;
}

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// A network plug-in for NCCL (versions 7 and 8 of its interface) over the adapters of a
// description. Connections are made at once and messages are done at once: no data moves.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/system.hpp"

using namespace towpath::virtual_gpu;

namespace {

constexpr int kSuccess = 0, kInternalError = 3;
constexpr int kHostPointers = 1, kGpuPointers = 2;
constexpr int kConnectionsMax = 65536, kReceivesMax = 8;

struct Connection {
  int adapter;
};
struct Request {
  int sizes[kReceivesMax];
  int count;
};

const Adapter* adapter_of(int number) {
  const auto& adapters = towpath::virtual_gpu::system().machine().adapters();
  const bool exists = number >= 0 && number < static_cast<int>(adapters.size());
  return exists ? &adapters[static_cast<std::size_t>(number)] : nullptr;
}

struct Properties7 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointers;
  int speed_mbit_per_s;
  int port;
  float latency_us;
  int connections_max, receives_max;
  int device_type, device_version;
};
struct Properties8 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointers;
  int is_registration_global;
  int speed_mbit_per_s;
  int port;
  float latency_us;
  int connections_max, receives_max;
  int device_type, device_version;
};

template <typename Properties>
int describe(int number, Properties* properties) {
  const Adapter* const adapter = adapter_of(number);
  if (adapter == nullptr) return kInternalError;
  *properties = {};
  properties->name = const_cast<char*>(adapter->name.c_str());
  // None if the adapter has no place in the file system. A topology file then has it by name.
  properties->pci_path =
      adapter->pci_path == "none" ? nullptr : const_cast<char*>(adapter->pci_path.c_str());
  properties->guid = adapter->guid;
  properties->pointers = kHostPointers | (adapter->has_gpu_direct ? kGpuPointers : 0);
  properties->speed_mbit_per_s = adapter->speed_mbit_per_s;
  properties->port = adapter->port;
  properties->connections_max = kConnectionsMax;
  properties->receives_max = kReceivesMax;
  if constexpr (sizeof(Properties) == sizeof(Properties8)) properties->is_registration_global = 1;
  return kSuccess;
}

int init(void*) { return kSuccess; }
int devices(int* count) {
  *count = static_cast<int>(towpath::virtual_gpu::system().machine().adapters().size());
  return kSuccess;
}
int properties_7(int number, Properties7* properties) { return describe(number, properties); }
int properties_8(int number, Properties8* properties) { return describe(number, properties); }
int listen(int adapter, void*, void** listening) {
  *listening = new Connection{adapter};
  return kSuccess;
}
int connect(int adapter, void*, void** sending, void**) {
  *sending = new Connection{adapter};
  return kSuccess;
}
int accept(void* listening, void** receiving, void**) {
  *receiving = new Connection{static_cast<Connection*>(listening)->adapter};
  return kSuccess;
}
int register_memory_7(void*, void* data, int, int, void** handle) {
  *handle = data;
  return kSuccess;
}
int register_memory_8(void*, void* data, std::size_t, int, void** handle) {
  *handle = data;
  return kSuccess;
}
int register_dma_buffer(void*, void*, std::size_t, int, std::uint64_t, int, void**) {
  stop_at_unknown("the registration of a DMA buffer");
}
int forget_memory(void*, void*) { return kSuccess; }
int send(void*, void*, int size, int, void*, void** request) {
  *request = new Request{{size}, 1};
  return kSuccess;
}
int receive(void*, int count, void**, int* sizes, int*, void**, void** request) {
  auto* const made = new Request{};
  made->count = count < kReceivesMax ? count : kReceivesMax;
  std::memcpy(made->sizes, sizes, sizeof(int) * static_cast<std::size_t>(made->count));
  *request = made;
  return kSuccess;
}
int flush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;
  return kSuccess;
}
int test(void* request, int* is_done, int* sizes) {
  auto* const made = static_cast<Request*>(request);
  *is_done = 1;
  if (sizes != nullptr) {
    std::memcpy(sizes, made->sizes, sizeof(int) * static_cast<std::size_t>(made->count));
  }
  delete made;
  return kSuccess;
}
int close_connection(void* connection) {
  delete static_cast<Connection*>(connection);
  return kSuccess;
}
int device_memory(void*, void*, void**) { stop_at_unknown("a network that GPUs drive"); }
int consumed(void*, int, void*) { stop_at_unknown("a network that GPUs drive"); }

template <typename Properties, typename Register>
struct Network {
  const char* name;
  int (*init)(void* logger);
  int (*devices)(int* count);
  int (*properties)(int number, Properties* properties);
  int (*listen)(int adapter, void* handle, void** listening);
  int (*connect)(int adapter, void* handle, void** sending, void** device_handle);
  int (*accept)(void* listening, void** receiving, void** device_handle);
  Register register_memory;
  int (*register_dma_buffer)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  int (*forget_memory)(void*, void*);
  int (*send)(void*, void*, int, int, void*, void**);
  int (*receive)(void*, int, void**, int*, int*, void**, void**);
  int (*flush)(void*, int, void**, int*, void**, void**);
  int (*test)(void*, int*, int*);
  int (*close_send)(void*);
  int (*close_receive)(void*);
  int (*close_listen)(void*);
  int (*device_memory)(void*, void*, void**);
  int (*consumed)(void*, int, void*);
};

// Named as NCCL's network over verbs, so that logs read as on the described machine.
template <typename Properties, typename Register>
constexpr Network<Properties, Register> network_of(int (*properties)(int, Properties*),
                                                   Register register_memory) {
  return {"IB",
          init,
          devices,
          properties,
          listen,
          connect,
          accept,
          register_memory,
          register_dma_buffer,
          forget_memory,
          send,
          receive,
          flush,
          test,
          close_connection,
          close_connection,
          close_connection,
          device_memory,
          consumed};
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) Network<Properties7, decltype(&register_memory_7)>
    ncclNetPlugin_v7 = network_of(properties_7, &register_memory_7);
__attribute__((visibility("default"))) Network<Properties8, decltype(&register_memory_8)>
    ncclNetPlugin_v8 = network_of(properties_8, &register_memory_8);

}  // extern "C"

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// A network plug-in for NCCL (versions 7 and 8 of its interface): the adapters of a description,
// and the connections of connection.hpp between the ranks on them.

#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/nccl/connection.hpp"
#include "towpath/virtual_gpu/system.hpp"

using namespace towpath::virtual_gpu;

namespace {

constexpr int kSuccess = 0, kInternalError = 3, kRemoteError = 6;
constexpr int kHostPointers = 1, kGpuPointers = 2;
constexpr int kConnectionsMax = 65536;

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

// A rank has a connection per channel and peer, each with a socket.
int init(void*) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return kInternalError;
  files.rlim_cur = files.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &files) == 0 ? kSuccess : kInternalError;
}
int devices(int* count) {
  *count = static_cast<int>(towpath::virtual_gpu::system().machine().adapters().size());
  return kSuccess;
}
int properties_7(int number, Properties7* properties) { return describe(number, properties); }
int properties_8(int number, Properties8* properties) { return describe(number, properties); }
int listen(int adapter, void* handle, void** listening) {
  if (adapter_of(adapter) == nullptr) return kInternalError;
  auto* const made = new Listener;
  const NetworkAddress address = made->address();
  std::memcpy(handle, &address, sizeof address);
  *listening = made;
  return kSuccess;
}
int connect(int adapter, void* handle, void** sending, void**) {
  if (adapter_of(adapter) == nullptr) return kInternalError;
  NetworkAddress address{};
  std::memcpy(&address, handle, sizeof address);
  *sending = Sender::connect(address).release();
  return kSuccess;
}
int accept(void* listening, void** receiving, void**) {
  *receiving = static_cast<Listener*>(listening)->accept().release();
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
int send(void* connection, void* data, int size, int tag, void*, void** request) {
  auto* const sender = static_cast<Sender*>(connection);
  *request = sender->send(data, size, tag);
  return *request == nullptr && sender->is_closed() ? kRemoteError : kSuccess;
}
int receive(void* connection, int count, void** data, int* sizes, int* tags, void**,
            void** request) {
  if (count < 1 || count > kReceivesMax) return kInternalError;
  Announcement announcement{count, {}, {}};
  std::memcpy(announcement.sizes.data(), sizes, sizeof(int) * static_cast<std::size_t>(count));
  std::memcpy(announcement.tags.data(), tags, sizeof(int) * static_cast<std::size_t>(count));
  *request = static_cast<Receiver*>(connection)->receive(announcement, data);
  return kSuccess;
}
// Data is in place when its message has arrived.
int flush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;
  return kSuccess;
}
int test(void* request, int* is_done, int* sizes) {
  auto* const made = static_cast<NetworkRequest*>(request);
  const auto is_closed = [](auto* connection) {
    connection->advance();
    return connection->is_closed();
  };
  const bool is_broken =
      made->sender != nullptr ? is_closed(made->sender) : is_closed(made->receiver);
  *is_done = made->left == 0 ? 1 : 0;
  if (*is_done == 0) return is_broken ? kRemoteError : kSuccess;
  if (sizes != nullptr) {
    std::memcpy(sizes, made->sizes.data(), sizeof(int) * static_cast<std::size_t>(made->count));
  }
  delete made;
  return kSuccess;
}
int close_sender(void* connection) {
  delete static_cast<Sender*>(connection);
  return kSuccess;
}
int close_receiver(void* connection) {
  delete static_cast<Receiver*>(connection);
  return kSuccess;
}
int close_listener(void* listening) {
  delete static_cast<Listener*>(listening);
  return kSuccess;
}
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
  // Null without a network that GPUs drive.
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
          close_sender,
          close_receiver,
          close_listener,
          nullptr,
          nullptr};
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) Network<Properties7, decltype(&register_memory_7)>
    ncclNetPlugin_v7 = network_of(properties_7, &register_memory_7);
__attribute__((visibility("default"))) Network<Properties8, decltype(&register_memory_8)>
    ncclNetPlugin_v8 = network_of(properties_8, &register_memory_8);

}  // extern "C"

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "towpath/tenstorrent/metalium/host_types.hpp"

// TT-Metalium's host interface on described chips: a host program that is written for it links with
// this library and runs. The names are those of the interface (docs.tenstorrent.com, TT-Metalium,
// Host APIs). docs/metalium.md lists the modeled parts.
//
// $TOWPATH_MACHINE names the machine with the chips, by default wormhole. Programs run in simulated
// time, one after the other on each chip. All enqueued programs start together when the host waits
// for one of them, and the memories keep their contents.
//
// A process has one such system, from the first device to the last, as on a host.

namespace tt::tt_metal {

class Device;
struct HostProgram;

class CommandQueue {
 public:
  explicit CommandQueue(Device& device) : device_(&device) {}
  Device* device() const { return device_; }
  void finish();

 private:
  Device* device_;
};

class Allocator {
 public:
  explicit Allocator(const Device& device) : device_(&device) {}
  std::uint32_t get_base_allocator_addr(HalMemType memory) const;
  std::uint32_t get_num_banks(BufferType type) const;
  std::uint32_t get_alignment(BufferType type) const;

 private:
  const Device* device_;
};

class Device {
 public:
  explicit Device(int id) : id_(id), queue_(*this), allocator_(*this) {}

  chip_id_t id() const { return id_; }
  ARCH arch() const;
  CoreCoord compute_with_storage_grid_size() const;
  CoreCoord logical_grid_size() const { return compute_with_storage_grid_size(); }
  CoreCoord grid_size() const;
  CoreCoord dram_grid_size() const;
  int num_dram_channels() const;
  std::uint32_t l1_size_per_core() const;
  // The tile of a core, in the coordinates of NoC 0. Kernels use them on either NoC.
  CoreCoord worker_core_from_logical_core(const CoreCoord& core) const;
  CoreCoord ethernet_core_from_logical_core(const CoreCoord& core) const;
  CoreCoord virtual_core_from_logical_core(const CoreCoord& core, CoreType type) const;
  CoreCoord physical_core_from_logical_core(const CoreCoord& core, CoreType type) const {
    return virtual_core_from_logical_core(core, type);
  }
  // Cores {0, channel} with a link to another chip.
  std::vector<CoreCoord> get_active_ethernet_cores(bool skip_reserved_tunnel_cores = false) const;
  std::tuple<chip_id_t, CoreCoord> get_connected_ethernet_core(const CoreCoord& core) const;
  bool is_mmio_capable() const;
  CommandQueue& command_queue(std::size_t = 0) { return queue_; }
  Allocator* allocator() { return &allocator_; }
  bool close();

 private:
  int id_;
  CommandQueue queue_;
  Allocator allocator_;
};
using IDevice = Device;

// --- programs -----------------------------------------------------------------------------------

class Program {
 public:
  Program();
  HostProgram& details() const { return *details_; }

 private:
  std::shared_ptr<HostProgram> details_;
};

using CoreSpecification = std::variant<CoreCoord, CoreRange, CoreRangeSet>;

Program CreateProgram();
// The file is searched in the working folder and in $TT_METAL_HOME.
KernelHandle CreateKernel(Program& program, const std::string& file, const CoreSpecification& cores,
                          const KernelConfiguration& config);
KernelHandle CreateKernelFromString(Program& program, const std::string& source,
                                    const CoreSpecification& cores,
                                    const KernelConfiguration& config);
void SetRuntimeArgs(const Program& program, KernelHandle kernel, const CoreSpecification& cores,
                    std::span<const std::uint32_t> arguments);
void SetRuntimeArgs(const Program& program, KernelHandle kernel, const CoreSpecification& cores,
                    std::initializer_list<std::uint32_t> arguments);
void SetRuntimeArgs(const Program& program, KernelHandle kernel,
                    const std::vector<CoreCoord>& cores,
                    const std::vector<std::vector<std::uint32_t>>& arguments);
std::vector<std::uint32_t>& GetRuntimeArgs(const Program& program, KernelHandle kernel,
                                           const CoreCoord& core);
void SetCommonRuntimeArgs(const Program& program, KernelHandle kernel,
                          std::span<const std::uint32_t> arguments);
void SetCommonRuntimeArgs(const Program& program, KernelHandle kernel,
                          std::initializer_list<std::uint32_t> arguments);
CBHandle CreateCircularBuffer(Program& program, const CoreSpecification& cores,
                              const CircularBufferConfig& config);
// The id of the semaphore for the kernels' get_semaphore().
std::uint32_t CreateSemaphore(Program& program, const std::variant<CoreRange, CoreRangeSet>& cores,
                              std::uint32_t initial_value, CoreType type = CoreType::WORKER);

// --- devices, buffers ---------------------------------------------------------------------------

Device* CreateDevice(chip_id_t id, std::uint8_t num_hw_cqs = 1);
bool CloseDevice(Device* device);
std::size_t GetNumAvailableDevices();
std::size_t GetNumPCIeDevices();

struct InterleavedBufferConfig {
  Device* device = nullptr;
  std::uint64_t size = 0;
  std::uint64_t page_size = 0;
  BufferType buffer_type = BufferType::DRAM;
  TensorMemoryLayout buffer_layout = TensorMemoryLayout::INTERLEAVED;
};
using BufferConfig = InterleavedBufferConfig;

// Pages in turn in each bank, at the same offset in all. Freed with the buffer.
class Buffer {
 public:
  explicit Buffer(const InterleavedBufferConfig& config);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::uint32_t address() const { return address_; }
  std::uint64_t size() const { return config_.size; }
  std::uint32_t page_size() const { return static_cast<std::uint32_t>(config_.page_size); }
  std::uint32_t num_pages() const { return static_cast<std::uint32_t>(size() / page_size()); }
  std::uint32_t aligned_page_size() const;
  BufferType buffer_type() const { return config_.buffer_type; }
  bool is_dram() const { return buffer_type() == BufferType::DRAM; }
  Device* device() const { return config_.device; }

  // To and from the banks, immediately, after all programs enqueued on the device have run.
  void write(std::span<const std::byte> bytes);
  void read(std::span<std::byte> bytes) const;

 private:
  friend void DeallocateBuffer(Buffer& buffer);
  void release();
  template <typename Visit>
  void for_each_part(std::size_t size_bytes, const Visit& visit) const;

  InterleavedBufferConfig config_;
  int device_id_;
  std::uint32_t address_ = 0;
  bool is_allocated_ = true;
};

std::shared_ptr<Buffer> CreateBuffer(const InterleavedBufferConfig& config);
void DeallocateBuffer(Buffer& buffer);

// A word at the same address in the L1 of several cores, which programs do not initialize.
class GlobalSemaphore {
 public:
  GlobalSemaphore(Device* device, const CoreRangeSet& cores, std::uint32_t initial_value);
  std::uint32_t address() const { return words_->address(); }
  Device* device() const { return words_->device(); }
  // Sets it on all cores, after all programs enqueued on the device have run.
  void reset_semaphore_value(std::uint32_t value) const;

 private:
  CoreRangeSet cores_;
  std::shared_ptr<Buffer> words_;
};

// Throws std::invalid_argument for DRAM.
GlobalSemaphore CreateGlobalSemaphore(Device* device, const CoreRangeSet& cores,
                                      std::uint32_t initial_value,
                                      BufferType type = BufferType::L1);

// Compile-time arguments that describe a buffer to a kernel's TensorAccessorArgs.
class TensorAccessorArgs {
 public:
  explicit TensorAccessorArgs(const Buffer& buffer);
  explicit TensorAccessorArgs(const Buffer* buffer) : TensorAccessorArgs(*buffer) {}
  explicit TensorAccessorArgs(const std::shared_ptr<Buffer>& buffer)
      : TensorAccessorArgs(*buffer) {}
  template <typename MeshBuffer>
    requires requires(const MeshBuffer& buffer) { buffer.get_backing_buffer(); }
  explicit TensorAccessorArgs(const MeshBuffer& buffer)
      : TensorAccessorArgs(*buffer.get_backing_buffer()) {}
  template <typename MeshBuffer>
    requires requires(const MeshBuffer& buffer) { buffer.get_backing_buffer(); }
  explicit TensorAccessorArgs(const std::shared_ptr<MeshBuffer>& buffer)
      : TensorAccessorArgs(*buffer->get_backing_buffer()) {}
  void append_to(std::vector<std::uint32_t>& arguments) const {
    arguments.insert(arguments.end(), arguments_.begin(), arguments_.end());
  }
  std::vector<std::uint32_t> get_compile_time_args() const { return arguments_; }

 private:
  std::vector<std::uint32_t> arguments_;
};

// --- queues -------------------------------------------------------------------------------------

void EnqueueProgram(CommandQueue& queue, Program& program, bool blocking);
void Finish(CommandQueue& queue);

inline Buffer& buffer_of(Buffer& buffer) { return buffer; }
inline Buffer& buffer_of(const std::shared_ptr<Buffer>& buffer) { return *buffer; }

template <typename AnyBuffer, typename Element>
void EnqueueWriteBuffer(CommandQueue&, AnyBuffer&& buffer, const std::vector<Element>& data,
                        bool /*blocking*/) {
  buffer_of(buffer).write(std::as_bytes(std::span(data)));
}
template <typename AnyBuffer>
void EnqueueWriteBuffer(CommandQueue&, AnyBuffer&& buffer, const void* data, bool /*blocking*/) {
  Buffer& to = buffer_of(buffer);
  to.write({static_cast<const std::byte*>(data), to.size()});
}
template <typename AnyBuffer, typename Element>
void EnqueueReadBuffer(CommandQueue&, AnyBuffer&& buffer, std::vector<Element>& data,
                       bool /*blocking*/) {
  const Buffer& from = buffer_of(buffer);
  data.resize(from.size() / sizeof(Element));
  from.read(std::as_writable_bytes(std::span(data)));
}
template <typename AnyBuffer>
void EnqueueReadBuffer(CommandQueue&, AnyBuffer&& buffer, void* data, bool /*blocking*/) {
  const Buffer& from = buffer_of(buffer);
  from.read({static_cast<std::byte*>(data), from.size()});
}

// Simulated nanoseconds since the first device was created. An extension of TT-Metalium.
double simulated_time_ns();

namespace detail {

void LaunchProgram(Device* device, Program& program, bool wait_until_cores_done = true);
void WaitProgramDone(Device* device, Program& program);
void CompileProgram(Device* device, Program& program);
inline bool ConfigureDeviceWithProgram(Device*, Program&) { return true; }
inline void WriteRuntimeArgsToDevice(Device*, Program&) {}

bool WriteToDeviceL1(Device* device, const CoreCoord& core, std::uint32_t address,
                     std::span<const std::uint32_t> words, CoreType type = CoreType::WORKER);
bool ReadFromDeviceL1(Device* device, const CoreCoord& core, std::uint32_t address,
                      std::uint32_t size, std::vector<std::uint32_t>& words,
                      CoreType type = CoreType::WORKER);
bool WriteToDeviceDRAMChannel(Device* device, int channel, std::uint32_t address,
                              std::span<const std::uint32_t> words);
bool ReadFromDeviceDRAMChannel(Device* device, int channel, std::uint32_t address,
                               std::uint32_t size, std::vector<std::uint32_t>& words);
template <typename Element>
void WriteToBuffer(Buffer& buffer, const std::vector<Element>& data) {
  buffer.write(std::as_bytes(std::span(data)));
}
template <typename Element>
void WriteToBuffer(const std::shared_ptr<Buffer>& buffer, const std::vector<Element>& data) {
  buffer->write(std::as_bytes(std::span(data)));
}
template <typename Element>
void ReadFromBuffer(const Buffer& buffer, std::vector<Element>& data) {
  data.resize(buffer.size() / sizeof(Element));
  buffer.read(std::as_writable_bytes(std::span(data)));
}
template <typename Element>
void ReadFromBuffer(const std::shared_ptr<Buffer>& buffer, std::vector<Element>& data) {
  ReadFromBuffer(*buffer, data);
}

}  // namespace detail
}  // namespace tt::tt_metal

using tt::chip_id_t;

// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "towpath/tenstorrent/metalium/host_fabric.hpp"

// The mesh variants of TT-Metalium's host interface, for meshes of one device.

namespace tt::tt_metal::distributed {

class MeshShape {
 public:
  MeshShape(std::uint32_t rows, std::uint32_t columns) : rows_(rows), columns_(columns) {}
  std::uint32_t num_rows() const { return rows_; }
  std::uint32_t num_cols() const { return columns_; }
  std::uint32_t mesh_size() const { return rows_ * columns_; }

 private:
  std::uint32_t rows_;
  std::uint32_t columns_;
};

class MeshCoordinate {
 public:
  MeshCoordinate(std::uint32_t row, std::uint32_t column) : values_{row, column} {}
  explicit MeshCoordinate(std::vector<std::uint32_t> values) : values_(std::move(values)) {}
  static MeshCoordinate zero_coordinate(std::size_t = 2) { return {0, 0}; }

 private:
  std::vector<std::uint32_t> values_;
};

class MeshCoordinateRange {
 public:
  explicit MeshCoordinateRange(const MeshShape&) {}
  explicit MeshCoordinateRange(const MeshCoordinate&) {}
  MeshCoordinateRange(const MeshCoordinate&, const MeshCoordinate&) {}
};

class MeshCommandQueue {
 public:
  explicit MeshCommandQueue(CommandQueue& queue) : queue_(&queue) {}
  CommandQueue& queue() const { return *queue_; }
  void finish() const { queue_->finish(); }

 private:
  CommandQueue* queue_;
};

class MeshDevice {
 public:
  explicit MeshDevice(Device* device) : device_(device), queue_(device->command_queue()) {}
  static std::shared_ptr<MeshDevice> create_unit_mesh(int device_id) {
    return std::make_shared<MeshDevice>(CreateDevice(device_id));
  }

  MeshCommandQueue& mesh_command_queue(std::size_t = 0) { return queue_; }
  static MeshShape shape() { return {1, 1}; }
  static std::size_t num_devices() { return 1; }
  Device* get_device(const MeshCoordinate&) const { return device_; }
  std::vector<Device*> get_devices() const { return {device_}; }
  tt_fabric::FabricNodeId get_fabric_node_id(const MeshCoordinate&) const {
    return tt_fabric::get_fabric_node_id_from_physical_chip_id(device_->id());
  }
  chip_id_t id() const { return device_->id(); }
  ARCH arch() const { return device_->arch(); }
  CoreCoord compute_with_storage_grid_size() const {
    return device_->compute_with_storage_grid_size();
  }
  CoreCoord logical_grid_size() const { return device_->logical_grid_size(); }
  CoreCoord worker_core_from_logical_core(const CoreCoord& core) const {
    return device_->worker_core_from_logical_core(core);
  }
  int num_dram_channels() const { return device_->num_dram_channels(); }
  Allocator* allocator() const { return device_->allocator(); }
  bool close() {
    const bool was_open = device_ != nullptr;
    if (was_open) CloseDevice(std::exchange(device_, nullptr));
    return was_open;
  }

 private:
  Device* device_;
  MeshCommandQueue queue_;
};

struct ReplicatedBufferConfig {
  std::uint64_t size = 0;
};
struct DeviceLocalBufferConfig {
  std::uint64_t page_size = 0;
  BufferType buffer_type = BufferType::DRAM;
};

class MeshBuffer {
 public:
  explicit MeshBuffer(std::shared_ptr<Buffer> buffer) : buffer_(std::move(buffer)) {}
  static std::shared_ptr<MeshBuffer> create(const ReplicatedBufferConfig& mesh_config,
                                            const DeviceLocalBufferConfig& local_config,
                                            MeshDevice* device) {
    return std::make_shared<MeshBuffer>(
        CreateBuffer({.device = device->get_device(MeshCoordinate::zero_coordinate()),
                      .size = mesh_config.size,
                      .page_size = local_config.page_size,
                      .buffer_type = local_config.buffer_type}));
  }
  std::uint32_t address() const { return buffer_->address(); }
  std::uint64_t size() const { return buffer_->size(); }
  std::uint32_t page_size() const { return buffer_->page_size(); }
  Buffer* get_backing_buffer() const { return buffer_.get(); }
  Buffer* get_reference_buffer() const { return buffer_.get(); }
  Buffer* get_device_buffer(const MeshCoordinate&) const { return buffer_.get(); }

 private:
  std::shared_ptr<Buffer> buffer_;
};

class MeshWorkload {
 public:
  void add_program(const MeshCoordinateRange&, Program program) {
    programs_.push_back(std::move(program));
  }
  std::vector<Program>& programs() { return programs_; }

 private:
  std::vector<Program> programs_;
};

inline MeshWorkload CreateMeshWorkload() { return {}; }
inline void AddProgramToMeshWorkload(MeshWorkload& workload, Program&& program,
                                     const MeshCoordinateRange& range) {
  workload.add_program(range, std::move(program));
}
inline void EnqueueMeshWorkload(MeshCommandQueue& queue, MeshWorkload& workload, bool blocking) {
  for (Program& program : workload.programs()) EnqueueProgram(queue.queue(), program, false);
  if (blocking) queue.finish();
}
inline void Finish(MeshCommandQueue& queue) { queue.finish(); }

template <typename Element>
void EnqueueWriteMeshBuffer(MeshCommandQueue& queue, const std::shared_ptr<MeshBuffer>& buffer,
                            const std::vector<Element>& data, bool blocking = false) {
  EnqueueWriteBuffer(queue.queue(), *buffer->get_backing_buffer(), data, blocking);
}
template <typename Element>
void EnqueueReadMeshBuffer(MeshCommandQueue& queue, std::vector<Element>& data,
                           const std::shared_ptr<MeshBuffer>& buffer, bool blocking = true) {
  EnqueueReadBuffer(queue.queue(), *buffer->get_backing_buffer(), data, blocking);
}
template <typename Element>
void WriteShard(MeshCommandQueue& queue, const std::shared_ptr<MeshBuffer>& buffer,
                const std::vector<Element>& data, const MeshCoordinate&, bool blocking = false) {
  EnqueueWriteMeshBuffer(queue, buffer, data, blocking);
}
template <typename Element>
void ReadShard(MeshCommandQueue& queue, std::vector<Element>& data,
               const std::shared_ptr<MeshBuffer>& buffer, const MeshCoordinate&,
               bool blocking = true) {
  EnqueueReadMeshBuffer(queue, data, buffer, blocking);
}

}  // namespace tt::tt_metal::distributed

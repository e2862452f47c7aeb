// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

// tt-umd's interface of a cluster for programs written for that driver, over the host link of
// described chips. Programs include it as umd/device/cluster.hpp and link with Towpath.
//
// $TOWPATH_MACHINE names the chip or its file (default: blackhole), and $TOWPATH_HOST the host
// (default: the host on which that chip was measured).

namespace tt {

enum class ARCH : std::uint8_t { WORMHOLE_B0, BLACKHOLE };
enum class CoreType : std::uint8_t { ARC, DRAM, ETH, PCIE, TENSIX, ROUTER_ONLY, HARVESTED };

using ChipId = int;
using chip_id_t = int;

namespace umd {

struct xy_pair {
  std::size_t x = 0;
  std::size_t y = 0;
  bool operator==(const xy_pair&) const = default;
};
using tt_xy_pair = xy_pair;

struct CoreCoord : xy_pair {
  CoreType core_type = CoreType::TENSIX;
  xy_pair to_pair() const { return *this; }
  bool operator==(const CoreCoord&) const = default;
};

// Ordering of accesses through a window.
namespace tlb_data {
enum Ordering : std::uint8_t { Relaxed, Strict, Posted };
}  // namespace tlb_data

enum class DevicePowerState : std::uint8_t { BUSY, SHORT_IDLE, LONG_IDLE };

struct ClusterOptions {
  std::uint32_t num_host_mem_ch_per_mmio_device = 0;
  std::unordered_set<ChipId> target_devices = {};
  std::string sdesc_path = {};
};

struct device_params {};

class SocDescriptor {
 public:
  explicit SocDescriptor(std::vector<CoreCoord> cores) : cores_(std::move(cores)) {}
  std::vector<CoreCoord> get_cores(CoreType type) const;
  std::size_t get_num_eth_channels() const { return get_cores(CoreType::ETH).size(); }

 private:
  std::vector<CoreCoord> cores_;
};

class ClusterDescriptor {
 public:
  explicit ClusterDescriptor(ARCH arch) : arch_(arch) {}
  ARCH get_arch() const { return arch_; }

 private:
  ARCH arch_;
};

class ClusterLink;  // the host and its chips

// Memory of the host that a chip reaches. The engine moves its data without a copy.
class SysmemBuffer {
 public:
  SysmemBuffer(std::shared_ptr<ClusterLink> link, ChipId chip, std::size_t number)
      : link_(std::move(link)), chip_(chip), number_(number) {}
  ~SysmemBuffer();
  SysmemBuffer(const SysmemBuffer&) = delete;
  SysmemBuffer& operator=(const SysmemBuffer&) = delete;

  // Throw std::invalid_argument if the engine cannot do it, and beyond the buffer.
  void dma_write_to_device(std::size_t offset, std::size_t size, const xy_pair& core,
                           std::uint64_t address);
  void dma_read_from_device(std::size_t offset, std::size_t size, const xy_pair& core,
                            std::uint64_t address);
  void* get_buffer_va() const;
  std::size_t get_buffer_size() const;

 private:
  std::shared_ptr<ClusterLink> link_;
  ChipId chip_;
  std::size_t number_;
};

class SysmemManager {
 public:
  SysmemManager(std::shared_ptr<ClusterLink> link, ChipId chip)
      : link_(std::move(link)), chip_(chip) {}
  // Pinned and zeroed. Throws std::invalid_argument without host memory channels.
  std::unique_ptr<SysmemBuffer> allocate_sysmem_buffer(std::size_t size, bool map_to_noc = false);
  // Memory of the program, which must outlive the buffer.
  std::unique_ptr<SysmemBuffer> map_sysmem_buffer(void* memory, std::size_t size,
                                                  bool map_to_noc = false);

 private:
  std::shared_ptr<ClusterLink> link_;
  ChipId chip_;
};

class Chip {
 public:
  Chip(std::shared_ptr<ClusterLink> link, ChipId chip);
  SysmemManager* get_sysmem_manager() { return &sysmem_; }
  const SocDescriptor& get_soc_descriptor() const { return soc_; }

 private:
  SysmemManager sysmem_;
  SocDescriptor soc_;
};

// The host's side of the chip.
class PCIDevice {
 public:
  explicit PCIDevice(int) {}
  static std::vector<int> enumerate_devices() { return {0}; }
  bool is_iommu_enabled() const;
};

// One chip of a host. Calls throw std::invalid_argument with one sentence. A DMA for which there is
// no memory or no engine is carried out by the processor, and reported once on standard error.
class Cluster {
 public:
  Cluster() : Cluster(ClusterOptions{}) {}
  explicit Cluster(const ClusterOptions& options);

  void write_to_device(const void* data, std::size_t size, ChipId chip, const CoreCoord& core,
                       std::uint64_t address);
  void read_from_device(void* to, ChipId chip, const CoreCoord& core, std::uint64_t address,
                        std::size_t size);
  void dma_write_to_device(const void* data, std::size_t size, ChipId chip, const CoreCoord& core,
                           std::uint64_t address);
  // Throws std::invalid_argument: a window shows one tile.
  void noc_multicast_write(const void* data, std::size_t size, ChipId chip, const CoreCoord& start,
                           const CoreCoord& end, std::uint64_t address);
  void dma_read_from_device(void* to, std::size_t size, ChipId chip, const CoreCoord& core,
                            std::uint64_t address);
  void configure_tlb(ChipId chip, const CoreCoord& core, std::size_t size, std::uint64_t address,
                     std::uint64_t ordering = tlb_data::Relaxed);

  Chip* get_chip(ChipId chip);
  std::vector<CoreCoord> get_cores(CoreType type) { return get_soc_descriptor(0).get_cores(type); }
  const SocDescriptor& get_soc_descriptor(ChipId chip) {
    return get_chip(chip)->get_soc_descriptor();
  }
  const ClusterDescriptor* get_cluster_description() const { return &description_; }
  std::set<ChipId> get_target_device_ids() const { return {0}; }
  std::set<ChipId> get_target_mmio_device_ids() const { return {0}; }
  std::set<ChipId> get_target_remote_device_ids() const { return {}; }
  // The clock and power of a described chip are fixed, and no firmware has to start.
  void set_clock_state(DevicePowerState) {}
  void start_device(const device_params&) {}
  void close_device() {}

  // Additions of Towpath. The simulated time of all calls of this cluster, in nanoseconds.
  double simulated_time_ns() const;
  // Lets time pass, in which posted writes leave. It does not count as the time of a call.
  void let_time_pass(double time_ns);

 private:
  void report(const std::string& obstacle);

  std::shared_ptr<ClusterLink> link_;
  ClusterDescriptor description_;
  std::unique_ptr<Chip> chip_;
  bool is_reported_ = false;
};

}  // namespace umd
}  // namespace tt

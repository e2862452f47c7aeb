// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/symmetry.hpp"

#include <algorithm>

#include "towpath/base/index.hpp"

namespace towpath::machine {
namespace {

constexpr int kNone = -1;

class Mapping {
 public:
  explicit Mapping(const Machine& machine)
      : machine_(machine),
        image_(machine.devices().size(), kNone),
        is_image_(machine.devices().size()) {}

  // Returns false if either device is already mapped.
  bool set(int device, int image) {
    if (image_[index(device)] != kNone || is_image_[index(image)]) return false;
    image_[index(device)] = image;
    is_image_[index(image)] = true;
    reached_.push_back(device);
    return true;
  }

  // Maps the n-th link of a device to the n-th link of its image, as a first assumption. All
  // consequences are checked link by link.
  void follow_links() {
    for (std::size_t next = 0; next < reached_.size(); ++next) {
      const int device = reached_[next];
      const std::span<const int> links = machine_.links_from(device);
      const std::span<const int> of_image = machine_.links_from(image_[index(device)]);
      for (std::size_t i = 0; i < std::min(links.size(), of_image.size()); ++i) {
        set(end_of(links[i]), end_of(of_image[i]));
      }
    }
  }

  bool has_all_devices() const {
    const auto& devices = machine_.devices();
    for (std::size_t device = 0; device < image_.size(); ++device) {
      if (image_[device] == kNone) return false;
      const Device& own = devices[device];
      const Device& other = devices[index(image_[device])];
      if (own.kind != other.kind || own.forwards != other.forwards) return false;
    }
    return true;
  }

  // Pairs a device's links with its image's links by destination.
  bool move_links(int device, std::vector<int>& moved) const {
    std::vector<std::pair<int, int>> own;  // (destination's image, link)
    std::vector<std::pair<int, int>> of_image;
    for (const int link : machine_.links_from(device)) {
      own.emplace_back(image_[index(end_of(link))], link);
    }
    for (const int link : machine_.links_from(image_[index(device)])) {
      of_image.emplace_back(end_of(link), link);
    }
    if (own.size() != of_image.size()) return false;
    std::ranges::sort(own);
    std::ranges::sort(of_image);
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto& [end, link] = own[i];
      const auto& [image_end, image] = of_image[i];
      if (end != image_end ||
          !is_like(machine_.links()[index(link)], machine_.links()[index(image)])) {
        return false;
      }
      moved[index(own[i].second)] = of_image[i].second;
    }
    return true;
  }

 private:
  int end_of(int link) const { return machine_.links()[index(link)].to; }

  const Machine& machine_;
  std::vector<int> image_;  // per device
  std::vector<bool> is_image_;
  std::vector<int> reached_;  // devices with an image, in mapping order
};

}  // namespace

std::optional<std::vector<int>> moved_links(const Machine& machine,
                                            std::span<const std::pair<int, int>> images) {
  Mapping mapping(machine);
  for (const auto& [device, image] : images) {
    if (!mapping.set(device, image)) return std::nullopt;
  }
  mapping.follow_links();
  if (!mapping.has_all_devices()) return std::nullopt;
  std::vector<int> moved(machine.links().size());
  for (int device = 0; device < static_cast<int>(machine.devices().size()); ++device) {
    if (!mapping.move_links(device, moved)) return std::nullopt;
  }
  return moved;
}

}  // namespace towpath::machine

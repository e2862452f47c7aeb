// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "sentence.hpp"
#include "towpath/machine/checks.hpp"
#include "towpath/machine/load.hpp"

namespace towpath::machine {
namespace {

using namespace literals;

const char* const kHost = R"({
  "form": "host", "name": "plain",
  "link": {"generation": 3, "lanes": 16, "payload_bytes_max": 128, "read_request_bytes_max": 512,
           "completion_bytes": 64, "device_reads_outstanding": 32, "read_time_ns": 400.5},
  "core": {"call_time_ns": 50, "store_rate_gb_per_s": 64, "posted_writes_max": 4,
           "posted_write_interval_ns": 10, "uncached_store_bytes": 32,
           "uncached_store_time_ns": 5, "load_bytes": 64, "stream_load_bytes": 16,
           "stream_loads_outstanding": 4, "copies_words": true},
  "driver": {"window_time_ns": 500, "dma_time_ns": 1000, "bounce_bytes": 4096,
             "bounce_write_rate_gb_per_s": 8, "bounce_read_rate_gb_per_s": 16,
             "cache_bytes": 1099511627776, "bounce_write_rate_uncached_gb_per_s": 4,
             "bounce_read_rate_uncached_gb_per_s": 0.001},
  "memory": {"has_iommu": true, "has_hugepages": false, "page_bytes": 4096,
             "hugepage_bytes": 2097152, "map_time_ns": 20000, "map_page_time_ns": 3000,
             "unmap_time_ns": 21000, "unmap_page_time_ns": 1000000000, "translation_time_ns": 0}
})";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kHost;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// The field and the problem of the error on a changed host.
std::string refusal_of(const std::string& from, const std::string& to) {
  try {
    parse_host(changed(from, to), "plain.json");
  } catch (const DescriptionError& error) {
    return fmt::format("{}: {}", error.field(), error.problem());
  }
  return "";
}

TEST(MachineLoad, ReadsEveryValueInTheUnitOfItsName) {
  const auto host = parse_host(kHost, "plain.json");
  EXPECT_EQ(host->name, "plain");
  EXPECT_EQ(host->link.read_time, 400'500_ps);
  EXPECT_EQ(host->core.store_rate, 64_GBps);
  EXPECT_TRUE(host->core.copies_words);
  EXPECT_EQ(host->driver.cache_bytes, std::uint64_t{1} << 40);
  EXPECT_EQ(host->driver.bounce_read_rate_uncached, Rate::from_bytes_per_second(1'000'000));
  EXPECT_EQ(host->memory.unmap_page_time, 1_s);
  EXPECT_EQ(host->memory.translation_time, Time());
}

TEST(MachineLoad, NamesWhatIsMissingUnknownOrNotAllowed) {
  EXPECT_EQ(refusal_of("\"lanes\": 16, ", ""), "link: has no field 'lanes'");
  EXPECT_EQ(refusal_of("\"lanes\": 16", "\"lanes\": 33"), "link.lanes: is 33; it must be 1 to 32");
  EXPECT_EQ(refusal_of("\"lanes\": 16", "\"lanes\": 0"), "link.lanes: is 0; it must be 1 to 32");
  EXPECT_EQ(refusal_of("\"lanes\": 16", "\"lanes\": 8.0"),
            "link.lanes: is 8.0; it must be a whole number");
  EXPECT_EQ(refusal_of("\"lanes\": 16", "\"lanes\": \"x16\""),
            "link.lanes: is \"x16\"; it must be a whole number");
  EXPECT_EQ(refusal_of("\"lanes\": 16", "\"lanes\": 16, \"speed\": 1").substr(0, 32),
            "link: has no field 'speed'; choo");
  EXPECT_EQ(refusal_of("\"load_bytes\": 64", "\"load_bytes\": 48"),
            "core.load_bytes: is 48; it must be a power of two, 1 to 64");
  EXPECT_EQ(refusal_of("\"copies_words\": true", "\"copies_words\": 1"),
            "core.copies_words: is 1; it must be true or false");
  EXPECT_EQ(refusal_of("0.001", "0.0009"),
            "driver.bounce_read_rate_uncached_gb_per_s: is 0.0009; it must be 0.001 to 1000000");
  EXPECT_EQ(refusal_of("1000000000", "1000000001"),
            "memory.unmap_page_time_ns: is 1000000001; it must be 0 to 1000000000");
  EXPECT_EQ(refusal_of("2097152", "4096"),
            "memory.hugepage_bytes: is 4096; it must be more than 4096, the page_bytes");
  EXPECT_EQ(refusal_of("\"form\": \"host\"", "\"form\": \"chip\""),
            "form: is 'chip'; it must be 'host'");
}

TEST(MachineLoad, SaysWhereATextIsNotJson) {
  const std::string sentence = sentence_of([] { parse_host("{\"form\": ", "plain.json"); });
  EXPECT_EQ(sentence.substr(0, 31), "plain.json: is not valid JSON: ");
  EXPECT_EQ(sentence_of([] { parse_chip("[]", "plain.json"); }),
            "plain.json: must be a block of fields");
}

TEST(MachineLoad, FindsShippedMachinesByName) {
  const auto wormhole = load_chip("wormhole");
  EXPECT_EQ(wormhole->workers.size(), 64u);
  EXPECT_EQ(wormhole->router.hop_cycles, 9);
  EXPECT_EQ(wormhole->ethernet.line_rate, 12.5_GBps);
  EXPECT_EQ(wormhole->dram_groups.size(), 6u);
  EXPECT_EQ(wormhole->pcie.windows.size(), 3u);
  EXPECT_EQ(wormhole->ethernet_cores.front(), (Coordinate{9, 0}));
  EXPECT_EQ(load_chip("blackhole")->router.flit_bytes, 64);
  const auto n300 = load_chip_cluster("n300");
  EXPECT_EQ(n300->chips.size(), 2u);
  EXPECT_TRUE(n300->chips[0].has_host_link);
  EXPECT_FALSE(n300->links.empty());
  EXPECT_EQ(load_host("ryzen-host")->name, "ryzen-host");
  const auto carvnet = load_mailbox_cluster("carvnet");
  ASSERT_GE(carvnet->interruptions.size(), 1u);
  EXPECT_EQ(carvnet->interruptions[0].name, "interrupt");
  EXPECT_EQ(carvnet->interruptions[0].interval_mean, 4_ms);
  const auto ring = load_machine("ring");
  EXPECT_EQ(ring->route(0, 1).size(), 1u);
  EXPECT_EQ(ring->route(1, 0).size(), 1u);
}

TEST(MachineLoad, KnowsWhichEthernetChannelsAChipLacks) {
  const auto chip = load_chip_cluster("p150")->chips[0].chip;
  EXPECT_EQ(chip->ethernet_cores.size(), 12u);
  EXPECT_EQ(chip->harvested_ethernet, std::uint64_t{1 << 5 | 1 << 8});
}

const char* const kPair = R"({
  "form": "machine", "name": "pair",
  "link_types": {"link": {"kind": "pcie", "rate_gb_per_s": 12.5, "latency_ns": 300,
                          "message_overhead_ns": 2}},
  "gpu_cost": {
    "launch_ns": 4000,
    "simple": {"block_rate_gb_per_s": 20, "send_overhead_ns": 5, "receive_overhead_ns": 6,
               "fences": true},
    "ll": {"block_rate_gb_per_s": 10, "send_overhead_ns": 3, "receive_overhead_ns": 4,
           "fences": false},
    "ll128": {"block_rate_gb_per_s": 15, "send_overhead_ns": 1, "receive_overhead_ns": 2,
              "fences": false}},
  "devices": [{"name": "a", "kind": "gpu", "host": 3, "forwards": false},
              {"name": "b", "kind": "gpu", "host": 4, "forwards": true}],
  "wires": [{"between": [0, 1], "link_type": "link", "parallel": 4}]
})";

TEST(MachineLoad, AWireIsAsFastAsItsParallelLinksEitherWay) {
  const auto machine = parse_machine(kPair, "pair.json");
  ASSERT_EQ(machine->links().size(), 2u);
  for (const Link& link : machine->links()) {
    EXPECT_EQ(link.kind, LinkKind::pcie);
    EXPECT_EQ(link.rate, 50_GBps);
    EXPECT_EQ(link.latency, 300_ns);
    EXPECT_EQ(link.to, 1 - link.from);
  }
  EXPECT_EQ(machine->links()[0].to, 1);
  EXPECT_EQ(machine->links()[1].to, 0);
  EXPECT_EQ(machine->host_of_rank(1), 4);
  EXPECT_FALSE(machine->devices()[0].forwards);
  EXPECT_TRUE(machine->devices()[1].forwards);
  EXPECT_EQ(machine->gpu().launch, 4_us);
  EXPECT_EQ(machine->gpu().protocol[1].block_rate, 10_GBps);
}

TEST(MachineLoad, ANumberOfAFileIsWithinItsBounds) {
  std::string text = kPair;
  const std::string parallel = "\"parallel\": 4";
  text.replace(text.find(parallel), parallel.size(), "\"parallel\": 0");
  EXPECT_EQ(sentence_of([&] { parse_machine(text, "pair.json"); }),
            "pair.json: wires[0].parallel is 0; it must be 1e-06 to 1000000");
}

// --- where files are -----------------------------------------------------------------------------

class MachineFolder : public testing::Test {
 protected:
  MachineFolder() {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "mine.json") << kHost;
    setenv("TOWPATH_MACHINES", ("/nowhere:" + folder_.string()).c_str(), 1);
  }
  ~MachineFolder() override {
    unsetenv("TOWPATH_MACHINES");
    std::filesystem::remove_all(folder_);
  }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("towpath-machines-{}", getpid());
};

TEST_F(MachineFolder, IsSearchedFirst) {
  EXPECT_EQ(load_host("mine")->name, "plain");
  std::ofstream(folder_ / "ryzen-host.json") << kHost;
  EXPECT_EQ(load_host("ryzen-host")->name, "plain");
}

TEST_F(MachineFolder, IsNotNeededForThePathOfAFile) {
  unsetenv("TOWPATH_MACHINES");
  EXPECT_EQ(load_host((folder_ / "mine.json").string())->name, "plain");
  EXPECT_EQ(sentence_of([&] { load_host((folder_ / "yours.json").string()); }),
            (folder_ / "yours.json").string() + ": cannot be read");
}

TEST_F(MachineFolder, AndWhatIsShippedAreNamedWhenNothingIsFound) {
  const std::string sentence = sentence_of([] { load_host("yours"); });
  EXPECT_EQ(sentence.find("there is no machine 'yours'"), 0u);
  EXPECT_NE(sentence.find("choose one of aws-p4d, aws-p5"), std::string::npos);
  EXPECT_NE(sentence.find("TOWPATH_MACHINES"), std::string::npos);
}

}  // namespace
}  // namespace towpath::machine

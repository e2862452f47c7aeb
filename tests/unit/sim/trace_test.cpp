// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/trace.hpp"

#include <gtest/gtest.h>

namespace towpath::sim {
namespace {
using namespace literals;

TEST(Trace, InternsEqualTextsOnce) {
  Trace trace;
  const TrackId link = trace.track("link 0");
  EXPECT_EQ(trace.track("link 0"), link);
  EXPECT_NE(trace.track("link 1"), link);
  EXPECT_EQ(trace.tracks(), (std::vector<std::string>{"link 0", "link 1"}));
}

TEST(Trace, KeepsRecordsInOrder) {
  Trace trace;
  const TrackId link = trace.track("link 0");
  const NameId packet = trace.name("packet"), credits = trace.name("credits");
  trace.span(link, packet, 1_ns, 3_ns, 64);
  trace.instant(link, packet, 2_ns);
  trace.counter(link, credits, 3_ns, -7);
  ASSERT_EQ(trace.records().size(), 3u);
  EXPECT_EQ(trace.records()[0].kind, Trace::Kind::span);
  EXPECT_EQ(trace.records()[0].end, 3_ns);
  EXPECT_EQ(trace.records()[0].value, 64);
  EXPECT_EQ(trace.records()[1].kind, Trace::Kind::instant);
  EXPECT_EQ(trace.records()[1].end, 2_ns);
  EXPECT_EQ(trace.records()[2].kind, Trace::Kind::counter);
  EXPECT_EQ(trace.records()[2].name, credits);
  EXPECT_EQ(trace.records()[2].value, -7);
}

std::uint64_t hash_of(Trace::Mode mode, Time first, Time second, std::int64_t value) {
  Trace trace(mode);
  const TrackId link = trace.track("link 0");
  const NameId packet = trace.name("packet");
  trace.instant(link, packet, first);
  trace.instant(link, packet, second, value);
  EXPECT_EQ(trace.records().empty(), mode == Trace::Mode::hash_only);
  return trace.hash();
}

TEST(Trace, HashesTheSameWhetherRecordsAreKeptOrNot) {
  EXPECT_EQ(hash_of(Trace::Mode::keep_records, 1_ns, 2_ns, 0),
            hash_of(Trace::Mode::hash_only, 1_ns, 2_ns, 0));
}

TEST(Trace, HashDependsOnOrderTimeAndValue) {
  const auto mode = Trace::Mode::hash_only;
  const std::uint64_t hash = hash_of(mode, 1_ns, 2_ns, 0);
  EXPECT_NE(hash, hash_of(mode, 2_ns, 1_ns, 0));
  EXPECT_NE(hash, hash_of(mode, 1_ns, Time::from_ps(2'001), 0));
  EXPECT_NE(hash, hash_of(mode, 1_ns, 2_ns, 1));
}

TEST(Trace, HashDependsOnKindNameAndTrack) {
  const auto hash = [](const char* track, const char* name, bool is_counter) {
    Trace trace(Trace::Mode::hash_only);
    const TrackId on = trace.track(track);
    const NameId what = trace.name(name);
    if (is_counter)
      trace.counter(on, what, 1_ns, 1);
    else
      trace.instant(on, what, 1_ns, 1);
    return trace.hash();
  };
  const std::uint64_t reference = hash("core", "work", false);
  EXPECT_NE(reference, hash("core", "work", true));
  EXPECT_NE(reference, hash("core", "wait", false));
  EXPECT_NE(reference, hash("link", "work", false));
}

}  // namespace
}  // namespace towpath::sim

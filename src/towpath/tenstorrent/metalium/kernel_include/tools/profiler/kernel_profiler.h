// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath_prelude.h"

// The profiler's zones and values: recorded with their cycle, and without time of their own.

class TowpathZone {
 public:
  explicit TowpathZone(const char* name) : name_(name) { TOWPATH_CALL(zone, name_, 1); }
  ~TowpathZone() { TOWPATH_CALL(zone, name_, 0); }
  TowpathZone(const TowpathZone&) = delete;
  TowpathZone& operator=(const TowpathZone&) = delete;

 private:
  const char* name_;
};

#define TOWPATH_JOINED(a, b) a##b
#define TOWPATH_NAMED(a, b) TOWPATH_JOINED(a, b)
#define DeviceZoneScopedN(name) const TowpathZone TOWPATH_NAMED(towpath_zone_, __COUNTER__)(name)
#define DeviceZoneScopedMainN(name) DeviceZoneScopedN(name)
#define DeviceZoneScopedMainChildN(name) DeviceZoneScopedN(name)
#define DeviceZoneScopedSumN1(name) DeviceZoneScopedN(name)
#define DeviceZoneScopedSumN2(name) DeviceZoneScopedN(name)
#define DeviceTimestampedData(name, value) \
  TOWPATH_CALL(record, name, static_cast<std::uint64_t>(value))
#define DeviceRecordEvent(value) TOWPATH_CALL(record, "event", static_cast<std::uint64_t>(value))
#define DeviceProfilerInit()
#define RECORD_FABRIC_HEADER(header)

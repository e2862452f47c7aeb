// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/reduction.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace towpath::transport {
namespace {

constexpr DataType kTypes[] = {
    DataType::int8,   DataType::uint8,   DataType::int32,    DataType::uint32,  DataType::int64,
    DataType::uint64, DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64};
constexpr ReductionOperation kOperations[] = {ReductionOperation::sum, ReductionOperation::prod,
                                              ReductionOperation::min, ReductionOperation::max,
                                              ReductionOperation::avg};

// A binary floating-point format of 16 bits, written down by its definition and with doubles.
struct HalfFormat {
  int mantissa_bits;
  int exponent_min;  // of the smallest normal number
  int exponent_max;

  double decode(std::uint16_t bits) const {
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    const int exponent = (bits & 0x7fff) >> mantissa_bits;
    const double sign = (bits & 0x8000) ? -1 : 1;
    if (exponent == exponent_max - exponent_min + 2) {
      return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
    }
    const int significand = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
    const int power = std::max(exponent, 1) - 1 + exponent_min - mantissa_bits;
    return sign * std::ldexp(significand, power);
  }

  // Nearest even; not for a NaN.
  std::uint16_t encode(double value) const {
    const int sign = std::signbit(value) ? 0x8000 : 0;
    const int infinity = (exponent_max - exponent_min + 2) << mantissa_bits;
    if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
    const int exponent = value == 0 ? exponent_min : std::max(std::ilogb(value), exponent_min);
    const double units = std::nearbyint(std::ldexp(std::abs(value), mantissa_bits - exponent));
    // Consecutive numbers have consecutive bits, subnormals and a carry into the exponent included.
    const double bits = units + std::ldexp(exponent - exponent_min, mantissa_bits);
    return static_cast<std::uint16_t>(sign | static_cast<int>(std::min<double>(bits, infinity)));
  }
};

constexpr HalfFormat kFloat16{10, -14, 15};
constexpr HalfFormat kBFloat16{7, -126, 127};

template <class T>
T combined(T a, T b, ReductionOperation operation) {
  switch (operation) {
    case ReductionOperation::sum:
    case ReductionOperation::avg: return static_cast<T>(a + b);
    case ReductionOperation::prod: return static_cast<T>(a * b);
    case ReductionOperation::min: return a != a || b != b ? static_cast<T>(a + b) : std::min(a, b);
    case ReductionOperation::max: return a != a || b != b ? static_cast<T>(a + b) : std::max(a, b);
  }
  return T();
}

// One element of each type, by the definition. A NaN may have any bits.
template <class T>
bool is_right(const std::byte* result, const std::byte* a, const std::byte* b,
              ReductionOperation operation) {
  T x, y, z;
  std::memcpy(&x, a, sizeof(T));
  std::memcpy(&y, b, sizeof(T));
  std::memcpy(&z, result, sizeof(T));
  if constexpr (std::is_integral_v<T>) {
    using U = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
    const bool wraps = operation != ReductionOperation::min && operation != ReductionOperation::max;
    if (wraps) {
      return z == static_cast<T>(combined<U>(static_cast<U>(x), static_cast<U>(y), operation));
    }
  }
  const T expected = combined<T>(x, y, operation);
  return z == expected || (z != z && expected != expected);
}

bool is_right_half(const std::byte* result, const std::byte* a, const std::byte* b,
                   ReductionOperation operation, const HalfFormat& format) {
  std::uint16_t x, y, z;
  std::memcpy(&x, a, 2);
  std::memcpy(&y, b, 2);
  std::memcpy(&z, result, 2);
  const float expected = combined<float>(static_cast<float>(format.decode(x)),
                                         static_cast<float>(format.decode(y)), operation);
  if (std::isnan(expected)) return std::isnan(format.decode(z));
  if (expected == 0) return format.decode(z) == 0;  // the sign of a least zero is open
  return z == format.encode(expected);
}

bool element_is_right(const std::byte* result, const std::byte* a, const std::byte* b,
                      Reduction reduction) {
  const ReductionOperation operation = reduction.operation;
  switch (reduction.type) {
    case DataType::int8: return is_right<std::int8_t>(result, a, b, operation);
    case DataType::uint8: return is_right<std::uint8_t>(result, a, b, operation);
    case DataType::int32: return is_right<std::int32_t>(result, a, b, operation);
    case DataType::uint32: return is_right<std::uint32_t>(result, a, b, operation);
    case DataType::int64: return is_right<std::int64_t>(result, a, b, operation);
    case DataType::uint64: return is_right<std::uint64_t>(result, a, b, operation);
    case DataType::float16: return is_right_half(result, a, b, operation, kFloat16);
    case DataType::bfloat16: return is_right_half(result, a, b, operation, kBFloat16);
    case DataType::float32: return is_right<float>(result, a, b, operation);
    case DataType::float64: return is_right<double>(result, a, b, operation);
  }
  return false;
}

std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::string sentence(Reduction reduction, std::size_t index) {
  return std::string(name_of(reduction.type)) + " " + std::string(name_of(reduction.operation)) +
         ", element " + std::to_string(index);
}

void expect_all_right(const std::byte* result, const std::byte* a, const std::byte* b,
                      std::size_t count, Reduction reduction) {
  const std::size_t size = size_of(reduction.type);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(element_is_right(result + i * size, a + i * size, b + i * size, reduction))
        << sentence(reduction, i);
  }
}

template <class Function>
void for_each_reduction(const Function& function) {
  for (const DataType type : kTypes) {
    for (const ReductionOperation operation : kOperations) function(Reduction{type, operation});
  }
}

// Runs each test on every vector unit that this processor has.
class ReductionOnEachVectorUnit : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { use(GetParam()); }
  void TearDown() override { use(0); }

 private:
  static void use(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
  }
};

INSTANTIATE_TEST_SUITE_P(All, ReductionOnEachVectorUnit,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& info) { return hwy::TargetName(info.param); });

TEST_P(ReductionOnEachVectorUnit, EqualsTheScalarDefinitionAtEveryLengthUpTo200) {
  const auto a = random_bytes(200 * 8, 1), b = random_bytes(200 * 8, 2);
  for_each_reduction([&](Reduction reduction) {
    for (std::size_t count = 0; count <= 200; ++count) {
      std::vector<std::byte> result(200 * 8 + 8, std::byte{0x5a});
      const std::size_t size_bytes = count * size_of(reduction.type);
      reduce(result.data(), a.data(), b.data(), size_bytes, reduction);
      expect_all_right(result.data(), a.data(), b.data(), count, reduction);
      const auto end = result.begin() + static_cast<std::ptrdiff_t>(size_bytes);
      ASSERT_TRUE(std::all_of(end, result.end(), [](std::byte b) { return b == std::byte{0x5a}; }))
          << "wrote behind the end";
    }
  });
}

TEST_P(ReductionOnEachVectorUnit, EqualsTheScalarDefinitionForAMegabyte) {
  const auto a = random_bytes(1 << 20, 3), b = random_bytes(1 << 20, 4);
  std::vector<std::byte> result(1 << 20);
  for_each_reduction([&](Reduction reduction) {
    reduce(result.data(), a.data(), b.data(), result.size(), reduction);
    expect_all_right(result.data(), a.data(), b.data(), result.size() / size_of(reduction.type),
                     reduction);
  });
}

TEST_P(ReductionOnEachVectorUnit, TakesPointersOfAnyAlignment) {
  const auto a = random_bytes(1200, 5), b = random_bytes(1200, 6);
  std::vector<std::byte> result(1200);
  for_each_reduction([&](Reduction reduction) {
    reduce(result.data() + 1, a.data() + 3, b.data() + 7, 1000, reduction);
    expect_all_right(result.data() + 1, a.data() + 3, b.data() + 7, 1000 / size_of(reduction.type),
                     reduction);
  });
}

TEST_P(ReductionOnEachVectorUnit, StoresOverEitherOperand) {
  const auto a = random_bytes(1000, 7), b = random_bytes(1000, 8);
  for_each_reduction([&](Reduction reduction) {
    const std::size_t count = a.size() / size_of(reduction.type);
    auto over_a = a, over_b = b;
    reduce(over_a.data(), over_a.data(), b.data(), a.size(), reduction);
    expect_all_right(over_a.data(), a.data(), b.data(), count, reduction);
    reduce(over_b.data(), a.data(), over_b.data(), a.size(), reduction);
    expect_all_right(over_b.data(), a.data(), b.data(), count, reduction);
  });
}

// Each of the 65,536 numbers beside zeros, infinities, a NaN, the largest, the smallest, a tie.
TEST_P(ReductionOnEachVectorUnit, IsRightForEveryHalfBesideSpecialValues) {
  std::vector<std::uint16_t> every(65536), other(65536);
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = static_cast<std::uint16_t>(i);
  for (const int number : {0x0000, 0x8000, 0x7c00, 0xfc00, 0x7f80, 0xff80, 0x7e01, 0x7fff, 0x7bff,
                           0x7f7f, 0x0001, 0x8001, 0x1001, 0x3c01, 0x3f81}) {
    const auto special = static_cast<std::uint16_t>(number);
    std::fill(other.begin(), other.end(), special);
    for (const DataType type : {DataType::float16, DataType::bfloat16}) {
      for (const ReductionOperation operation : kOperations) {
        std::vector<std::uint16_t> result(65536);
        const auto* a = reinterpret_cast<const std::byte*>(every.data());
        const auto* b = reinterpret_cast<const std::byte*>(other.data());
        auto* to = reinterpret_cast<std::byte*>(result.data());
        reduce(to, a, b, 2 * result.size(), {type, operation});
        expect_all_right(to, a, b, result.size(), {type, operation});
      }
    }
  }
}

template <class T>
T reduced(T a, T b, DataType type, ReductionOperation operation) {
  T result;
  reduce(reinterpret_cast<std::byte*>(&result), reinterpret_cast<const std::byte*>(&a),
         reinterpret_cast<const std::byte*>(&b), sizeof(T), {type, operation});
  return result;
}

TEST_P(ReductionOnEachVectorUnit, MakesANanOfANanInEitherOperand) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ReductionOperation operation : kOperations) {
    EXPECT_TRUE(std::isnan(reduced(nan, 1.0, DataType::float64, operation)));
    EXPECT_TRUE(std::isnan(reduced(1.0, nan, DataType::float64, operation)));
    EXPECT_TRUE(std::isnan(reduced(static_cast<float>(nan), 1.0f, DataType::float32, operation)));
    EXPECT_TRUE(std::isnan(reduced(1.0f, static_cast<float>(nan), DataType::float32, operation)));
  }
}

TEST_P(ReductionOnEachVectorUnit, DividesIntegersTowardZero) {
  std::int32_t values[] = {7, -7, 8, -8, 0, std::numeric_limits<std::int32_t>::min()};
  divide(reinterpret_cast<std::byte*>(values), sizeof(values), DataType::int32, 4);
  const std::int32_t expected[] = {1, -1, 2, -2, 0, std::numeric_limits<std::int32_t>::min() / 4};
  EXPECT_TRUE(std::equal(std::begin(values), std::end(values), std::begin(expected)));
}

TEST_P(ReductionOnEachVectorUnit, DividesAnUnsignedNumberAboveTheSignedRange) {
  std::uint64_t value = std::numeric_limits<std::uint64_t>::max();
  divide(reinterpret_cast<std::byte*>(&value), 8, DataType::uint64, 3);
  EXPECT_EQ(value, 0x5555555555555555u);
}

TEST_P(ReductionOnEachVectorUnit, DividesFloatsToTheNearest) {
  std::vector<float> values(37);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 1.1f;
  const auto before = values;
  divide(reinterpret_cast<std::byte*>(values.data()), 37 * 4, DataType::float32, 7);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], before[i] / 7.0f);
}

TEST_P(ReductionOnEachVectorUnit, DividesHalvesInFloat32) {
  for (const auto& [type, format] :
       {std::pair{DataType::float16, kFloat16}, std::pair{DataType::bfloat16, kBFloat16}}) {
    std::vector<std::uint16_t> values(0x7c00);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i);
    divide(reinterpret_cast<std::byte*>(values.data()), 2 * values.size(), type, 3);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double whole = format.decode(static_cast<std::uint16_t>(i));
      ASSERT_EQ(values[i], format.encode(static_cast<float>(whole) / 3.0f)) << i;
    }
  }
}

TEST(Reduction, RejectsAPartOfAnElement) {
  std::byte bytes[8]{};
  EXPECT_THROW(reduce(bytes, bytes, bytes, 7, {DataType::float32, ReductionOperation::sum}),
               std::invalid_argument);
  EXPECT_THROW(divide(bytes, 8, DataType::float32, 0), std::invalid_argument);
}

TEST(Reduction, NamesReadBackAsTheSameTypeAndOperation) {
  for_each_reduction([](Reduction reduction) {
    EXPECT_EQ(data_type_from(name_of(reduction.type)), reduction.type);
    EXPECT_EQ(reduction_operation_from(name_of(reduction.operation)), reduction.operation);
  });
  EXPECT_EQ(data_type_from("float8"), std::nullopt);
  EXPECT_EQ(reduction_operation_from("median"), std::nullopt);
}

}  // namespace
}  // namespace towpath::transport

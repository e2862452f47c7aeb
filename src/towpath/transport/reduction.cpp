// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/reduction.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <type_traits>

// Highway includes this file once per vector unit of the architecture. The first call selects the
// best one available.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "towpath/transport/reduction.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace towpath::transport {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A format defines the layout of elements in memory (Stored) and the lanes in which they are
// combined (D).
template <class T>
struct Native {
  using Stored = T;
  using D = hn::ScalableTag<T>;
  static HWY_INLINE hn::Vec<D> load(D d, const Stored* from) { return hn::LoadU(d, from); }
  static HWY_INLINE void store(hn::Vec<D> v, D d, Stored* to) { hn::StoreU(v, d, to); }
};

using FloatTag = hn::ScalableTag<float>;
using BitsTag = hn::RebindToUnsigned<FloatTag>;
using IntTag = hn::RebindToSigned<FloatTag>;
using HalfTag = hn::Rebind<std::uint16_t, FloatTag>;
using Bits = hn::Vec<BitsTag>;

HWY_INLINE Bits load_halves(const std::uint16_t* from) {
  return hn::PromoteTo(BitsTag(), hn::LoadU(HalfTag(), from));
}

// `bits` are below 2^16, so the saturating conversion is exact.
HWY_INLINE void store_halves(Bits bits, std::uint16_t* to) {
  hn::StoreU(hn::DemoteTo(HalfTag(), hn::BitCast(IntTag(), bits)), HalfTag(), to);
}

// `yes` if left > right, otherwise `no`, per lane. All are below 2^31.
HWY_INLINE Bits where_greater(Bits left, Bits right, Bits yes, Bits no) {
  const IntTag i;
  return hn::BitCast(BitsTag(), hn::IfThenElse(hn::Gt(hn::BitCast(i, left), hn::BitCast(i, right)),
                                               hn::BitCast(i, yes), hn::BitCast(i, no)));
}

HWY_INLINE Bits all(std::uint32_t value) { return hn::Set(BitsTag(), value); }

constexpr std::uint32_t kFloatInfinity = 0x7f800000;

// The upper half of a float32.
struct BFloat16 {
  using Stored = std::uint16_t;
  using D = FloatTag;
  static HWY_INLINE hn::Vec<D> load(D d, const Stored* from) {
    return hn::BitCast(d, hn::ShiftLeft<16>(load_halves(from)));
  }
  static HWY_INLINE void store(hn::Vec<D> v, D, Stored* to) {
    const Bits bits = hn::BitCast(BitsTag(), v);
    const Bits upper = hn::ShiftRight<16>(bits);
    const Bits odd = hn::And(upper, all(1));
    const Bits rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(all(0x7fff), odd)));
    const Bits quiet_nan = hn::Or(upper, all(0x40));
    const Bits magnitude = hn::And(bits, all(0x7fffffff));
    store_halves(where_greater(magnitude, all(kFloatInfinity), quiet_nan, rounded), to);
  }
};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)

// IEEE binary16, converted by the processor: to nearest even.
struct Float16 {
  using Stored = hwy::float16_t;
  using D = FloatTag;
  using Halves = hn::Rebind<hwy::float16_t, D>;
  static HWY_INLINE hn::Vec<D> load(D d, const Stored* from) {
    return hn::PromoteTo(d, hn::LoadU(Halves(), from));
  }
  static HWY_INLINE void store(hn::Vec<D> v, D, Stored* to) {
    hn::StoreU(hn::DemoteTo(Halves(), v), Halves(), to);
  }
};

#else

// IEEE binary16 in integer steps: 5 bits of exponent with bias 15, 10 of mantissa.
struct Float16 {
  using Stored = std::uint16_t;
  using D = FloatTag;
  static constexpr std::uint32_t kRebias = (127 - 15) << 23;
  static constexpr std::uint32_t kSmallestNormal = (127 - 14) << 23;  // 2^-14 as a float32
  static constexpr std::uint32_t kOverflow = (127 + 16) << 23;        // 2^16 as a float32

  static HWY_INLINE hn::Vec<D> load(D d, const Stored* from) {
    const Bits half = load_halves(from);
    const Bits sign = hn::ShiftLeft<16>(hn::And(half, all(0x8000)));
    const Bits magnitude = hn::ShiftLeft<13>(hn::And(half, all(0x7fff)));
    const Bits normal = hn::Add(magnitude, all(kRebias));
    const Bits infinite_or_nan = hn::Add(normal, all(kRebias));
    // A subnormal is its mantissa as the low bits of 2^-14, minus 2^-14. The subtraction is exact.
    const auto offset = hn::BitCast(d, all(kSmallestNormal));
    const Bits subnormal = hn::BitCast(
        BitsTag(), hn::Sub(hn::BitCast(d, hn::Add(magnitude, all(kSmallestNormal))), offset));
    Bits result = where_greater(magnitude, all((0x7c00 << 13) - 1), infinite_or_nan, normal);
    result = where_greater(all(0x0400 << 13), magnitude, subnormal, result);
    return hn::BitCast(d, hn::Or(result, sign));
  }

  static HWY_INLINE void store(hn::Vec<D> v, D d, Stored* to) {
    const Bits bits = hn::BitCast(BitsTag(), v);
    const Bits magnitude = hn::And(bits, all(0x7fffffff));
    const Bits sign = hn::ShiftRight<16>(hn::Xor(bits, magnitude));
    const Bits odd = hn::And(hn::ShiftRight<13>(magnitude), all(1));
    // A carry out of the mantissa increments the exponent, up to infinity, which is the correct
    // result.
    const Bits normal =
        hn::ShiftRight<13>(hn::Add(hn::Sub(magnitude, all(kRebias)), hn::Add(all(0xfff), odd)));
    // 0.5 has the unit 2^-24 in its last place, like a subnormal, so the addition rounds correctly.
    const auto half = hn::Set(d, 0.5f);
    const Bits subnormal = hn::Sub(hn::BitCast(BitsTag(), hn::Add(hn::BitCast(d, magnitude), half)),
                                   hn::BitCast(BitsTag(), half));
    const Bits quiet_nan = hn::Or(all(0x7e00), hn::And(hn::ShiftRight<13>(magnitude), all(0x3ff)));
    Bits result = where_greater(magnitude, all(kOverflow - 1), all(0x7c00), normal);
    result = where_greater(magnitude, all(kFloatInfinity), quiet_nan, result);
    result = where_greater(all(kSmallestNormal), magnitude, subnormal, result);
    store_halves(hn::Or(result, sign), to);
  }
};

#endif

// to[i] = function(a[i], b[i]), a whole vector at a time. The remainder uses a padded vector.
template <class Format, class Function>
void transform(std::byte* to, const std::byte* a, const std::byte* b, std::uint64_t size_bytes,
               const Function& function) {
  using T = typename Format::Stored;
  const typename Format::D d;
  const std::uint64_t step = hn::Lanes(d) * sizeof(T);
  const auto combine = [&](std::byte* t, const std::byte* x, const std::byte* y) HWY_ATTR {
    Format::store(function(Format::load(d, reinterpret_cast<const T*>(x)),
                           Format::load(d, reinterpret_cast<const T*>(y))),
                  d, reinterpret_cast<T*>(t));
  };
  std::uint64_t i = 0;
  for (; i + step <= size_bytes; i += step) combine(to + i, a + i, b + i);
  if (i == size_bytes) return;
  alignas(64) std::array<std::byte, HWY_MAX_BYTES> last_a{};
  alignas(64) std::array<std::byte, HWY_MAX_BYTES> last_b{};
  std::memcpy(last_a.data(), a + i, size_bytes - i);
  std::memcpy(last_b.data(), b + i, size_bytes - i);
  combine(last_a.data(), last_a.data(), last_b.data());
  std::memcpy(to + i, last_a.data(), size_bytes - i);
}

struct Add {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};

struct Multiply {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Mul(a, b);
  }
};

template <class T>
struct DivideBy {
  T divisor;
  template <class V>
  HWY_INLINE V operator()(V a, V) const {
    return hn::Div(a, hn::Set(hn::DFromV<V>(), divisor));
  }
};

// Vector units handle NaN differently, so the result is selected explicitly.
template <bool kIsFloat, class V>
HWY_INLINE V keep_nan(V a, V b, V result) {
  if constexpr (kIsFloat) {
    result = hn::IfThenElse(hn::Eq(b, b), result, b);
    result = hn::IfThenElse(hn::Eq(a, a), result, a);
  }
  return result;
}

template <bool kIsFloat>
struct Least {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return keep_nan<kIsFloat>(a, b, hn::Min(a, b));
  }
};

template <bool kIsFloat>
struct Greatest {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return keep_nan<kIsFloat>(a, b, hn::Max(a, b));
  }
};

// For operations that some vector units lack: vectorized by the compiler.
template <class T, class Function>
void transform_by_element(std::byte* to, const std::byte* a, const std::byte* b,
                          std::uint64_t size_bytes, const Function& function) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
  for (std::uint64_t i = 0; i < size_bytes; i += sizeof(T)) {
    T x, y;
    std::memcpy(&x, a + i, sizeof(T));
    std::memcpy(&y, b + i, sizeof(T));
    x = function(x, y);
    std::memcpy(to + i, &x, sizeof(T));
  }
}

template <class Format>
void multiply(std::byte* to, const std::byte* a, const std::byte* b, std::uint64_t size_bytes) {
  using T = typename Format::Stored;
  using Lane = hn::TFromD<typename Format::D>;
  if constexpr (std::is_integral_v<Lane> && sizeof(Lane) != 4) {
    using U = std::make_unsigned_t<T>;  // wraps around, unlike the signed product
    transform_by_element<U>(to, a, b, size_bytes,
                            [](U x, U y) HWY_ATTR { return static_cast<U>(x * y); });
  } else {
    transform<Format>(to, a, b, size_bytes, Multiply());
  }
}

template <class Format>
void reduce_as(std::byte* to, const std::byte* a, const std::byte* b, std::uint64_t size_bytes,
               ReductionOperation operation) {
  constexpr bool kIsFloat = !std::is_integral_v<hn::TFromD<typename Format::D>>;
  switch (operation) {
    case ReductionOperation::sum:
    case ReductionOperation::avg: return transform<Format>(to, a, b, size_bytes, Add());
    case ReductionOperation::prod: return multiply<Format>(to, a, b, size_bytes);
    case ReductionOperation::min: return transform<Format>(to, a, b, size_bytes, Least<kIsFloat>());
    case ReductionOperation::max:
      return transform<Format>(to, a, b, size_bytes, Greatest<kIsFloat>());
  }
}

template <class Format>
void divide_as(std::byte* data, std::uint64_t size_bytes, std::int64_t divisor) {
  using Lane = hn::TFromD<typename Format::D>;
  if constexpr (std::is_integral_v<Lane>) {
    using Wide = std::conditional_t<std::is_signed_v<Lane>, std::int64_t, std::uint64_t>;
    const Wide by = static_cast<Wide>(divisor);
    transform_by_element<Lane>(data, data, data, size_bytes, [by](Lane x, Lane) HWY_ATTR {
      return static_cast<Lane>(static_cast<Wide>(x) / by);
    });
  } else {
    transform<Format>(data, data, data, size_bytes, DivideBy<Lane>{static_cast<Lane>(divisor)});
  }
}

// Calls function with the format of `type`.
template <class Function>
void with_format(DataType type, const Function& function) {
  switch (type) {
    case DataType::int8: return function(Native<std::int8_t>());
    case DataType::uint8: return function(Native<std::uint8_t>());
    case DataType::int32: return function(Native<std::int32_t>());
    case DataType::uint32: return function(Native<std::uint32_t>());
    case DataType::int64: return function(Native<std::int64_t>());
    case DataType::uint64: return function(Native<std::uint64_t>());
    case DataType::float16: return function(Float16());
    case DataType::bfloat16: return function(BFloat16());
    case DataType::float32: return function(Native<float>());
    case DataType::float64: return function(Native<double>());
  }
}

void reduce_here(std::byte* to, const std::byte* a, const std::byte* b, std::uint64_t size_bytes,
                 Reduction reduction) {
  with_format(reduction.type, [&](auto format) HWY_ATTR {
    reduce_as<decltype(format)>(to, a, b, size_bytes, reduction.operation);
  });
}

void divide_here(std::byte* data, std::uint64_t size_bytes, DataType type, std::int64_t divisor) {
  with_format(
      type, [&](auto format) HWY_ATTR { divide_as<decltype(format)>(data, size_bytes, divisor); });
}

}  // namespace HWY_NAMESPACE
}  // namespace towpath::transport
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace towpath::transport {

HWY_EXPORT(reduce_here);
HWY_EXPORT(divide_here);

namespace {

struct TypeFacts {
  std::string_view name;
  std::size_t size;
};

// In the order of DataType.
constexpr std::array<TypeFacts, 10> kTypes{{{"int8", 1},
                                            {"uint8", 1},
                                            {"int32", 4},
                                            {"uint32", 4},
                                            {"int64", 8},
                                            {"uint64", 8},
                                            {"float16", 2},
                                            {"bfloat16", 2},
                                            {"float32", 4},
                                            {"float64", 8}}};

// In the order of ReductionOperation.
constexpr std::array<std::string_view, 5> kOperations{"sum", "prod", "min", "max", "avg"};

void check_size(std::uint64_t size_bytes, DataType type) {
  if (size_bytes % size_of(type) == 0) return;
  throw std::invalid_argument(
      fmt::format("{} bytes are not a whole number of {} elements of {} bytes", size_bytes,
                  name_of(type), size_of(type)));
}

}  // namespace

std::size_t size_of(DataType type) { return kTypes.at(static_cast<std::size_t>(type)).size; }

std::string_view name_of(DataType type) { return kTypes.at(static_cast<std::size_t>(type)).name; }

std::string_view name_of(ReductionOperation operation) {
  return kOperations.at(static_cast<std::size_t>(operation));
}

std::optional<DataType> data_type_from(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<DataType>(i);
  }
  return std::nullopt;
}

std::optional<ReductionOperation> reduction_operation_from(std::string_view name) {
  for (std::size_t i = 0; i < kOperations.size(); ++i) {
    if (kOperations[i] == name) return static_cast<ReductionOperation>(i);
  }
  return std::nullopt;
}

void reduce(std::byte* result, const std::byte* a, const std::byte* b, std::uint64_t size_bytes,
            Reduction reduction) {
  check_size(size_bytes, reduction.type);
  HWY_DYNAMIC_DISPATCH(reduce_here)(result, a, b, size_bytes, reduction);
}

void divide(std::byte* data, std::uint64_t size_bytes, DataType type, std::int64_t divisor) {
  check_size(size_bytes, type);
  if (divisor <= 0) {
    throw std::invalid_argument(
        fmt::format("cannot divide by {}; it must be a positive number of ranks", divisor));
  }
  HWY_DYNAMIC_DISPATCH(divide_here)(data, size_bytes, type, divisor);
}

}  // namespace towpath::transport
#endif  // HWY_ONCE

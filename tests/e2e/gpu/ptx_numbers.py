# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers of PTX types as bits: integers, and floating point that is rounded exactly."""

from __future__ import annotations

import math
import random
from fractions import Fraction

# Bits of the exponent and of the fraction.
FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
NOT_A_NUMBER = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": None}


def width(kind: str) -> int:
    if kind.endswith("x2"):
        return 32
    return int("".join(c for c in kind if c.isdigit())[-2:].lstrip("0") or 0) or 1


def mask(kind: str) -> int:
    return (1 << width(kind)) - 1


def number(bits: int, kind: str) -> int:
    """The value of the low bits as an integer type."""
    bits &= mask(kind)
    return bits - (1 << width(kind)) if kind[0] == "s" and bits >> (width(kind) - 1) else bits


def bounds(kind: str) -> tuple[int, int]:
    if kind[0] == "s":
        return -(1 << (width(kind) - 1)), (1 << (width(kind) - 1)) - 1
    return 0, mask(kind)


def saturated(value: int, kind: str) -> int:
    least, most = bounds(kind)
    return min(max(value, least), most) & mask(kind)


# --- floating point, exactly ---------------------------------------------------------------------


def value_of(bits: int, kind: str) -> Fraction | float:
    """The exact value: a fraction, an infinity, a NaN, or -0.0."""
    exponent_bits, fraction_bits = FORMATS[kind]
    bits &= mask(kind)
    sign = bits >> (exponent_bits + fraction_bits)
    exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1)
    fraction = bits & ((1 << fraction_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        return math.nan if fraction else (-math.inf if sign else math.inf)
    if exponent == 0 and fraction == 0:
        return -0.0 if sign else Fraction(0)
    significand = fraction if exponent == 0 else fraction | 1 << fraction_bits
    value = Fraction(significand) * Fraction(2) ** (max(exponent, 1) - bias - fraction_bits)
    return -value if sign else value


def is_special(value: Fraction | float) -> bool:
    return isinstance(value, float) and (math.isnan(value) or math.isinf(value))


def exact(value: Fraction | float) -> Fraction:
    return Fraction(0) if isinstance(value, float) else value


def integral(value: Fraction, mode: str) -> int:
    if mode == "rz":
        return math.trunc(value)
    return {"rn": round, "rm": math.floor, "rp": math.ceil}[mode](value)


def rounded(value: Fraction | float, kind: str, mode: str = "rn") -> int | None:
    """The bits of a value in a format."""
    exponent_bits, fraction_bits = FORMATS[kind]
    top = (1 << exponent_bits) - 1
    sign_bit = 1 << (exponent_bits + fraction_bits)
    infinity = top << fraction_bits
    if isinstance(value, float):
        if math.isnan(value):
            return NOT_A_NUMBER[kind]
        if math.isinf(value):
            return infinity | (sign_bit if value < 0 else 0)
        return sign_bit  # -0.0
    if value == 0:
        return 0
    sign = sign_bit if value < 0 else 0
    bias = (1 << (exponent_bits - 1)) - 1
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    unit = Fraction(2) ** (exponent - fraction_bits)
    significand = abs(integral(value / unit, mode))
    if significand >> (fraction_bits + 1):
        significand >>= 1
        exponent += 1
    if exponent > bias:
        is_largest = mode == "rz" or mode == ("rp" if sign else "rm")
        return sign | (infinity - 1 if is_largest else infinity)
    if significand >> fraction_bits == 0:
        return sign | significand
    return sign | (exponent + bias) << fraction_bits | significand & ((1 << fraction_bits) - 1)


def zero_of(a: Fraction | float, b: Fraction | float, mode: str) -> Fraction | float:
    """The zero that a sum of two values is."""
    both_negative = all(isinstance(v, float) for v in (a, b))
    if (a == 0 and b == 0 and both_negative) or mode == "rm":
        if a == 0 and b == 0 and not isinstance(a, float) and not isinstance(b, float):
            return Fraction(0)
        return -0.0
    return Fraction(0)


def total(a: Fraction | float, b: Fraction | float, mode: str) -> Fraction | float:
    if is_special(a) or is_special(b):
        return float(a if is_special(a) else 0) + float(b if is_special(b) else 0)
    value = exact(a) + exact(b)
    return value if value != 0 else zero_of(a, b, mode)


def is_negative(value: Fraction | float) -> bool:
    return math.copysign(1, value) < 0 if isinstance(value, float) else value < 0


def times(a: Fraction | float, b: Fraction | float) -> Fraction | float:
    if is_special(a) or is_special(b):
        if a == 0 or b == 0 or math.isnan(float(a) if is_special(a) else 0.0):
            return math.nan
        if is_special(b) and math.isnan(b):
            return math.nan
        return -math.inf if is_negative(a) != is_negative(b) else math.inf
    value = exact(a) * exact(b)
    if value == 0:
        return -0.0 if is_negative(a) != is_negative(b) else Fraction(0)
    return value


def over(a: Fraction | float, b: Fraction | float) -> Fraction | float:
    is_nan = any(isinstance(v, float) and math.isnan(v) for v in (a, b))
    infinite = [isinstance(v, float) and math.isinf(v) for v in (a, b)]
    if is_nan or all(infinite) or (a == 0 and b == 0):
        return math.nan
    sign = is_negative(a) != is_negative(b)
    if infinite[0] or b == 0:
        return -math.inf if sign else math.inf
    if infinite[1] or a == 0:
        return -0.0 if sign else Fraction(0)
    return exact(a) / exact(b)


def flushed(bits: int, kind: str) -> int:
    exponent_bits, fraction_bits = FORMATS[kind]
    if bits >> fraction_bits & ((1 << exponent_bits) - 1):
        return bits
    return bits & 1 << (exponent_bits + fraction_bits)


def clamped(bits: int | None, kind: str) -> int | None:
    if bits is None:
        return 0
    value = value_of(bits, kind)
    if isinstance(value, float) and math.isnan(value):
        return 0
    if is_negative(value) or value == 0:
        return 0
    return rounded(Fraction(1), kind) if value > 1 else bits


def opposite(value: Fraction | float) -> Fraction | float:
    if isinstance(value, float):
        return Fraction(0) if value == 0 else -value
    return -0.0 if value == 0 else -value


def extreme(a, b, kind: str, is_max: bool, propagates: bool) -> int | None:
    nans = [isinstance(v, float) and math.isnan(v) for v in (a, b)]
    if all(nans) or (propagates and any(nans)):
        return NOT_A_NUMBER[kind]
    if any(nans):
        return rounded(b if nans[0] else a, kind)
    if a == 0 and b == 0:
        negative = is_negative(a) and is_negative(b) if is_max else is_negative(a) or is_negative(b)
        return rounded(-0.0 if negative else Fraction(0), kind)
    return rounded(max(a, b) if is_max else min(a, b), kind)


# --- operands ------------------------------------------------------------------------------------


def operand(kind: str, chance: random.Random, is_small: bool) -> int:
    """Random bits: many near the ends of the range, and floats of all magnitudes."""
    bits = width(kind)
    if is_small:
        return chance.choice([0, 1, 5, 8, 15, 16, 31, 32, 33, 63, 64, 200])
    if kind.endswith("x2"):
        half = kind.removesuffix("x2")
        return operand(half, chance, False) | operand(half, chance, False) << 16
    if kind in FORMATS and chance.random() < 0.7:
        exponent_bits, fraction_bits = FORMATS[kind]
        spread = chance.choice([2, 6, 12])
        exponent = (1 << (exponent_bits - 1)) - 1 + chance.randint(-spread, spread)
        fraction = chance.choice(
            [0, 1, 1 << (fraction_bits - 1), chance.getrandbits(fraction_bits)]
        )
        exponent = min(max(exponent, 0), (1 << exponent_bits) - 1)
        return chance.getrandbits(1) << (bits - 1) | exponent << fraction_bits | fraction
    if kind not in FORMATS and chance.random() < 0.3:
        near = chance.choice([0, 1 << (bits - 1), (1 << bits) - 1])
        return (near + chance.randint(-2, 2)) & mask(kind)
    return chance.getrandbits(chance.choice([bits, bits, bits // 2]))

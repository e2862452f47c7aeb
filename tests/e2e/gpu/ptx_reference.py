# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""PTX instructions as Python functions of bits, and the spellings of each, for comparison."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from ptx_numbers import (
    FORMATS,
    bounds,
    clamped,
    exact,
    extreme,
    flushed,
    integral,
    is_negative,
    is_special,
    mask,
    number,
    opposite,
    over,
    rounded,
    saturated,
    times,
    total,
    value_of,
    width,
)

INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
WORDS = ("u32", "s32", "u64", "s64")
DIRECTIONS = ("rn", "rz", "rm", "rp")


@dataclass(frozen=True)
class Case:
    """One spelling with the types of its result and operands, and its meaning for their bits."""

    text: str  # of the statement, with %0 for the result
    result: str
    operands: tuple[str, ...]
    meaning: Callable[..., int | None]  # None: any bits
    ulps: int = 0
    # The integer operand that is small, such as the count of a shift, by its place.
    small: tuple[int, ...] = ()


# --- integers ------------------------------------------------------------------------------------


def divided(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


def of_numbers(kind: str, function: Callable[..., int], result: str | None = None):
    """A meaning on the integer values of the operands."""
    return lambda *bits: function(*(number(b, kind) for b in bits)) & mask(result or kind)


def integer_case(text: str, kind: str, count: int, function, *, result: str | None = None) -> Case:
    places = ", ".join(f"%{i}" for i in range(count + 1))
    meaning = of_numbers(kind, function, result)
    return Case(f"{text} {places};", result or kind, (kind,) * count, meaning)


def integer_cases() -> list[Case]:
    return arithmetic_cases() + field_cases() + carry_cases() + bit_cases() + byte_cases()


def arithmetic_cases() -> list[Case]:
    cases = []

    def add(*arguments, **options):
        cases.append(integer_case(*arguments, **options))

    for kind in INTEGERS:
        bits = width(kind)
        add(f"add.{kind}", kind, 2, lambda a, b: a + b)
        add(f"sub.{kind}", kind, 2, lambda a, b: a - b)
        add(f"mul.lo.{kind}", kind, 2, lambda a, b: a * b)
        add(f"mul.hi.{kind}", kind, 2, lambda a, b, bits=bits: a * b >> bits)
        add(f"mad.lo.{kind}", kind, 3, lambda a, b, c: a * b + c)
        add(f"mad.hi.{kind}", kind, 3, lambda a, b, c, bits=bits: (a * b >> bits) + c)
        add(f"min.{kind}", kind, 2, min)
        add(f"max.{kind}", kind, 2, max)
        add(f"sad.{kind}", kind, 3, lambda a, b, c: abs(a - b) + c)
        add(f"div.{kind}", kind, 2, lambda a, b: divided(a, b) if b else -1)
        add(f"rem.{kind}", kind, 2, lambda a, b: a - b * divided(a, b) if b else a)
        if kind[0] == "s":
            add(f"abs.{kind}", kind, 1, abs)
            add(f"neg.{kind}", kind, 1, lambda a: -a)
        if bits < 64:
            wide = f"{kind[0]}{2 * bits}"
            add(f"mul.wide.{kind}", kind, 2, lambda a, b: a * b, result=wide)
            cases.append(
                Case(
                    f"mad.wide.{kind} %0, %1, %2, %3;",
                    wide,
                    (kind, kind, wide),
                    lambda a, b, c, kind=kind, wide=wide: (number(a, kind) * number(b, kind) + c)
                    & mask(wide),
                )
            )
    return cases


def field_cases() -> list[Case]:
    cases = []

    def add(*arguments, **options):
        cases.append(integer_case(*arguments, **options))

    for kind in WORDS:
        add(f"bfind.{kind}", kind, 1, lambda a: (~a if a < 0 else a).bit_length() - 1, result="u32")
        cases.append(
            Case(
                f"bfe.{kind} %0, %1, %2, %3;",
                kind,
                (kind, "u32", "u32"),
                lambda a, b, c, kind=kind: field_of(a, b & 255, c & 255, kind),
                small=(1, 2),
            )
        )
    for kind in ("u32", "s32"):
        add(f"mul24.lo.{kind}", kind, 2, lambda a, b, k=kind: low24(a, k) * low24(b, k))
        add(f"mul24.hi.{kind}", kind, 2, lambda a, b, k=kind: low24(a, k) * low24(b, k) >> 16)
    return cases


def carry_cases() -> list[Case]:
    cases = []
    for operation in ("add", "sub"):
        sign = 1 if operation == "add" else -1
        cases.append(
            Case(
                f"{operation}.sat.s32 %0, %1, %2;",
                "s32",
                ("s32", "s32"),
                lambda a, b, s=sign: saturated(number(a, "s32") + s * number(b, "s32"), "s32"),
            )
        )
        # A 64-bit sum in two halves.
        cases.append(
            Case(
                "{ .reg .b32 a, b, c, d, e, f; mov.b64 {a, b}, %1; mov.b64 {c, d}, %2; "
                f"{operation}.cc.u32 e, a, c; {operation}c.u32 f, b, d; mov.b64 %0, {{e, f}}; }}",
                "u64",
                ("u64", "u64"),
                lambda a, b, s=sign: (a + s * b) & mask("u64"),
            )
        )
    cases.append(
        Case(
            "{ .reg .u32 low, high; mad.lo.cc.u32 low, %1, %2, %3; madc.hi.u32 high, %1, %2, 0; "
            "mov.b64 %0, {low, high}; }",
            "u64",
            ("u32", "u32", "u32"),
            lambda a, b, c: (a * b + c) & mask("u64"),
        )
    )
    return cases


def low24(value: int, kind: str) -> int:
    value &= 0xFFFFFF
    return value - (1 << 24) if kind[0] == "s" and value >> 23 else value


def field_of(bits: int, position: int, length: int, kind: str) -> int:
    last = min(position + length - 1, width(kind) - 1)
    sign = kind[0] == "s" and length != 0 and bits >> last & 1
    result = 0
    for i in range(width(kind)):
        inside = i < length and position + i < width(kind)
        result |= (bits >> (position + i) & 1 if inside else int(bool(sign))) << i
    return result


def inserted(a: int, b: int, position: int, length: int, bits: int) -> int:
    for i in range(length):
        if position + i >= bits:
            break
        b = b & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
    return b


def permuted(a: int, b: int, c: int, mode: str) -> int:
    data = [(a | b << 32) >> 8 * i & 255 for i in range(8)]
    first = c & 3
    places = {
        "f4e": [first + i for i in range(4)],
        "b4e": [(first - i) % 8 for i in range(4)],
        "rc8": [first] * 4,
        "ecl": [max(i, first) for i in range(4)],
        "ecr": [min(i, first) for i in range(4)],
        "rc16": [(first & 1) * 2 + i % 2 for i in range(4)],
    }.get(mode)
    result = []
    for i in range(4):
        nibble = c >> 4 * i & 15
        byte = data[places[i] if places else nibble & 7]
        if not places and nibble & 8:
            byte = 255 if byte & 128 else 0
        result.append(byte)
    return sum(byte << 8 * i for i, byte in enumerate(result))


def bit_case(text: str, result: str, operands: tuple[str, ...], meaning, small=()) -> Case:
    places = ", ".join(f"%{i}" for i in range(len(operands) + 1))
    return Case(f"{text} {places};", result, operands, meaning, small=small)


def bit_cases() -> list[Case]:
    cases = []

    def add(*arguments):
        cases.append(bit_case(*arguments))

    for bits in (16, 32, 64):
        kind, full = f"b{bits}", (1 << bits) - 1
        add(f"and.{kind}", kind, (kind, kind), lambda a, b: a & b)
        add(f"or.{kind}", kind, (kind, kind), lambda a, b: a | b)
        add(f"xor.{kind}", kind, (kind, kind), lambda a, b: a ^ b)
        add(f"not.{kind}", kind, (kind,), lambda a, full=full: a ^ full)
        add(f"cnot.{kind}", kind, (kind,), lambda a: int(a == 0))
        add(f"shl.{kind}", kind, (kind, "u32"), lambda a, b, f=full: a << min(b, 64) & f, (1,))
        for sign in "bus":
            shifted = f"{sign}{bits}"
            add(
                f"shr.{shifted}",
                kind,
                (kind, "u32"),
                lambda a, b, t=shifted, f=full: number(a, t) >> min(b, 64) & f,
                (1,),
            )
    for bits in (32, 64):
        kind = f"b{bits}"
        add(f"popc.{kind}", "u32", (kind,), lambda a: a.bit_count())
        add(f"clz.{kind}", "u32", (kind,), lambda a, bits=bits: bits - a.bit_length())
        add(f"brev.{kind}", kind, (kind,), lambda a, bits=bits: int(f"{a:0{bits}b}"[::-1], 2))
        add(
            f"bfi.{kind}",
            kind,
            (kind, kind, "u32", "u32"),
            lambda a, b, c, d, n=bits: inserted(a, b, c & 255, d & 255, n),
            (2, 3),
        )
    for side, mode in product("lr", ("clamp", "wrap")):

        def meaning(a, b, c, side=side, mode=mode):
            count = min(c, 32) if mode == "clamp" else c % 32
            both = b << 32 | a
            return (both << count >> 32 if side == "l" else both >> count) & mask("u32")

        add(f"shf.{side}.{mode}.b32", "b32", ("b32", "b32", "u32"), meaning, (2,))
    for mode in ("", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        add(
            f"prmt.b32{'.' if mode else ''}{mode}",
            "b32",
            ("b32", "b32", "b32"),
            lambda a, b, c, mode=mode: permuted(a, b, c, mode),
        )
    return cases


def byte_cases() -> list[Case]:
    cases = []
    for table in (0x80, 0xFE, 0x96, 0xCA, 0xE8, 0x01):

        def looked_up(a, b, c, table=table):
            return sum(
                (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i
                for i in range(32)
            )

        cases.append(Case(f"lop3.b32 %0, %1, %2, %3, {table:#x};", "b32", ("b32",) * 3, looked_up))
    for left, right in product("us", "us"):

        def dotted(a, b, c, left=left, right=right):
            return (
                c
                + sum(
                    number(a >> 8 * i, left + "8") * number(b >> 8 * i, right + "8")
                    for i in range(4)
                )
            ) & mask("u32")

        cases.append(bit_case(f"dp4a.{left}32.{right}32", "u32", ("u32",) * 3, dotted))
    return cases


# --- floats --------------------------------------------------------------------------------------


def float_case(text: str, kind: str, count: int, function, *, flags=(), ulps=0) -> Case:
    """A case of float operands. Flags: "ftz" and "sat"."""

    def meaning(*bits):
        values = [value_of(flushed(b, kind) if "ftz" in flags else b, kind) for b in bits]
        result = function(*values)
        if "ftz" in flags and result is not None:
            result = flushed(result, kind)
        return clamped(result, kind) if "sat" in flags else result

    places = ", ".join(f"%{i}" for i in range(count + 1))
    return Case(f"{text} {places};", kind, (kind,) * count, meaning, ulps)


def float_cases() -> list[Case]:
    cases = rounding_cases() + half_cases() + sign_cases()
    for name, function in APPROXIMATIONS.items():
        meaning = approximation(function)
        for flags in ((), ("ftz",)):
            text = ".".join((name, "approx", *flags, "f32"))
            cases.append(float_case(text, "f32", 1, meaning, flags=flags, ulps=2))
    return cases + conversion_cases() + comparison_cases()


def rounding_cases() -> list[Case]:
    cases = []

    def add(*arguments, **options):
        cases.append(float_case(*arguments, **options))

    for kind, mode in product(("f32", "f64"), DIRECTIONS):

        def sum_of(a, b, k=kind, m=mode):
            return rounded(total(a, b, m), k, m)

        def difference(a, b, k=kind, m=mode):
            return rounded(total(a, opposite(b), m), k, m)

        def product_of(a, b, k=kind, m=mode):
            return rounded(times(a, b), k, m)

        def quotient(a, b, k=kind, m=mode):
            return rounded(over(a, b), k, m)

        def fused(a, b, c, k=kind, m=mode):
            return rounded(total(times(a, b), c, m), k, m)

        for text, count, function in (
            ("add", 2, sum_of),
            ("sub", 2, difference),
            ("mul", 2, product_of),
            ("div", 2, quotient),
            ("fma", 3, fused),
        ):
            add(f"{text}.{mode}.{kind}", kind, count, function)
            if kind == "f32" and mode in ("rn", "rz"):
                add(f"{text}.{mode}.ftz.{kind}", kind, count, function, flags=("ftz",))
            if kind == "f32" and text != "div":
                add(f"{text}.{mode}.sat.{kind}", kind, count, function, flags=("sat",))
        add(
            f"rcp.{mode}.{kind}",
            kind,
            1,
            lambda a, k=kind, m=mode: rounded(over(Fraction(1), a), k, m),
        )
    return cases


def half_cases() -> list[Case]:
    cases = []

    def add(*arguments, **options):
        cases.append(float_case(*arguments, **options))

    for kind in ("f16", "bf16"):
        add(f"add.{kind}", kind, 2, lambda a, b, k=kind: rounded(total(a, b, "rn"), k))
        add(f"sub.{kind}", kind, 2, lambda a, b, k=kind: rounded(total(a, opposite(b), "rn"), k))
        add(f"mul.{kind}", kind, 2, lambda a, b, k=kind: rounded(times(a, b), k))
        add(
            f"fma.rn.{kind}",
            kind,
            3,
            lambda a, b, c, k=kind: rounded(total(times(a, b), c, "rn"), k),
        )
    for pair, half in (("f16x2", "f16"), ("bf16x2", "bf16")):
        for text, function in (("add", lambda a, b: total(a, b, "rn")), ("mul", times)):
            cases.append(
                Case(
                    f"{text}.{pair} %0, %1, %2;",
                    pair,
                    (pair, pair),
                    lambda a, b, f=function, h=half: in_halves(f, h, a, b),
                )
            )
    return cases


def sign_cases() -> list[Case]:
    cases = []

    def add(*arguments, **options):
        cases.append(float_case(*arguments, **options))

    for kind in FORMATS:
        for name, is_max in (("min", False), ("max", True)):
            add(
                f"{name}.{kind}", kind, 2, lambda a, b, k=kind, m=is_max: extreme(a, b, k, m, False)
            )
            if kind != "f64":
                add(
                    f"{name}.NaN.{kind}",
                    kind,
                    2,
                    lambda a, b, k=kind, m=is_max: extreme(a, b, k, m, True),
                )
        sign = 1 << (width(kind) - 1)
        cases.append(Case(f"neg.{kind} %0, %1;", kind, (kind,), lambda a, s=sign: a ^ s))
        cases.append(Case(f"abs.{kind} %0, %1;", kind, (kind,), lambda a, s=sign: a & ~s))
    return cases


def in_halves(function, half: str, a: int, b: int) -> int:
    parts = [
        rounded(function(value_of(a >> s & 0xFFFF, half), value_of(b >> s & 0xFFFF, half)), half)
        for s in (0, 16)
    ]
    return parts[0] | parts[1] << 16


APPROXIMATIONS = {
    "ex2": lambda x: 2.0**x if x < 1000 else math.inf,
    "lg2": lambda x: math.log2(x) if x > 0 else (-math.inf if x == 0 else math.nan),
    "rcp": lambda x: 1 / x if x else math.copysign(math.inf, x),
    "rsqrt": lambda x: 1 / math.sqrt(x)
    if x > 0
    else (math.copysign(math.inf, x) if x == 0 else math.nan),
    "sqrt": lambda x: math.sqrt(x) if x > 0 else (x if x == 0 else math.nan),
    "sin": lambda x: math.sin(x) if math.isfinite(x) else math.nan,
    "cos": lambda x: math.cos(x) if math.isfinite(x) else math.nan,
}


def approximation(function):
    def meaning(value):
        result = (
            function(float(value)) if not (is_special(value) and math.isnan(value)) else math.nan
        )
        if is_special(result):
            return rounded(result, "f32")
        if result == 0:
            return rounded(-0.0 if is_negative(result) else Fraction(0), "f32")
        return rounded(Fraction(result), "f32")

    return meaning


def conversion_cases() -> list[Case]:
    cases = []

    def add(text: str, result: str, operand: str, meaning):
        cases.append(Case(f"{text} %0, %1;", result, (operand,), meaning))

    narrow = ("u8", "s8", *INTEGERS)
    for to, source in product(narrow, narrow):
        # A register of the narrowest types has 16 bits, and the result is extended in it.
        container = to if width(to) > 8 else f"{to[0]}16"
        held = source if width(source) > 8 else f"{source[0]}16"
        add(
            f"cvt.{to}.{source}",
            container,
            held,
            lambda a, t=to, s=source, c=container: number(number(a, s), t) & mask(c),
        )
        add(
            f"cvt.sat.{to}.{source}",
            container,
            held,
            lambda a, t=to, s=source, c=container: number(saturated(number(a, s), t), t) & mask(c),
        )
    for to, source, mode in product(("f32", "f64"), WORDS, DIRECTIONS):
        add(
            f"cvt.{mode}.{to}.{source}",
            to,
            source,
            lambda a, t=to, s=source, m=mode: rounded(Fraction(number(a, s)), t, m),
        )
    for to, source, mode in product(WORDS, FORMATS, ("rni", "rzi", "rmi", "rpi")):

        def to_integer(a, to=to, source=source, mode=mode):
            value = value_of(a, source)
            if isinstance(value, float) and math.isnan(value):
                return 1 << (width(to) - 1) if source == "f64" or width(to) == 64 else 0
            if is_special(value):
                least, most = bounds(to)
                return (least if value < 0 else most) & mask(to)
            return saturated(integral(exact(value), mode[:2]), to)

        add(f"cvt.{mode}.{to}.{source}", to, source, to_integer)
    for source, to in (("f16", "f32"), ("bf16", "f32"), ("f16", "f64"), ("f32", "f64")):
        add(f"cvt.{to}.{source}", to, source, lambda a, t=to, s=source: rounded(value_of(a, s), t))
    for source, to in (("f32", "f16"), ("f32", "bf16"), ("f64", "f32"), ("f64", "f16")):
        for mode in DIRECTIONS:
            add(
                f"cvt.{mode}.{to}.{source}",
                to,
                source,
                lambda a, t=to, s=source, m=mode: rounded(value_of(a, s), t, m),
            )
    for pair, half in (("f16x2", "f16"), ("bf16x2", "bf16")):
        for mode in ("rn", "rz"):

            def packed(a, b, half=half, mode=mode):
                return rounded(value_of(a, "f32"), half, mode) << 16 | rounded(
                    value_of(b, "f32"), half, mode
                )

            cases.append(Case(f"cvt.{mode}.{pair}.f32 %0, %1, %2;", pair, ("f32", "f32"), packed))
    return cases


RELATIONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
UNSIGNED_RELATIONS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def compared(name: str, a, b, kind: str) -> bool:
    if kind not in FORMATS:
        return RELATIONS[UNSIGNED_RELATIONS.get(name, name)](number(a, kind), number(b, kind))
    x, y = value_of(a, kind), value_of(b, kind)
    is_unordered = any(isinstance(v, float) and math.isnan(v) for v in (x, y))
    if name in ("num", "nan"):
        return is_unordered == (name == "nan")
    if is_unordered:
        return name.endswith("u") and name != "u"
    return RELATIONS[name.removesuffix("u")](x, y)


def comparison_cases() -> list[Case]:
    cases = []
    ordered = [(name, kind) for kind in (*INTEGERS, *FORMATS) for name in RELATIONS]
    ordered += [(name, kind) for kind in ("u16", "u32", "u64") for name in UNSIGNED_RELATIONS]
    ordered += [
        (name, kind)
        for kind in FORMATS
        for name in ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
    ]
    for name, kind in ordered:
        cases.append(
            Case(
                f"{{ .reg .pred p; setp.{name}.{kind} p, %1, %2; selp.u32 %0, 7, 9, p; }}",
                "u32",
                (kind, kind),
                lambda a, b, n=name, k=kind: 7 if compared(n, a, b, k) else 9,
            )
        )
        if kind in ("s32", "f32"):
            cases.append(
                Case(
                    f"set.{name}.u32.{kind} %0, %1, %2;",
                    "u32",
                    (kind, kind),
                    lambda a, b, n=name, k=kind: mask("u32") if compared(n, a, b, k) else 0,
                )
            )
    for with_, function in (
        ("and", lambda p, q: p and q),
        ("or", lambda p, q: p or q),
        ("xor", lambda p, q: p != q),
    ):

        def both(a, b, c, function=function):
            less, is_set = number(a, "s32") < number(b, "s32"), c & 1 == 1
            return (1 if function(less, is_set) else 0) | (2 if function(not less, is_set) else 0)

        cases.append(
            Case(
                "{ .reg .pred p, q, r; .reg .b32 x, y; and.b32 x, %3, 1; setp.ne.b32 r, x, 0; "
                f"setp.lt.{with_}.s32 p|q, %1, %2, r; selp.b32 x, 1, 0, p; selp.b32 y, 2, 0, q; "
                "or.b32 %0, x, y; }",
                "u32",
                ("s32", "s32", "u32"),
                both,
            )
        )
    return cases


def all_cases() -> list[Case]:
    return integer_cases() + float_cases()

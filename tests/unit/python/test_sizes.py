# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import pytest

from inside.machines import parse_size, parse_sizes
from towpath import ConfigError


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("8", 8),
        ("1K", 1024),
        ("64M", 64 << 20),
        ("1g", 1 << 30),
        ("2GiB", 2 << 30),
        ("16T", 1 << 44),
        ("1.5M", 3 << 19),
        ("0.125k", 128),
    ],
)
def test_a_size_is_what_nccl_tests_would_take(text, size_bytes):
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "sizes_bytes"),
    [
        ("64", [64]),
        ("8:64", [8, 16, 32, 64]),
        ("8:100", [8, 16, 32, 64]),
        ("1K:16K:4", [1024, 4096, 16384]),
        ("512,8,1K", [512, 8, 1024]),
    ],
)
def test_sizes_are_a_range_or_a_list(text, sizes_bytes):
    assert parse_sizes(text) == sizes_bytes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "0",
        "-1",
        "1.5",
        "0.3K",
        ".5M",
        "17T",
        "8:",
        ":8",
        "64:8",
        "8:64:1",
        "8:64:x",
        "8:64:2:2",
        "8,,9",
    ],
)
def test_anything_else_is_refused_in_one_sentence(text):
    with pytest.raises(ConfigError) as refused:
        parse_sizes(text)
    assert "\n" not in str(refused.value)
    assert "write a size" in str(refused.value)

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# `make run` and `make test` are all that a newcomer needs; each installs, builds and does its job.

SHELL  := /bin/bash
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BUILD  := build

.DEFAULT_GOAL := run
.PHONY: run test build check-long bench clean

run: build
	@$(BIN)/python examples/01_two_nodes/run.py

# Everything that must hold; the C++ tests first, then the Python and end-to-end ones.
test: build
	@$(BUILD)/towpath_tests --gtest_brief=1
	@$(BIN)/python -m pytest -m "not long"

# The checks that take minutes: 1,000 mutations, 1,000 kills, 20,000 bad inputs, 1,024 GPUs.
check-long: build
	@TOWPATH_LONG_TESTS=1 $(BUILD)/towpath_tests --gtest_brief=1
	@$(BIN)/python -m pytest -m long

bench: build
	@$(BUILD)/towpath_benchmarks

# A build that is up to date costs one look by ninja.
build: $(VENV)/ready
	@cmake --build $(BUILD) -- --quiet
	@cmake --install $(BUILD) --component towpath --prefix "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')" >/dev/null

$(VENV)/ready: pyproject.toml CMakeLists.txt tools/install_packages.sh
	@tools/install_packages.sh "$(PYTHON)"
	@test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet "scikit-build-core>=0.10" "nanobind>=2.2"
	@$(BIN)/python -m pip install --quiet --no-build-isolation \
	  --config-settings=cmake.define.TOWPATH_BUILD_TESTS=ON \
	  --config-settings=cmake.define.TOWPATH_BUILD_BENCHMARKS=ON \
	  --editable ".[test]"
	@touch $@

# The reference of `import towpath` as HTML, from its docstrings.
.PHONY: docs
docs: build
	@$(BIN)/python -m pip install --quiet "pdoc>=14"
	@$(BIN)/python tools/docs.py out/docs

clean:
	rm -rf $(BUILD) $(VENV) out

# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# `make run` and `make test` are all that a newcomer needs; each installs, builds and does its job.

SHELL  := /bin/bash
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BUILD  := build
JOBS   ?= $(shell nproc)
PREFIX ?= /usr/local

.DEFAULT_GOAL := run
.NOTPARALLEL:
.PHONY: run check test deps build tests install lint check-long bench asan tsan clean

run: deps build
	@$(BIN)/python examples/01_two_nodes/run.py

# What a change needs while it is made: style, C++ tests and Python tests without other processes.
check: deps tests lint
	@ctest --test-dir $(BUILD) --parallel $(JOBS) --label-exclude slow --output-on-failure --no-tests=error --progress
	@$(BIN)/python -m pytest tests/unit/python --numprocesses $(JOBS) --dist worksteal -m "not slow and not long"

# Everything that must hold: style, C++ tests, Python and end-to-end tests, in one process per processor.
test: deps tests lint
	@ctest --test-dir $(BUILD) --parallel $(JOBS) --output-on-failure --no-tests=error --progress
	@$(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile -m "not long"

# The checks that take minutes: 1,000 mutations, 1,000 kills, 20,000 bad inputs, 1,024 GPUs, each
# installed header compiled alone, a wheel built from nothing.
check-long: deps tests
	@cmake --build $(BUILD) --target all_verify_interface_header_sets -- --quiet
	@for tests in $$(find $(BUILD)/tests -maxdepth 1 -type f -executable | sort); do \
	  TOWPATH_LONG_TESTS=1 $$tests --gtest_brief=1 || exit 1; done
	@$(BIN)/python -m pytest -m long

bench: tests
	@$(BUILD)/towpath_benchmarks

# The C++ tests under the sanitizers of gcc: addresses and undefined behaviour, data races.
asan tsan: deps
	@cmake --preset $@ >/dev/null
	@cmake --build --preset $@ -- --quiet
	@ctest --preset $@ --parallel $(JOBS) --progress

# The hardware of rtl/ as simulators, and its programs: needs verilator and a compiler for RISC-V,
# which `make rtl-deps` installs and nothing else needs.
.PHONY: rtl rtl-deps
rtl:
	@$(MAKE) --no-print-directory -C rtl JOBS=$(JOBS)

rtl-deps:
	@tools/install_packages.sh --rtl "$(PYTHON)"

# A CUDA program with NVSHMEM for a GPU: `make gpu-build FILE=examples/gpu/ring_shift.cu`. Needs nvcc and NVSHMEM
# in $NVSHMEM_HOME; the program is in out/gpu.
.PHONY: gpu-build
gpu-build:
	@test -n "$(FILE)" || { echo "say which: make gpu-build FILE=program.cu"; exit 2; }
	@mkdir -p out/gpu
	@tools/gpu_build.sh "$(FILE)" "out/gpu/$(basename $(notdir $(FILE)))"

# The choices of Towpath's search on the shipped machines, or on some: `make choices MACHINES="dgx-h100 mi300x"`.
# A quarter of an hour for all.
.PHONY: choices
choices: build
	@$(BIN)/python -m towpath.api.choices $(MACHINES)

# The choices of NCCL and RCCL themselves on the shipped machines: `make decisions NCCL=PATH RCCL=PATH`.
.PHONY: decisions
decisions: build
	@test -n "$(NCCL)$(RCCL)" || { echo "name a repository: make decisions NCCL=PATH"; exit 2; }
	@$(BIN)/python -m towpath.api.decisions "$(NCCL)" "$(RCCL)"

lint: $(VENV)/tested
	@$(BIN)/python tools/lint.py

# Installs the system's packages that the build needs; nothing else here does.
deps:
	@tools/install_packages.sh "$(PYTHON)"

# The C++ library with its headers and its CMake package; needs no Python.
install:
	@cmake --preset release >/dev/null
	@cmake --build --preset release -- --quiet
	@cmake --install build-release --prefix "$(PREFIX)" >/dev/null
	@echo "towpath is installed in $(PREFIX)"

# The library and the Python module. A build that is up to date costs one look by ninja.
build: $(VENV)/ready
	@cmake --build $(BUILD) --target $(PRODUCT) -- --quiet
	@cmake --install $(BUILD) --component towpath --prefix "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')" >/dev/null

# The C++ tests, benchmarks and examples as well, and the Python packages that tests and lint need.
tests: build $(VENV)/tested
	@cmake --build $(BUILD) -- --quiet

PRODUCT := _core _core_stub towpath_shmem towpath_ttsim
INSTALL := $(BIN)/python -m pip install --quiet --no-build-isolation \
  --config-settings=cmake.define.TOWPATH_BUILD_TESTS=ON \
  --config-settings=cmake.define.TOWPATH_BUILD_BENCHMARKS=ON \
  --config-settings=cmake.define.TOWPATH_UNITY=ON \
  --config-settings=cmake.define.TOWPATH_WERROR=ON

$(VENV)/ready: pyproject.toml tools/install_packages.sh
	@tools/install_packages.sh --check "$(PYTHON)"
	@test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet "scikit-build-core>=0.10" "nanobind>=2.2"
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/tested: $(VENV)/ready
	@$(INSTALL) --editable ".[test,lint]"
	@touch $@

# The documentation as a site, in site/.
.PHONY: docs
docs: build
	@$(BIN)/python -m pip install --quiet "mkdocs>=1.6,<2" "mkdocs-material>=9.5" "mkdocstrings[python]>=0.27"
	@$(BIN)/python -m mkdocs build --quiet --strict

# The wheels of HEAD with manylinux tags, in dist/, and the check that they run where no compiler is.
# Both need root and debootstrap; SUITES=bookworm makes one of the two.
.PHONY: wheel wheel-check
SUITES ?= bookworm trixie
wheel:
	@tools/wheel.sh $(SUITES)

wheel-check:
	@tools/wheel_check.sh $(SUITES)

clean:
	rm -rf $(BUILD) build-dev build-release build-asan build-tsan $(VENV) out site

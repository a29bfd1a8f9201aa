# The everyday commands. `make` alone lists them.
SHELL := /bin/bash
PYTHON := .venv/bin/python
DEMO_MODEL := .cache/models/SmolLM2-135M-Instruct
DEMO_PROMPT := Explain in two sentences why the sky is blue.

.DEFAULT_GOAL := help
.PHONY: help setup configure build demo test test-full fuzz asan asan-torch-free tsan gpu-test format format-check tidy rooms types docs install-example install-package clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: ## Install what is missing: Debian packages, .venv with the pinned requirements
	@tools/setup.sh

configure: setup
	@cmake --preset release -Wno-dev $(CMAKE_ARGUMENTS)

build: configure ## Build build/bin/headway
	@cmake --build build --target headway_cli

$(DEMO_MODEL)/config.json: tools/smollm2.py | setup
	@echo "Converting SmolLM2-135M-Instruct to $(DEMO_MODEL)" >&2
	@$(PYTHON) tools/smollm2.py $(DEMO_MODEL)

demo: build $(DEMO_MODEL)/config.json ## Generate text on 2 ranks, attention split 4 + 5 heads
	build/bin/headway generate --model $(DEMO_MODEL) --tp 2 --attn-tp 2 --chat --max-tokens 128 \
	  --prompt "$(DEMO_PROMPT)"

build-all: configure
	@cmake --build build

test: build-all $(DEMO_MODEL)/config.json ## Build and run all tests but the slow ones
	@$(PYTHON) tools/run_tests.py --build build

test-full: build-all $(DEMO_MODEL)/config.json ## Build and run all tests
	@$(PYTHON) tools/run_tests.py --build build --slow

fuzz: ## Build the fuzz targets with clang and run each for FUZZ_SECONDS (60)
	@tools/setup.sh --dev
	@cmake --preset fuzz -Wno-dev $(CMAKE_ARGUMENTS)
	@cmake --build --preset fuzz
	@tools/fuzz.sh

asan: setup ## Build all under the address and undefined-behaviour sanitizers; run the unit tests and those of 2 ranks
	@cmake --preset asan -Wno-dev $(CMAKE_ARGUMENTS)
	@cmake --build --preset asan
	@tools/sanitized_tests.sh asan -L unit
	@tools/sanitized_tests.sh asan -R _np2$$

asan-torch-free: setup ## As asan, but only the unit tests of what does without torch, which build in minutes
	@cmake --preset asan -Wno-dev $(CMAKE_ARGUMENTS)
	@cmake --build --preset asan --target torch_free_tests
	@tools/sanitized_tests.sh asan -L torch_free

tsan: setup ## Run shared memory, the message ring and the thread pool with ranks as threads under the thread sanitizer
	@cmake --preset tsan -Wno-dev $(CMAKE_ARGUMENTS)
	@cmake --build --preset tsan --target shm_threads_test thread_pool_test
	@tools/sanitized_tests.sh tsan -R '^(shm_threads|thread_pool)_test$$'

gpu-test: ## Build and run the tests for CUDA machines (HEADWAY_PYTHON names the Python that has torch)
	@tools/gpu_test.sh

format: ## Format the C++ sources
	@git ls-files '*.cpp' '*.h' | xargs clang-format -i

format-check: ## Fail where clang-format would change a C++ source
	@tools/setup.sh --dev
	@git ls-files '*.cpp' '*.h' | xargs clang-format --dry-run --Werror

tidy: configure ## Run clang-tidy (FILES="..." limits it)
	@tools/setup.sh --dev
	@tools/tidy.sh $(FILES)

rooms: ## Check which room includes which
	@python3 tools/check_rooms.py

types: setup ## Check the Python package's types
	@$(PYTHON) -m mypy

docs: setup ## Build the documentation into build/docs
	@$(PYTHON) -m mkdocs build -q

install-package: setup $(DEMO_MODEL)/config.json ## Install the Python package into a temporary environment and use it there
	@tools/install_package.sh $(DEMO_MODEL)

install-example: build $(DEMO_MODEL)/config.json ## Install into a temporary folder, then build and run examples/generate against it
	@tools/install_example.sh $(DEMO_MODEL)

clean: ## Remove the build folders (the .venv and .cache stay)
	@rm -rf build build-*

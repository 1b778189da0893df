# The tasks of this repository. Everything is built by CMake (see CMakePresets.json); this file only
# says which steps make a task. Each task first installs the Debian packages it lacks
# (scripts/setup), which needs root or sudo; SETUP=true leaves that out.

SETUP ?= scripts/setup
RANKS ?= 4
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)

UNISONO := build/release/tools/unisono/unisono
LLM := build/release/examples/llm/llm
TRANSFORMER := build/release/examples/transformer/transformer
ROLLOUT := build/release/examples/rollout/rollout
# Every collective between processes, each result compared with an independent reference.
MAIN_JOB ?= $(UNISONO) run -n $(RANKS) -- $(UNISONO) bench --main-job --table build/bench.txt

# What `make llm` asks which model: smollm2 or gemma3; or minilm, to which it gives two texts.
MODEL ?= smollm2
QUESTION ?= What is the capital of France?
OTHER ?= Paris is the capital of France.

# Which suites `make test` and `make test-all` run, for example SUITES="dev tsan"; scripts/test --help names them.
SUITES ?=

# What to compare, for example BENCH="--ranks 2 --sizes 8,1M"; bench/report/run --help says more.
BENCH ?=

.PHONY: help run test test-all parallel parallel-bits reshard llm llm-build llm-layouts llm-bits reliability bench viewer vllm site \
        release-tool check coverage release clean

help:
	@echo "make run      build the release, run every collective on $(RANKS) processes (4 min on 2 cores, then half a min)"
	@echo "make llm      fetch a language model MODEL and ask it QUESTION on two processes (some min, then 1)"
	@echo "make test     build and run every test once: what to run before a change (half an hour, then 15 min)"
	@echo "make test-all make test, sanitizers, long forms, slow Python tests, PyTorch's own (hours)"
	@echo "make parallel train a small GPT under every layout of a list, compare with one process (10 min)"
	@echo "make parallel-bits  the same, whose losses and weights must have the same bits (10 min)"
	@echo "make reshard  train on 4 processes while 2 others answer with the latest weights (5 min, then 1)"
	@echo "make llm-layouts  its tokens under 30 layouts, compared with one process (an hour)"
	@echo "make llm-bits the same, where all logits must have the same bits (an hour)"
	@echo "make vllm     vLLM on CPUs over unisono: layouts, servers, killed ranks, speed (half an hour or more)"
	@echo "make reliability  the tests of docs/reliability.md with their full numbers (two hours)"
	@echo "make bench    compare with Open MPI, MPICH, Gloo and the limits of this machine (an hour)"
	@echo "make viewer   build the page of unisono view from viewer/ (1 min; needs Node, the rest does not)"
	@echo "make site     build the documents as a site with the page in them, into build/site (8 min, then 1)"
	@echo "make coverage lines and branches of src/ that the tests run, by room (two hours)"
	@echo "make check    format, layers, spelling and texts of public names (1 min)"
	@echo "make release  build all that cmake --install copies, in build/release (7 min)"
	@echo "make clean    remove build/"
	@echo "RANKS=N changes the number of processes; SETUP=true installs nothing"

release-tool:
	@$(SETUP) build
	@scripts/build release unisono

run:
	@echo "make run: builds (4 min on two cores the first time), then measures on $(RANKS) processes (half a min)"
	@$(MAKE) --no-print-directory release-tool
	@echo "Measuring now; every result is checked."
	@$(MAIN_JOB)
	@echo "  make llm  # ask a language model on two processes"

release:
	@$(SETUP) build
	@scripts/build release unisono_installed

test:
	@$(SETUP) build test python viewer
	@scripts/test $(SUITES)

test-all:
	@$(SETUP) build test python viewer
	@scripts/test --all $(SUITES)

# A small GPT, trained under every layout of a list, compared with one process.
parallel:
	@$(SETUP) build parallel
	@scripts/build release unisono example_transformer
	@$(TRANSFORMER) --save build/transformer
	@for ranks in 1 2 4 8; do \
	  $(UNISONO) run -n $$ranks -- $(TRANSFORMER) --compare build/transformer || exit 1; done

# The same, where losses and weights must have the same bits.
parallel-bits:
	@$(SETUP) build parallel
	@scripts/build release unisono example_transformer
	@$(TRANSFORMER) --same-bits --save build/transformer_bits
	@wrong=0; for ranks in 1 2 4 8; do \
	  $(UNISONO) run -n $$ranks -- $(TRANSFORMER) --same-bits --compare build/transformer_bits || wrong=1; done; \
	  exit $$wrong

# A trainer gives its weights to an engine every ten steps; the answers are compared with those of
# one process with the same weights.
reshard:
	@echo "make reshard: builds (5 min on two cores the first time), then trains and answers (half a min)"
	@$(SETUP) build parallel llm
	@scripts/build release unisono example_rollout
	@rm -rf build/rollout
	@$(UNISONO) run -n 6 -- $(ROLLOUT) --save build/rollout
	@echo "Answering again on one process, with the saved weights of each transfer."
	@$(ROLLOUT) --compare build/rollout
	@echo "  build/release/tools/unisono/unisono learn reshard  # see how such a plan moves blocks"

llm-build:
	@$(SETUP) build llm
	@scripts/build release unisono example_llm

llm: llm-build
	@file=$$(scripts/fetch-model $(MODEL)) && \
	  $(UNISONO) run -n 2 -- $(LLM) --model $$file --layout tp=2 \
	    $(if $(filter minilm,$(MODEL)),--embed "$(QUESTION)" --embed "$(OTHER)",--prompt "$(QUESTION)")

llm-layouts: llm-build
	@file=$$(scripts/fetch-model $(MODEL)) && scripts/llm-layouts build/release $$file

# The same, where all logits must have the same bits.
llm-bits: llm-build
	@file=$$(scripts/fetch-model $(MODEL)) && scripts/llm-layouts --same-bits build/release $$file

vllm:
	@$(SETUP) build test python
	@scripts/test-python --wheel
	@scripts/test-vllm

reliability:
	@$(SETUP) build test
	@scripts/reliability

bench:
	@$(SETUP) build bench
	@scripts/build release all
	bench/report/run --build build/release $(BENCH)

viewer:
	@$(SETUP) viewer
	@viewer/scripts/build.sh

site: release-tool
	@$(SETUP) site
	@build/site-venv/bin/python site/build.py --program $(UNISONO)

check:
	@$(SETUP) build test
	@scripts/check

coverage:
	@$(SETUP) build test coverage
	@scripts/coverage

clean:
	rm -rf build

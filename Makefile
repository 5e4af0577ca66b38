SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
BIN := .venv/bin
NOTEBOOKS := $(sort $(wildcard book/*.ipynb))
EXTRAS := experiments,book,test,cluster
METHOD := $(filter-out wbn/__%.py wbn/api.py wbn/cli.py,$(wildcard wbn/*.py))
SOAK := $(addprefix tests/experiments/test_,store_under_attack.py fuzzed_plans.py workers.py sweep.py)
PLATFORM := $(shell uname -sm)

PIP_INSTALL = $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off
PIP_PROGRESS = 2>&1 | tee -a .venv/install.log | awk '/^(Collecting|Processing) / { if (++n % 25 == 0) print "  " n " packages found" } \
	/^Installing collected/ { if (n > 25) print "  unpacking " n " packages" } /^ERROR/ { print } { fflush() }' \
	|| { echo "Installing failed; the whole story is in .venv/install.log"; exit 1; }

export TQDM_DISABLE := 1
unit soak test-stacks test-oldest notebooks: export OMP_NUM_THREADS := 1

.PHONY: help book test env data lint unit soak test-stacks test-oldest test-machines notebooks run-notebooks html browser serve bench reproduce lock clean

# Run the notebooks of the folder $(1).
execute = $(BIN)/python tools/run_notebooks.py $(NOTEBOOKS:book/%=$(1)/%)

# The book is built from a copy, to which MathJax is added from its PyPI package.
define copy_book
	rm -rf _build/book && mkdir -p _build && cp -rp book _build/book && \
	mathjax=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/sphinx-mathjax-offline/static/mathjax && \
	mkdir -p _build/book/_extra/mathjax && (cd "$$mathjax" && cp -r --parents startup.js core.js input/tex-base.js \
		input/tex/extensions/ams.js output/chtml.js output/chtml/fonts a11y/assistive-mml.js "$$OLDPWD/_build/book/_extra/mathjax")
endef

# The lower bounds of what the method and its tests need, as exact versions.
define OLDEST
import tomllib; \
project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
needed = project["dependencies"] + project["optional-dependencies"]["experiments"]; \
print(*(r.replace(">=", "==") for r in needed if r.startswith(("torch", "numpy"))))
endef

# The requirements of an extra of pyproject.toml.
define extra
import tomllib; \
print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$(1)"])
endef

# An environment of its own in $(1), which sees the packages of .venv: PyTorch is not installed twice.
define borrow
	$(BIN)/python -m venv --without-pip $(1) && \
	purelib='import sysconfig; print(sysconfig.get_path("purelib"))' && \
	$(BIN)/python -c "$$purelib" > "$$($(1)/bin/python -c "$$purelib")/base.pth"
endef

define build_html
	echo "Building the book ..." && rm -rf _build/html && \
	$(BIN)/jupyter-book build _build/book --config _config.yml --path-output . -q -W -n --keep-going >/dev/null && \
	echo "The book is built: open _build/html/index.html in a browser."
endef

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

book: env data ## run every chapter and build the book (tracked files stay as they are)
	@$(call copy_book)
	@$(call execute,_build/book)
	@$(call build_html)

test: lint unit notebooks browser ## everything that CI checks: lint, unit tests, notebooks, the book in a browser
	@cat _build/not_run/* | grep . && echo "The other checks passed." || echo "All checks passed."

env: .venv/.installed ## create .venv with every dependency (CPU=1 TORCH_INDEX=...: without CUDA, 2 GB instead of 6)

.venv/.installed: requirements.lock pyproject.toml setup.py $(wildcard wbn/native/*)
	@$(PYTHON) -c 'import sys; sys.exit(f"wbn needs Python 3.11 or newer, this is {sys.version.split()[0]}: try make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || { echo "Creating .venv ..."; $(PYTHON) -m venv .venv; }
ifeq ($(PLATFORM) $(CPU),Linux x86_64 1)
	@test -n "$(TORCH_INDEX)" || { echo "CPU=1 needs TORCH_INDEX, the address of a package index with PyTorch's CPU wheels (pytorch.org lists it): make env CPU=1 TORCH_INDEX=..."; exit 1; }
	@mkdir -p _build && grep -Ev '^(torch|torchvision|triton)==|^(nvidia|cuda)-' requirements.lock > _build/cpu.lock
	@echo "Installing $$(grep -c == _build/cpu.lock) pinned packages and PyTorch for the CPU (about 2 GB, a few minutes) ..."
	@$(PIP_INSTALL) --no-deps --index-url "$(TORCH_INDEX)" $$(grep -E '^(torch|torchvision)==' requirements.lock) $(PIP_PROGRESS)
	@$(PIP_INSTALL) --no-deps -r _build/cpu.lock $(PIP_PROGRESS)
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e . $(PIP_PROGRESS)
else ifeq ($(PLATFORM),Linux x86_64)
	@echo "Installing $$(grep -c == requirements.lock) pinned packages (about 6 GB, a few minutes) ..."
	@$(PIP_INSTALL) --no-deps -r requirements.lock $(PIP_PROGRESS)
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e . $(PIP_PROGRESS)
else
	@echo "requirements.lock is for Linux x86-64; on $(PLATFORM) pip resolves the ranges of pyproject.toml ..."
	@$(PIP_INSTALL) -e '.[$(EXTRAS)]' $(PIP_PROGRESS)
endif
	@touch $@

data: env ## fetch and verify MNIST
	@$(BIN)/python data_scripts/fetch_mnist.py

lint: env ## check code and notebooks with ruff, types with mypy, notebook metadata with nb-clean
	@echo "Linting ..."
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/nb-clean check -o -c -n --preserve-cell-metadata-field mystnb --preserve-cell-metadata-field tags $(NOTEBOOKS)

unit: export WBN_NOT_RUN := _build/not_run/unit
unit: env data ## run the unit tests and doctests, with coverage of the method
	@echo "Unit tests and doctests ..."
	@$(BIN)/python -m pytest -q -n 2 --ignore=tests/book --ignore=tests/stacks \
		--cov --cov-report=term:skip-covered --cov-fail-under=98

test-stacks: env ## run wbn inside timm, Lightning, accelerate, skorch, transformers and segmentation models
	@echo "Installing the stacks in _build/stacks ..."
	@$(call borrow,_build/stacks)
	@_build/stacks/bin/python -m pip install -q --progress-bar off $$($(BIN)/python -c '$(call extra,stacks)')
	@PYTHONPATH=. _build/stacks/bin/python -m pytest -q -p no:cacheprovider tests/stacks

soak: env data ## attack store, plans, sidecars and workers for long, and print what was tried and survived
	@WBN_SOAK=1 $(BIN)/python -m pytest -q -s -p no:cacheprovider $(SOAK)

# Without the tests of compiled code: one graph needs a PyTorch that can trace context variables (2.14
# can, 2.10 and 2.5 can't; older ones break the graph there), and the compiler of 2.5 warns of itself.
test-oldest: ## run the method's tests with the oldest PyTorch and NumPy that pyproject.toml allows
	@echo "Installing the oldest versions in _build/oldest ..."
	@$(PYTHON) -m venv _build/oldest && _build/oldest/bin/python -m pip install -q --progress-bar off \
		$$($(PYTHON) -c '$(OLDEST)') pytest pytest-xdist hypothesis mpmath
	@PYTHONPATH=. _build/oldest/bin/python -m pytest -q -n 2 -p no:cacheprovider \
		-k 'not compile' $(METHOD) $(wildcard $(METHOD:wbn/%.py=tests/test_%.py))

test-machines: env data ## run tests and notebooks as other processors would, a line a setting (about an hour)
	@$(BIN)/python tests/machines.py

notebooks: env data ## rerun every notebook and compare its outputs with the committed ones (nbval)
	@echo "Rerunning $(words $(NOTEBOOKS)) notebooks and comparing their outputs ..."
	@mkdir -p _build
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile --nbval --nbval-current-env \
		--nbval-sanitize-with book/nbval_sanitize.cfg --junitxml _build/nbval.xml $(NOTEBOOKS)

run-notebooks: env data ## regenerate the committed outputs of every notebook
	@$(call execute,book)

html: env ## build the book from the committed outputs
	@$(call copy_book)
	@$(call build_html)

browser: export WBN_NOT_RUN := _build/not_run/book
browser: notebooks html ## test the rendered book in a headless browser
	@echo "Testing the rendered book ..."
	@$(BIN)/python -m pytest -q -rfE tests/book

serve: html ## build the book and serve it on this machine
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html 8000

bench: env data ## time layers, models and the engine, write results/benchmarks and run their page (under 10 minutes)
	@echo "Installing what wbn is compared with in _build/bench ..."
	@$(call borrow,_build/bench)
	@for package in $$($(BIN)/python -c '$(call extra,bench)'); do \
		_build/bench/bin/python -m pip install -q --progress-bar off "$$package" \
			|| echo "$$package does not install here: it is left out"; done
	@PYTHONPATH=. KERAS_BACKEND=torch _build/bench/bin/python -W ignore -m benchmarks
	@$(BIN)/jupyter nbconvert --log-level WARN --to notebook --execute --inplace \
		--ExecutePreprocessor.record_timing=False book/benchmarks.ipynb

reproduce: env data ## recompute every stored result into a fresh store and compare
	@rm -rf _build/reproduced
	@failed=0; for store in $(dir $(wildcard results/*/plan.toml)); do echo "$$store"; \
		TQDM_DISABLE= $(BIN)/wbn verify $$store --fresh _build/reproduced/$$(basename $$store) || failed=1; \
	done; exit $$failed

lock: ## regenerate requirements.lock from pyproject.toml, keeping pins that still fit
	@$(PYTHON) -m venv _build/lock && _build/lock/bin/python -m pip install -q pip-tools
	@_build/lock/bin/pip-compile -q --extra $(EXTRAS) --strip-extras --allow-unsafe --no-header \
		--no-emit-options --no-annotate --output-file requirements.lock pyproject.toml
	@sed -i -e '/^#/d' -e '/^$$/d' -e '1i # Linux x86-64, Python 3.11; regenerate with: make lock' requirements.lock

clean: ## remove what the build made (the environment and the data stay)
	@rm -rf _build .pytest_cache .ruff_cache .coverage .hypothesis *.egg-info

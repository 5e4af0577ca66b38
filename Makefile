SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
BIN := .venv/bin
NOTEBOOKS := $(sort $(wildcard book/*.ipynb))
LOCKED := --extra book --extra cluster --group test --group lab
METHOD := $(filter-out wbn/__%.py,$(wildcard wbn/*.py))
SOAK := $(addprefix tests/stores/test_,store_under_attack.py fuzzed_plans.py workers.py sweep.py)
UV = $(PYTHON) tools/environment.py uv

export TQDM_DISABLE := 1
# uv compiles nothing: Python does when it first imports, and has to be allowed to keep the result.
unexport PYTHONDONTWRITEBYTECODE
unit soak test-stacks test-oldest notebooks: export OMP_NUM_THREADS := 1

.PHONY: help book test env data lint unit soak test-stacks test-oldest test-conda test-machines notebooks run-notebooks html browser lab serve bench reproduce lock clean

# Run the notebooks of the folder $(1).
execute = $(BIN)/python tools/run_notebooks.py $(NOTEBOOKS:book/%=$(1)/%)

# The book is built from a copy, to which MathJax is added from its PyPI package.
define copy_book
	rm -rf _build/book && mkdir -p _build && cp -rp book _build/book && \
	mathjax=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/sphinx-mathjax-offline/static/mathjax && \
	mkdir -p _build/book/_extra/mathjax && tar -C "$$mathjax" -cf - startup.js core.js input/tex-base.js \
		input/tex/extensions/ams.js output/chtml.js output/chtml/fonts a11y/assistive-mml.js \
		| tar -C _build/book/_extra/mathjax -xf -
endef

# An environment of its own in _build/$(1) for the group $(1), which sees the packages of .venv:
# PyTorch is not installed twice.
define borrow
	echo "Installing the group $(1) of pyproject.toml in _build/$(1) ..." && \
	$(BIN)/python -m venv --without-pip _build/$(1) && \
	purelib='import sysconfig; print(sysconfig.get_path("purelib"))' && \
	$(BIN)/python -c "$$purelib" > "$$(_build/$(1)/bin/python -c "$$purelib")/base.pth" && \
	$(UV) pip freeze -q --python .venv --exclude-editable > _build/base.txt && \
	$(UV) pip install -q --python _build/$(1) --group $(1) --excludes _build/base.txt
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

.venv/.installed: requirements.lock pyproject.toml setup.py study/pyproject.toml $(wildcard wbn/native/*)
ifeq ($(CPU),1)
	@test -n "$(TORCH_INDEX)" || { echo "CPU=1 needs TORCH_INDEX, the address of a package index with PyTorch's CPU wheels (pytorch.org lists it): make env CPU=1 TORCH_INDEX=..."; exit 1; }
	@$(PYTHON) tools/environment.py install "$(TORCH_INDEX)"
else
	@$(PYTHON) tools/environment.py install
endif

data: env ## fetch and verify MNIST
	@$(BIN)/python data_scripts/fetch_mnist.py

lint: env ## check code and notebooks with ruff, types with mypy, notebook metadata with nb-clean
	@echo "Linting ..."
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/nb-clean check -o -c -n --preserve-cell-metadata-field mystnb --preserve-cell-metadata-field tags $(NOTEBOOKS)

unit: export WBN_NOT_RUN := _build/not_run/unit
# Without the compiled part its tests do not run, and 98 % cannot be reached.
unit: env data ## run the unit tests and doctests, with coverage of the method
	@echo "Unit tests and doctests ..."
	@$(BIN)/python -m pytest -q -n 2 --ignore=tests/book --ignore=tests/stacks \
		--cov --cov-report=term:skip-covered $$(ls wbn/_native*.so >/dev/null 2>&1 && echo --cov-fail-under=98)

test-stacks: env ## run wbn inside timm, Lightning, accelerate, skorch, transformers and segmentation models
	@$(call borrow,stacks)
	@PYTHONPATH=. _build/stacks/bin/python -m pytest -q -p no:cacheprovider tests/stacks

soak: env data ## attack stores, plans and workers for long, and print what was tried and survived
	@WBN_SOAK=1 $(BIN)/python -m pytest -q -s -p no:cacheprovider $(SOAK)

# Without the tests of compiled code: one graph needs a PyTorch that can trace context variables (2.14
# can, 2.10 and 2.5 can't; older ones break the graph there), and the compiler of 2.5 warns of itself.
test-oldest: ## run the method's tests with the oldest PyTorch and NumPy that pyproject.toml allows
	@echo "Installing the oldest versions in _build/oldest ..."
	@$(PYTHON) -m venv --clear --without-pip _build/oldest
	@$(UV) pip install -q --python _build/oldest --resolution lowest-direct -r pyproject.toml --group test
	@PYTHONPATH=. _build/oldest/bin/python -m pytest -q -n 2 -p no:cacheprovider \
		-k 'not compile' $(METHOD) $(wildcard $(METHOD:wbn/%.py=tests/test_%.py))

test-machines: env data ## run tests and notebooks as other processors would, a line a setting (about an hour)
	@$(BIN)/python tests/machines.py

test-conda: env ## install the pip section of environment.yml in a clean venv, as conda does, and import the book's modules
	@echo "Installing the pip section of environment.yml in _build/conda (some minutes) ..."
	@$(PYTHON) -m venv --clear _build/conda
	@$(BIN)/python -c 'import yaml; print(*yaml.safe_load(open("environment.yml"))["dependencies"][-1]["pip"], sep="\n")' > _build/conda.txt
	@_build/conda/bin/python -m pip install -q --progress-bar off -r _build/conda.txt
	@_build/conda/bin/python -m pip check
	@_build/conda/bin/python -c 'import study.cli, study.chapters.report.hero, dask.distributed, jupyter_book'

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

lab: env data ## open the chapters in JupyterLab, to read, change and rerun them
	@$(BIN)/jupyter lab --notebook-dir=book

serve: html ## build the book and serve it on this machine
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html 8000

bench: env data ## time layers, models and the engine, write results/benchmarks and run their page (under 10 minutes)
	@$(call borrow,bench) || echo "It does not install here: what is missing is left out"
	@PYTHONPATH=. KERAS_BACKEND=torch _build/bench/bin/python -W ignore -m benchmarks
	@$(BIN)/jupyter nbconvert --log-level WARN --to notebook --execute --inplace \
		--ExecutePreprocessor.record_timing=False book/benchmarks.ipynb

reproduce: env data ## recompute every stored result into a fresh store and compare
	@rm -rf _build/reproduced
	@failed=0; for store in $(dir $(wildcard results/*/plan.toml)); do echo "$$store"; \
		TQDM_DISABLE= $(BIN)/wbn verify $$store --fresh _build/reproduced/$$(basename $$store) || failed=1; \
	done; exit $$failed

lock: ## regenerate requirements.lock from pyproject.toml, keeping pins that still fit
	@$(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate $(LOCKED) \
		--custom-compile-command 'make lock' --no-emit-package weighted-batch-norm --output-file requirements.lock pyproject.toml study/pyproject.toml

clean: ## remove what the build made (the environment and the data stay)
	@rm -rf _build .pytest_cache .ruff_cache .coverage .hypothesis *.egg-info

# Every target sets up what it needs. `make help` lists them.
# Variables: PYTHON  the Python to make .venv with;  PY  an environment to use instead of .venv;
#            ARGS    further words for pytest, for runner in the demo, or for the benchmark BENCH.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help venv demo test test-fast test-deep check bench docs clean

VENV := .venv
PY ?= $(VENV)/bin/python
# The stamps of .venv, or nothing if another environment is used.
ours = $(if $(filter $(VENV)/bin/python,$(PY)),$(VENV)/$(1))
PIP := $(VENV)/bin/python -m pip install --disable-pip-version-check --quiet
DEMO := work/demo
BENCH := whole_epoch input_pipeline training_step inference settings

help:  ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

venv: $(VENV)/.run  ## make .venv with what training needs

demo: $(call ours,.demo) $(DEMO)/data/train/manifest.json  ## train on handwritten digits, in about two minutes
	$(PY) runner --config configs/digits.yaml --data-root $(DEMO)/data --workspace $(DEMO)/run --overwrite $(ARGS)

# Two processes, as MindSpore keeps the memory of every graph that a process compiled. pytest's 5: ARGS chose
# none of them; if that is so of both, nothing was tested, and that is a failure.
test: $(call ours,.dev)  ## run all tests, the dearer ones last
	@code=0; $(PY) -m pytest -m "not slow" $(ARGS) || code=$$?; [ $$code = 0 ] || [ $$code = 5 ] || exit $$code; \
	$(PY) -m pytest -m "slow and not deep" $(ARGS) || { last=$$?; [ $$last = 5 ] && [ $$code = 0 ]; }

test-deep: $(call ours,.dev)  ## run what `test` leaves out: the deepest networks, runs of minutes, all faults
	$(PY) -m pytest -m deep $(ARGS)

test-fast: $(call ours,.dev)  ## run the tests that take no training run
	$(PY) -m pytest -m "not slow" $(ARGS)

check: $(call ours,.dev)  ## lint, formatting and types
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy

bench: $(call ours,.run)  ## measure speed, beside other frameworks; BENCH=training_step for one measurement
	@set -e; for name in $(BENCH); do $(PY) -m benchmarks.$$name $(ARGS); done

docs: $(call ours,.run)  ## write docs/options.md and docs/report.md from what they describe
	$(PY) -m scripts.make_docs

clean:  ## remove .venv, caches and the demo's files
	rm -rf $(VENV) $(DEMO) .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(DEMO)/data/train/manifest.json: $(call ours,.demo)
	rm -rf $(DEMO)/images $(DEMO)/data
	$(PY) scripts/prepare_digits.py $(DEMO)/images
	$(PY) scripts/prepare_dataset.py $(DEMO)/images $(DEMO)/data
	@touch $@

# In order of preference; the last comes with MindSpore 2.9.
PYTHONS := python3.11 python3.12 python3.10 python3 python3.9
# A Python is suitable if MindSpore has wheels for it and it can make environments.
SUITABLE := import ensurepip, sys; sys.path.insert(0, "src"); import bootstrap as b; \
	sys.exit(not b.OLDEST <= sys.version_info[:2] <= b.NEWEST)

$(VENV)/bin/python:
	@for python in $(or $(PYTHON),$(PYTHONS)); do \
		if $$python -c '$(SUITABLE)' 2>/dev/null; then \
			echo "making $(VENV) with $$($$python --version)"; \
			$$python -m venv --clear $(VENV) && exit 0; \
			rm -rf $(VENV); exit 1; \
		fi; \
	done; \
	echo "MindSpore needs Python 3.9 to 3.12 with venv and ensurepip (Debian: python3-venv)," \
		"and '$(or $(PYTHON),$(PYTHONS))' is none: name one, make venv PYTHON=..." >&2; \
	exit 1

$(VENV)/.run: requirements.txt | $(VENV)/bin/python
	@echo "installing $< (MindSpore is 0.8 GB)"
	@$(PIP) -r $<
	@$(VENV)/bin/python src/bootstrap.py --check
	@touch $@

$(VENV)/.demo: requirements-demo.txt $(VENV)/.run
	@$(PIP) -r $<
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.demo
	@echo "installing $<"
	@$(PIP) -r $<
	@touch $@

# Needs python3 (3.11 or newer) with pip, and a network. It brings its own uv into .uv, makes
# .venv and installs from constraints.txt (test-lowest makes .venv-lowest, from lower bounds, and
# test-newest .venv-newest, from none); nothing outside this directory is changed but uv's cache.

PYTHON ?= python3
VENV := .venv
LOWEST := .venv-lowest
NEWEST := .venv-newest
BIN := $(VENV)/bin
UV := .uv/bin/uv
INSTALL = $(UV) pip install --quiet --python $(VENV) --constraints constraints.txt

# Tests run in several processes, so each of them keeps to one BLAS thread; and bytecode is kept, as
# processes that tests start import the package, too.
WORKERS ?= auto
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 MPLBACKEND=Agg \
	$(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 4 --dist worksteal

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test quick test-slow test-lowest test-newest check mutants fence lint format licences docs site-check dist bench constraints clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.installed-demo ## fit a private survival model on the flchain data and compare it with Cox
	$(BIN)/skdpsurv demo $(ARGS)

test: $(VENV)/.installed-test ## quick tests and the docstrings' examples
	$(PYTEST) -m "not slow" $(ARGS)

quick: $(VENV)/.installed-test ## what changes most often: layers, contract, plans and mechanisms, in a minute
	$(PYTEST) -m "not slow" $(QUICK_TESTS) $(ARGS)

QUICK_TESTS = tests/test_layers.py tests/test_contract.py tests/test_base.py tests/dp/test_plan.py \
	tests/mechanisms tests/leaks/test_golden_releases.py

test-slow: $(VENV)/.installed-test $(VENV)/.installed-bench ## the slow tests: statistical checks of the privacy guarantees (a third of them: PART=1/3)
	$(PYTEST) -m slow $(if $(PART),--part $(PART)) $(ARGS)

test-lowest: BIN := $(LOWEST)/bin
test-lowest: $(LOWEST)/.installed-test ## quick tests with the oldest Python and dependencies allowed
	$(PYTEST) -m "not slow" $(if $(PART),--part $(PART)) $(ARGS)

test-newest: BIN := $(NEWEST)/bin
test-newest: $(NEWEST)/.installed-test ## quick tests with the newest dependencies, pandas 3 among them, whatever is pinned
	$(PYTEST) -m "not slow" $(if $(PART),--part $(PART)) $(ARGS)

check: lint test licences docs dist test-lowest test-slow ## everything; continuous integration runs a third of the last two, in turn

mutants: $(VENV)/.installed-test ## which small defects of the code that privacy rests on do tests find? (half an hour)
	@$(INSTALL) --group mutants
	@$(BIN)/python -m tests.mutants $(ARGS)

fence: $(VENV)/.installed-test ## compare releases, guarantees and draws with those of make fence OLD=<commit>, bit by bit
	@$(BIN)/python -m tests.fence.compare "$(OLD)"

lint: $(VENV)/.installed-lint ## ruff and mypy, changing nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/typing/mypy.ini

format: $(VENV)/.installed-lint ## format the code and apply ruff's safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

licences: $(VENV)/.installed-test ## licences of what a user installs; an unknown one, or a new copyleft, is an error
	@$(BIN)/python -m tests.packaging.licences

docs: $(VENV)/.installed-docs ## build the documentation; warnings are errors
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

site-check: docs ## draw the documentation's pages in Chromium, if there is one, and look at them
	$(BIN)/python docs/check_drawn.py docs/_build/html

# Dates in the files are the commit's, and the backend that builds them is pinned, so that
# everybody who builds a commit gets the same bytes.
BUILD = SOURCE_DATE_EPOCH="$$(git log -1 --format=%ct)" $(UV) build --quiet --build-constraints constraints.txt

dist: $(UV) ## wheel and sdist, built twice to the same bytes, each installed into an empty environment and tried there
	rm -rf dist
	@$(BUILD) --out-dir dist
	@mkdir dist/again && tar -xmzf dist/*.tar.gz -C dist/again --strip-components 1
	@umask 077; $(BUILD) --out-dir dist/again/dist dist/again
	@for package in dist/*.whl dist/*.tar.gz; do \
		cmp "$$package" "dist/again/$$package" || exit 1; \
	done
	@rm -rf dist/again
	@for package in dist/*.whl dist/*.tar.gz; do \
		$(UV) venv --quiet --clear --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" .venv-dist && \
		$(UV) pip install --quiet --python .venv-dist --constraints constraints.txt "$$package" && \
		(cd / && $(CURDIR)/.venv-dist/bin/python -I $(CURDIR)/tests/installed_package.py) || exit 1; \
	done
	@rm -rf .venv-dist

bench: $(VENV)/.installed-test $(VENV)/.installed-bench ## run the benchmarks (some: BENCHMARKS="weibull_error"; do they run: QUICK=1)
	@$(BIN)/python -m benchmarks $(BENCHMARKS) $(if $(QUICK),--quick) $(ARGS)

constraints: $(UV) ## pin the dependencies anew (newest versions: make constraints ARGS=--upgrade)
	$(UV) pip compile --quiet --all-extras --group dev --universal --python-version 3.11 \
		--no-header --no-emit-index-url --no-annotate pyproject.toml -o constraints.txt $(ARGS)

clean: ## remove what builds, tests and tools leave behind
	rm -rf build dist docs/_build docs/api/generated docs/gallery \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis \
		.benchmarks .coverage htmlcov *.egg-info .fence
	find skdpsurv tests benchmarks docs -type d -name __pycache__ -exec rm -rf {} + 2>/dev/null || true

distclean: clean ## remove the environments too
	rm -rf $(VENV) .venv-* .uv benchmarks/output

# --- The environment. A stamp records an installation; it is redone when the pins change. ---

CHECK_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	echo "skdpsurv needs Python 3.11 or newer. Say which one: make PYTHON=python3.12 ..." >&2; exit 1; }

$(UV):
	@$(CHECK_PYTHON)
	@echo "installing uv into .uv"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --target .uv 'uv>=0.8'

$(VENV)/pyvenv.cfg: | $(UV)
	@$(CHECK_PYTHON)
	@$(UV) venv --quiet --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV)

PINS := pyproject.toml constraints.txt

$(VENV)/.installed-demo: $(PINS) | $(VENV)/pyvenv.cfg
	@echo "installing skdpsurv into $(VENV)"
	@$(INSTALL) --editable '.[reference,plot]'
	@touch $@

$(VENV)/.installed-test: $(PINS) | $(VENV)/pyvenv.cfg
	@echo "installing skdpsurv and its tests' dependencies into $(VENV)"
	@$(INSTALL) --editable '.[all]' --group test
	@touch $@

# What benchmarks need beyond that; rivals with other needs get an environment .venv-NAME each.
$(VENV)/.installed-bench: $(PINS) | $(VENV)/pyvenv.cfg
	@echo "installing what benchmarks need into $(VENV)"
	@$(INSTALL) --group bench
	@touch $@

# The lower bounds of pyproject.toml, and the newest of what these need in turn. Say where Python 3.11
# is, if it is not on the path: make test-lowest LOWEST_PYTHON=/opt/python3.11/bin/python
LOWEST_PYTHON ?= 3.11

$(LOWEST)/pyvenv.cfg: | $(UV)
	@$(UV) venv --quiet --python $(LOWEST_PYTHON) $(LOWEST)

$(LOWEST)/.installed-test: pyproject.toml | $(LOWEST)/pyvenv.cfg
	@echo "installing skdpsurv and its oldest dependencies into $(LOWEST)"
	@$(UV) pip install --quiet --python $(LOWEST) --resolution lowest-direct --upgrade \
		--editable '.[all]' --group test
	@touch $@

# The newest of everything. An override installs pandas 3 beside lifelines, which asks for less.
$(NEWEST)/pyvenv.cfg: | $(UV)
	@$(CHECK_PYTHON)
	@$(UV) venv --quiet --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(NEWEST)

$(NEWEST)/.installed-test: pyproject.toml | $(NEWEST)/pyvenv.cfg
	@echo "installing skdpsurv and its newest dependencies into $(NEWEST)"
	@echo "pandas>=3" | $(UV) pip install --quiet --python $(NEWEST) --upgrade --overrides - \
		--editable '.[all]' --group test
	@touch $@

# All extras, so that mypy sees the same packages in every environment.
$(VENV)/.installed-lint: $(PINS) | $(VENV)/pyvenv.cfg
	@echo "installing skdpsurv and its linters into $(VENV)"
	@$(INSTALL) --editable '.[all]' --group lint
	@touch $@

$(VENV)/.installed-docs: $(PINS) | $(VENV)/pyvenv.cfg
	@echo "installing skdpsurv and its documentation's dependencies into $(VENV)"
	@$(INSTALL) --editable '.[all]' --group docs
	@touch $@

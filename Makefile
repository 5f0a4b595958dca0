# Everything that people run. Each target sets up what it needs; `make` alone tells what there is.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
SCALE ?= 1
NAMES ?=
SEED ?= 1
WORKERS ?= auto
TESTS ?=
WORK ?= work
NAME ?=
# Python keeps what it compiles, also where the environment forbids it: each process of `make run` starts seconds sooner.
export PYTHONDONTWRITEBYTECODE :=
# What the caller's shell says for other Python projects.
unexport PYTHONPATH PYTHONHOME PYTHONOPTIMIZE PYTHONWARNINGS PIP_USER PIP_TARGET PIP_PREFIX PIP_ROOT PIP_NO_BINARY PIP_DRY_RUN
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

.DEFAULT_GOAL := help
.PHONY: help setup run test check format lab bench fuzz mutants reference audit-deps licences picture migration lock clean moved

help: ## Show these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(VENV)/.developed ## Create the environment in .venv from the hash-locked files

UV := $(RUN)/python .make/uv.py
INSTALL := $(UV) pip install --quiet --python $(RUN)/python

# A lock holds all that is installed by it, each with its hashes, so nothing is resolved; $(2) is installed beside it.
define install
	$(INSTALL) --no-deps --no-build-isolation --verify-hashes -r $(1) $(2)
	$(RUN)/python .make/wheels.py $(1)
	$(RUN)/python .make/imports.py $(1)
endef

# An environment names its folder in many files: in a clone that was moved or copied it is made anew.
MOVED := $(shell test ! -s $(VENV)/.ready || grep -qxF "$$(pwd -P)" $(VENV)/.ready || echo --clear)

# Two at once in one folder would spoil each other's environment: the second waits, and finds it made.
ALONE := import fcntl, os, sys; me = open("Makefile"); fcntl.flock(me, fcntl.LOCK_EX); \
	os.set_inheritable(me.fileno(), True); os.execvp(sys.argv[1], sys.argv[1:])

$(VENV)/.ready: requirements.lock requirements-setup.lock pyproject.toml $(wildcard .make/*.py) $(if $(MOVED),moved)
ifndef LOCKED
	@$(PYTHON) -c '$(ALONE)' $(MAKE) --no-print-directory LOCKED=1 $@
else
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(MOVED) $(VENV)
	$(RUN)/python -m pip install --quiet --disable-pip-version-check --no-user --no-compile --require-hashes -r requirements-setup.lock
	$(call install,requirements.lock,--editable .)
	pwd -P > $@
endif

$(VENV)/.developed: $(VENV)/.ready requirements-dev.lock
ifndef LOCKED
	@$(PYTHON) -c '$(ALONE)' $(MAKE) --no-print-directory LOCKED=1 $@
else
	$(call install,requirements-dev.lock)
	touch $@
endif

run: $(VENV)/.ready ## The main job, end to end, on the embedded services and the sample data
	$(RUN)/python -m toolkit demo --out reports

test: setup ## All tests, in another order each time (TESTS=tests/unit)
	@# Tests start hundreds of processes: none of them shall compile what it imports, PYTHONDONTWRITEBYTECODE or not.
	$(RUN)/python -m compileall -q -j 0 -x '/tests?/|/(mypy|mypyc|pip|setuptools)/' $(VENV)/lib toolkit
	@# Each worker takes a run of neighbouring tests, so what a module of tests starts is started once.
	$(RUN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)

check: setup ## Format, lint, types, imports, dependencies, notebooks stripped
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy
	$(RUN)/lint-imports
	$(RUN)/deptry toolkit notebooks
	$(RUN)/nbstripout --verify notebooks/*.ipynb

format: setup ## Rewrite the files as `make check` wants them
	$(RUN)/ruff format .
	$(RUN)/ruff check --fix .
	$(RUN)/nbstripout notebooks/*.ipynb

lab: $(VENV)/.ready ## JupyterLab on the folder WORK with copies of the notebooks, on this machine only
	mkdir -p -m 700 "$(WORK)"
	test ! -L "$(WORK)/notebooks" || rm "$(WORK)/notebooks"
	$(RUN)/toolkit notebooks copy "$(WORK)/notebooks" >/dev/null
	cd "$(WORK)" && TOOLKIT_WORK="$$PWD" \
		JUPYTER_CONFIG_PATH="$(CURDIR)/.make/jupyter$${JUPYTER_CONFIG_PATH:+:$$JUPYTER_CONFIG_PATH}" \
		"$(CURDIR)/$(RUN)/jupyter" lab --ip=127.0.0.1 --ServerApp.root_dir="$$PWD" $(AS_ROOT) $(LAB)

bench: setup ## Speed and memory, beside a floor or a peer in the same run (SCALE=0.1 NAMES=http)
	$(RUN)/python -m tests.benchmarks --scale $(SCALE) $(NAMES)

fuzz: setup ## Broken requests and fifty kills by chance, the same for each SEED (SEED=1)
	$(RUN)/python -m pytest --hypothesis-profile=fuzz --hypothesis-seed=$(SEED) -k by_chance tests/contract tests/integration/test_kills.py

REFERENCE := import pathlib, pdoc, toolkit; \
	vars(toolkit).update({name: getattr(toolkit, name) for name in toolkit.__all__}); \
	pdoc.render.configure(docformat="google"); \
	pdoc.pdoc(*"toolkit toolkit.errors toolkit.audit.sale_case".split(), *map("toolkit.kit.{}".format, "services desk privacy".split()), \
	output_directory=pathlib.Path("reference"))

reference: setup ## The reference of the package in reference/, from its docstrings
	$(RUN)/python -W error -c '$(REFERENCE)'

audit-deps: setup ## Known vulnerabilities of the locked packages, by pip-audit (asks the package index)
	$(UV) tool run pip-audit --disable-pip --require-hashes --requirement requirements.lock --requirement requirements-dev.lock

licences: setup ## The licence of every installed package
	$(RUN)/python .make/licences.py

picture: run ## Renew the report in reports/sample and its picture (needs chromium)
	mkdir -p reports/sample
	@# Other names than a report's, which `toolkit verify reports` would look for in a manifest.
	cp reports/missing-evidence.html reports/sample/report.html
	cp reports/missing-evidence.csv reports/sample/report.csv
	chromium --headless --disable-gpu --hide-scrollbars --force-device-scale-factor=1 --window-size=1280,1180 --virtual-time-budget=5000 \
		$(if $(AS_ROOT),--no-sandbox) --screenshot=reports/sample/report.png \
		"file://$(CURDIR)/reports/sample/report.html"

NEXT_REVISION := from toolkit.database.schema import newest_revision; print(f"{int(newest_revision()) + 1:04}")

migration: setup ## A new module of the schema's history, with the next number (NAME=what_it_changes)
	@test -n "$(NAME)" || { echo "make migration NAME=what_it_changes" >&2; exit 2; }
	$(RUN)/alembic revision --rev-id "$$($(RUN)/python -c '$(NEXT_REVISION)')" --message "$(NAME)"

LOCK := $(UV) pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url

lock: setup ## Renew the locks: of the set-up, of the toolkit, of its development (UPGRADE=--upgrade)
	printf 'setuptools\nuv\n' | $(LOCK) $(UPGRADE) --no-annotate - --output-file requirements-setup.lock
	$(LOCK) $(UPGRADE) --extra all pyproject.toml --output-file requirements.lock
	$(LOCK) $(UPGRADE) --extra dev pyproject.toml --output-file requirements-dev.lock --constraint requirements.lock \
		--no-emit-package setuptools $$(sed -nE 's/^([a-z0-9-]+)==.*/--no-emit-package \1/p' requirements.lock)

mutants: setup ## Plant known faults one at a time in a copy, and name those that no test notices (NAMES=jobs)
	$(RUN)/python -m tests.mutants $(NAMES)

clean: ## Remove the environment and the caches; data under TOOLKIT_HOME stays
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build *.egg-info

# Needs Python 3.11 or newer, git and make; everything else goes into .venv, at the versions of constraints.txt.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILT_FROM := build_kernels.py hatch_build.py $(wildcard src/bellnet/kernels/*.[ch] docs/explorer/*.* docs/explorer/js/*.js)
EXTRAS := compare draw estimator experiments graphs pyg ray search testing test lint docs dist dev

# uv does not read pip's settings. Hand them on, so that both installers look in the same places (and take the same
# build of torch). The links named in pip's configuration file are read where uv is called.
comma := ,
space := $(subst ,, )
ifneq ($(strip $(PIP_FIND_LINKS)),)
UV_FIND_LINKS ?= $(subst $(space),$(comma),$(strip $(PIP_FIND_LINKS)))
export UV_FIND_LINKS
endif
ifneq ($(strip $(PIP_INDEX_URL)),)
UV_INDEX_URL ?= $(PIP_INDEX_URL)
export UV_INDEX_URL
endif
ifneq ($(strip $(PIP_CERT)),)
SSL_CERT_FILE ?= $(PIP_CERT)
export SSL_CERT_FILE
endif

# Tests start many processes, and most of what each costs is importing torch. uv leaves it uncompiled; a process that
# may write down what it compiles spares all later ones two thirds of that.
BYTECODE := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX="$(CURDIR)/$(VENV)/bytecode"

# $(call install,PYTHON,WHAT) installs into the environment of a Python, with uv if it is there.
define install
links=$$($(BIN)/python -m pip config get global.find-links 2>/dev/null | xargs | tr ' ' ','); \
export UV_FIND_LINKS="$${UV_FIND_LINKS-$$links}"; \
if [ -x $(BIN)/uv ] && $(BIN)/uv pip install --python $(1) $(2) -c constraints.txt; then :; \
else \
    echo "uv is not available or failed; installing with pip instead"; \
    $(1) -m pip install $(2) -c constraints.txt; \
fi
endef

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help setup demo test sanitize lint typecheck format bench docs dist clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.with-dev  ## make .venv with everything a developer needs

demo: $(VENV)/.with-experiments $(VENV)/.with-estimator  ## run the demonstration: about two minutes, and one page
	OMP_NUM_THREADS=1 $(BIN)/python examples/demo.py

test: $(VENV)/.with-test  ## run the tests (make test ARGS="-k padding")
	OMP_NUM_THREADS=1 $(BYTECODE) $(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

sanitize: $(VENV)/.with-test  ## run random programs on kernels with AddressSanitizer and UBSan (make sanitize ARGS="--seconds 600")
	$(BIN)/python build_kernels.py sanitize build/sanitized
	OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive BELLNET_KERNELS=build/sanitized ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$($${CC:-cc} -print-file-name=libasan.so)" $(BIN)/python -m tests.kernels.fuzz $(ARGS)

lint: $(VENV)/.with-dev  ## check style, formatting and types, and that the kernels compile without warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python build_kernels.py warnings

typecheck: $(VENV)/.with-dev  ## check types only
	$(BIN)/mypy

format: $(VENV)/.with-dev  ## fix what can be fixed: import order, formatting
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(VENV)/.with-draw $(VENV)/.with-estimator $(VENV)/.with-pyg  ## run the benchmarks, on two threads (make bench ARGS=...)
	OMP_NUM_THREADS=2 MKL_NUM_THREADS=2 $(BIN)/python -m benchmarks $(ARGS)

docs: $(VENV)/.with-docs  ## build the documentation into site/
	$(BIN)/sphinx-build -E -W --keep-going -q -d build/doctrees docs site
	$(BIN)/python docs/check_links.py site

dist: $(VENV)/.with-dist  ## build wheel and sdist into dist/, and try the wheel in an environment with torch alone
	rm -rf dist build/clean
	$(BIN)/python -m build --no-isolation
	@# Package indices accept manylinux tags only. Without a C compiler there is nothing to repair: the tag is "any".
	for wheel in dist/*-linux_*.whl; do \
	    [ -e "$$wheel" ] || continue; \
	    PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist "$$wheel" || exit 1; \
	    rm "$$wheel"; \
	done
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv build/clean
	@$(call install,build/clean/bin/python,dist/*.whl)
	cd build && clean/bin/python -c 'import bellnet as bn; print(bn.EquivariantLinear("n n -> n n", 16, 32))'
	cd build && clean/bin/bellnet plan "n n -> n n"
	cd build && clean/bin/bellnet explore --out clean/explorer.html

clean:  ## remove .venv and everything that was built
	rm -rf $(VENV) build dist site docs/auto_gallery .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf src/bellnet/kernels/built src/bellnet/explorer.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per extra, so that `make demo` does not wait for the linters; dev contains all others and stamps for them.
$(VENV)/.with-%: $(VENV)/.made pyproject.toml constraints.txt $(BUILT_FROM)
	@$(call install,$(BIN)/python,-e ".[$*]")
	@touch $(if $(filter dev,$*),$(EXTRAS:%=$(VENV)/.with-%),$@)

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "bellnet needs Python 3.11 or newer, but PYTHON=$(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
	    echo "Name another one: make PYTHON=python3.12 ..."; \
	    exit 1; }
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet uv -c constraints.txt || true
	@touch $@

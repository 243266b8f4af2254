"""The paper's tables: its own numbers as data, its experiments as plans of runs, and ours beside them."""

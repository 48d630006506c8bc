"""The command line: `bellnet plan`, `basis`, `explore`, `fit`, `evaluate` and `predict`."""

"""The paper's experiments and others, run from a clone of the repository: `python -m experiments --help`.

A `Cell` says what to run for Tables 1 and 2, a `GraphCell` for Table 3, a `MethodCell` for the other methods there;
`run_cells` runs many and appends what they measure to `records.jsonl`; `write_report` draws tables and
pictures from that file. `pip install -e ".[experiments]"` brings what they need.
"""

"""The paper's experiments: cells of its tables, run, recorded and reported.

A `Cell` says what to run for Tables 1 and 2, a `GraphCell` for Table 3, a `MethodCell` for the methods beside
the paper's network there; `run_cells` runs many and appends what they measure to `records.jsonl`; `write_report` draws
tables and pictures from that file.
`pip install 'bellnet[experiments]'` brings what they need.
"""

from experiments.beside import beside_table
from experiments.cell import Runnable
from experiments.config import Cell, cells_of_table1, cells_of_table2, quick
from experiments.counting import QUICK as QUICK_COUNTING
from experiments.counting import Counting, counting_net, counting_table, run_counting
from experiments.expressive import run_expressive
from experiments.graph_cells import GraphCell, cells_of_table3, quick_graphs
from experiments.merge import merge_records
from experiments.method_cells import MethodCell, cells_of_methods, quick_method
from experiments.page import Page
from experiments.records import Records
from experiments.report import (
    check_report,
    pictures_of,
    print_table,
    print_tables,
    tables_of,
    write_report,
)
from experiments.run import check_extra, run_cells
from experiments.search import SearchPlan, run_search, search_table
from experiments.tables import Table
from experiments.team import is_first

__all__ = [
    "QUICK_COUNTING",
    "Cell",
    "Counting",
    "GraphCell",
    "MethodCell",
    "Page",
    "Records",
    "Runnable",
    "SearchPlan",
    "Table",
    "beside_table",
    "cells_of_methods",
    "cells_of_table1",
    "cells_of_table2",
    "cells_of_table3",
    "check_extra",
    "check_report",
    "counting_net",
    "counting_table",
    "is_first",
    "merge_records",
    "pictures_of",
    "print_table",
    "print_tables",
    "quick",
    "quick_graphs",
    "quick_method",
    "run_cells",
    "run_counting",
    "run_expressive",
    "run_search",
    "search_table",
    "tables_of",
    "write_report",
]

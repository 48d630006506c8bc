"""What networks can tell apart: pairs of graphs, networks of whole numbers that are asked, theory beside them.

`suite` has the graphs and what came of asking, `skip_links` trains networks, `run_expressive` does all of it and writes
the report.
"""

from experiments.expressive.run import run_expressive

__all__ = ["run_expressive"]

"""What networks distinguish: pairs of graphs, networks of integers, theory beside them, and the report."""

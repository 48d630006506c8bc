"""Data that only experiments use: families of graphs, patterns, k-FWL, the paper's synthetic tasks, graph6 and BREC."""

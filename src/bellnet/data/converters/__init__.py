"""Converters between `Graph` and graphs of other libraries: networkx, PyTorch Geometric, scipy, arrays."""

"""Graphs and labels in, a classifier out: scikit-learn estimators over lists of graphs.

`pip install 'bellnet[estimator]'` brings what they need. This package is imported by name, `import bellnet` alone does
not need scikit-learn.
"""

from bellnet._utils.optional import require

for _package in ("sklearn", "safetensors", "rich"):
    require(_package, extra="estimator", call="bellnet.estimator")

from bellnet.estimator.classifier import GraphClassifier  # noqa: E402
from bellnet.estimator.regressor import GraphRegressor  # noqa: E402
from bellnet.estimator.serialization import load  # noqa: E402

__all__ = ["GraphClassifier", "GraphRegressor", "load"]

"""The estimators in scikit-learn's tools with several processes."""

import os
import subprocess
import sys
from pathlib import Path
from secrets import token_hex

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.model_selection import cross_val_score

from tests.estimator.small import classifier, regressor, stars_and_paths

ROOT = Path(__file__).parents[2]
OPTIONS = {"channels": (8, 8), "batch_size": 5, "max_epochs": 6}


@pytest.mark.slow
@pytest.mark.parametrize("make", [classifier, regressor])
def test_parallel_cross_validation_gives_the_same_scores(make):
    graphs, labels = stars_and_paths()
    targets = labels if make is classifier else np.array([graph.n for graph in graphs], dtype=float)
    scoring = "neg_log_loss" if make is classifier else "r2"  # accuracies could be the same by chance
    in_turn = cross_val_score(make(**OPTIONS), graphs, targets, cv=3, scoring=scoring)
    with parallel_config(backend="loky", n_jobs=2, inner_max_num_threads=1):
        together = cross_val_score(make(**OPTIONS), graphs, targets, cv=3, scoring=scoring)
    assert np.array_equal(together, in_turn)
    assert len(set(in_turn.tolist())) > 1


ON_RAY = """
import numpy as np
import ray
from joblib import parallel_config
from ray.util.joblib import register_ray
from sklearn.model_selection import cross_val_score
from tests.estimator.small import classifier, stars_and_paths

ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
register_ray()
graphs, labels = stars_and_paths()
model = classifier(channels=(8, 8), batch_size=5, max_epochs=6)
with parallel_config(backend="ray", n_jobs=2):
    together = cross_val_score(model, graphs, labels, cv=3, scoring="neg_log_loss")
in_turn = cross_val_score(model, graphs, labels, cv=3, scoring="neg_log_loss")
assert np.array_equal(together, in_turn) and len(set(in_turn)) > 1, (together, in_turn)
print("the same")
"""


@pytest.mark.slow
def test_the_backend_of_ray_gives_the_same_scores():
    alone = {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_TOKEN": token_hex(32),
        "RAY_AUTH_MODE": "token",
    }
    environment = {**os.environ, **alone, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", ON_RAY], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "the same"  # Ray says there, too, if it had to begin a task again

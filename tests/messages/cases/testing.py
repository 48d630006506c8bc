"""Failures of the checks in `bellnet.testing`, and mistakes in calling them; measured numbers are shown as 0.0."""

import re

import torch
from torch import nn

from bellnet import ChannelDropout, EquivariantLinear, Padded, Spec, testing
from bellnet.errors import EquivarianceError
from tests.testing import faults


def _masked(check):
    """A check whose failures show 0.0 for measured numbers, and no position."""

    def run(module, spec, **options):
        try:
            check(module, spec, **options)
        except EquivarianceError as error:
            text = re.sub(r"-?\d+\.\d+(e[+-]?\d+)?|\d+e-\d+", "0.0", str(error))
            raise EquivarianceError(re.sub(r"(where .*\[)\d+(, \d+)*", r"\1...", text)).with_traceback(
                error.__traceback__
            ) from None

    return run


_equivariance = _masked(testing.assert_equivariant)
_invariance = _masked(testing.assert_invariant)
_padding = _masked(testing.assert_padding_invariant)


def _permuted(shape, permutation):
    return testing.permute_nodes(torch.zeros(3, 3, 1), shape, permutation)


def _if_padded(change):
    """A module that changes padded inputs only."""
    return lambda x: change(x) if isinstance(x, Padded) else x


def _first_axis_mean(x):
    return x.mean(1)


CASES = {
    # failures
    "a module that adds an entry of the first node": lambda: _equivariance(
        faults.LooksAtNodeZero(), "n n -> n", seed=3
    ),
    "a function that returns its first node": lambda: _invariance(lambda x: x[..., 0, :], "n", in_channels=1),
    "dropout in training mode": lambda: _equivariance(
        nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 2)), "n -> n", in_channels=2
    ),
    "channel dropout of each entry in training mode": lambda: _equivariance(
        nn.Sequential(ChannelDropout(0.5, ""), nn.Linear(2, 2)), "n -> n", in_channels=2
    ),
    "a mean over padding": lambda: _padding(faults.MeanCountsPadding(), "n ->", seed=2),
    "values in the padding of the output": lambda: _padding(faults.LeavesGarbageOutside(), "n n -> n"),
    "a gradient that is twice as large": lambda: _padding(faults.WrongGradient(), "n n -> n"),
    "a gradient of a parameter from one graph": lambda: _padding(faults.WrongGradientOfParameters(), "n n -> n"),
    "a gradient in the padding": lambda: _padding(faults.GradientLeaksOut(), "n n -> n"),
    # outputs
    "an output of another shape": lambda: _equivariance(_first_axis_mean, "n n -> n n", in_channels=3),
    "an output without channels": lambda: _invariance(lambda x: x.sum(), "n", in_channels=3, batch=()),
    "one tensor for two": lambda: _padding(lambda x: x[0], "n n, n -> n n, n", in_channels=1),
    "a tuple for an output": lambda: _equivariance(lambda x: (x, x), "n -> n", in_channels=3),
    "a list for a tensor": lambda: _padding(lambda x: [x], "n -> n", in_channels=1),
    "an integer for a Padded": lambda: _padding(_if_padded(lambda x: 1), "n -> n", in_channels=1),
    "a padded output of another shape": lambda: _padding(EquivariantLinear("n n -> n", 1, 2), "n n -> n n"),
    "a padded output that is too short": lambda: _padding(
        _if_padded(lambda x: x.values[:, :2]), "n -> n", in_channels=1
    ),
    "a padded output with other sizes": lambda: _padding(faults.ForgetsSizes(), "n n -> n"),
    # arguments
    "a module without in_channels": lambda: _equivariance(nn.ReLU(), "n -> n"),
    "a function without in_channels": lambda: _padding(len, "n -> n"),
    "a size of one of two node sets": lambda: _equivariance(len, "u i -> u", in_channels=1, sizes={"u": 3}),
    "no sizes": lambda: _equivariance(len, "u i -> u", in_channels=1, sizes={}),
    "no trials": lambda: _equivariance(len, "n -> n", in_channels=1, trials=0),
    "an invariant module with a target": lambda: _invariance(len, "n n -> n", in_channels=1),
    "an invariant module with a target in a Spec": lambda: _invariance(len, Spec(("n", "n"), ("n",)), in_channels=1),
    "padded sizes of another node set": lambda: _padding(len, "n ->", in_channels=1, sizes={"u": [1]}),
    "padded sizes of different numbers": lambda: _padding(len, "u i ->", in_channels=1, sizes={"u": [1], "i": [1, 2]}),
    "a padded spec without nodes": lambda: _padding(len, "->", in_channels=1),
    "a permutation that is too short": lambda: _permuted("n n", [0, 1]),
    "a permutation with a node twice": lambda: _permuted("n n", [0, 1, 1]),
    "a permutation of two node sets": lambda: _permuted("u i", [0, 1, 2]),
    "a permutation of too few axes": lambda: _permuted("n n n", [0, 1, 2]),
}

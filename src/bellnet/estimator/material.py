"""What a fit learns from: graphs, the labels that are known of them, how much each counts, and which are held out."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bellnet.data import Graph
from bellnet.estimator.validation import Validation


@dataclass(frozen=True)
class Material:
    """Graphs and labels; targets, weights and what is held out are of the known labels alone.

    Attributes:
        graphs: The graphs.
        counts: How many labels each of them has.
        known: Which of these labels are known.
        targets: What the network has to say for each label that is known.
        weights: How much that counts.
        held: Whether it is held out.
    """

    graphs: list[Graph]
    counts: NDArray[np.int64]
    known: NDArray[np.bool_]
    targets: Tensor
    weights: NDArray[np.float64]
    held: NDArray[np.bool_]

    def beside(self, asked: Validation, targets: Tensor, weights: NDArray[np.float64]) -> "Material":
        """These and what was given to validate, which is held out; targets and weights are those of the latter."""
        return Material(
            graphs=[*self.graphs, *asked.graphs],
            counts=np.concatenate([self.counts, asked.counts]),
            known=np.concatenate([self.known, asked.known]),
            targets=torch.cat([self.targets, targets]),
            weights=np.concatenate([self.weights, weights]),
            held=np.concatenate([self.held, np.ones(len(targets), dtype=np.bool_)]),
        )

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the labels of each graph begin among all, and where the last end."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    def among_all(self, values: Tensor) -> Tensor:
        """Values of the labels that are known at their places among all labels, zero elsewhere."""
        found = values.new_zeros(len(self.known), *values.shape[1:])
        found[torch.from_numpy(self.known)] = values
        return found

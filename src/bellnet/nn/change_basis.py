"""Coefficients in one basis, converted to the other."""

from typing import Any, TypeVar

from torch import Tensor

from bellnet.backends import change_of_basis
from bellnet.errors import ShapeError, TensorError, type_name
from bellnet.nn.inputs import check_choice
from bellnet.plan import MOST_MAPS, Plan, diagram_to_orbit, orbit_to_diagram, plan
from bellnet.spec import Spec, parse_spec

Coefficients = TypeVar("Coefficients", Tensor, tuple[Tensor, ...])


def change_basis(
    spec: str | Spec,
    coefficients: Coefficients,
    *,
    to: str,
    symmetric: bool = False,
    hollow: bool = False,
    max_maps: int = MOST_MAPS,
) -> Coefficients:
    """The coefficients of the same map in the other basis.

    A diagram requires at least its equalities, an orbit exactly its equalities. The identity holds for sums, so for
    layers with `normalize="sum"`. For a bias, take the spec without its source: "-> n n".

    Args:
        spec: The spec of the layer.
        coefficients: (n_maps, ...), for instance the weight of a layer. Between several tensors a tuple, with the
            weight of each pair in the order of the layer: weight_0_to_0, weight_0_to_1 and so on; then a tuple is
            returned.
        to: The basis to change to, "orbit" or "diagram", from the other one.
        symmetric: As in the layer.
        hollow: As in the layer.
        max_maps: As in the layer.

    >>> import torch
    >>> total = torch.tensor([0.0, 1.0])  # "n n ->": the sum of the diagonal, the sum of everything
    >>> change_basis("n n ->", total, to="orbit")  # the factors of both orbits: the diagonal, the off-diagonal
    tensor([1., 1.])
    """
    spec = parse_spec(spec)
    call = f'change_basis("{spec}")'
    check_choice(call, "to", to, ("orbit", "diagram"))
    layer_plan = plan(spec, symmetric=symmetric, hollow=hollow, max_maps=max_maps)
    pairs = [layer_plan.pair(pair.source, pair.target) for pair in layer_plan.pairs]
    several: Any = coefficients
    if len(pairs) == 1:
        return _converted(call, "coefficients", several, pairs[0], to)  # type: ignore[no-any-return]
    if not isinstance(several, tuple | list) or len(several) != len(pairs):
        got = len(several) if isinstance(several, tuple | list) else type_name(several)
        raise TensorError(
            f"{call}: coefficients must be a tuple with one tensor for each of {len(pairs)} pairs of a source and a "
            f"target, got {got}."
        )
    numbered = enumerate(zip(several, pairs, strict=True))
    converted: Any = tuple(_converted(call, f"coefficients[{n}]", one, pair, to) for n, (one, pair) in numbered)
    return converted  # type: ignore[no-any-return]


def _converted(call: str, name: str, coefficients: object, pair: Plan, to: str) -> Any:
    """The coefficients of one source and one target in the basis `to`."""
    if not isinstance(coefficients, Tensor):
        raise TensorError(f"{call}: {name} must be a tensor, not {type(coefficients).__name__}.")
    if coefficients.ndim == 0 or coefficients.shape[0] != pair.n_maps:
        raise ShapeError(
            f"{call}: {name} must have {pair.n_maps} entries on their first axis, one for each map, but their shape is "
            f"{tuple(coefficients.shape)}."
        )
    entries = diagram_to_orbit(pair) if to == "orbit" else orbit_to_diagram(pair)
    return change_of_basis((to, pair), entries, coefficients)

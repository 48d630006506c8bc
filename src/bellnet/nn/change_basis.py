"""Coefficients in one basis, rewritten for the other."""

from collections.abc import Sequence
from typing import overload

from torch import Tensor

from bellnet.backends import change_of_basis
from bellnet.errors import ShapeError, TensorError, type_name
from bellnet.nn.arguments import check_choice
from bellnet.plan import MOST_MAPS, Plan, diagram_to_orbit, orbit_to_diagram, plan
from bellnet.spec import Spec, parse_spec


@overload
def change_basis(
    spec: str | Spec,
    coefficients: Tensor,
    *,
    to: str,
    symmetric: bool = False,
    hollow: bool = False,
    max_maps: int = MOST_MAPS,
) -> Tensor: ...
@overload
def change_basis(
    spec: str | Spec,
    coefficients: Sequence[Tensor],
    *,
    to: str,
    symmetric: bool = False,
    hollow: bool = False,
    max_maps: int = MOST_MAPS,
) -> tuple[Tensor, ...]: ...
def change_basis(
    spec: str | Spec,
    coefficients: Tensor | Sequence[Tensor],
    *,
    to: str,
    symmetric: bool = False,
    hollow: bool = False,
    max_maps: int = MOST_MAPS,
) -> Tensor | tuple[Tensor, ...]:
    """Coefficients of the same map in the other basis.

    A diagram asks for at least its equalities, an orbit for exactly its equalities. The identity holds for sums, so
    for layers with `normalize="sum"`. For a bias, take the spec without its source: "-> n n".

    Args:
        spec: The spec of the layer.
        coefficients: (n_maps, ...), for instance the weight of a layer. Between several tensors a tuple, with the
            weight of each pair in the order of the layer: weight_0_to_0, weight_0_to_1 and so on; then a tuple comes
            back.
        to: The basis to change to, "orbit" or "diagram"; the coefficients are for the other one.
        symmetric: As in the layer.
        hollow: As in the layer.
        max_maps: As in the layer.

    >>> import torch
    >>> total = torch.tensor([0.0, 1.0])  # "n n ->": the sum of the diagonal, the sum of everything
    >>> change_basis("n n ->", total, to="orbit")  # what each orbit counts: the diagonal, the off-diagonal
    tensor([1., 1.])
    """
    spec = parse_spec(spec)
    call = f'change_basis("{spec}")'
    check_choice(call, "to", to, ("orbit", "diagram"))
    the_plan = plan(spec, symmetric=symmetric, hollow=hollow, max_maps=max_maps)
    if len(the_plan.pairs) == 1:
        return _changed(call, "coefficients", coefficients, the_plan.pair(0, 0), to)
    if not isinstance(coefficients, tuple | list) or len(coefficients) != len(the_plan.pairs):
        came = (
            f"{len(coefficients)} came" if isinstance(coefficients, tuple | list) else f"not {type_name(coefficients)}"
        )
        raise TensorError(
            f"{call}: coefficients must be a tuple with one tensor for each of {len(the_plan.pairs)} pairs of a source "
            f"and a target, {came}."
        )
    return tuple(
        _changed(call, f"coefficients[{number}]", one, the_plan.pair(pair.source, pair.target), to)
        for number, (one, pair) in enumerate(zip(coefficients, the_plan.pairs, strict=True))
    )


def _changed(call: str, name: str, coefficients: object, pair: Plan, to: str) -> Tensor:
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

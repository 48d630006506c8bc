"""Coefficients in one basis, rewritten for the other."""

from torch import Tensor

from bellnet.errors import ShapeError, TensorError
from bellnet.execute import change_of_basis
from bellnet.nn.options import check_choice
from bellnet.plan import MOST_MAPS, diagram_to_orbit, orbit_to_diagram, plan
from bellnet.spec import Spec, parse_spec


def change_basis(
    spec: str | Spec,
    coefficients: Tensor,
    *,
    to: str,
    symmetric: bool = False,
    hollow: bool = False,
    max_maps: int = MOST_MAPS,
) -> Tensor:
    """Coefficients of the same map in the other basis.

    A diagram asks for at least its equalities, an orbit for exactly its equalities. The identity holds for sums, so
    for layers with `normalize="sum"`. For a bias, take the spec without its source: "-> n n".

    Args:
        spec: The spec of the layer.
        coefficients: (n_maps, ...), for instance the weight of a layer.
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
    check_choice(f'change_basis("{spec}")', "to", to, ("orbit", "diagram"))
    the_plan = plan(spec, symmetric=symmetric, hollow=hollow, max_maps=max_maps)
    if not isinstance(coefficients, Tensor):
        raise TensorError(f'change_basis("{spec}"): coefficients must be a tensor, not {type(coefficients).__name__}.')
    if coefficients.ndim == 0 or coefficients.shape[0] != the_plan.n_maps:
        raise ShapeError(
            f'change_basis("{spec}"): coefficients must have {the_plan.n_maps} entries on their first axis, one for '
            f"each map, but their shape is {tuple(coefficients.shape)}."
        )
    entries = diagram_to_orbit(the_plan) if to == "orbit" else orbit_to_diagram(the_plan)
    return change_of_basis((to, the_plan), entries, coefficients)

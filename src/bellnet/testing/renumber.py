"""The check behind `assert_equivariant` and `assert_invariant`: renumber before, renumber after, compare."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from bellnet.errors import OptionError, ShapeError, SizesError, TensorError
from bellnet.testing.compare import Tolerance, difference
from bellnet.testing.relabelling import draw_renumbering, relabel
from bellnet.testing.report import failure, show_renumbering
from bellnet.testing.subject import Subject, name_of


def check_renumbering(
    subject: Subject,
    claim: str,
    *,
    sizes: int | Mapping[str, int] | None,
    batch: tuple[int, ...],
    trials: int,
    tolerance: Tolerance,
) -> None:
    """Raise an error that says `claim` if the subject does not commute with some renumbering."""
    if trials < 1:
        raise OptionError(f"trials must be 1 or more, not {trials!r}: without a trial nothing is checked.")
    spec = subject.spec
    generator = torch.Generator().manual_seed(subject.seed)
    for case in _cases(subject, sizes):
        shape = (*batch, *(case[name] for name in spec.source), subject.in_channels)
        for trial in range(trials):
            x = subject.draw(shape, generator)
            permutations = draw_renumbering(case, trial, generator)
            before = _output(subject, x, case, batch)
            found = _output(subject, relabel(x, spec.source, permutations), case, batch)
            if wrong := difference(found, relabel(before, spec.target, permutations), tolerance):
                facts = [
                    ("largest difference", str(wrong)),
                    ("where", f"output[{', '.join(map(str, wrong.place))}]"),
                    ("renumbered, then called", f"{wrong.found:.6g}"),
                    ("called, then renumbered", f"{wrong.expected:.6g}"),
                    ("sizes", str(case)),
                    ("renumbering", show_renumbering(permutations)),
                    ("to reproduce", f"seed={subject.seed}, trial {trial + 1} of {trials}"),
                ]
                raise failure(subject, claim, facts)


def _cases(subject: Subject, sizes: int | Mapping[str, int] | None) -> list[dict[str, int]]:
    names = subject.spec.node_sets
    if sizes is None:
        different = {name: 5 + number for number, name in enumerate(names)}
        return [different, dict.fromkeys(names, 1)]
    given = dict.fromkeys(names, sizes) if isinstance(sizes, int) else dict(sizes)
    if missing := [name for name in names if name not in given]:
        raise SizesError(
            f'The check of "{subject.spec}" needs the size of every node set; there is none for '
            f"{', '.join(map(repr, missing))}."
        )
    return [{name: given[name] for name in names}]


def _output(subject: Subject, x: Tensor, sizes: dict[str, int], batch: tuple[int, ...]) -> Tensor:
    found: Any = subject(x, {name: sizes[name] for name in subject.spec.target_only})
    if not isinstance(found, Tensor):
        raise TensorError(
            f"{name_of(subject.module)} returned a {type(found).__name__}, but the check compares tensors.\n"
            "Wrap the module in a function that returns the one tensor to check."
        )
    expected = (*batch, *(sizes[name] for name in subject.spec.target))
    if found.ndim != len(expected) + 1 or tuple(found.shape[:-1]) != expected:
        raise ShapeError(
            f'{name_of(subject.module)} does not return what "{subject.spec}" says.\n\n'
            f"    given     {tuple(x.shape)}\n"
            f"    expected  ({', '.join([*map(str, expected), 'channels'])})\n"
            f"    got       {tuple(found.shape)}"
        )
    return found

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
        pairs = zip(spec.sources, subject.channels, strict=True)
        shapes = [(*batch, *(case[name] for name in shape), channels) for shape, channels in pairs]
        for trial in range(trials):
            x = [subject.draw(shape, generator) for shape in shapes]
            permutations = draw_renumbering(case, trial, generator)
            before = _outputs(subject, x, case, batch)
            moved = [relabel(one, shape, permutations) for one, shape in zip(x, spec.sources, strict=True)]
            found = _outputs(subject, moved, case, batch)
            for number, (one, was) in enumerate(zip(found, before, strict=True)):
                wrong = difference(one, relabel(was, spec.targets[number], permutations), tolerance)
                if wrong is None:
                    continue
                place = f"[{number}]" * (len(found) > 1) + f"[{', '.join(map(str, wrong.place))}]"
                facts = [
                    ("largest difference", str(wrong)),
                    ("where", f"output{place}"),
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


def _outputs(subject: Subject, x: list[Tensor], sizes: dict[str, int], batch: tuple[int, ...]) -> list[Tensor]:
    targets = subject.spec.targets
    given = x[0] if len(x) == 1 else tuple(x)
    found: Any = subject(given, {name: sizes[name] for name in subject.spec.target_only})
    several = [found] if len(targets) == 1 else found
    if not isinstance(several, tuple | list) or not all(isinstance(one, Tensor) for one in several):
        wanted = "the one tensor" if len(targets) == 1 else f"a tuple of the {len(targets)} tensors"
        raise TensorError(
            f"{name_of(subject.module)} returned a {type(found).__name__}, but the check compares tensors.\n"
            f"Wrap the module in a function that returns {wanted} to check."
        )
    expected = [(*batch, *(sizes[name] for name in shape)) for shape in targets]
    fits = len(several) == len(targets) and all(
        one.ndim == len(shape) + 1 and tuple(one.shape[:-1]) == shape
        for one, shape in zip(several, expected, strict=True)
    )
    if not fits:
        raise ShapeError(
            f'{name_of(subject.module)} does not return what "{subject.spec}" says.\n\n'
            f"    given     {', '.join(str(tuple(one.shape)) for one in x)}\n"
            f"    expected  {', '.join(_shown(shape) for shape in expected)}\n"
            f"    got       {', '.join(str(tuple(one.shape)) for one in several)}"
        )
    return list(several)


def _shown(shape: tuple[int, ...]) -> str:
    return f"({', '.join([*map(str, shape), 'channels'])})"

"""Cases of unordered slots that are refused: the call, the class of the error, and its words."""

import torch

from bellnet import EquivariantLinear, InvariantPool, Sparse, Spec, plan
from bellnet.errors import SpecError, SupportError
from tests.messages.case import Case

BRACES = 'Braces stand in a map, around slots of one node set that may be exchanged: "{n n} -> {n n}".'


def _caret(name, text, at, width, reason, call=plan):
    words = f"This spec cannot be read: {reason}.\n\n    {text}\n    {' ' * at}{'^' * width}\n{BRACES}"
    return Case(name, SpecError, lambda: call(text), words)


UNORDERED = [
    _caret("braces in a shape", "{n n}", 0, 1, "braces have no place here", InvariantPool),
    _caret("braces inside of braces", "{n {n n}} -> n", 3, 1, "there is a brace inside of braces"),
    _caret("a brace that was not opened", "n n} -> n", 3, 1, "this brace was not opened"),
    _caret("one slot in braces", "n {n} -> n", 2, 3, "fewer than two slots are in braces"),
    _caret("two node sets in braces", "{u i} -> u", 3, 1, "slots of different node sets are in braces"),
    _caret("a brace that is not closed", "{n n -> n", 0, 1, "this brace is not closed"),
    _caret("a comma in braces", "{n, n} -> n", 2, 1, "a comma, which stands between tensors, is inside of braces"),
    Case(
        "groups of slots that are none",
        SpecError,
        lambda: Spec(("n", "n"), ("n",), unordered=((1, 2),)),
        """\
Spec(source, target, unordered): unordered must be groups of neighbouring slots of one tensor and one node set, \
not ((1, 2),).
Give the numbers of slots that may be exchanged, source slots first, for instance unordered=((0, 1),).""",
    ),
    Case(
        "unordered slots of a support that is not symmetric",
        SupportError,
        lambda: EquivariantLinear("{n n} -> {n n}", 1, 1)(Sparse(torch.tensor([[0], [1]]), torch.ones(1, 1), 3)),
        """\
EquivariantLinear("{n n} -> {n n}", 1, 1): slots 0 and 1 of the result are unordered, but (0, 1) is listed without the \
tuple that has them exchanged.
List both, or write no braces around these slots.""",
    ),
]

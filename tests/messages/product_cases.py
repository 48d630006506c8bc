"""Cases of products that are refused: the call, the class of the error, and its words."""

import torch

from bellnet import Padded, Product, Sparse
from bellnet.errors import OptionError, ShapeError, SizesError, SpecError, SupportError, TensorError
from tests.messages.case import Case

EXAMPLE = 'Give one letter for each slot, equal ones for one node: contraction="ab,bc->ac" for "n n, n n -> n n".'


def _product(contraction, spec="n n, n n -> n n"):
    return lambda: Product(spec, contraction)


def _square(*shape, **options):
    return torch.zeros(*(shape or (3, 3, 2)), **options)


def _edges(index, n=3):
    return Sparse(torch.tensor(index), torch.zeros(len(index[0]), 2), n)


PRODUCTS = [
    Case(
        "a product of one tensor",
        SpecError,
        _product(None, "n n -> n n"),
        """\
A product is of two tensors and gives one, but "n n -> n n" has 1 and gives 1.
Write for instance "n n, n n -> n n".""",
    ),
    Case(
        "a product with braces",
        SpecError,
        _product(None, "{n n}, n n -> n n"),
        """\
"{n n}, n n -> n n" has braces, but a product of symmetric tensors is not symmetric.
Write "n n, n n -> n n".""",
    ),
    Case(
        "a product that is not usual",
        SpecError,
        _product(None, "u i, u i -> u u"),
        """\
Which slots of "u i, u i -> u u" hold one node? For these shapes there is no usual product.
Pass contraction="..." with one letter for each slot, equal ones for one node, as in einsum: "ab,bc->ac" for \
"n n, n n -> n n".""",
    ),
    Case(
        "a contraction that is no string",
        SpecError,
        _product(7),
        f"""\
A contraction is a string, but this is 7.
{EXAMPLE}""",
    ),
    Case(
        "a contraction without an arrow",
        SpecError,
        _product("ab,bc"),
        f"""\
This contraction does not fit "n n, n n -> n n": the arrow '->' before the letters of the product is missing.

    ab,bc
         ^^
{EXAMPLE}""",
    ),
    Case(
        "a contraction without a comma",
        SpecError,
        _product("abbc->ac"),
        f"""\
This contraction does not fit "n n, n n -> n n": the comma between the letters of the two factors is missing.

    abbc->ac
        ^
{EXAMPLE}""",
    ),
    Case(
        "a contraction with a number",
        SpecError,
        _product("ab,b1->a1"),
        f"""\
This contraction does not fit "n n, n n -> n n": '1' is not a letter.

    ab,b1->a1
        ^
{EXAMPLE}""",
    ),
    Case(
        "a contraction with too few letters",
        SpecError,
        _product("ab,b->a"),
        f"""\
This contraction does not fit "n n, n n -> n n": y has 2 slots, but 1 letter.

    ab,b->a
       ^
{EXAMPLE}""",
    ),
    Case(
        "a contraction with a diagonal",
        SpecError,
        _product("aa,ab->ab"),
        f"""\
This contraction does not fit "n n, n n -> n n": letter 'a' stands twice in x; diagonals are taken by other layers.

    aa,ab->ab
     ^
{EXAMPLE}""",
    ),
    Case(
        "a letter of two node sets",
        SpecError,
        _product("ab,ac->bc", "u i, i v -> u v"),
        f"""\
This contraction does not fit "u i, i v -> u v": letter 'a' is a node of 'u' in x, but of 'i' in y.

    ab,ac->bc
       ^
{EXAMPLE}""",
    ),
    Case(
        "a letter out of nothing",
        SpecError,
        _product("ab,ab->ac"),
        f"""\
This contraction does not fit "n n, n n -> n n": letter 'c' is in neither factor.

    ab,ab->ac
            ^
{EXAMPLE}""",
    ),
    Case(
        "a letter of one factor alone",
        SpecError,
        _product("ab,cd->ac"),
        f"""\
This contraction does not fit "n n, n n -> n n": letter 'b' is in x alone; what only one factor has is summed by other \
layers.

    ab,cd->ac
     ^
{EXAMPLE}""",
    ),
    Case(
        "a product divided by something else",
        OptionError,
        lambda: Product("n n, n n -> n n", normalize="max"),
        """\
Product("n n, n n -> n n"): normalize must be one of 'mean', 'stored', 'root', 'sum', not 'max'.""",
    ),
    Case(
        "factors with other channels",
        ShapeError,
        lambda: Product("n n, n n -> n n")(_square(), _square(3, 3, 5)),
        """\
Product("n n, n n -> n n") pairs channels one to one, but x has 2 and y has 5.
Bring both to one number of channels, by bellnet.Pointwise(torch.nn.Linear(...)) for instance.""",
    ),
    Case(
        "factors on other devices",
        TensorError,
        lambda: Product("n n, n n -> n n")(_square(), _square(device="meta")),
        """\
Product("n n, n n -> n n"): x is on cpu, but y is on meta.
Move one of them: y.to("cpu").""",
    ),
    Case(
        "factors of other types",
        TensorError,
        lambda: Product("n n, n n -> n n")(_square(), _square(dtype=torch.float64)),
        """\
Product("n n, n n -> n n") takes two factors of one floating point type, but x is torch.float32 and y is torch.float64.
Convert them: x.to(torch.float32).""",
    ),
    Case(
        "factors over other nodes",
        ShapeError,
        lambda: Product("n n, n n -> n n")(_square(), _square(4, 4, 2)),
        """\
Product("n n, n n -> n n"): node set 'n' has length 3 in x, but 4 in y.
All tensors must be about the same nodes.""",
    ),
    Case(
        "a padded factor beside a tensor",
        SizesError,
        lambda: Product("n n, n n -> n n")(_square(2, 3, 3, 2), Padded(_square(2, 3, 3, 2), torch.tensor([3, 1]))),
        """\
Product("n n, n n -> n n"): y is a Padded with sizes of node set 'n', but x is a tensor without.
Pass Padded(x, sizes) with the same sizes.""",
    ),
    Case(
        "a product at unknown pairs",
        SupportError,
        lambda: Product("n n, n n -> n n n", "ab,bc->abc")(_edges([[0], [1]]), _edges([[1], [2]])),
        """\
Product("n n, n n -> n n n"): which tuples over "n n n" is a result to list? No input is over these slots.
Pass them in the call: product(x, y, support=...), with a bellnet.Sparse whose tuples are taken and whose values are \
not looked at.""",
    ),
    Case(
        "two factors as one tuple",
        TensorError,
        lambda: Product("n n, n n -> n n")((_square(), _square())),
        """\
Product("n n, n n -> n n") takes its two factors one by one, but a tuple of 2 came.
Leave out its parentheses, product(x, y), or write a star before it, product(*pair).""",
    ),
    Case(
        "two factors as one list, and a support",
        TensorError,
        lambda: Product("n n, n n -> n n")([_square(), _square()], support=_edges([[0], [1]])),
        """\
Product("n n, n n -> n n") takes its two factors one by one, but a list of 2 came.
Leave out its parentheses, product(x, y), or write a star before it, product(*pair).""",
    ),
    Case(
        "one factor",
        TensorError,
        lambda: Product("n n, n n -> n n")(_square()),
        """\
Product("n n, n n -> n n") takes its two factors one by one, but one thing came.
Pass both of them: product(x, y), and product(x, x) for a square.""",
    ),
    Case(
        "nothing for a factor, and a third thing",
        TensorError,
        lambda: Product("n n, n n -> n n")(_square(), None, _edges([[0], [1]])),
        """\
Product("n n, n n -> n n") takes its two factors one by one, but 3 things came.
Options have names: product(x, y, support=...).""",
    ),
    Case(
        "a support without its name",
        TensorError,
        lambda: Product("n n, n n -> n n")(_square(), _square(), _edges([[0], [1]])),
        """\
Product("n n, n n -> n n") takes its two factors one by one, but 3 things came.
Options have names: product(x, y, support=...).""",
    ),
]

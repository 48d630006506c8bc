"""The product of two tensors over nodes, by letters: which slots hold one node, and which of them are summed over.

A contraction is a batch of matrix products. Letters that both factors and the product have are *shared*: there is a
matrix for each of their nodes, as there is for every channel. Those of the first factor and the product are its rows,
*left*; those of the second its columns, *right*; and those of both factors alone are *summed*.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from bellnet.errors import SpecError
from bellnet.plan.cost import BYTES, Cost, check_count, check_sizes
from bellnet.spec import Letters, Shape, Spec, parse_letters, parse_spec

HOW = (
    'Pass contraction="..." with one letter for each slot, equal ones for one node, as in einsum: "ab,bc->ac" for '
    '"n n, n n -> n n".'
)


@dataclass(frozen=True)
class ProductPlan:
    """Which node every slot of two factors and of their product holds; `plan_product` makes and checks it.

    >>> print(plan_product("u i, i v -> u v"))
    u i, i v -> u v    ab,bc->ac
      rows a (u), columns c (v), summed over b (i)
    """

    spec: Spec
    letters: Letters  # for the slots of both factors and of the product
    shared: str = field(compare=False, repr=False)  # the letters of all three, in the order of the product
    left: str = field(compare=False, repr=False)  # those of the first factor and the product
    right: str = field(compare=False, repr=False)  # those of the second factor and the product
    summed: str = field(compare=False, repr=False)  # those of the two factors alone, in the order of the first

    @property
    def text(self) -> str:
        """As einsum has it."""
        x, y, result = self.letters
        return f"{x},{y}->{result}"

    def node_set(self, letter: str) -> str:
        """The node set of a letter."""
        x, y, _ = self.letters
        first, second = self.spec.sources
        return first[x.index(letter)] if letter in x else second[y.index(letter)]

    @property
    def summed_sets(self) -> tuple[int, ...]:
        """Which of the node sets of the spec every sum runs over."""
        return tuple(self.spec.node_sets.index(self.node_set(letter)) for letter in self.summed)

    @property
    def target_sets(self) -> tuple[int, ...]:
        """Which of the node sets of the spec every slot of the product runs over."""
        return self.spec.numbered[1][0]

    def cost(self, sizes: int | Mapping[str, int], channels: int = 1, batch: int = 1) -> Cost:
        """The cost of one forward pass on dense tensors, for node sets of these sizes.

        Kernels need no memory beside input and output; torch operations copy all three.

        >>> plan_product("n n, n n -> n n").cost(10, channels=3).multiplications
        3000
        """
        call = f'Product("{self.spec}").plan.cost'
        lengths = check_sizes(call, self.spec.node_sets, sizes)
        each = BYTES * check_count(call, "channels", channels) * check_count(call, "batch", batch)
        terms = prod(lengths[self.node_set(letter)] for letter in self.shared + self.left + self.right + self.summed)
        sources = sum(prod(lengths[name] for name in shape) for shape in self.spec.sources)
        target = prod(lengths[name] for name in self.spec.target)
        multiplications = terms * channels * batch
        return Cost(
            multiplications=multiplications,
            stacked_multiplications=multiplications,
            input_bytes=each * sources,
            output_bytes=each * target,
            extra_bytes=0,
        )

    def __str__(self) -> str:
        parts = [
            f"{words} {', '.join(f'{letter} ({self.node_set(letter)})' for letter in letters)}"
            for words, letters in (
                ("a matrix for every", self.shared),
                ("rows", self.left),
                ("columns", self.right),
                ("summed over", self.summed),
            )
            if letters
        ]
        return f"{self.spec}    {self.text}\n  {', '.join(parts)}"


def split_letters(letters: Letters) -> tuple[str, str, str, str]:
    """The letters that are shared, left, right and summed.

    >>> split_letters(("adc", "dbc", "abc"))
    ('c', 'a', 'b', 'd')
    """
    x, y, result = letters
    return (
        "".join(letter for letter in result if letter in x and letter in y),
        "".join(letter for letter in result if letter not in y),
        "".join(letter for letter in result if letter not in x),
        "".join(letter for letter in x if letter not in result),
    )


def plan_product(spec: str | Spec, text: str | None = None) -> ProductPlan:
    """The plan of a product, by letters or by the usual contraction for the shapes of its spec."""
    spec = parse_spec(spec)
    if len(spec.sources) != 2 or len(spec.targets) != 1:
        raise SpecError(
            f'A product is of two tensors and gives one, but "{spec}" has {len(spec.sources)} and gives '
            f'{len(spec.targets)}.\nWrite for instance "n n, n n -> n n".'
        )
    if spec.unordered:
        raise SpecError(
            f'"{spec}" has braces, but a product of symmetric tensors is not symmetric.\nWrite "{spec.ordered}".'
        )
    usual = (one for one in USUAL if _fits(one, (*spec.sources, spec.target)))
    letters = next(usual, None) if text is None else parse_letters(text, spec)
    if letters is None:
        raise SpecError(f'Which slots of "{spec}" hold one node? For these shapes there is no usual product.\n{HOW}')
    return ProductPlan(spec, letters, *split_letters(letters))


USUAL: tuple[Letters, ...] = (
    ("ab", "bc", "ac"),
    ("ab", "b", "a"),
    ("a", "ab", "b"),
    ("a", "a", ""),
    ("adc", "dbc", "abc"),
)
"""Products of matrices and vectors as `@` has them; of three slots the matrix products of slices, one for each c."""


def _fits(letters: Letters, shapes: tuple[Shape, ...]) -> bool:
    meanings: dict[str, str] = {}
    for part, shape in zip(letters, shapes, strict=True):
        if len(part) != len(shape):
            return False
        if any(meanings.setdefault(letter, name) != name for letter, name in zip(part, shape, strict=True)):
            return False
    return True

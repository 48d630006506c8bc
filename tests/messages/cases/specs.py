"""Mistakes in specs and in the cost of a plan."""

import torch

from bellnet import EquivariantLinear, InvariantPool, Padded, Sparse, Spec, plan

HUGE = 10**5000  # more digits than Python writes

CASES = {
    # specs
    "no arrow": lambda: plan("n n"),
    "two arrows": lambda: plan("n -> n -> n"),
    "commas": lambda: Padded.pack([torch.zeros(2, 2, 1)], "n,n"),
    "a mistake in one of several tensors": lambda: plan("u i, u! -> u i"),
    "a collection of one": lambda: Spec((("n", "n"),), ("n",)),
    "the source of several": lambda: Spec((("n", "n"), ("n",)), ("n",)).source,
    "shapes of several tensors": lambda: Padded.pack([torch.zeros(2, 2, 1)], "u i, u"),
    "a length for a name": lambda: plan("30 n -> n"),
    "a batch axis": lambda: plan("... n n -> n"),
    "parentheses in a spec": lambda: plan("n (n) -> n"),
    "not a string": lambda: plan(("n", "n")),
    "an arrow in a shape": lambda: InvariantPool("n n -> n"),
    "a name made of two": lambda: Spec(("n n",), ("n",)),
    "names in a list": lambda: Spec(["n", "n"], ("n",)),
    "names of the target in a list": lambda: Spec(("n", "n"), ["n"]),
    "a string for the source": lambda: Spec("nn", ("n",)),
    "a string for the target": lambda: Spec(("n", "n"), "n"),
    "too many maps": lambda: plan("n n n n n n -> n n n n n n"),
    "too many maps to count": lambda: EquivariantLinear("n " * 2500 + "-> n", 1, 1, symmetric=True),
    "too many slots": lambda: plan(Spec(tuple(f"n{number}" for number in range(600)), ())),
    "half a map": lambda: plan("n -> n", max_maps=1.5),
    "a limit of maps of 5000 digits": lambda: plan("n n -> n n", max_maps=-HUGE),
    # braces
    "braces in a shape": lambda: InvariantPool("{n n}"),
    "braces inside of braces": lambda: plan("{n {n n}} -> n"),
    "a brace that was not opened": lambda: plan("n n} -> n"),
    "one slot in braces": lambda: plan("n {n} -> n"),
    "two node sets in braces": lambda: plan("{u i} -> u"),
    "a brace that is not closed": lambda: plan("{n n -> n"),
    "a comma in braces": lambda: plan("{n, n} -> n"),
    "unordered slots of several tensors": lambda: Spec(("n", "n"), ("n",), unordered=((1, 2),)),
    "unordered slots of a support that is not symmetric": lambda: EquivariantLinear("{n n} -> {n n}", 1, 1)(
        Sparse(torch.tensor([[0], [1]]), torch.ones(1, 1), 3)
    ),
    # costs
    "cost without a size": lambda: plan("u i -> u").cost({"u": 3}),
    "cost of an unknown node set": lambda: plan("n -> n").cost({"n": 2, "m": 3}),
    "cost of half a node": lambda: plan("n -> n").cost(2.5),
    "cost of half a node, by name": lambda: plan("n -> n").cost({"n": 2.5}),
    "cost of a list of sizes": lambda: plan("n -> n").cost([2]),
    "cost of a negative size": lambda: plan("n -> n").cost(-2),
    "cost of a size of 5000 digits": lambda: plan("n n -> n n").cost(-HUGE),
    "cost of a batch of 5000 digits": lambda: plan("n n -> n n").cost(3, batch=-HUGE),
}

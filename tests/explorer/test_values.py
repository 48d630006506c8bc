"""The scripts of the page compute the values of the reference and of the layers."""

from itertools import permutations, product
from math import prod

import pytest
import torch

import bellnet as bn
from bellnet.backends.reference import basis_tensors, bias_tensors
from tests.explorer.scripts import call

SIZES = {"n": 3, "u": 3, "i": 2}
SINGLE = [
    "n n -> n n",
    "n n -> n",
    "n ->",
    "-> n n",
    "->",
    "u u i -> i u",
    "n n n -> n",
    "{n n} -> {n n}",
    "n -> {n n n}",
]

MATRICES = """
(text, sizes, options, known) => {
  const spec = scripts.parseSpec(text);
  const plan = scripts.makePlan(spec, known);
  const rows = (one) => {
    const { rows, columns, values } = scripts.basisMatrix(spec, one, sizes, options);
    return Array.from({ length: rows }, (_, row) => [...values.slice(row * columns, (row + 1) * columns)]);
  };
  return { maps: plan.diagrams.map(rows), biases: plan.biases.map(rows) };
}
"""

OUTPUTS = """
(text, sizes, options, known, inputs) => {
  const spec = scripts.parseSpec(text);
  return scripts.makePlan(spec, known).diagrams.map((one) => {
    const matrix = scripts.basisMatrix(spec, one, sizes, options);
    return scripts.applyMatrix(matrix, inputs[one.source]);
  });
}
"""

INPUTS = """
(text, sizes, known, numbers) => {
  const plan = scripts.makePlan(scripts.parseSpec(text), known);
  return plan.spec.sources.map((_, source) =>
    scripts.fillValues(scripts.inputConstraints(plan, source, sizes), (place) => numbers[place]));
}
"""


@pytest.mark.parametrize("basis", ["diagram", "orbit"])
@pytest.mark.parametrize("spec", SINGLE)
def test_basis_matrices_are_those_of_the_reference(spec, basis):
    the_plan = bn.plan(spec)
    sizes = {name: SIZES[name] for name in the_plan.spec.node_sets}
    found = call(MATRICES, spec, sizes, {"basis": basis}, {})
    source, target = (prod(sizes[name] for name in slots) for slots in (the_plan.spec.source, the_plan.spec.target))
    expected = basis_tensors(the_plan, sizes, basis=basis).reshape(the_plan.n_maps, source, target).mT
    torch.testing.assert_close(torch.tensor(found["maps"], dtype=torch.float64), expected)
    constants = bias_tensors(the_plan, sizes, basis=basis).reshape(the_plan.n_biases, -1, 1)
    torch.testing.assert_close(torch.tensor(found["biases"], dtype=torch.float64), constants)


def _inputs(spec, sizes, known):
    """Inputs with the declared symmetries, as lists and as tensors."""
    numbers = torch.randint(-3, 4, (100,), generator=torch.Generator().manual_seed(0)).tolist()
    entries = call(INPUTS, str(spec), sizes, known, numbers)
    shapes = [[sizes[name] for name in shape] for shape in spec.sources]
    return entries, [
        torch.tensor(one, dtype=torch.float64).reshape(shape) for one, shape in zip(entries, shapes, strict=True)
    ]


def _outputs(spec, tensors, known, normalize):
    """The output of every basis map of a layer, one in each channel."""
    n_maps = bn.plan(spec, **known).n_maps
    layer = bn.EquivariantLinear(spec, 1, n_maps, bias=False, normalize=normalize, dtype=torch.float64, **known)
    sizes = {name: SIZES[name] for name in spec.target_only}
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        outputs = []
        for pair in layer.plan.pairs:
            weight = layer.weight if spec.is_single else getattr(layer, f"weight_{pair.source}_to_{pair.target}")
            here = slice(pair.start, pair.start + pair.n_maps)
            weight[:, 0, here] = torch.eye(pair.n_maps, dtype=torch.float64)
        given = tuple(one[..., None] for one in tensors)
        result = layer(given if len(spec.sources) > 1 else given[0], **({"sizes": sizes} if sizes else {}))
        several = result if len(spec.targets) > 1 else (result,)
        for pair in layer.plan.pairs:
            for number in range(pair.start, pair.start + pair.n_maps):
                outputs.append(several[pair.target][..., number].flatten())
    return outputs


CASES = [
    *((spec, {}) for spec in SINGLE),
    ("n n, n -> n n, n", {}),
    ("{n n}, n, -> {n n}, n", {}),
    ("u i, u -> u i, i", {}),
    ("n n -> n n", {"symmetric": True}),
    ("n n n -> n n", {"hollow": True}),
    ("n n n -> n n", {"symmetric": True, "hollow": True}),
]


@pytest.mark.parametrize("normalize", ["mean", "sum"])
@pytest.mark.parametrize(("text", "known"), CASES, ids=lambda case: str(case))
def test_output_of_every_map_is_that_of_the_layer(text, known, normalize):
    spec = bn.plan(text).spec
    sizes = {name: SIZES[name] for name in spec.node_sets}
    entries, tensors = _inputs(spec, sizes, known)
    found = call(OUTPUTS, text, sizes, {"means": normalize == "mean"}, known, entries)
    expected = _outputs(spec, tensors, known, normalize)
    assert len(found) == len(expected)
    for here, there in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.tensor(here, dtype=torch.float64), there)


@pytest.mark.parametrize(
    ("text", "known", "exchangeable"),
    [
        ("{n n} n -> n", {}, [(0, 1)]),
        ("u u i -> u", {"symmetric": True}, [(0, 1)]),
        ("n n n -> n", {"symmetric": True, "hollow": True}, [(0, 1), (1, 2), (0, 2)]),
        ("n n n -> n", {"hollow": True}, []),
    ],
)
def test_inputs_have_the_declared_symmetries(text, known, exchangeable):
    spec = bn.plan(text).spec
    sizes = {name: SIZES[name] for name in spec.node_sets}
    _, (tensor,) = _inputs(spec, sizes, known)
    assert tensor.any()
    for one, other in permutations(range(tensor.ndim), 2):
        same = torch.equal(tensor, tensor.transpose(one, other)) if spec.source[one] == spec.source[other] else False
        assert same == ((min(one, other), max(one, other)) in exchangeable)
    for indices in product(*map(range, tensor.shape)):
        if known.get("hollow") and len(set(indices)) < len(indices):
            assert tensor[indices] == 0

"""Unordered slots: numbers of maps by Burnside's lemma and by rank, and savings of a plan."""

import sys
from itertools import permutations, product
from math import factorial

import pytest
import torch

from bellnet import plan
from bellnet.backends.reference import basis_tensors, bias_tensors
from bellnet.combinatorics import canonical, partitions
from bellnet.errors import SpecError
from bellnet.plan.diagram import count_maps, count_products
from bellnet.spec import Spec, parse_spec

SPECS = (
    "{n n} -> {n n}",
    "n n -> {n n}",
    "{n n} -> n",
    "{n n} n -> {n n}",
    "{n n} {n n} ->",
    "-> {n n n}",
    "{n n n} -> {n n n}",
    "{u u} i -> {u u} i",
    "i {u u} -> {i i} u",
)


@pytest.mark.parametrize(("order", "expected"), [(2, 9), (3, 31), (4, 109)])
def test_symmetric_tensors_to_symmetric_tensors_have_as_many_maps_as_bipartite_partitions(order, expected):
    shape = f"{{{' '.join('n' * order)}}}"
    assert plan(f"{shape} -> {shape}").n_maps == expected


@pytest.mark.parametrize("text", SPECS)
def test_the_number_of_maps_is_that_of_burnsides_lemma(text):
    spec = parse_spec(text)
    exchanges = [dict(zip(group, order, strict=True)) for group in spec.unordered[:1] for order in permutations(group)]
    for group in spec.unordered[1:]:
        further = [dict(zip(group, order, strict=True)) for order in permutations(group)]
        exchanges = [one | other for one, other in product(exchanges, further)]
    diagrams = partitions(spec.slots)
    fixed = sum(
        canonical(diagram[exchange.get(slot, slot)] for slot in range(len(diagram))) == diagram
        for exchange in exchanges
        for diagram in diagrams
    )
    assert plan(spec).n_maps == fixed / len(exchanges) == count_maps(spec)


@pytest.mark.parametrize("text", [text for text in SPECS if parse_spec(text).slots.count("n") < 6])
def test_maps_are_a_basis_of_the_symmetric_maps(text):
    the_plan = plan(text)
    sizes = {name: the_plan.spec.slots.count(name) for name in the_plan.spec.node_sets}
    ours = _on_symmetric(the_plan.spec, basis_tensors(the_plan, sizes, basis="diagram"))
    every = plan(the_plan.spec.ordered)
    theirs = _on_symmetric(the_plan.spec, basis_tensors(every, sizes, basis="diagram"))
    flat = ours.reshape(the_plan.n_maps, -1)
    assert torch.linalg.matrix_rank(flat) == the_plan.n_maps
    assert torch.linalg.matrix_rank(torch.cat([flat, theirs.reshape(every.n_maps, -1)])) == the_plan.n_maps
    biases = bias_tensors(the_plan, sizes, basis="diagram").reshape(the_plan.n_biases, -1)
    assert torch.linalg.matrix_rank(biases) == the_plan.n_biases


def _on_symmetric(spec, tensors):
    """Tensors (maps, one axis for each slot), averaged over exchanges of slots of every group."""
    for group in spec.unordered:
        total = torch.zeros_like(tensors)
        for order in permutations(group):
            axes = list(range(tensors.ndim))
            for slot, other in zip(group, order, strict=True):
                axes[1 + slot] = 1 + other
            total += tensors.permute(axes)
        tensors = total / factorial(len(group))
    return tensors


def test_a_plan_with_unordered_slots_has_fewer_products():
    the_plan, every = plan("{n n n} -> {n n n}"), plan("n n n -> n n n")
    assert [len(level.permutations) for level in the_plan.levels] == [1, 1, 1, 1]
    assert [len(level.permutations) for level in every.levels] == [1, 1, 2, 6]
    assert str(the_plan).endswith("\n  unordered slots: 31 of 203 maps, 4 of 10 products")
    assert the_plan.cost(10).multiplications < every.cost(10).multiplications / 5


def test_a_symmetric_input_has_the_maps_of_braces():
    declared, written = plan("n n n -> n n", symmetric=True), plan("{n n n} -> n n")
    assert [str(one) for one in declared.diagrams] == [str(one) for one in written.diagrams]


def test_braces_are_parsed_and_printed():
    text = "{u u} i, {u u} -> i {u u}"
    spec = parse_spec(text)
    assert spec == Spec((("u", "u", "i"), ("u", "u")), ("i", "u", "u"), unordered=((0, 1), (3, 4), (6, 7)))
    assert str(spec) == text
    assert eval(repr(spec)) == spec
    assert str(spec.pair(1, 0)) == "{u u} -> i {u u}"
    assert str(spec.constants()) == "-> i {u u}"
    assert str(spec.ordered) == "u u i, u u -> i u u"


def test_maps_of_many_unordered_slots_are_counted():
    many = " ".join("n" * 40)
    assert count_maps(parse_spec(f"{{{many}}} -> {{{many}}}")) > 10**6
    assert count_maps(parse_spec(f"{many} -> {{n n}}")) > 10**15


@pytest.mark.parametrize("hollow", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_counted_products_are_as_many_as_those_of_the_plan(symmetric, hollow):
    for text in [
        "n n n n -> n n n",
        "n n -> n n n n",
        "u u u i -> u u i i",
        "n n n, n -> n n n, n",
        "u u u i, u u i i -> u u i",
        "->",
    ]:
        found = plan(text, symmetric=symmetric, hollow=hollow)
        n_products = count_products(found.spec, symmetric=symmetric, hollow=hollow)
        assert n_products == sum(len(level.permutations) for level in found.levels), text


def test_a_table_is_printed_without_listing_maps(monkeypatch):
    unordered = "{n n n n n n} -> {n n n n n n}"
    the_plan = plan(unordered)
    monkeypatch.setattr(
        sys.modules["bellnet.plan.diagram"], "partitions", lambda *slots, **known: pytest.fail("maps were listed")
    )
    assert str(the_plan).endswith(f"{the_plan.n_maps:,} of 4,213,597 maps, 7 of 874 products")


def test_hollow_inputs_of_many_unordered_slots_are_refused():
    side = "{" + "n " * 30 + "}"
    assert count_maps(parse_spec(f"{side} -> {side}"), hollow=True) == 589_128
    with pytest.raises(SpecError, match="has 589,128 maps"):
        plan(f"{side} -> {side}", hollow=True)

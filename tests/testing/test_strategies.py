import importlib
import subprocess
import sys

import pytest
import torch
from hypothesis import find, given, settings
from hypothesis import strategies as st

from bellnet import EquivariantLinear, Spec, errors, testing
from bellnet.testing import strategies


@given(st.data(), strategies.specs(max_slots=4, max_node_sets=3))
def test_layers_of_drawn_specs_commute_with_drawn_permutations(data, spec):
    layer = EquivariantLinear(spec, 2, 1, dtype=torch.float64)
    sizes = data.draw(strategies.sizes(spec, max=3))
    missing = {name: sizes[name] for name in spec.target_only}
    x = data.draw(strategies.tensors(spec.source, sizes, channels=2, batch=(2,)))
    permutation = data.draw(strategies.permutations(sizes))
    found = layer(testing.permute_nodes(x, spec.source, permutation), sizes=missing)
    expected = testing.permute_nodes(layer(x, sizes=missing), spec.target, permutation)
    torch.testing.assert_close(found, expected)


@given(strategies.specs(min_slots=2, max_slots=3, max_node_sets=2))
def test_specs_are_within_their_bounds(spec):
    assert isinstance(spec, Spec)
    assert 2 <= len(spec.slots) <= 3
    assert len(spec.node_sets) <= 2


@given(strategies.specs(target_only=False))
def test_specs_without_target_only_have_no_new_node_sets_in_the_target(spec):
    assert spec.target_only == ()


@given(strategies.sizes("u i -> v", min=1, max=2))
def test_every_node_set_has_a_size_within_the_bounds(sizes):
    assert sizes.keys() == {"u", "i", "v"}
    assert set(sizes.values()) <= {1, 2}


@pytest.mark.parametrize(
    ("strategy", "condition"),
    [
        (strategies.specs(), lambda spec: spec.target_only),
        (strategies.specs(), lambda spec: len(spec.source) == len(spec.target) == 2 and len(spec.node_sets) == 2),
        (strategies.specs(), lambda spec: spec.slots == ()),
        (strategies.sizes("n n"), lambda sizes: sizes == {"n": 0}),
        (strategies.sizes("n n"), lambda sizes: sizes == {"n": 4}),
        (strategies.permutations({"n": 3}), lambda permutations: permutations == {"n": (2, 0, 1)}),
        (strategies.tensors("n", {"n": 3}), lambda x: bool((x == 0).all())),
        (strategies.tensors("n", {"n": 3}), lambda x: not torch.equal(x, x.round())),
        (strategies.tensors("n", {"n": 3}), lambda x: bool(x.any()) and torch.equal(x, x.round())),
        (strategies.padded("n"), lambda graphs: bool(graphs.values.isnan().any())),
        (strategies.padded("n"), lambda graphs: bool((graphs.values == 1e4).any())),
        (strategies.padded("u i"), lambda graphs: graphs.sizes["u"].tolist() == [1, 0]),
    ],
)
def test_important_cases_are_drawn(strategy, condition):
    assert condition(find(strategy, condition, settings=settings(max_examples=1000)))


@given(strategies.padded("u i u", max_graphs=2, min=1, max=3, channels=2))
def test_padded_batches_have_garbage_only_in_the_padding(graphs):
    assert graphs.values.shape[-1] == 2
    for number, graph in enumerate(graphs.unpack("u i u")):
        assert bool((graph.abs() < 100).all())
        assert graph.shape == (graphs.sizes["u"][number], graphs.sizes["i"][number], graphs.sizes["u"][number], 2)
    inside = sum(graph.numel() for graph in graphs.unpack("u i u"))
    garbage = (graphs.values.isnan() | (graphs.values == 1e4)).sum()
    assert garbage == graphs.values.numel() - inside


WITHOUT_HYPOTHESIS = """
import sys
sys.modules["hypothesis"] = None
from bellnet import testing
testing.assert_equivariant(lambda x: x, "n -> n", in_channels=1)
"""


def test_the_checks_work_without_hypothesis():
    done = subprocess.run([sys.executable, "-c", WITHOUT_HYPOTHESIS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_strategies_without_hypothesis_raise_an_error_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "bellnet.testing.strategies", raising=False)
    with pytest.raises(errors.MissingExtraError) as caught:
        importlib.import_module("bellnet.testing.strategies")
    assert str(caught.value) == (
        "bellnet.testing.strategies needs hypothesis, which is not installed.\nRun: pip install bellnet[testing]"
    )

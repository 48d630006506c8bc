"""The border between Python and C: no use of memory makes kernels crash or return wrong values without an error.

A fault here may end the process of the test run.
"""

import ctypes
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch

import bellnet as bn
from bellnet.errors import SizesError, SupportError, TensorError
from bellnet.kernels import SOURCES, calling, disabled, kernels, structs
from bellnet.kernels.calling import pointer, table_pointer
from bellnet.kernels.structs import size_differences

EDGES = [[0, 1, 2], [1, 2, 3]]
needs_kernels = pytest.mark.skipif(kernels() is None, reason="bellnet was built without kernels")


def sparse_of(index, sizes=4, channels=2):
    values = torch.arange(float(index.shape[1] * channels)).reshape(-1, channels)
    return bn.Sparse(index, values, sizes=sizes)


@pytest.mark.parametrize("shift", [1, -1, 3_000_000])
@pytest.mark.parametrize("spec", ["n n -> n n", "n n -> n", "n n ->"])
def test_sparse_copies_its_index(spec, shift):
    layer, index = bn.EquivariantLinear(spec, 2, 3), torch.tensor(EDGES)
    expected = layer(sparse_of(index.clone()))
    x = sparse_of(index)
    index += shift
    found = layer(x)
    torch.testing.assert_close(*(one.values if isinstance(one, bn.Sparse) else one for one in (found, expected)))
    assert x.index.tolist() == EDGES


def test_sparse_copies_an_index_from_numpy():
    numpy = pytest.importorskip("numpy")
    array = numpy.array(EDGES)
    x = sparse_of(torch.from_numpy(array))
    array += 3_000_000
    assert x.index.tolist() == EDGES


def test_sparse_copies_its_sizes():
    layer, sizes = bn.EquivariantLinear("n n -> n", 2, 3), torch.tensor([4, 3])
    index = torch.tensor([[0, 0, 1], [0, 1, 1], [1, 3, 2]])
    expected = layer(sparse_of(index, sizes.clone())).values
    x = sparse_of(index, sizes)
    sizes += 1_000_000_000
    torch.testing.assert_close(layer(x).values, expected)
    assert x.sizes.tolist() == [4, 3]


@pytest.mark.parametrize("name", ["index", "sizes"])
def test_index_and_sizes_of_a_sparse_are_copies(name):
    x = sparse_of(torch.tensor([[0, 0, 1], [0, 1, 1], [1, 3, 2]]), torch.tensor([4, 3]))
    before = getattr(x, name).clone()
    getattr(x, name).add_(3_000_000)
    assert torch.equal(getattr(x, name), before)


@pytest.mark.parametrize("spec", ["n n -> n n", "n n -> n", "n n ->"])
def test_index_modified_in_place_is_refused(spec):
    x = sparse_of(torch.tensor(EDGES))
    x.support.index.add_(3_000_000)
    with pytest.raises(SupportError, match="changed in place"):
        bn.EquivariantLinear(spec, 2, 3)(x)


def test_memory_of_nodes_is_estimated_before_allocation():
    x = sparse_of(torch.tensor([[0, 1], [1, 0]]), sizes=2**40)
    for spec in ("n n -> n n", "n n -> n"):
        with pytest.raises(SizesError, match=r"1,099,511,627,776 nodes"):
            bn.EquivariantLinear(spec, 2, 3)(x)


def test_sizes_that_overflow_together_are_refused():
    with pytest.raises(SizesError, match="sizes"):
        sparse_of(torch.tensor([[0, 0], [0, 1], [1, 0]]), torch.tensor([2**62, 2**62]))


def modules():
    """For every kind of module how many dense inputs it takes, and a call of it."""
    together = bn.EquivariantLinear("n n, n n -> n n", (3, 3), 4)
    return {
        "layer": (1, bn.EquivariantLinear("n n -> n n", 3, 4)),
        "symmetric layer": (1, bn.EquivariantLinear("n n -> n n", 3, 4, symmetric=True)),
        "layer of several tensors": (2, lambda *several: together(several)),
        "max pool": (1, bn.InvariantPool("n n", "max")),
        "mean pool": (1, bn.InvariantPool("n n", "mean")),
        "product": (2, bn.Product("n n, n n -> n n")),
        "equivariant network": (1, bn.EquivariantNet("n n -> n n", [3, 4, 4])),
        "invariant network": (1, bn.InvariantNet("n n", [3, 4], 2)),
        "network with products": (1, bn.PPGN("n n", [3, 4], 2, norm=None)),
    }


def called(name, values, *, padded=False):
    """The output of a module for the same values at each input."""
    torch.manual_seed(0)
    n_inputs, module = modules()[name]
    output = module(*[bn.Padded(one, torch.tensor([5, 3])) if padded else one for one in values[:n_inputs]])
    return output.values if isinstance(output, bn.Padded) else output


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", list(modules()))
def test_functional_tensors_give_the_same_values(name, padded):
    values = torch.randn(2, 5, 5, 3)
    with torch.no_grad():
        found = called(name, [torch._to_functional_tensor(values)] * 2, padded=padded)
        if torch._is_functional_tensor(found):
            torch._sync(found)
            found = torch._from_functional_tensor(found)
        torch.testing.assert_close(found, called(name, [values] * 2, padded=padded))


KERNELS = ["layer", "layer of several tensors", "max pool", "mean pool", "product"]


def gradients(name, unpack):
    """The gradients of a module's inputs if a hook replaces the saved tensors on the way back."""
    torch.manual_seed(1)
    values = [torch.randn(2, 5, 5, 3, requires_grad=True) for _ in range(modules()[name][0])]
    with torch.autograd.graph.saved_tensors_hooks(lambda saved: saved, unpack):
        output = called(name, values)
    return torch.autograd.grad(output.sum(), values)


@needs_kernels
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-5), (torch.float16, 2e-2)])
@pytest.mark.parametrize("name", KERNELS)
def test_saved_tensors_of_another_dtype_give_the_same_gradient(name, dtype, tolerance):
    expected = gradients(name, lambda saved: saved)
    torch.testing.assert_close(gradients(name, lambda saved: saved.to(dtype)), expected, atol=tolerance, rtol=tolerance)


CHANGES = {
    "meta": lambda saved: saved.to("meta"),
    "empty": lambda saved: saved[:0],
    "short": lambda saved: saved.flatten()[:2],
    "sparse": lambda saved: saved.to_sparse(),
    "scalar": lambda saved: torch.zeros(()),
}


@needs_kernels
@pytest.mark.parametrize("change", list(CHANGES))
@pytest.mark.parametrize("name", KERNELS)
def test_saved_tensors_of_another_shape_or_device_are_refused(name, change):
    with pytest.raises(TensorError, match="saved-tensor hook"):
        gradients(name, CHANGES[change])


@pytest.mark.parametrize("name", KERNELS)
def test_misaligned_tensors_are_read(name):
    values = [torch.randn(2, 5, 5, 3) for _ in range(2)]
    memory = [bytearray(b"\0" + one.numpy().tobytes()) for one in values]
    moved = [torch.frombuffer(one, dtype=torch.float32, offset=1).reshape(2, 5, 5, 3) for one in memory]
    assert any(one.data_ptr() % 4 for one in moved)
    torch.testing.assert_close(called(name, moved), called(name, values))


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(3, dtype=torch.float64),
        torch.zeros(4),
        torch.zeros(3, device="meta"),
        torch.zeros(3).to_sparse(),
        torch._to_functional_tensor(torch.zeros(3)),
        torch.zeros(3).as_subclass(type("Other", (torch.Tensor,), {})),
    ],
)
def test_no_pointer_is_taken_to_a_tensor_that_does_not_fit(tensor):
    with pytest.raises(TensorError, match="a kernel cannot use an input: expected a plain"):
        pointer("an input", tensor, (3,), torch.float32, [])


@needs_kernels
def test_structs_have_the_sizes_of_the_library(monkeypatch):
    library = kernels()
    assert size_differences(library) == ""
    shorter = type("Bias", (structs.Struct,), {"_fields_": [("target", ctypes.c_int64), ("offset", ctypes.c_int64)]})
    monkeypatch.setitem(structs.STRUCTS, "Bias", shorter)
    assert size_differences(library) == "Bias (16 bytes here, 24 there)"


def test_all_structs_and_fields_of_the_header_are_read():
    assert len(structs.STRUCTS) == (SOURCES / "structs.h").read_text().count("typedef struct")
    assert [name for name, _ in structs.Step._fields_[-4:]] == ["stride", "segment", "order", "bounds"]
    assert structs.Program.side.size == 2 * ctypes.sizeof(structs.STRUCTS["Side"])
    assert (structs.Prefix.child.size, structs.RunCall.sources.size) == (13 * 8, 8)


@pytest.mark.parametrize("struct", structs.STRUCTS.values())
def test_structs_have_no_attributes_but_their_fields(struct):
    with pytest.raises(AttributeError, match="no attribute 'n_row'"):
        struct(n_row=1)
    with pytest.raises(AttributeError, match="no attribute 'n_row'"):
        struct().n_row = 1
    fields = [name for name, kind in struct._fields_ if kind is ctypes.c_int64]
    assert all(getattr(struct(**{name: 7}), name) == 7 for name in fields)


@pytest.mark.parametrize("rows", [[0, 3, 1], [0, -2, 1]])
def test_no_pointer_is_taken_to_a_table_of_missing_rows(rows):
    assert table_pointer("a table", torch.tensor([0, -1, 2]), 3, 3, [])
    with pytest.raises(SupportError, match="a kernel cannot use a table: expected rows from -1 to 2, got"):
        table_pointer("a table", torch.tensor(rows), 3, 3, [])


def changed(function, leaf):
    """A leaf of a Sparse, its index changed by a function."""
    return function(leaf) if leaf.ndim == 2 and leaf.dtype == torch.int64 else leaf


@pytest.mark.parametrize("change", [2, -9, 3_000_000])
def test_index_changed_by_tree_map_is_refused(change):
    x = sparse_of(torch.tensor(EDGES))
    with pytest.raises(SupportError, match="is node"):
        torch.utils._pytree.tree_map(partial(changed, lambda index: index + change), x)


def test_sizes_changed_by_tree_map_are_those_of_the_result():
    x = sparse_of(torch.tensor(EDGES))
    larger = torch.utils._pytree.tree_map(lambda leaf: leaf + 3 if leaf.ndim == 1 else leaf, x)
    assert (larger.sizes, larger.index.tolist(), x.sizes) == (7, EDGES, 4)
    layer = bn.EquivariantLinear("n n -> n n", 2, 3)
    torch.testing.assert_close(layer(larger).values, layer(sparse_of(torch.tensor(EDGES), 7)).values)


def test_duplicates_made_by_tree_map_are_refused():
    x = sparse_of(torch.tensor(EDGES))
    with pytest.raises(SupportError, match="occurs twice"):
        torch.utils._pytree.tree_map(partial(changed, torch.zeros_like), x)


@pytest.mark.parametrize("size", [2**31, 2**40, 2**62, 2**63, 2**70, torch.tensor([2**31, 2])])
@pytest.mark.parametrize("padded", [False, True])
def test_sizes_beyond_memory_are_refused(size, padded):
    x = torch.ones(2, 3, 2)
    with pytest.raises(SizesError, match="node set 'i' is"):
        bn.EquivariantLinear("u -> u i", 2, 3)(bn.Padded(x, torch.tensor([3, 2])) if padded else x, sizes={"i": size})


@pytest.mark.parametrize("sizes", [2**63, [2**63, 1], 2**70])
def test_sizes_of_a_sparse_beyond_64_bits_are_refused(sizes):
    with pytest.raises(SizesError, match="sizes must be"):
        sparse_of(torch.tensor([[0, 0], [0, 1], [1, 0]]) if isinstance(sizes, list) else torch.tensor(EDGES), sizes)


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "layer of several tensors"])
def test_negated_views_are_read_with_padding_and_without(name):
    values = [torch.randn(2, 5, 5, 3) for _ in range(2)]
    for padded in (False, True):
        found = called(name, [torch._neg_view(one) for one in values], padded=padded)
        torch.testing.assert_close(found, called(name, [-one for one in values], padded=padded))


@needs_kernels
@pytest.mark.parametrize("name", ["layer", "max pool", "product"])
def test_freed_storage_is_refused(name):
    values = [torch.randn(2, 5, 5, 3) for _ in range(2)]
    values[0].untyped_storage().resize_(0)
    with pytest.raises(TensorError, match="storage was freed"):
        called(name, values)


@needs_kernels
def test_kernels_are_disabled_forward_and_backward_in_all_threads(monkeypatch):
    calls, real = [], calling.call
    monkeypatch.setattr(calling, "call", lambda kernel, arguments: calls.append(kernel) or real(kernel, arguments))
    layer, x = bn.EquivariantLinear("n n -> n n", 3, 4), torch.randn(2, 5, 5, 3, requires_grad=True)
    y = layer(x)
    assert len(calls) == 1
    expected = torch.autograd.grad(y.sum(), x, retain_graph=True)
    assert len(calls) == 2
    with disabled():
        torch.testing.assert_close(torch.autograd.grad(y.sum(), x), expected)
        with ThreadPoolExecutor(1) as threads:
            threads.submit(layer, x).result()
    assert len(calls) == 2
    layer(x)
    assert len(calls) == 3

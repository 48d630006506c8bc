"""Products of two tensors over nodes agree with einsum, on dense, padded and sparse tensors."""

from contextlib import nullcontext
from math import prod

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

import bellnet as bn
from bellnet.backends import sparse_products
from bellnet.errors import EquivarianceError
from bellnet.kernels import disabled, kernels
from benchmarks.memory import peak_tensor_bytes

POWERS = {"mean": 1.0, "root": 0.5, "sum": 0.0}
USUAL = [
    ("n n, n n -> n n", "ab,bc->ac"),
    ("u i, i u -> u u", "ab,bc->ac"),
    ("u i, i v -> u v", "ab,bc->ac"),
    ("n n, n -> n", "ab,b->a"),
    ("n, n n -> n", "a,ab->b"),
    ("n n n, n n n -> n n n", "adc,dbc->abc"),
]


@pytest.fixture(params=["kernel", "torch"])
def with_and_without_a_kernel(request):
    """DenseLayout products run on a compiled kernel, or on torch operations where there is none."""
    if request.param == "kernel" and kernels() is None:
        pytest.skip("bellnet was built without kernels")
    with nullcontext() if request.param == "kernel" else disabled():
        yield


@st.composite
def problems(draw):
    """A spec, a contraction of it, and three graphs with a number of nodes for every node set."""
    roles = draw(st.lists(st.sampled_from(["shared", "left", "right", "summed"]), min_size=1, max_size=4))
    letters = "abcd"[: len(roles)]
    sets = dict(zip(letters, draw(st.lists(st.sampled_from("nu"), min_size=4, max_size=4)), strict=False))
    without = "right", "left", "summed"  # which letters x, y and the product do not have
    parts = [
        "".join(draw(st.permutations([one for one, role in zip(letters, roles, strict=True) if role != other])))
        for other in without
    ]
    x, y, result = (tuple(sets[letter] for letter in part) for part in parts)
    sizes = {name: torch.tensor(draw(st.lists(st.integers(0, 4), min_size=3, max_size=3))) for name in "nu"}
    return bn.Spec((x, y), result), f"{parts[0]},{parts[1]}->{parts[2]}", sizes


def oracle(contraction, x, y, power):
    """Of one graph, by einsum."""
    source, result = contraction.split("->")
    one, other = source.split(",")
    lengths = dict(zip(one, x.shape, strict=False)) | dict(zip(other, y.shape, strict=False))
    n_terms = prod(lengths[letter] for letter in set(one + other) - set(result))
    return torch.einsum(f"{one}Z,{other}Z->{result}Z", x, y) / max(n_terms, 1) ** power


def drawn(shape, sizes, graph, generator, density=1.0):
    lengths = [int(sizes[name][graph]) for name in shape]
    stored = torch.rand(lengths, generator=generator) < density
    return torch.randn(*lengths, 2, generator=generator, dtype=torch.float64) * stored.unsqueeze(-1)


def padded(graphs, shape, sizes):
    """A batch with garbage outside."""
    if not shape:
        return torch.stack(graphs)
    clean = bn.Padded.pack(graphs, " ".join(shape)).values
    inside = bn.Padded.pack([torch.ones_like(graph) for graph in graphs], " ".join(shape)).values > 0
    return bn.Padded(clean.masked_fill(~inside, torch.nan), {name: sizes[name] for name in set(shape)})


def as_sparse(graphs, shape, sizes):
    if not shape:
        return torch.stack(graphs)
    return bn.Sparse.from_dense(padded(graphs, shape, sizes), " ".join(shape))


@pytest.mark.usefixtures("with_and_without_a_kernel")
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problems(), st.sampled_from(sorted(POWERS)), st.integers(0, 2**16))
def test_products_are_those_of_einsum_on_every_layout(problem, normalize, seed):
    spec, contraction, sizes = problem
    generator, product = torch.Generator().manual_seed(seed), bn.Product(spec, contraction, normalize=normalize)
    xs, ys = ([drawn(shape, sizes, graph, generator, 0.6) for graph in range(3)] for shape in spec.sources)
    wanted = [oracle(contraction, x, y, POWERS[normalize]) for x, y in zip(xs, ys, strict=True)]
    for x, y, expected in zip(xs, ys, wanted, strict=True):
        assert_close(product(x, y), expected)
        assert_close(product(x[None, None], y[None, None]), expected[None, None])
    found = product(*(padded(several, shape, sizes) for several, shape in zip((xs, ys), spec.sources, strict=True)))
    if isinstance(found, bn.Padded):
        outside = bn.Padded.pack([torch.ones_like(one) for one in wanted], " ".join(spec.target)).values == 0
        assert torch.equal(found.values[outside], torch.zeros_like(found.values[outside]))
        assert_close(found.unpack(" ".join(spec.target)), wanted)
    else:
        assert_close(found, torch.stack(wanted))
    if not any(spec.sources):
        return
    support = None
    if spec.target:
        support = as_sparse(
            [drawn(spec.target, sizes, graph, generator, 0.5) for graph in range(3)], spec.target, sizes
        )
    factors = [as_sparse(several, shape, sizes) for several, shape in zip((xs, ys), spec.sources, strict=True)]
    found = product(*factors, support=support)
    if support is None:
        assert_close(found, torch.stack(wanted))
    else:
        assert found.support is support.support
        for graph, expected in zip(found.unpack(), wanted, strict=True):
            assert_close(graph.values, expected[tuple(graph.index)])


@pytest.mark.parametrize(("spec", "contraction"), USUAL)
def test_usual_shapes_need_no_contraction(spec, contraction):
    assert bn.Product(spec).plan.text == contraction
    bn.testing.assert_equivariant(bn.Product(spec), spec, in_channels=2, dtype=torch.float64)


def test_the_check_of_two_factors_can_fail():
    def skewed(x, y):
        return torch.einsum("zabc,zbdc->zadc", x, y.cumsum(1))

    with pytest.raises(EquivarianceError):
        bn.testing.assert_equivariant(skewed, "n n, n n -> n n", in_channels=2)


SPECS = [*(spec for spec, _ in USUAL[:3]), ("n n n, n n n -> n n n")]


@pytest.mark.usefixtures("with_and_without_a_kernel")
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("layout", ["dense", "padded", "sparse"])
def test_first_and_second_derivatives_are_right(spec, layout):
    product = bn.Product(spec, normalize="root")
    shapes, sizes = product.spec.sources, {"n": [3, 1], "u": [2, 3], "i": [3, 1], "v": [1, 2]}
    sizes, generator = {name: torch.tensor(one) for name, one in sizes.items()}, torch.Generator().manual_seed(0)
    pairs = [[drawn(shape, sizes, graph, generator, 0.7) for graph in range(2)] for shape in shapes]
    form = {"dense": padded, "padded": padded, "sparse": as_sparse}[layout]
    x, y = (form(graphs, shape, sizes) for graphs, shape in zip(pairs, shapes, strict=True))
    support = None
    if layout == "dense":
        x, y = (one.values.nan_to_num() for one in (x, y))
    elif layout == "sparse":
        support = as_sparse(
            [drawn(product.spec.target, sizes, one, generator, 0.7) for one in range(2)], product.spec.target, sizes
        )

    def function(a, b):
        if layout == "dense":
            return product(a, b)
        return product(x.with_values(a), y.with_values(b), support=support).values

    values = [(one if layout == "dense" else one.values.nan_to_num()).clone().requires_grad_() for one in (x, y)]
    assert torch.autograd.gradcheck(function, values, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, values, fast_mode=True)


@pytest.mark.usefixtures("with_and_without_a_kernel")
def test_gradients_of_padding_are_zero():
    product, sizes = bn.Product("n n, n n -> n n"), torch.tensor([3, 1])
    values = torch.randn(2, 3, 3, 2, requires_grad=True)
    x = bn.Padded(values, sizes)
    result = product(x, x).values
    inside = bn.Padded.pack([torch.ones(3, 3, 1), torch.ones(1, 1, 1)]).values > 0
    gradient = torch.ones_like(result).masked_fill(~inside, torch.nan)
    (found,) = torch.autograd.grad(result, values, gradient)
    assert found.isfinite().all()
    assert not found.masked_fill(inside, 0).any()


@pytest.mark.usefixtures("with_and_without_a_kernel")
def test_one_factor_may_be_both():
    x = torch.randn(4, 4, 2, dtype=torch.float64, requires_grad=True)
    product = bn.Product("n n, n n -> n n", normalize="sum")
    assert_close(product(x, x)[..., 1], x[..., 1] @ x[..., 1])
    assert torch.autograd.gradcheck(lambda one: product(one, one), x, fast_mode=True)


def _edges(n=6, density=0.5, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, n, 2, generator=generator, dtype=dtype)
    return bn.Sparse.from_dense(x * (torch.rand(n, n, 1, generator=generator) < density))


def test_a_product_of_sparse_has_the_support_of_the_first_factor():
    x, y = _edges(), _edges(seed=1)
    found = bn.Product("n n, n n -> n n")(x, y)
    assert found.support is x.support
    beside = bn.Product("n n, n -> n")(x, torch.randn(6, 2, dtype=torch.float64))
    assert isinstance(beside, torch.Tensor)
    assert beside.shape == (6, 2)


def test_stored_means_divide_by_terms_with_both_factors_stored():
    x, y = _edges(), _edges(seed=1)
    total, listed_mean = (bn.Product("n n, n n -> n n", normalize=one)(x, y).values for one in ("sum", "stored"))
    a, b = ((one.to_dense() != 0).any(-1).double() for one in (x, y))
    n_terms = (a @ b)[tuple(x.index)]
    assert n_terms.min() == 0
    assert n_terms.max() > 1
    assert_close(listed_mean, total / n_terms.clamp(min=1).unsqueeze(-1))
    dense = x.to_dense(), y.to_dense()
    means = (bn.Product("n n, n n -> n n", normalize=one)(*dense) for one in ("stored", "mean"))
    assert torch.equal(*means)


def test_triangles_are_counted():
    generator = torch.Generator().manual_seed(3)
    a = (torch.rand(30, 30, generator=generator) < 0.3).double().triu(1)
    x = bn.Sparse.from_dense((a + a.T).unsqueeze(-1))
    found = bn.Product("n n, n n -> n n", normalize="sum")(x, x)
    assert found.values.sum() == torch.linalg.matrix_power(a + a.T, 3).trace()


def test_terms_are_cached_for_three_supports_and_freed_with_them(monkeypatch):
    calls = []
    find = sparse_products._find_terms
    monkeypatch.setattr(sparse_products, "_find_terms", lambda *several: calls.append(several) or find(*several))
    x, product = _edges(), bn.Product("n n, n n -> n n")
    for _ in range(2):
        product(x, x.with_values(x.values + 1))
    assert len(calls) == 1
    product(x, x, support=_edges(seed=2))
    assert len(calls) == 2


def test_terms_are_looked_up_from_the_factor_with_fewer_tuples(monkeypatch):
    # A star: every edge leads into the hub or out of it, and the hub has as many neighbours as there are nodes.
    n, looked_up = 200, []
    positions = bn.tensors.Support.positions
    monkeypatch.setattr(
        bn.tensors.Support, "positions", lambda self, nodes: looked_up.append(nodes.shape[1]) or positions(self, nodes)
    )
    rays = torch.stack([torch.zeros(n - 1, dtype=torch.int64), torch.arange(1, n)])
    star = bn.Sparse(torch.cat([rays, rays.flip(0)], 1), torch.ones(2 * n - 2, 1), n)
    assert not bn.Product("n n, n n -> n n")(star, star).values.any()  # no triangles
    assert sum(looked_up) == 2 * n - 2


def test_terms_are_computed_in_portions(monkeypatch):
    x, y = _edges(12), _edges(12, seed=1)
    whole = bn.Product("n n, n n -> n n")(x, y).values
    again = [bn.Sparse(one.index, one.values, 12) for one in (x, y)]
    monkeypatch.setattr(sparse_products, "MOST_CANDIDATES", 7)
    monkeypatch.setattr(sparse_products, "_portions", lambda bounds, like: _small_portions(bounds))
    assert_close(bn.Product("n n, n n -> n n")(*again).values, whole)


def _small_portions(bounds):
    for row in range(len(bounds) - 1):
        yield slice(row, row + 1), slice(int(bounds[row]), int(bounds[row + 1]))


def test_portions_have_every_term_once():
    bounds = torch.tensor([0, 0, 3, 3, 2000, 2001, 2001, 4100, 4100])
    found = list(sparse_products._portions(bounds, torch.zeros(1, 10**6)))
    assert [terms for _, terms in found] == [slice(0, 3), slice(3, 2001), slice(2001, 4100)]
    assert all((bounds[rows.start], bounds[rows.stop]) == (terms.start, terms.stop) for rows, terms in found)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_values_keep_their_type(dtype):
    x = _edges(dtype=dtype)
    assert bn.Product("n n, n n -> n n")(x, x).values.dtype == dtype
    if dtype == torch.float64:
        assert bn.Product("n n, n n -> n n")(x.to_dense(), x.to_dense()).dtype == dtype


def test_an_exported_product_leaves_the_number_of_nodes_open():
    product, n = bn.Product("n n, n n -> n n"), torch.export.Dim("n", min=2, max=100)
    x, y = torch.randn(2, 5, 5, 3), torch.randn(2, 5, 5, 3)
    axes = {1: n, 2: n}
    exported = torch.export.export(product, (x, y), dynamic_shapes=(axes, axes)).module()
    x, y = torch.randn(2, 7, 7, 3), torch.randn(2, 7, 7, 3)
    assert_close(exported(x, y), product(x, y))


def test_products_can_be_transformed_by_torch_func():
    product = bn.Product("n n, n n -> n n")
    x, y = torch.randn(2, 4, 4, 3, dtype=torch.float64), torch.randn(2, 4, 4, 3, dtype=torch.float64)
    assert_close(torch.func.vmap(product)(x, y), product(x, y))
    found = torch.func.jvp(lambda one: product(one, y), (x,), (y,))[1]
    assert_close(found, product(y, y))
    edges = _edges()
    values = torch.randn_like(edges.values)
    found = torch.func.jvp(lambda one: product(edges.with_values(one), edges).values, (edges.values,), (values,))[1]
    assert_close(found, product(edges.with_values(values), edges).values)


def test_a_copied_product_is_the_same_and_has_no_parameters(tmp_path):
    product = bn.Product("u i, i v -> u v", normalize="sum")
    torch.save(product, tmp_path / "product.pt")
    again = torch.load(tmp_path / "product.pt", weights_only=False)
    x, y = torch.randn(3, 4, 2), torch.randn(4, 5, 2)
    assert torch.equal(again(x, y), product(x, y))
    assert not list(product.parameters())
    assert not product.state_dict()


@pytest.mark.usefixtures("with_and_without_a_kernel")
def test_factors_and_gradients_may_have_any_strides():
    product, x = bn.Product("n n, n n -> n n", normalize="sum"), torch.randn(2, 5, 5, 3, dtype=torch.float64)
    by_channels = x.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1).requires_grad_()
    x.requires_grad_()
    results = product(x, x), product(by_channels, by_channels)
    assert_close(*results)
    upstream = torch.randn(3, 5, 5, 2, dtype=torch.float64).permute(3, 1, 2, 0)
    gradients = [
        torch.autograd.grad(result, one, upstream)[0] for result, one in zip(results, (x, by_channels), strict=True)
    ]
    assert_close(*gradients)
    assert torch.autograd.gradgradcheck(product, (by_channels[:1, :2, :2], by_channels[1:, :2, :2]))


CONTRACTIONS = [
    ("n n, n n -> n n", "ab,bc->ac"),
    ("n n, n n -> n n", "ba,bc->ac"),  # factors and products that stand turned
    ("n n, n n -> n n", "ab,cb->ca"),
    ("n n, n n -> n n", "ba,cb->ac"),
    ("n n, n n -> n n", "ab,ba->ab"),
    ("u i, i v -> u v", "ab,bc->ac"),
    ("n n, n -> n", "ab,b->a"),
    (bn.Spec((("n",), ("n",)), ()), "a,a->"),
    ("n, n -> n n", "a,b->ba"),
    ("n n n, n n n -> n n n", "adc,dbc->abc"),
    ("n n n, n n n -> n n n", "cda,bdc->bca"),
    ("n n n, n n n -> n n", "abc,bac->ab"),
    ("n n n, n n n -> n n", "acd,dcb->ba"),  # no order of the axes suits both
]
SIZES = {"n": 3, "u": 2, "i": 4, "v": 3}


def _factors(product, channels=2):
    return [
        torch.randn(5, *[SIZES[name] for name in shape], channels, dtype=torch.float64)
        for shape in product.spec.sources
    ]


@pytest.mark.usefixtures("with_and_without_a_kernel")
@pytest.mark.parametrize(("spec", "contraction"), CONTRACTIONS)
@pytest.mark.parametrize("needed", [(True, True), (True, False), (False, True), (False, False)])
def test_contractions_and_any_of_their_gradients_are_those_of_einsum(spec, contraction, needed):
    product = bn.Product(spec, contraction, normalize="root")
    factors = [one.requires_grad_(wanted) for one, wanted in zip(_factors(product), needed, strict=True)]
    found = product(*factors)
    expected = torch.stack([oracle(contraction, x, y, 0.5) for x, y in zip(*factors, strict=True)])
    assert_close(found, expected)
    assert found.is_contiguous()
    upstream, wanted = torch.randn_like(found), [one for one in factors if one.requires_grad]
    if wanted:
        assert_close(torch.autograd.grad(found, wanted, upstream), torch.autograd.grad(expected, wanted, upstream))


@pytest.mark.usefixtures("with_and_without_a_kernel")
@pytest.mark.parametrize(("spec", "contraction"), CONTRACTIONS)
def test_derivatives_of_contractions_are_right(spec, contraction):
    product = bn.Product(spec, contraction)
    x, y = (one.requires_grad_() for one in _factors(product))
    assert torch.autograd.gradcheck(product, (x, y), fast_mode=True)
    assert torch.autograd.gradgradcheck(product, (x, y), fast_mode=True)
    assert torch.autograd.gradgradcheck(lambda one: product(one, y.detach()), x, fast_mode=True)
    assert torch.autograd.gradcheck(product, (x, y), fast_mode=True, check_batched_grad=True)


@pytest.mark.usefixtures("with_and_without_a_kernel")
def test_padded_graphs_and_their_gradients_are_those_of_einsum():
    sizes = torch.tensor([3, 0, 2, 3, 1])
    xs, ys = ([torch.randn(n, n, 2, dtype=torch.float64, requires_grad=True) for n in sizes] for _ in range(2))
    found = bn.Product("n n, n n -> n n")(bn.Padded.pack(xs), bn.Padded.pack(ys)).unpack()
    expected = [oracle("ab,bc->ac", x, y, 1.0) for x, y in zip(xs, ys, strict=True)]
    assert_close(found, expected)
    ours, theirs = (
        torch.autograd.grad(sum(one.sin().sum() for one in several), xs + ys) for several in (found, expected)
    )
    assert_close(ours, theirs)


@pytest.mark.usefixtures("with_and_without_a_kernel")
@pytest.mark.parametrize("shape", [(2, 4, 4, 3), (2, 4, 4, 1), (2, 1, 1, 3), (2, 0, 0, 3), (0, 4, 4, 3)])
def test_a_product_may_be_changed_in_place_and_shares_no_memory_with_the_next_one(shape):
    product, (x, y) = bn.Product("n n, n n -> n n"), torch.randn(2, *shape, requires_grad=True)
    found = product(x, y)
    before = found.detach().clone()
    product(x + 1, y).sum().backward()
    assert torch.equal(found, before)
    assert torch.equal(found.relu_(), before.relu())
    found.sum().backward()


@pytest.mark.usefixtures("with_and_without_a_kernel")
def test_third_derivatives_are_those_of_einsum():
    x, y = (torch.randn(1, 3, 3, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    product, found = bn.Product("n n, n n -> n n", normalize="sum"), []
    for multiply in (product, lambda one, other: torch.einsum("zabc,zbdc->zadc", one, other)):
        value = multiply(x, y)
        for _ in range(3):
            (value,) = torch.autograd.grad(value.pow(3).sum(), x, create_graph=True)
        found.append(value)
    assert_close(*found)


@pytest.mark.skipif(kernels() is None, reason="there are no kernels")
@pytest.mark.parametrize("contraction", ["ab,bc->ac", "ba,cb->ac", "ab,cb->ca"])
def test_a_dense_product_makes_no_tensors_but_its_result_and_gradients(contraction):
    product, (x, y, upstream) = bn.Product("n n, n n -> n n", contraction), torch.randn(3, 5, 9, 9, 20)
    cost = product.plan.cost(9, channels=20, batch=5)
    assert peak_tensor_bytes(lambda: product(x, y)) == cost.output_bytes + cost.extra_bytes == upstream.nbytes
    x.requires_grad_(), y.requires_grad_()
    gradients = peak_tensor_bytes(lambda: torch.autograd.grad(product(x, y), (x, y), upstream))
    assert gradients == 3 * upstream.nbytes


@pytest.mark.skipif(kernels() is None, reason="there are no kernels")
def test_scratch_memory_of_a_product_does_not_grow_with_the_graphs():
    taken = []
    for n in (100, 200):
        x = torch.randn(2, n, n, 16)
        kernels().bellnet_most_bytes()
        bn.Product("n n, n n -> n n")(x, x)
        taken.append(kernels().bellnet_most_bytes())
    assert 0 < taken[0] == taken[1] < 2**20


@pytest.mark.skipif(kernels() is None, reason="there are no kernels")
def test_only_the_other_factor_is_saved_for_the_gradient_of_one():
    product, (x, y) = bn.Product("n n, n n -> n n"), torch.randn(2, 3, 4, 4, 2)
    saved = []

    def pack(tensor):
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        product(x.requires_grad_(), y)
    (other,) = saved
    assert other.data_ptr() == y.data_ptr()

"""Compiled kernels, compared with torch's operations: every variant, any number of threads, tiles of every shape."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.func import functional_call
from torch.testing import assert_close
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.flop_counter import FlopCounterMode

import bellnet as bn
from bellnet.backends import DenseLayout, Nodes, kernel_backend, pool_orbits
from bellnet.kernels import DISABLE_VARIABLE, VARIANTS, calling, disabled, kernels
from bellnet.kernels import calling as package
from tests.backends.subjects import randomise

ROOT = Path(__file__).parents[2]

needs_kernels = pytest.mark.skipif(kernels() is None, reason="bellnet was built without kernels")


def _runs(layer, given, pulled, **options):
    """The result of a layer, and the gradients of its input and parameters."""
    result = layer(given, **options)
    values = result.values if isinstance(result, bn.Padded) else result
    inside = given.values if isinstance(given, bn.Padded) else given
    return values, *torch.autograd.grad(values, (inside, *layer.parameters()), pulled)


def _both(layer, given, pulled, **options):
    """The same by kernels, and by torch's operations."""
    found = _runs(layer, given, pulled, **options)
    with disabled():
        layer._executor._last = None
        wanted = _runs(layer, given, pulled, **options)
    layer._executor._last = None
    return found, wanted


def _spreads(layer, sizes, batch, dtype=torch.float64):
    """An input and a gradient for a layer over node sets of these sizes."""
    given, pulled = (
        torch.randn(batch, *[sizes[name] for name in shape], channels, dtype=dtype)
        for shape, channels in ((layer.spec.source, layer.in_channels), (layer.spec.target, layer.out_channels))
    )
    return given.requires_grad_(), pulled


@pytest.fixture(params=[1, 2, 3])
def threads(request, monkeypatch):
    """So many threads, however little there is to do."""
    monkeypatch.setattr(calling, "MULTIPLICATIONS_PER_THREAD", 1)
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


CASES = [
    ("n n -> n n", {"n": 17}, (16, 32)),
    ("n n -> n n", {"n": 8}, (3, 1)),
    ("n n -> n n", {"n": 40}, (8, 8)),
    ("n n n -> n n n", {"n": 9}, (4, 8)),
    ("n n n n -> n n n n", {"n": 4}, (2, 2)),
    ("n n -> n", {"n": 70}, (5, 33)),
    ("n -> n n n", {"n": 11}, (20, 4)),
    ("n n ->", {"n": 13}, (64, 70)),
    ("u i -> u i", {"u": 9, "i": 21}, (7, 48)),
    ("u u i -> i u", {"u": 6, "i": 10}, (12, 17)),
]


WIDE = [  # where rows have so many multiplications that zeros are looked for
    ("n n -> n n", {"n": 17}, (16, 160)),
    ("n n -> n n", {"n": 10}, (70, 48)),
    ("n n n -> n n n", {"n": 7}, (24, 36)),
    ("n n -> n", {"n": 30}, (33, 70)),
    ("u i -> u i", {"u": 9, "i": 21}, (48, 96)),
    ("n n ->", {"n": 13}, (64, 70)),
]


def _mostly_zeros(tensor, share):
    """The tensor with so many of its rows all zeros, some of them negative ones; of others one number is left."""
    width, kinds = tensor.shape[-1], torch.rand(tensor.shape[:-1]).unsqueeze(-1)
    single = torch.arange(width) == torch.randint(width, kinds.shape)
    stays = (kinds >= share) & (single | (kinds >= (1 + share) / 2))
    return torch.where(stays, tensor, torch.zeros_like(tensor).copysign(tensor)).detach()


@needs_kernels
@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize(("spec", "sizes", "channels"), CASES)
def test_kernels_give_what_the_operations_of_torch_give(spec, sizes, channels, batch, threads):
    layer = randomise(bn.EquivariantLinear(spec, *channels, dtype=torch.float64))
    for one, other in zip(*_both(layer, *_spreads(layer, sizes, batch)), strict=True):
        assert_close(one, other)


@needs_kernels
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_variant_that_this_processor_knows_gives_the_same(variant, dtype, monkeypatch):
    if not (package.SOURCES / "built" / f"kernels-{variant}.so").exists() or VARIANTS.index(variant) < VARIANTS.index(
        package.processor()
    ):
        pytest.skip(f"{variant} was not built, or this processor does not know it")
    monkeypatch.setattr(package, "processor", lambda: variant)
    kernels.cache_clear()
    try:
        assert variant in kernels()._name
        for spec, sizes, channels in [*CASES, *WIDE]:
            layer = bn.EquivariantLinear(spec, *channels, dtype=dtype)
            for share in (0, 0.9):
                given, pulled = (_mostly_zeros(one, share) for one in _spreads(layer, sizes, 3, dtype))
                for one, other in zip(*_both(layer, given.requires_grad_(), pulled), strict=True):
                    assert_close(one, other, rtol=1e-4, atol=1e-4 * float(other.detach().abs().max()))
    finally:
        kernels.cache_clear()


@needs_kernels
@pytest.mark.parametrize("normalize", ["mean", "sum"])
@pytest.mark.parametrize("share", [0.5, 0.97, 1.0])
@pytest.mark.parametrize(("spec", "sizes", "channels"), WIDE)
def test_rows_of_zeros_that_are_passed_over_change_nothing(spec, sizes, channels, share, normalize, threads):
    layer = randomise(bn.EquivariantLinear(spec, *channels, normalize=normalize, dtype=torch.float64))
    given, pulled = (_mostly_zeros(one, share) for one in _spreads(layer, sizes, 3))
    cut = {name: torch.tensor([length, length // 2, 0]) for name, length in sizes.items()}
    padded = bn.Padded(given.requires_grad_(), cut if len(cut) > 1 else next(iter(cut.values())))
    for kind in (given, padded):
        for one, other in zip(*_both(layer, kind, pulled), strict=True):
            assert_close(one, other)


@needs_kernels
@pytest.mark.parametrize("share", [0.5, 0.97])
def test_rows_of_zeros_in_several_tensors_that_are_passed_over_change_nothing(share, threads):
    layer = randomise(bn.EquivariantLinear("n n, n -> n n, n", (48, 20), (96, 30), dtype=torch.float64))

    def some(*channels):
        shapes = zip(((3, 9, 9), (3, 9)), channels, strict=True)
        return [_mostly_zeros(torch.randn(*shape, width, dtype=torch.float64), share) for shape, width in shapes]

    given, pulled = [one.requires_grad_() for one in some(48, 20)], some(96, 30)

    def runs():
        layer._executor._last = None
        results = layer(tuple(given))
        return *results, *torch.autograd.grad(results, (*given, *layer.parameters()), pulled)

    found = runs()
    with disabled():
        for one, other in zip(found, runs(), strict=True):
            assert_close(one, other)


@needs_kernels
@pytest.mark.parametrize("is_listed", [False, True])
def test_rows_of_zeros_are_passed_over_in_wide_layers(is_listed):
    """So that what is no number does not come through; elsewhere it does."""
    for width, is_passed_over in ((64, True), (4, False)):
        layer, x = bn.EquivariantLinear("n n -> n n", width, width), torch.zeros(3, 3, width, requires_grad=True)
        given = bn.Sparse(torch.cartesian_prod(torch.arange(3), torch.arange(3)).T, x.reshape(9, width), 3)
        with torch.no_grad():
            layer.weight.fill_(torch.nan)
        result = layer(given).values if is_listed else layer(x)
        assert bool(result.isfinite().all()) == is_passed_over
        (of_x,) = torch.autograd.grad(result, x, torch.zeros_like(result))
        assert bool(of_x.isfinite().all()) == is_passed_over


@needs_kernels
@pytest.mark.parametrize("normalize", ["mean", "sum", "stored"])
@pytest.mark.parametrize("shares", [(0, 1), (0.5, 0.5), (0.97, 0.97), (1, 0)], ids=str)
def test_listed_rows_of_zeros_that_are_passed_over_change_nothing(shares, normalize, threads, monkeypatch):
    layer = randomise(bn.EquivariantLinear("n n -> n n", 40, 70, normalize=normalize, dtype=torch.float64))
    index = torch.randint(40, (2, 500)).unique(dim=1)
    values, pulled = (
        _mostly_zeros(torch.randn(index.shape[1], width, dtype=torch.float64), share)
        for width, share in zip((40, 70), shares, strict=True)
    )

    def runs():
        x = bn.Sparse(index, values.requires_grad_(), 40)
        result = layer(x).values
        return result, *torch.autograd.grad(result, (values, *layer.parameters()), pulled)

    found = runs()
    with disabled():
        wanted = runs()
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other)


@needs_kernels
@given(st.data())
def test_channels_sizes_and_padding_of_any_kind_change_nothing(data):
    spec = data.draw(st.sampled_from([spec for spec, _, _ in CASES if "n n n n" not in spec]))
    channels = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))
    normalize = data.draw(st.sampled_from(["mean", "sum"]))
    layer = randomise(bn.EquivariantLinear(spec, *channels, normalize=normalize, dtype=torch.float64))
    lengths = {name: data.draw(st.integers(0, 12)) for name in layer.spec.node_sets}
    batch = data.draw(st.integers(0, 4))
    given, pulled = _spreads(layer, lengths, batch)
    if data.draw(st.booleans()):
        sizes = {
            name: torch.tensor(data.draw(st.lists(st.integers(0, length), min_size=batch, max_size=batch)), dtype=int)
            for name, length in lengths.items()
        }
        given = bn.Padded(given, sizes if len(sizes) > 1 else next(iter(sizes.values())))
    for one, other in zip(*_both(layer, given, pulled), strict=True):
        assert_close(one, other)


@needs_kernels
@pytest.mark.parametrize("options", [{"symmetric": True}, {"hollow": True}, {"bias": False}], ids=str)
def test_plans_with_gaps_and_layers_without_bias_run_as_well(options):
    layer = randomise(bn.EquivariantLinear("n n n -> n n", 3, 5, dtype=torch.float64, **options))
    for one, other in zip(*_both(layer, *_spreads(layer, {"n": 7}, 2)), strict=True):
        assert_close(one, other)


@needs_kernels
def test_tensors_that_lie_otherwise_are_read_as_they_are_meant():
    layer = randomise(bn.EquivariantLinear("n n -> n n", 4, 4, dtype=torch.float64))
    given, pulled = (one.detach().transpose(1, 3).transpose(2, 3) for one in _spreads(layer, {"n": 4}, 2))
    for one, other in zip(*_both(layer, given.requires_grad_(), pulled.expand(2, 4, 4, 4)), strict=True):
        assert_close(one, other)


@needs_kernels
def test_numbers_that_are_negated_when_they_are_looked_at_are_negated():
    layer = randomise(bn.EquivariantLinear("n n -> n n", 2, 3, dtype=torch.float64))
    negated = torch._neg_view(torch.randn(2, 4, 4, 2, dtype=torch.float64))
    assert negated.is_neg()
    assert_close(layer(negated), layer(negated.resolve_neg()))


@needs_kernels
def test_sums_over_many_rows_keep_their_digits():
    """Numbers added one after the other to one sum would lose a hundred times as much."""
    layer = bn.EquivariantLinear("n n -> n n", 4, 4)
    given, pulled = _spreads(layer, {"n": 300}, 2, torch.float32)
    wanted = _runs(layer.double(), given.detach().double().requires_grad_(), pulled.double())
    found = _runs(layer.float(), given, pulled)
    for one, true in zip(found, wanted, strict=True):
        assert (one.double() - true).norm() <= 10 * torch.finfo(torch.float32).eps * true.norm()


WEIGHTS = {
    "weight too narrow": {"weight": torch.zeros(15, 4, 2)},
    "bias of another type": {"bias": torch.ones(2, 4, dtype=torch.float64)},
    "bias elsewhere": {"bias": torch.ones(2, 4, device="meta")},
    "weight of another class": {"weight": TwoTensor(torch.ones(15, 4, 4), torch.ones(15, 4, 4))},
}
OUTCOMES = {"weight too narrow": "must match the size of tensor b", "bias elsewhere": "not on the expected device"}
"""The errors of torch's operations; the others are computed."""


@needs_kernels
@pytest.mark.parametrize("name_of_case", WEIGHTS)
def test_no_kernel_is_given_weights_that_it_would_misread(name_of_case):
    """Torch's operations take them, or raise."""
    parameters = WEIGHTS[name_of_case]
    layer, x = bn.EquivariantLinear("n n -> n n", 4, 4), torch.randn(2, 5, 5, 4)
    layer(x)
    (name, given), *_ = parameters.items()
    walk = layer._executor._last[1]
    weights, biases = ([given], None) if name == "weight" else ([layer.weight], [given])
    assert isinstance(walk, kernel_backend.KernelBackend)
    assert walk.accepts([x], [layer.weight], [layer.bias])
    assert not walk.accepts([x], weights, biases)
    if (expected := OUTCOMES.get(name_of_case)) is None:
        assert functional_call(layer, parameters, (x,)).shape == (2, 5, 5, 4)
    else:
        with pytest.raises(RuntimeError, match=expected):
            functional_call(layer, parameters, (x,))


@needs_kernels
def test_gradients_of_other_classes_and_batched_ones_go_another_way():
    layer = bn.EquivariantLinear("n n -> n n, n", 4, 4)
    x = torch.randn(2, 5, 5, 4, requires_grad=True)
    edges, nodes = layer(x)
    pulled = torch.randn(3, *nodes.shape)
    together = torch.autograd.grad(nodes, x, pulled, is_grads_batched=True, retain_graph=True)[0]
    one_by_one = [torch.autograd.grad(nodes, x, one, retain_graph=True)[0] for one in pulled]
    assert_close(together, torch.stack(one_by_one))
    wanted = torch.autograd.grad(edges, x, torch.ones_like(edges), retain_graph=True)[0]
    edges.register_hook(lambda gradient: TwoTensor(gradient, gradient))
    found = torch.autograd.grad(edges.sum(), x)[0]
    assert_close(found.a if isinstance(found, TwoTensor) else found, wanted)


@needs_kernels
def test_another_default_device_changes_nothing_for_tensors_on_the_cpu():
    x = torch.randn(2, 6, 6, 3)
    with torch.device("meta"):
        found = bn.Product("n n, n n -> n n")(x, x)
    assert_close(found, torch.einsum("zabc,zbdc->zadc", x, x) / 6)


@needs_kernels
def test_negative_sizes_count_as_no_nodes():
    layer, pool = bn.EquivariantLinear("n n -> n n", 4, 4), bn.InvariantPool("n n", reduce="max")
    x, nodes = torch.randn(2, 5, 5, 4), Nodes((5,), torch.tensor([[-3, -3]]))
    (result,) = layer._executor(DenseLayout(nodes), [x], [layer.weight], [layer.bias])
    assert not result.any()
    assert not pool_orbits(x, nodes, pool._orbits[0], "max").any()


@needs_kernels
def test_tensors_of_zeros_without_memory_are_zeros():
    layer = bn.EquivariantLinear("n n -> n n", 4, 4)
    assert_close(layer(torch._efficientzerotensor((2, 5, 5, 4))), layer(torch.zeros(2, 5, 5, 4)))


@needs_kernels
def test_a_lesser_variant_serves_where_the_compiler_knew_no_better(monkeypatch, tmp_path):
    copied = Path(shutil.copytree(package.SOURCES, tmp_path / "kernels"))
    for name in VARIANTS[:-1]:
        (copied / "built" / f"kernels-{name}.so").unlink(missing_ok=True)
    monkeypatch.setattr(package, "SOURCES", copied)
    kernels.cache_clear()
    try:
        assert kernels()._name.endswith(f"kernels-{VARIANTS[-1]}.so")
    finally:
        kernels.cache_clear()


@pytest.mark.parametrize(
    ("by_torch", "supported", "variant"),
    [
        ("AVX512", 2, "AVX512"),
        ("AVX512", 1, "AVX2"),
        ("AVX512", 0, "DEFAULT"),
        ("AVX2", 2, "AVX2"),
        ("AVX2", 0, "DEFAULT"),
        ("DEFAULT", 2, "DEFAULT"),
        ("NO AVX", 2, "DEFAULT"),
    ],
)
def test_a_variant_needs_all_instructions_of_its_level(by_torch, supported, variant, monkeypatch):
    """AVX2 alone is not x86-64-v3: some machines have it without BMI, LZCNT and MOVBE."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: by_torch)
    monkeypatch.setattr(package, "_supported", lambda: supported)
    assert package.processor() == variant


@needs_kernels
@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="needs /proc/cpuinfo")
def test_the_level_of_the_processor_is_that_of_its_flags():
    flags = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[1].split())
    third = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"} <= flags
    fourth = third and {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags
    assert package._supported() == third + fourth


@needs_kernels
def test_dispatch_modes_see_the_torch_operations():
    layer, x = bn.EquivariantLinear("n n -> n n", 4, 8), torch.randn(2, 6, 6, 4)
    layer(x)
    with FlopCounterMode(display=False) as counter:
        layer(x)
    assert counter.get_total_flops() > 0


def test_they_can_be_turned_off(monkeypatch):
    monkeypatch.setenv(DISABLE_VARIABLE, "1")
    kernels.cache_clear()
    try:
        assert kernels() is None
        assert bn.EquivariantLinear("n n -> n n", 2, 3)(torch.ones(4, 4, 2)).shape == (4, 4, 3)
    finally:
        kernels.cache_clear()


def test_a_missing_library_warns_once(monkeypatch, tmp_path):
    monkeypatch.delenv(DISABLE_VARIABLE, raising=False)
    monkeypatch.setattr(package, "SOURCES", tmp_path)
    kernels.cache_clear()
    layer = bn.EquivariantLinear("n n -> n n", 2, 3)
    try:
        with pytest.warns(UserWarning, match=f"there was no C compiler.*\n.*set {DISABLE_VARIABLE}=1"):
            layer(torch.ones(4, 4, 2))
        layer(torch.ones(5, 5, 2))
    finally:
        kernels.cache_clear()


@needs_kernels
def test_kernels_of_other_sources_are_not_used(monkeypatch, tmp_path):
    """As after an update of a clone that is not installed again: what they are called with may have changed."""
    copied = Path(shutil.copytree(package.SOURCES, tmp_path / "kernels"))
    with (copied / "common.h").open("a") as opened:
        opened.write("/* and more */\n")
    monkeypatch.setattr(package, "SOURCES", copied)
    kernels.cache_clear()
    try:
        with pytest.warns(UserWarning, match="built from other sources"):
            assert kernels() is None
    finally:
        kernels.cache_clear()


@pytest.fixture
def building():
    spec = importlib.util.spec_from_file_location("build_kernels", ROOT / "build_kernels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_without_a_compiler_nothing_is_built_and_nothing_is_left_behind(building, monkeypatch, tmp_path, capfd):
    for compiler in ("there-is-no-such-compiler", f"{sys.executable} -c 'raise SystemExit(1)'"):
        monkeypatch.setenv("CC", compiler)
        assert building.compile_kernels(package.SOURCES, tmp_path) == []
        assert not list(tmp_path.iterdir())
        assert "built without the kernels kernels-DEFAULT.so" in capfd.readouterr().err


UNLIKE_GCC = """#!/bin/sh
case "$*" in
*-dM*) printf '#define __GNUC__ 4\\n#define __clang__ 1\\n' ;;
*-fopenmp* | *-fno-tree*) echo "unknown argument" >&2; exit 1 ;;
*) exec cc "$@" ;;
esac
"""


@needs_kernels
@pytest.mark.slow
@pytest.mark.parametrize("threads", [2], indirect=True)
@pytest.mark.parametrize("compiler", ["clang", "unlike-gcc"])
def test_other_compilers_than_gcc_make_kernels_and_say_of_how_many_threads(
    compiler, building, threads, monkeypatch, tmp_path, capfd
):
    if compiler == "unlike-gcc":
        script = tmp_path / compiler
        script.write_text(UNLIKE_GCC)
        script.chmod(0o755)
        compiler = str(script)
    if shutil.which(compiler) is None or shutil.which("cc") is None:
        pytest.skip(f"{compiler} or cc is not here")
    copied = Path(shutil.copytree(package.SOURCES, tmp_path / "kernels", ignore=shutil.ignore_patterns("built")))
    monkeypatch.setenv("CC", compiler)
    monkeypatch.setattr(building, "VARIANTS", {"DEFAULT": []})
    (library,) = building.compile_kernels(copied, copied / "built")
    assert capfd.readouterr().err == f"bellnet's kernels get one thread: {compiler} is not GCC\n"
    monkeypatch.setattr(package, "SOURCES", copied)
    kernels.cache_clear()
    try:
        assert kernels()._name == str(library)
        for spec, sizes, channels in CASES:
            layer = randomise(bn.EquivariantLinear(spec, *channels, dtype=torch.float64))
            for one, other in zip(*_both(layer, *_spreads(layer, sizes, 3)), strict=True):
                assert_close(one, other)
    finally:
        kernels.cache_clear()


@pytest.mark.slow
def test_a_wheel_that_is_built_without_a_compiler_is_for_every_machine(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    sources = tmp_path / "sources"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(sources)], check=True)
    subprocess.run(command, cwd=sources, check=True, capture_output=True, env={"CC": "there-is-no-such-compiler"})
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")


CHANGED = """if True:
    import torch
    import bellnet as bn

    index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    x, layer = bn.Sparse(index, torch.randn(4, 2), 3, is_sorted=True), bn.EquivariantLinear("n n -> n n", 2, 2)
    before = layer(x).values
    index.add_(10**12)
    x.index.add_(10**12)
    print(torch.equal(layer(x).values, before))
"""


@needs_kernels
def test_an_index_that_is_changed_after_a_call_does_not_lead_kernels_astray():
    done = subprocess.run([sys.executable, "-c", CHANGED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@needs_kernels
@pytest.mark.parametrize("n_rows", [1, 3, 9])
def test_values_that_do_not_fit_the_listed_tuples_are_refused_by_torch(n_rows):
    x = bn.Sparse(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), torch.randn(4, 2), 3)
    x._values = torch.randn(n_rows, 2)
    with pytest.raises(RuntimeError, match="Number of indices"):
        bn.EquivariantLinear("n n -> n n", 2, 2)(x)


def _with_wide_rows(tensor):
    """What was read, which has no axes, in another precision, and all else as it is."""
    return tensor.double() if tensor.ndim == 1 else tensor


@needs_kernels
def test_what_hooks_make_of_saved_tensors_is_not_misread():
    for x in (torch.randn(2, 3, 3, 2), bn.Sparse(torch.tensor([[0, 1], [1, 2]]), torch.randn(2, 2), 3)):
        layer = bn.EquivariantLinear("n n -> n n", 2, 2)
        gradients = []
        for change in (torch.Tensor.float, torch.Tensor.double, _with_wide_rows):
            with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, change):
                y = layer(x)
            (y.values if isinstance(y, bn.Sparse) else y).sum().backward()
            gradients.append(layer.weight.grad)
            layer.weight.grad = None
        assert_close(gradients[1], gradients[0])
        assert_close(gradients[2], gradients[0])

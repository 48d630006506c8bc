"""Random programs for the kernels, compared with oracles: `make sanitize` runs them under AddressSanitizer and UBSan.

Run without arguments, this starts one process for each instruction-set variant that the processor supports, and one
with a planted fault, which the sanitizer has to report.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from collections import Counter
from copy import deepcopy
from pathlib import Path

import torch
from torch.testing import assert_close

import bellnet as bn
from bellnet import kernels
from bellnet.backends import fused_norm, pooling, products
from bellnet.kernels import VARIANTS, calling
from bellnet.kernels.structs import ProductCall
from tests.backends.subjects import by_definition

SPECS = [
    *("n n -> n n", "n -> n", "n n -> n", "n n ->", "-> n n", "n -> n n", "n n n -> n", "n n n -> n n", "n n n ->"),
    *("u i -> u i", "u u i -> i u", "u i -> u", "u i ->", "u -> i", "u i j -> j u"),
]
SEVERAL = ["n n, n -> n n, n", "n n, n, -> n", "u i, u, i -> u i, u", "n, n n -> , n n"]
PRODUCTS = ["n n, n n -> n n", "u i, i u -> u u", "n n n, n n n -> n n n"]
ORDERS = ["n", "n n", "n n n", "u i", "u u i"]
VARIABLES = {"AVX512": "avx512", "AVX2": "avx2", "DEFAULT": "default"}


class Draw(random.Random):
    """Random choices of one program."""

    def sizes(self, names, most=6):
        return {name: self.choice([0, 1, 1, *range(2, most + 1)]) for name in dict.fromkeys(names)}

    def dtype(self):
        return self.choice([torch.float32, torch.float64])

    def width(self):
        return self.choice([1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 33, 48, 64, 70])

    def tensor(self, *shape, dtype):
        """Normal values, some rows zero, in memory as it comes: contiguous, transposed, sliced or misaligned."""
        x = torch.randn(*shape, dtype=dtype)
        if x.ndim > 1 and self.random() < 0.3:
            x = x * (torch.rand(*shape[:-1], 1) < 0.4)
        kind = self.randrange(5)
        if kind == 1 and x.ndim > 2:
            x = x.transpose(0, -2).contiguous().transpose(0, -2)
        elif kind == 2:
            x = torch.cat([x, torch.full_like(x, torch.nan)], -1)[..., : shape[-1]]
        elif kind == 3 and x.numel():
            memory = bytearray(b"\0" + x.numpy().tobytes())
            x = torch.frombuffer(memory, dtype=dtype, offset=1).reshape(shape)
        return x.requires_grad_()


def check(found, wanted, inputs, others):
    """Compare outputs, and the gradients of inputs and parameters with a random gradient of the outputs."""
    found, wanted = ([one] if isinstance(one, torch.Tensor) else list(one) for one in (found, wanted))
    pulls = [torch.randn_like(one) for one in wanted]
    is_single = any(one.dtype == torch.float32 for one in found)
    tolerance = {"atol": 3e-3, "rtol": 3e-3} if is_single else {"atol": 1e-8, "rtol": 1e-8}
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, **tolerance)
    assert [one.requires_grad for one in found] == [one.requires_grad for one in wanted]
    if any(one.requires_grad for one in found):
        gradients = [
            torch.autograd.grad(outputs, leaves, pulls, allow_unused=True, materialize_grads=True)
            for outputs, leaves in ((found, inputs), (wanted, others))
        ]
        for one, other in zip(*gradients, strict=True):
            assert_close(one, other, **tolerance)


def layer_of(draw, spec, dtype, **options):
    sides = [side.split(",") for side in spec.split("->")]
    channels = [tuple(draw.width() for _ in side) if len(side) > 1 else draw.width() for side in sides]
    layer = bn.EquivariantLinear(
        spec, *channels, dtype=dtype, normalize=draw.choice(["sum", "mean"]), bias=draw.random() < 0.8, **options
    )
    with torch.no_grad():
        for one in layer.parameters():
            one.normal_()
    return layer


def dense(draw):
    """A layer on dense tensors against the definition of its basis."""
    layer = layer_of(draw, draw.choice(SPECS), draw.dtype())
    sizes = draw.sizes(layer.spec.node_sets, 6 if len(layer.spec.slots) < 5 else 4)
    dtype, source = layer.weight.dtype, layer.spec.source
    x = draw.tensor(draw.choice([0, 1, 2, 3, 5]), *[sizes[one] for one in source], layer.in_channels, dtype=dtype)
    target_only = {name: sizes[name] for name in layer.spec.target_only}
    leaves = [x, *layer.parameters()]
    check(layer(x, sizes=target_only or None), by_definition(layer, x, sizes), leaves, leaves)


def padded(draw):
    """A layer on padded graphs against each graph by itself."""
    layer = layer_of(
        draw, draw.choice([spec for spec in SPECS if set(spec) <= set("n ->") and spec[0] == "n"]), torch.float64
    )
    n_graphs, order = draw.randrange(1, 5), len(layer.spec.source)
    sizes = torch.tensor([draw.randrange(6) for _ in range(n_graphs)])
    longest = int(sizes.max()) + draw.randrange(3)
    x = draw.tensor(n_graphs, *[longest] * order, layer.in_channels, dtype=torch.float64)
    found = layer(bn.Padded(x, sizes))
    leaves = [x, *layer.parameters()]
    wanted = []
    for graph, size in zip(x, sizes.tolist(), strict=True):
        own = by_definition(layer, graph[(slice(size),) * order].unsqueeze(0), {"n": size})[0]
        around = [0, 0] + [0, longest - size] * len(layer.spec.target)
        wanted.append(torch.nn.functional.pad(own, around))
    check(found.values if isinstance(found, bn.Padded) else found, torch.stack(wanted), leaves, leaves)


def sparse(draw):
    """A layer on stored entries against the dense layer with zeros elsewhere."""
    layer = layer_of(
        draw, draw.choice(["n n -> n n", "n n -> n", "n n ->", "n -> n", "u i -> u i", "u i -> u"]), torch.float64
    )
    sizes = draw.sizes(layer.spec.node_sets, 8)
    stored = torch.rand([sizes[one] for one in layer.spec.source]) < draw.choice([0, 0.2, 0.6, 1])
    index = stored.nonzero().T.contiguous()
    values = draw.tensor(index.shape[1], layer.in_channels, dtype=torch.float64)
    x = bn.Sparse(index, values, sizes=sizes if len(sizes) > 1 else sizes["n"], shape=" ".join(layer.spec.source))
    found, leaves = layer(x), [values, *layer.parameters()]
    wanted = by_definition(layer, x.to_dense().unsqueeze(0), sizes)[0]
    if isinstance(found, bn.Sparse):
        wanted = wanted[tuple(found.index)]
        found = found.values
    check(found, wanted, leaves, leaves)


def with_torch(call):
    """Outputs of a call by kernels, and of the same call by torch operations."""
    found = call()
    with kernels.disabled():
        return found, call()


def several(draw):
    """A layer of several tensors against torch operations."""
    layer = layer_of(draw, draw.choice(SEVERAL), draw.dtype())
    sizes, dtype, batch = draw.sizes(layer.spec.node_sets), next(layer.parameters()).dtype, draw.randrange(1, 4)
    x = tuple(
        draw.tensor(batch, *[sizes[one] for one in shape], width, dtype=dtype)
        for shape, width in zip(layer.spec.sources, layer.in_channels, strict=True)
    )
    leaves = [*x, *layer.parameters()]
    check(*with_torch(lambda: layer(x)), leaves, leaves)


def product(draw):
    """A product against torch operations."""
    module = bn.Product(draw.choice(PRODUCTS), normalize=draw.choice(["sum", "mean", "root"]))
    dtype, width, batch = draw.dtype(), draw.width(), draw.randrange(1, 4)
    sizes = draw.sizes(module.spec.node_sets, 9)
    x, y = (draw.tensor(batch, *[sizes[one] for one in shape], width, dtype=dtype) for shape in module.spec.sources)
    check(*with_torch(lambda: module(x, y)), [x, y], [x, y])


def pool(draw):
    """Pooling of orbits against torch operations."""
    shape, dtype, batch = draw.choice(ORDERS), draw.dtype(), draw.randrange(1, 5)
    module = bn.InvariantPool(shape, draw.choice(["max", "sum", "mean"]))
    sizes = draw.sizes(shape.split(), 9)
    x = draw.tensor(batch, *[sizes[one] for one in shape.split()], draw.width(), dtype=dtype)
    counts = torch.tensor([draw.randrange(sizes["n"] + 1) for _ in range(batch)]) if "n" in sizes else None
    given = bn.Padded(x, counts) if counts is not None and draw.random() < 0.5 else x
    check(*with_torch(lambda: module(given)), [x], [x])


def block(draw):
    """Normalisation, ReLU, dropout and residual of networks on stored entries against torch operations."""
    width, n_graphs, dtype = draw.width(), draw.randrange(1, 4), draw.dtype()
    dropout, training = draw.choice([0.0, 0.3]), draw.random() < 0.7
    net = bn.InvariantNet(
        "n n", [width, width], 2, norm="batch", residual=draw.random() < 0.5, dropout=dropout, normalize="stored"
    )
    net = net.to(dtype).train(training)
    graphs = []
    for _ in range(n_graphs):
        n = draw.randrange(2, 9)
        index = (torch.rand(n, n) < 0.7).fill_diagonal_(True).nonzero().T
        graphs.append(bn.Sparse(index, torch.randn(index.shape[1], width, dtype=dtype), n))
    packed = bn.Sparse.pack(graphs) if n_graphs > 1 else graphs[0]
    values = draw.tensor(*packed.values.shape, dtype=dtype)
    nets = [net, deepcopy(net)]  # each has running statistics of its own

    def call():
        own = nets[kernels.are_disabled()]
        torch.manual_seed(0)  # of dropout
        return own(packed.with_values(values))

    check(*with_torch(call), *([values, *one.parameters()] for one in nets))


PROGRAMS = [dense, dense, padded, padded, sparse, sparse, several, product, pool, pool, block]


def run(n_programs, seed, seconds):
    """Run random programs one after the other; the seed of a program that fails is printed."""
    if kernels.kernels() is None:
        sys.exit("bellnet was built without kernels")
    calling.MULTIPLICATIONS_PER_THREAD = fused_norm.VALUES_PER_THREAD = pooling.VALUES_PER_THREAD = 1
    fused_norm.MANY_VALUES = 1
    calls, real = Counter[str](), calling.function

    def counted(name, dtype):
        calls[name] += 1
        return real(name, dtype)

    for module in (calling, fused_norm, pooling, products):
        module.function = counted
    begun, number = time.monotonic(), 0
    for number in range(n_programs):
        draw = Draw(seed + number)
        torch.manual_seed(seed + number)
        torch.set_num_threads(draw.choice([1, 2, 3]))
        program = draw.choice(PROGRAMS)
        try:
            program(draw)
        except BaseException:
            print(f"{program.__name__}: seed {seed + number}", flush=True)
            raise
        if time.monotonic() - begun > seconds:
            break
    library = Path(kernels.kernels()._name).stem.removeprefix("kernels-")
    missing = {
        "forward",
        "backward",
        "product",
        "pool",
        "pool_backward",
        *(f"norm_relu{part}" for part in ("", "_sums", "_backward")),
    }
    if number > 200 and (missing := {*missing, "moments"} - calls.keys()):
        sys.exit(f"these kernels were never called: {', '.join(sorted(missing))}")
    print(f"{library}: {number + 1} programs agree with their references", flush=True)


def plant():
    """Call a kernel with a result that is one value too short."""
    columns, rows = [*range(64)], [*range(0, 64 * 64, 64)]
    n_rows = [64 * 64] * 3
    tables = torch.tensor([1, 64, 64, 64, *n_rows, 0, 0, 0, *rows, *rows, *columns, *columns, *columns, *rows])
    x, short = torch.randn(64 * 64), torch.randn(64 * 64 - 1)
    arguments = ProductCall(tables.data_ptr(), 1, 1, 1, x.data_ptr(), x.data_ptr(), short.data_ptr(), 1.0)
    calling.call(calling.function("product", torch.float32), arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=6000, help="random programs for each variant")
    parser.add_argument("--seconds", type=float, default=40, help="stop each variant after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", choices=("fuzz", "plant"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        return plant() if arguments.run == "plant" else run(arguments.programs, arguments.seed, arguments.seconds)
    supported = VARIANTS[VARIANTS.index(calling.processor()) :]
    own = [sys.executable, "-m", "tests.kernels.fuzz", *sys.argv[1:], "--run"]
    planted = subprocess.run([*own, "plant"], capture_output=True, text=True, check=False)
    if "LD_PRELOAD" in os.environ:
        if "ERROR: AddressSanitizer" not in planted.stderr:
            sys.exit(f"the sanitizer did not report a planted fault:\n{planted.stderr}")
        print("a planted fault is reported by AddressSanitizer", flush=True)
    for variant in reversed(supported):
        environment = {**os.environ, "ATEN_CPU_CAPABILITY": VARIABLES[variant]}
        done = subprocess.run([*own, "fuzz"], env=environment, stdout=subprocess.PIPE, text=True, check=False)
        print(done.stdout, end="", flush=True)
        if done.returncode or not done.stdout.startswith(f"{variant}:"):
            sys.exit(f"{variant}: failed with exit code {done.returncode}")
    return None


if __name__ == "__main__":
    main()

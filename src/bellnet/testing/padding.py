"""Whether padding changes nothing: graphs one by one, and the same graphs as one padded batch."""

import torch

from bellnet.spec import Spec, parse_spec
from bellnet.testing.compare import NO_ROUNDING, Tolerance, difference
from bellnet.testing.graphs import GivenSizes, draw_graphs
from bellnet.testing.outcomes import outcomes
from bellnet.testing.report import failure
from bellnet.testing.subject import Module, Subject


def assert_padding_invariant(
    module: Module,
    spec: str | Spec,
    *,
    in_channels: int | tuple[int, ...] | None = None,
    sizes: GivenSizes = None,
    empty: bool = False,
    nan: bool = False,
    zero_outside: bool = True,
    gradients: bool = True,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> None:
    """Raise an `EquivarianceError` if graphs in a padded batch are not treated as they are one by one.

    Graphs of different sizes, a single node among them, go through the module one by one, and then together as one
    `Padded` with garbage outside the true sizes. The outputs must agree, and so must the gradients: those of the
    inputs graph by graph, and those of the parameters with the sum over the graphs. A module whose graphs see each
    other (batch norm in training mode) cannot pass; check it after `module.eval()`.

    Args:
        module: Takes a tensor (batch, one axis for each source slot, channels) and a `Padded` of the same form. It is
            called with `sizes={...}` if the target has node sets that the source has not.
        spec: The node sets of source and target, for instance "n n -> n". Of several tensors, "n n, n -> n n, n", the
            module takes, and returns, a tuple.
        in_channels: The number of channels of the input, or a tuple of them; `module.in_channels` if not given.
        sizes: For every graph its number of nodes, for all node sets or for each. If not given, three graphs.
        empty: Whether to add a graph without any nodes.
        nan: Whether the garbage is NaN instead of large numbers: it then survives a multiplication by a mask of zeros.
        zero_outside: Whether an output that is `Padded` must be exactly zero outside the true sizes, as those of every
            layer are. After `Padded.map` it need not be.
        gradients: Whether to compare gradients too.
        seed: Where the random inputs come from.
        rtol: The rounding that is allowed, relative to the largest entry; by default as suits dtype.
        atol: The rounding that is allowed in any case; by default as suits dtype.
        dtype: The type to check in; the module's own if not given, otherwise a copy of the module is converted.
        device: The device to check on; the module's own if not given, otherwise a copy of the module is moved.

    >>> from bellnet import Padded
    >>> def mean_of_nodes(x):
    ...     if isinstance(x, Padded):
    ...         return torch.stack([graph.mean(0) for graph in x.unpack("n")])
    ...     return x.mean(-2)
    >>> assert_padding_invariant(mean_of_nodes, "n ->", in_channels=3)
    """
    spec = parse_spec(spec)
    subject = Subject.of(
        "assert_padding_invariant", module, spec, in_channels=in_channels, dtype=dtype, device=device, seed=seed
    )
    tolerance = Tolerance.choose(subject.dtype, rtol, atol)
    graphs = draw_graphs(subject, sizes, empty=empty, nan=nan)
    with torch.enable_grad():
        for outcome in outcomes(subject, graphs, zero_outside=zero_outside, gradients=gradients):
            allowed = NO_ROUNDING if outcome.exact else tolerance
            if wrong := difference(outcome.together, outcome.apart, allowed):
                raise failure(
                    subject,
                    f'sees the padding as "{spec}"',
                    [
                        ("what", outcome.what),
                        ("largest difference", str(wrong)),
                        ("where", f"[{', '.join(map(str, wrong.place))}]"),
                        ("in the padded batch", f"{wrong.found:.6g}"),
                        ("expected" if outcome.exact else "one by one", f"{wrong.expected:.6g}"),
                        ("sizes", str(graphs.sizes)),
                        ("to reproduce", f"seed={seed}"),
                    ],
                )

"""What `Padded` and `Sparse` say to those who ask them for what torch's tensors have: where it is to be had."""

from torch import Tensor

from bellnet.errors import NotATensorError

OVER_ENTRIES = frozenset(
    {
        *("all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "logsumexp", "max", "mean", "median", "min"),
        *("nanmean", "nansum", "norm", "prod", "std", "sum", "var"),
    }
)
"""What takes entries together: those of padding, too, and not those that are not listed."""
CONVERSIONS = {"cpu": '"cpu"', "cuda": '"cuda"', "double": "torch.float64", "float": "torch.float32"}
CONVERSIONS |= {"half": "torch.float16", "bfloat16": "torch.bfloat16"}
HOLDS = {
    "Padded": "x.values is the tensor, with whatever stands in its padding",
    "Sparse": "x.values is the tensor of the listed values, those of all graphs in a row",
}


def is_of_tensors(kind: type, name: str) -> bool:
    """Whether a public name is one of tensors alone; one that half-made objects lack is not."""
    return not name.startswith("_") and name != "values" and hasattr(Tensor, name) and not hasattr(kind, name)


def not_a_tensor(kind: type, name: str) -> NotATensorError:
    """The error for a name of tensors, with the way out.

    Args:
        kind: `Padded` or `Sparse`, or what somebody has derived from them.
        name: What was asked for.
    """
    said = f"A {kind.__name__} is no tensor and has no {name!r}."
    holds = next(HOLDS[base.__name__] for base in kind.__mro__ if base.__name__ in HOLDS)
    if name in CONVERSIONS:
        return NotATensorError(f"{said}\nWrite x.to({CONVERSIONS[name]}).")
    if name in OVER_ENTRIES:
        pool = name if name in ("mean", "sum") else "max"
        advice = (
            f'bellnet.InvariantPool("n n", "{pool}") takes the entries of every graph together, and so does a layer '
            f'without target slots, "n n ->".'
        )
    else:
        advice = "A function that acts on every entry alone goes into x.map(torch.relu), a module into a Pointwise."
    return NotATensorError(f"{said}\n{advice}\n{holds}.")

"""The product: a layer without weights that multiplies two tensors over nodes, channel by channel."""

from typing import Any, NoReturn

from torch import Tensor, nn

from bellnet.backends import SparseLayout, multiply_dense, multiply_sparse
from bellnet.errors import ShapeError, TensorError
from bellnet.nn.inputs import Inputs, InputValidator, NotScripted, OverNodes, check_choice
from bellnet.nn.sparse_validation import SparseInputValidator
from bellnet.plan import ProductPlan, plan_product
from bellnet.spec import Spec
from bellnet.tensors import Sparse, Support

POWERS = {"mean": 1.0, "stored": 1.0, "root": 0.5, "sum": 0.0}
"""Sums are divided by the number of their terms to this power."""


class Product(NotScripted, nn.Module):
    """The product of two tensors over nodes, channel by channel: for "n n, n n -> n n" that of matrices.

    It is equivariant and bilinear, and has no weights. Linear layers of order two with products between them
    distinguish graphs that linear layers of order two do not. Both factors have the same number of channels.

    Args:
        spec: The node sets of both factors and of the product, for instance "n n, n n -> n n" or "u i, i v -> u v".
        contraction: One letter for every slot, equal ones for one node, as in einsum: "ab,bc->ac". Letters that the
            product does not have are summed over. By default matrices and vectors are multiplied as `@` does, and
            tensors of three slots slice by slice, "adc,dbc->abc".
        normalize: "mean" divides every sum by the number of its terms, "root" by the root of that number, which keeps
            the second moment where the terms are independent; "sum" does not divide. "stored" divides by the number of
            terms of which both factors are stored in a `Sparse`, and is "mean" for tensors and `Padded`.

    Attributes:
        plan: The contraction and its cost.

    >>> product = Product("n n, n n -> n n", normalize="sum")
    >>> x, y = torch.randn(8, 30, 30, 16), torch.randn(8, 30, 30, 16)
    >>> torch.allclose(product(x, y)[0, :, :, 3], x[0, :, :, 3] @ y[0, :, :, 3], atol=1e-5)
    True
    >>> product
    Product("n n, n n -> n n", contraction="ab,bc->ac", normalize="sum")
    """

    plan: ProductPlan

    def __init__(self, spec: str | Spec, contraction: str | None = None, *, normalize: str = "mean") -> None:
        super().__init__()
        self.plan = plan_product(spec, contraction)
        self.spec = self.plan.spec
        self._call = f'Product("{self.spec}")'
        self.normalize = check_choice(self._call, "normalize", normalize, tuple(POWERS))
        self._validator = InputValidator(self._call, self.spec, (None, None), names=("x", "y"))
        self._sparse_validator = SparseInputValidator(self._validator)

    def forward(
        self, x: OverNodes, y: OverNodes | None = None, *more: object, support: Sparse | Support | None = None
    ) -> OverNodes:
        """Multiply two tensors.

        Args:
            x: (*batch, one axis for each slot, channels), as a tensor or `Padded`; or a `Sparse`.
            y: The same for the second factor, over the same nodes.
            more: Raises an error: there are two factors, and options have names.
            support: A `Sparse`, or its support, whose stored entries the product has. Without it a product of `Sparse`
                has those of the first factor that has the slots of the product.

        Returns:
            (*batch, one axis for each slot of the product, channels): `Sparse` if a factor is, or a support was passed,
            `Padded` if a factor is; else a tensor.
        """
        if y is None or more:
            _refuse_arguments(self._call, (x, y, *more) if more else (x,))
        inputs: Inputs[Any]
        if support is not None or isinstance(x, Sparse) or isinstance(y, Sparse):
            inputs = self._sparse_validator.validate((x, y), None, support, stored=self.normalize == "stored")
        else:
            inputs = self._validator.validate((x, y))
        first, second = inputs.values
        self._check_factors(first, second)
        layout, power = inputs.layout, POWERS[self.normalize]
        if isinstance(layout, SparseLayout):
            (target,) = layout.targets
            result = multiply_sparse(
                self.plan, first, second, sources=layout.sources, target=target, power=power, stored=layout.stored
            )
        else:
            result = multiply_dense(self.plan, first, second, layout.nodes, power)
        return inputs.wrap([result])[0]

    def _check_factors(self, x: Tensor, y: Tensor) -> None:
        if x.shape[-1] != y.shape[-1]:
            raise ShapeError(
                f"{self._call} pairs channels one to one, but x has {x.shape[-1]} and y has {y.shape[-1]}.\n"
                "Bring both to one number of channels, by bellnet.Pointwise(torch.nn.Linear(...)) for instance."
            )
        if x.device != y.device:
            raise TensorError(
                f'{self._call}: x is on {x.device}, but y is on {y.device}.\nMove one of them: y.to("{x.device}").'
            )
        if x.dtype != y.dtype or not x.is_floating_point():
            raise TensorError(
                f"{self._call} takes two factors of one floating point type, but x is {x.dtype} and y is {y.dtype}.\n"
                "Convert them: x.to(torch.float32)."
            )

    def extra_repr(self) -> str:
        """The options, as they would be written in a call."""
        normalize = "" if self.normalize == "mean" else f', normalize="{self.normalize}"'
        return f'"{self.spec}", contraction="{self.plan.text}"{normalize}'


def _refuse_arguments(call: str, args: tuple[object, ...]) -> NoReturn:
    """Raise because the positional arguments are not two factors, with the remedy for what they seem to be."""
    if len(args) == 1 and isinstance(args[0], tuple | list):
        got = f"a {type(args[0]).__name__} of {len(args[0])}"
        advice = "Leave out its parentheses, product(x, y), or write a star before it, product(*pair)."
    elif len(args) == 1:
        got, advice = "one", "Pass both of them: product(x, y), and product(x, x) for a square."
    else:
        got, advice = f"{len(args)} positional arguments", "Options have names: product(x, y, support=...)."
    raise TensorError(f"{call}: expected two factors as two arguments, got {got}.\n{advice}")

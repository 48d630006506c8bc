"""The cases that are measured: sizes, contestants and ratios."""

from dataclasses import dataclass
from typing import Literal

Pass = Literal["forward", "forward+backward"]

OURS, BARE, BY_HAND, STACKED, STACKED_LAST, PER_DIAGRAM = "ours", "bare", "hand", "stacked", "last", "einsums"

CONTESTANTS = {2: (OURS, BARE, BY_HAND, STACKED, STACKED_LAST), 3: (OURS, BARE, PER_DIAGRAM), 4: (OURS, BARE)}
"""The contestants for every order; ours first."""

RATIOS = {
    2: ((OURS, BARE), (OURS, BY_HAND), (STACKED, OURS), (STACKED_LAST, OURS)),
    3: ((OURS, BARE), (PER_DIAGRAM, OURS)),
    4: ((OURS, BARE),),
}
"""The ratios (numerator, denominator) for every order."""


@dataclass(frozen=True)
class Case:
    """A layer from order-k tensors to order-k tensors over one node set, and the size of its input.

    >>> str(Case(2, batch=32, n=18, in_channels=16, out_channels=32))
    '2:32,18,16,32'
    """

    order: int
    batch: int
    n: int
    in_channels: int
    out_channels: int

    @classmethod
    def parse(cls, text: str) -> "Case":
        """Parse "order:batch,n,in,out"; the order defaults to 2."""
        order, _, sizes = text.rpartition(":")
        try:
            batch, n, in_channels, out_channels = map(int, sizes.split(","))
            case = cls(int(order or 2), batch, n, in_channels, out_channels)
        except ValueError:
            raise ValueError(f"cannot read {text!r}; write order:batch,n,in,out, for instance 2:32,18,16,32") from None
        if case.order not in CONTESTANTS:
            raise ValueError(f"{text!r} is of order {case.order}; there are contestants for orders 2, 3 and 4")
        if min(batch, n, in_channels, out_channels) < 1:
            raise ValueError(f"{text!r} has a size below 1")
        return case

    def __str__(self) -> str:
        return f"{self.order}:{self.batch},{self.n},{self.in_channels},{self.out_channels}"

    @property
    def spec(self) -> str:
        """The spec of the layer."""
        slots = " ".join("n" * self.order)
        return f"{slots} -> {slots}"

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The passes that are timed."""
        return ("forward", "forward+backward") if self.order == 2 else ("forward+backward",)

    @property
    def contestants(self) -> tuple[str, ...]:
        """The contestants."""
        return CONTESTANTS[self.order]


CASES = tuple(
    Case.parse(text)
    for text in (
        "2:32,18,16,32",
        "2:32,40,16,32",
        "2:32,40,32,256",
        "2:8,100,32,32",
        "2:8,100,64,64",
        "2:1,500,32,32",
        "3:8,20,8,8",
        "4:1,26,4,4",
    )
)

QUICK_CASES = tuple(Case.parse(text) for text in ("2:32,18,16,32", "2:8,100,32,32", "3:2,10,8,8", "4:1,6,2,2"))

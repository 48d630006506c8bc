"""One way in which something is refused."""

from collections.abc import Callable
from dataclasses import dataclass

from bellnet.errors import BellnetError


@dataclass(frozen=True)
class Case:
    """A call that must be refused, and how."""

    name: str
    error: type[BellnetError]
    call: Callable[[], object]
    words: str

    def __str__(self) -> str:
        return self.name

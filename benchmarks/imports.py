"""Time of `import bellnet` with its layers and of `import torch`, alternately in fresh interpreters."""

from collections.abc import Sequence

from benchmarks.calls import python_output
from benchmarks.measure import Timing

MODULES = ("torch", "bellnet")

LAYERS = {"bellnet": "bellnet.nn"}
"""The package imports its layers lazily, so they are imported explicitly."""

CODE = "from time import perf_counter; start = perf_counter(); import {}; print(perf_counter() - start)"


def time_imports(*, rounds: int, modules: Sequence[str] = MODULES) -> dict[str, Timing]:
    """Seconds inside each interpreter from the import statement to its end.

    The start of the interpreter, which would make the ratio smaller, is not included. A first round that is not
    counted compiles bytecode and warms the file cache.
    """
    samples: dict[str, list[float]] = {name: [] for name in modules}
    for number in range(rounds + 1):
        for name in modules:
            seconds = float(python_output(CODE.format(LAYERS.get(name, name))))
            if number > 0:
                samples[name].append(seconds)
    return {name: Timing(tuple(samples[name]), 1) for name in modules}

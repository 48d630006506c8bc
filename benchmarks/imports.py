"""What `import bellnet` with its layers costs on top of `import torch`: both in fresh interpreters, taking turns."""

import subprocess
import sys
from collections.abc import Sequence

from benchmarks.measure import Timing

MODULES = ("torch", "bellnet")

LAYERS = {"bellnet": "bellnet.nn"}
"""What is imported late is imported nevertheless: by itself, the package knows no torch."""

CODE = "from time import perf_counter; start = perf_counter(); import {}; print(perf_counter() - start)"


def time_imports(*, rounds: int, modules: Sequence[str] = MODULES) -> dict[str, Timing]:
    """Seconds inside each interpreter from the import statement to its end.

    The time to start the interpreter is left out, which is the stricter way: it would make the ratio smaller. A first
    round, not counted, leaves compiled bytecode and a warm file cache to all others.
    """
    samples: dict[str, list[float]] = {name: [] for name in modules}
    for number in range(rounds + 1):
        for name in modules:
            seconds = _import_once(name)
            if number > 0:
                samples[name].append(seconds)
    return {name: Timing(tuple(samples[name]), 1) for name in modules}


def _import_once(module: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(LAYERS.get(module, module))],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    return float(done.stdout)

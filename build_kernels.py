"""Builds the kernels of `bellnet.kernels` into a wheel, or beside their sources for an editable install.

They need a C compiler only. Without one the wheel contains no kernels, and layers run on torch operations.
"""

import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

KERNELS, BUILT = Path("src/bellnet/kernels"), "built"
"""A folder of its own, without modules: Python would import libraries as modules."""
FLAGS = [
    *("-std=c11", "-O3", "-fPIC", "-fvisibility=hidden"),
    *("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"),
]
GCC_FLAGS = ["-fno-tree-loop-distribute-patterns"]
"""Short rows are not worth a call of memcpy."""
WARNINGS = ["-O1", "-Wall", "-Wextra", "-Werror"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g", "-O0"]
VARIANTS = {"AVX512": ["-march=x86-64-v4"], "AVX2": ["-march=x86-64-v3"], "DEFAULT": []}
"""The variants that torch distinguishes, and the compiler flags for them."""


def variants() -> dict[str, list[str]]:
    """The variants for the architecture of this machine."""
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    return {name: flags for name, flags in VARIANTS.items() if is_x86 or not flags}


def compile_kernels(sources: Path, into: Path, extra: Sequence[str] = ("-w",)) -> list[Path]:
    """Compile a variant for every kind of processor; return those that could be compiled.

    Args:
        sources: The folder of the sources.
        into: The folder of the libraries.
        extra: Further options of the compiler, after all others.
    """
    into.mkdir(parents=True, exist_ok=True)
    wanted = variants()
    compiler = shlex.split(os.environ.get("CC", "")) or [shutil.which("cc") or shutil.which("gcc") or "cc"]
    options = [*FLAGS, f"-DBELLNET_SOURCES={_digest(sources)}LL"]
    is_gcc = _is_gcc(compiler)
    if sys.platform == "linux" and not is_gcc:
        print(f"bellnet's kernels get one thread: {' '.join(compiler)} is not GCC", file=sys.stderr)
    if is_gcc:
        # Linked without OpenMP's library, since torch has loaded one. On Linux it is that of GCC; other compilers would
        # need another one, so their kernels run on one thread.
        options += [*GCC_FLAGS, *(["-fopenmp"] if sys.platform == "linux" else [])]
    with ThreadPoolExecutor() as several:
        made = [
            several.submit(
                _compile, compiler, sources / "kernels.c", into / f"kernels-{name}.so", [*options, *flags, *extra]
            )
            for name, flags in wanted.items()
        ]
    return [library for one in made if (library := one.result()) is not None]


def _is_gcc(compiler: list[str]) -> bool:
    """Whether it is GCC itself; others define its macros too, but also their own."""
    try:
        asked = [*compiler, "-dM", "-E", "-x", "c", os.devnull]
        known = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return False
    return "__GNUC__" in known and "__clang__" not in known and "__INTEL_COMPILER" not in known


def _compile(compiler: list[str], source: Path, library: Path, options: list[str]) -> Path | None:
    part = library.with_suffix(".o")
    try:
        subprocess.run([*compiler, *options, "-c", str(source), "-o", str(part)], check=True)
        linked = [option for option in options if option.startswith("-fsanitize=")]
        subprocess.run([*compiler, "-shared", *linked, str(part), "-o", str(library), "-lm"], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"bellnet is built without the kernels {library.name}: {error}", file=sys.stderr)
        library.unlink(missing_ok=True)
        return None
    finally:
        part.unlink(missing_ok=True)
    return library


def _digest(sources: Path) -> int:
    """The digest of the sources, by the function that compares it when kernels are loaded."""
    found = importlib.util.spec_from_file_location("structs", sources / "structs.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return int(module.digest(sources))


def main() -> None:
    """Compile beside the sources, with warnings as errors, or with sanitizers into a folder."""
    match sys.argv[1:]:
        case ["warnings"]:
            with tempfile.TemporaryDirectory() as into:
                made = compile_kernels(KERNELS, Path(into), WARNINGS)
                one_thread = compile_kernels(KERNELS, Path(into), [*WARNINGS, "-fno-openmp"])
            if min(len(made), len(one_thread)) < len(variants()):
                sys.exit("the kernels do not compile without warnings")
        case ["sanitize", folder]:
            if len(compile_kernels(KERNELS, Path(folder), ["-w", *SANITIZERS])) < len(variants()):
                sys.exit("the kernels do not compile with sanitizers")
        case []:
            compile_kernels(KERNELS, KERNELS / BUILT)
        case _:
            sys.exit("usage: build_kernels.py [warnings | sanitize FOLDER]")


if __name__ == "__main__":
    main()

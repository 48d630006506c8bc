"""The imports that each part of the library may have, checked in the source code."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.docs.reference import PUBLIC

# A part may import only the parts before it.
CORE = ("errors", "combinatorics", "spec", "plan", "tensors", "kernels", "backends", "nn")
BELOW = {part: {*CORE[:place], "_utils"} for place, part in enumerate(CORE)}
PARTS = {
    **BELOW,
    "errors": set(),
    "combinatorics": set(),  # the standard library alone
    "kernels": {"errors", "tensors"},  # plain C, what loads it and what calls it
    "_utils": {"errors"},
    "data": {*BELOW["backends"]},  # knows tensors, not layers
    "testing": {*CORE, "_utils"},
    "draw": {*BELOW["nn"]},
    "estimator": {"errors", "data", "draw", "_utils", "public names"},
    "cli": {"errors", "data", "_utils", "estimator", "spec", "draw", "public names"},
    "__main__": {"cli"},
    "__init__": {*CORE, "testing", "data", "_utils"},
}

# Other packages: those that a part may import, and those that it may import only in a function or for type checkers.
USE_TORCH = ("tensors", "kernels", "backends", "nn", "testing", "draw", "data")
OUTSIDE = {part: {"torch"} for part in USE_TORCH}
LATE = {
    "_utils": {"filelock"},
    "draw": {"matplotlib", "numpy"},
    "nn": {"torch_geometric"},
    "testing": {"hypothesis"},
    "estimator": {"matplotlib", "rich", "safetensors"},
    "cli": {"sklearn"},
    "data": {"networkx", "torch_geometric", "numpy", "pooch", "scipy"},
}
OUTSIDE["estimator"] = {"torch", "numpy", "scipy", "sklearn"}  # a part for which there is an extra, imported by name
MADE_FOR = {
    "testing/strategies.py": {"hypothesis"},
    "draw/figure.py": {"matplotlib"},
}

# The experiments use public names, and the helpers that write and lock files.
HELPERS = {"bellnet._utils.files"}
AT_ONCE = {"torch"}
ONLY_LATE = {"grakel", "lightning", "matplotlib", "networkx", "numpy", "optuna", "ray", "rich", "sklearn"}
ONLY_LATE |= {"torch_geometric", "torchmetrics"}
MADE_FOR_LIGHTNING = {"learner.py"}

LAYOUTS = {"dense_layout", "sparse_layout", "reference"}
ORACLE = "bellnet.backends.reference"


class Import(NamedTuple):
    """An import: its file, line and module, and whether it is in a function or for type checkers."""

    file: str
    line: int
    module: str
    late: bool

    @property
    def part(self) -> str:
        """The part of the library that imports."""
        return Path(self.file).parts[0].removesuffix(".py")

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"


def imports(root: Path, files: Path | None = None) -> Iterator[Import]:
    """Every import of the library whose package is the folder `root`, or of the files of another folder."""
    folder = root if files is None else files
    for file in sorted(folder.rglob("*.py")):
        name = file.relative_to(folder).as_posix()
        for line, module, late in _walk(ast.parse(file.read_text()), root, name):
            yield Import(name, line, module, late)


def _walk(tree: ast.AST, root: Path, file: str, *, late: bool = False) -> Iterator[tuple[int, str, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, file)
            for alias in node.names:
                module = f"{base}.{alias.name}"
                # bellnet.plan is the function of that name wherever the package itself is asked for it.
                is_name = base == "bellnet" and alias.name in _public_names(root)
                is_module = base.split(".")[0] == "bellnet" and not is_name and _exists(root, module)
                yield node.lineno, module if is_module else base, late
        else:
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _is_for_types(node)
            yield from _walk(node, root, file, late=late or inside)


def _absolute(node: ast.ImportFrom, file: str) -> str:
    if not node.level:
        return node.module or ""
    package = ["bellnet", *Path(file).parts[:-1]]
    return ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])


def _exists(root: Path, module: str) -> bool:
    path = root.joinpath(*module.split(".")[1:])
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def _public_names(root: Path) -> set[str]:
    """The names, other than modules, that the package imports from its parts."""
    nodes = ast.walk(ast.parse((root / "__init__.py").read_text()))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module != "bellnet"]
    return {alias.asname or alias.name for node in froms for alias in node.names}


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def violations(root: Path) -> list[str]:
    """The violations in the library whose package is the folder `root`."""
    return [words for found in imports(root) for words in _judge(found)]


def violations_of_experiments(root: Path, experiments: Path) -> list[str]:
    """The violations in the folder of the experiments."""
    return [words for found in imports(root, experiments) for words in _judge_experiment(found)]


def _judge_experiment(found: Import) -> Iterator[str]:
    top = found.module.partition(".")[0]
    if top == "bellnet":
        if found.module not in {*PUBLIC, *HELPERS}:
            yield f"{found.where}: experiments use public names only, not those of {found.module}"
    elif top != "experiments" and top not in sys.stdlib_module_names:
        at_once = AT_ONCE | ({"lightning", "torchmetrics"} if found.file in MADE_FOR_LIGHTNING else set())
        if top not in at_once | (ONLY_LATE if found.late else set()):
            yield f"{found.where}: experiments must not import {top}{'' if found.late else ' when they are imported'}"


def _judge(found: Import) -> Iterator[str]:
    if found.part not in PARTS:
        yield f"{found.where}: {found.part} has no place in the order of parts"
        return
    top, _, rest = found.module.partition(".")
    if top == "bellnet":
        yield from _judge_inside(found, rest)
    elif top not in sys.stdlib_module_names:
        at_once = OUTSIDE.get(found.part, set()) | MADE_FOR.get(found.file, set())
        allowed = at_once | (LATE.get(found.part, set()) if found.late else set())
        if top not in allowed:
            when = "" if found.late or top not in LATE.get(found.part, set()) else " when it is imported"
            yield f"{found.where}: {found.part} must not import {top}{when}"


def _judge_inside(found: Import, rest: str) -> Iterator[str]:
    used = rest.split(".")[0] if rest else "public names"
    if used != found.part and used not in PARTS[found.part]:
        yield f"{found.where}: {found.part} must not import {found.module}"
    if "public names" in PARTS[found.part] and "." in rest and used not in (found.part, "_utils"):
        yield f"{found.where}: {found.part} uses public names only, not those of {found.module}"
    file = Path(found.file)
    if found.part == "backends" and file.stem in LAYOUTS:
        other = rest.removeprefix("backends.").split(".")[0]
        if other in LAYOUTS - {file.stem}:
            yield f"{found.where}: the layout {file.stem} must not know {other}"
    if found.module.startswith(ORACLE) and found.part in ("backends", "nn"):
        yield f"{found.where}: {found.part} must not run the oracle"

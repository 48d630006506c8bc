"""The public names, and the names on the pages of the API reference."""

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"

# Packages with a public `__all__`, and modules that users import. A name of several of them is documented once.
PUBLIC = (
    "bellnet",
    "bellnet.data",
    "bellnet.data.generated",
    "bellnet.data.graphml",
    "bellnet.data.sparse_inputs",
    "bellnet.data.tu",
    "bellnet.draw",
    "bellnet.errors",
    "bellnet.estimator",
    "bellnet.nn",
    "bellnet.nn.message_passing",
    "bellnet.testing",
    "bellnet.testing.strategies",
)
INTERNAL = {
    f"bellnet.errors.{name}" for name in ("as_written", "type_name", "did_you_mean", "count_of")
}  # for messages


def public_names() -> dict[str, object]:
    """All public names with their values, without modules."""
    found = {}
    for name in PUBLIC:
        module = import_module(name)
        for attribute in getattr(module, "__all__", None) or _own(module):
            value = getattr(module, attribute)
            if not isinstance(value, ModuleType) and f"{name}.{attribute}" not in INTERNAL:
                found[f"{name}.{attribute}"] = value
    return found


def documented_names(pages: Path = DOCS / "api") -> dict[str, object]:
    """All names in the API reference with their values."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in sorted(pages.glob("*.md")))
    names = re.findall(r"^\.\. auto(?:class|data|exception|function):: (\S+)$", text, re.MULTILINE)
    assert len(names) == len(set(names)), "a name is documented twice"
    return {name: getattr(import_module(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in names}


def _own(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__ and callable(value)
    ]

"""A name occurs once: no two modules and no two classes of the library have the same."""

import ast
from collections import Counter
from pathlib import Path

import bellnet

LIBRARY = Path(bellnet.__file__).parent
FILES = sorted(LIBRARY.rglob("*.py"))


def repeated(names):
    return {name: count for name, count in Counter(names).items() if count > 1}


def test_basenames_occur_once():
    assert repeated(file.name for file in FILES if file.name != "__init__.py") == {}


def test_public_classes_occur_once():
    classes = [
        node.name
        for file in FILES
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert len(classes) > 100
    assert repeated(classes) == {}

"""A test that catches an error asserts something about it or raises it again."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def silent_handlers(code: str) -> Iterator[int]:
    """The lines of `except` handlers without an effect, and of `suppress` in tests."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and all(map(_does_nothing, node.body)):
            yield node.lineno
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Call) and ast.unparse(inner.func).split(".")[-1] == "suppress":
                    yield inner.lineno


def _does_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Return):
        return statement.value is None or (isinstance(statement.value, ast.Constant) and statement.value.value is None)
    is_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_constant or isinstance(statement, ast.Pass | ast.Continue | ast.Break)


def test_no_handler_in_the_tests_swallows_an_error():
    files = sorted(TESTS.rglob("*.py"))
    assert len(files) > 100
    found = [f"{file.relative_to(TESTS)}:{line}" for file in files for line in silent_handlers(file.read_text())]
    assert found == []


PLANTED = {
    "return": "def test_a():\n    try:\n        f()\n    except ValueError:\n        return\n    assert True",
    "return None": "def test_a():\n    try:\n        f()\n    except ValueError:\n        return None",
    "pass": "try:\n    f()\nexcept (ValueError, TypeError) as reason:\n    pass",
    "continue": "for x in y:\n    try:\n        f()\n    except ValueError:\n        continue",
    "break": "for x in y:\n    try:\n        f()\n    except ValueError:\n        break",
    "an ellipsis": "try:\n    f()\nexcept ValueError:\n    ...",
    "a string and pass": "try:\n    f()\nexcept ValueError:\n    'fine'\n    pass",
    "suppress": "def test_a():\n    with suppress(ValueError):\n        f()",
    "contextlib.suppress": "def test_a():\n    with contextlib.suppress(ValueError):\n        f()",
}
FINE = {
    "an assertion": "try:\n    f()\nexcept ValueError as reason:\n    assert str(reason)",
    "the error once more": "try:\n    f()\nexcept ValueError:\n    raise",
    "a value for the caller": "def there():\n    try:\n        f()\n    except ValueError:\n        return False",
    "a count": "try:\n    f()\nexcept ValueError:\n    refused += 1",
    "the end of a fixture": "def folder():\n    with suppress(OSError):\n        remove()",
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_silent_handler_is_found(name):
    assert len(list(silent_handlers(PLANTED[name]))) == 1


@pytest.mark.parametrize("name", FINE)
def test_handler_with_an_effect_is_allowed(name):
    assert list(silent_handlers(FINE[name])) == []

"""Optional packages: asked for where they are used, and a message with the remedy where they are missing."""

import warnings
from importlib import import_module

from bellnet.errors import MissingExtraError


def require(package: str, *, extra: str, call: str) -> None:
    """Import a package that an extra of bellnet brings, or say how to install it.

    Args:
        package: The name under which it is imported.
        extra: The extra of bellnet that installs it.
        call: How the message names what needs the package.
    """
    try:
        import_module(package)
    except ImportError as reason:
        if reason.name is not None and reason.name.partition(".")[0] != package.partition(".")[0]:
            raise  # the package is there, but something it needs is not: that is another mistake
        raise MissingExtraError(
            f"{call} needs {package}, which is not installed.\nInstall it: pip install 'bellnet[{extra}]'"
        ) from reason


def import_torch() -> None:
    """Import torch without what it says of a NumPy that is missing: whoever needs NumPy asks for it by itself."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Failed to initialize NumPy", UserWarning)
        import_module("torch")

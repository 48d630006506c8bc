"""Optional packages, imported where they are used, with an error that names the extra if they are missing."""

import warnings
from importlib import import_module

from bellnet.errors import MissingExtraError


def require(package: str, *, extra: str, call: str) -> None:
    """Imports a package, or raises a `MissingExtraError` with the extra of bellnet that installs it.

    Args:
        package: The name under which it is imported.
        extra: The extra of bellnet that installs it.
        call: What needs the package, in the message.
    """
    try:
        import_module(package)
    except ImportError as reason:
        if reason.name is not None and reason.name.partition(".")[0] != package.partition(".")[0]:
            raise  # the package is installed, but one that it needs is not
        raise MissingExtraError(
            f"{call} needs {package}, which is not installed.\nInstall it: pip install 'bellnet[{extra}]'"
        ) from reason


def import_torch() -> None:
    """Imports torch without its warning about a missing NumPy; parts that need NumPy import it by themselves."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Failed to initialize NumPy", UserWarning)
        import_module("torch")

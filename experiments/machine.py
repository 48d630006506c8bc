"""The circumstances of a run: versions, commit, machine. Written with every figure, so that it can be had again."""

import importlib.util
import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from bellnet.errors import MissingExtraError

PACKAGES = ("bellnet", "lightning", "torchmetrics", "torch_geometric", "grakel", "scikit-learn")


def require(*packages: str, extra: str, call: str) -> None:
    """Raise `MissingExtraError`, with how to install it, if a package is missing."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(
                f"{call} needs {package}, which is not installed.\n"
                f"Install it, in the clone of the repository: pip install -e '.[{extra}]'"
            )


@cache
def circumstances() -> dict[str, Any]:
    """Versions of what computed, the commit of the library where it is a checkout, and the kind of machine."""
    return {
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            **{name: version for name in PACKAGES if (version := _version(name)) is not None},
        },
        "commit": _commit(),
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
        },
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the checkout that this file belongs to; an installed package has none."""
    here = Path(__file__)
    try:
        subprocess.run(
            ["git", "ls-files", "--error-unmatch", here.name], cwd=here.parent, capture_output=True, check=True
        )
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=here.parent, capture_output=True, check=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()

"""The build hook: builds the explorer's page and the C kernels, for a wheel and for an editable install.

The page goes to `src/bellnet/explorer.html`, the kernels next to their sources; git ignores both. Without a C compiler
the wheel contains no kernels, and layers run on torch operations.
"""

import importlib.util
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuildHook(BuildHookInterface[Any]):
    """Called by hatchling before it collects the files of a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page and the kernels, and add them to the wheel."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        pages = _load_script(root / "docs/explorer/build_page.py")
        pages.write_page(root)
        build_data["artifacts"].append(f"/{pages.BUILT_PAGE.as_posix()}")
        if sys.platform == "win32":
            return
        kernels = _load_script(root / "build_kernels.py")
        sources = root / kernels.KERNELS
        if kernels.compile_kernels(sources, sources / kernels.BUILT):
            build_data["artifacts"].append(f"/{kernels.KERNELS.as_posix()}/{kernels.BUILT}/*.so")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def _load_script(path: Path) -> ModuleType:
    """The module in a file that is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

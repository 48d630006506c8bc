"""The structs and constants of `structs.h` for ctypes, read from that file, and the digest of the C sources.

`build_kernels.py` loads this file by itself, so it uses the standard library only.
"""

import ctypes
import hashlib
import re
from pathlib import Path
from typing import Any

_HEADER = re.sub(r"/\*.*?\*/", "", (Path(__file__).parent / "structs.h").read_text(), flags=re.DOTALL)


class Struct(ctypes.Structure):
    """A struct without other attributes than its fields: ctypes would accept a misspelt one and ignore it."""

    __slots__ = ()


def _constants() -> dict[str, int]:
    constants = {name: int(value) for name, value in re.findall(r"#define (\w+) (\d+)", _HEADER)}
    for names in re.findall(r"enum {(.*?)}", _HEADER):
        constants |= {name.strip(): value for value, name in enumerate(names.split(","))}
    return constants


def _struct(name: str, body: str) -> Any:
    fields = []
    for declaration in filter(None, map(str.strip, body.split(";"))):
        kind, declarators = re.fullmatch(r"(?:const )?(\w+)\s(.*)", declaration, re.DOTALL).groups()  # type: ignore[union-attr]
        for declarator in declarators.split(","):
            field, length = re.fullmatch(r"[\s*const]*?(\w+)(?:\[(.+)\])?", declarator).groups()  # type: ignore[union-attr]
            ctype = ctypes.c_void_p if "*" in declarator else _TYPES[kind]
            if length:
                ctype *= sum(CONSTANTS.get(term) or int(term) for term in length.split(" + "))
            fields.append((field, ctype))
    return type(name, (Struct,), {"__slots__": (), "_fields_": fields})


CONSTANTS = _constants()
MOST_AXES, MOST_SETS = CONSTANTS["MOST_AXES"], CONSTANTS["MOST_SETS"]
_TYPES: dict[str, Any] = {"i64": ctypes.c_int64, "double": ctypes.c_double}
STRUCTS: dict[str, Any] = {}
"""All structs by name, in the order of the header."""
for _body, _name in re.findall(r"typedef struct {(.*?)} (\w+);", _HEADER, re.DOTALL):
    STRUCTS[_name] = _TYPES[_name] = _struct(_name, _body)

Stack, Step, Level, Block = (STRUCTS[name] for name in ("Stack", "Step", "Level", "Block"))
Bias, Permutation, Program = (STRUCTS[name] for name in ("Bias", "Permutation", "Program"))
Prefix, Orbits = STRUCTS["Prefix"], STRUCTS["Orbits"]
RunCall, ProductCall, PoolCall, NormCall = (STRUCTS[f"{name}Call"] for name in ("Run", "Product", "Pool", "Norm"))


def size_differences(library: ctypes.CDLL) -> str:
    """The structs whose size here and in a library of kernels differ; empty if none does."""
    sizes = (ctypes.c_int64 * (len(STRUCTS) + 1)).in_dll(library, "bellnet_sizes")
    pairs = [(name, ctypes.sizeof(struct), size) for (name, struct), size in zip(STRUCTS.items(), sizes, strict=False)]
    return ", ".join(f"{name} ({here} bytes here, {there} there)" for name, here, there in pairs if here != there)


def digest(folder: Path) -> int:
    """A number that identifies the C sources in a folder."""
    found = hashlib.sha256()
    for path in sorted([*folder.glob("*.c"), *folder.glob("*.h")]):
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return int.from_bytes(found.digest()[:7])

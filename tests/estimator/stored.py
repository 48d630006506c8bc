"""Files of models, changed: to something that cannot be, or to what earlier versions wrote."""

import json
import struct

from safetensors.torch import load as tensors_of

from bellnet.estimator.files import checksum


def changed(file, change):
    """Write the file again with a changed description, and with a checksum that fits it if there is one."""
    content = file.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    described = json.loads(header["__metadata__"]["bellnet"])
    change(described)
    if "checksum" in described:
        described["checksum"] = checksum(described, tensors_of(content))
    header["__metadata__"]["bellnet"] = described.get("instead") or json.dumps(described)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])


def as_before_checksums(described):
    """The form of files of version 2."""
    described["version"] = 2
    del described["checksum"], described["options"]["max_gigabytes"]


def as_before(version, *options):
    """The form of files of a version that did not know some options."""

    def change(described):
        described["version"] = version
        for option in options:
            del described["options"][option]

    return change

"""Changes of model files."""

import json
import struct

from safetensors.torch import load as tensors_of

from bellnet.estimator.serialization import checksum


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

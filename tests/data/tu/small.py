"""A small data set in the TU layout: three graphs with all kinds of files."""

import struct
import zipfile

FILES = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 4\n5, 6\n6, 5\n",
    "graph_indicator": "1\n1\n1\n2\n3\n3\n",
    "graph_labels": "7\n-1\n7\n",
    "node_labels": "5\n6\n5\n9\n6\n6\n",
    "node_attributes": "0.5, 1\n1.5, 2\n2.5, 3\n3.5, 4e0\n4.5, 5\n5.5, 6\n",
    "edge_labels": "1\n1\n2\n2\n1\n2\n2\n",
    "edge_attributes": "0.25\n0.25\n0.5\n0.5\n1\n2\n2\n",
    "graph_attributes": "1.5\n2.5\n3.5\n",
}


def write_folder(folder, name="SMALL", files=FILES, **changes):
    """Write the files, some of them changed or (None) left out, into a folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for ending, text in {**files, **changes}.items():
        if text is not None:
            content = text if isinstance(text, bytes) else text.encode()
            (folder / f"{name}_{ending}.txt").write_bytes(content)
    return folder


def write_zip(file, name="SMALL", files=FILES, *, compression=zipfile.ZIP_DEFLATED, extra=(), **changes):
    """Write the same into a zip and return it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w", compression) as zipped:
        for ending, text in {**files, **changes}.items():
            if text is not None:
                zipped.writestr(f"{name}/{name}_{ending}.txt", text)
        for member in extra:
            zipped.writestr(member, "text")
    return file


def claim(file, *, unpacked, ending="node_labels"):
    """Let the directory of a zip say that a member unpacks to so many bytes, and return the zip."""
    content = bytearray(file.read_bytes())
    name = f"SMALL/SMALL_{ending}.txt".encode()
    struct.pack_into("<I", content, content.rindex(name) - 46 + 24, unpacked)
    file.write_bytes(content)
    return file


def with_zip64(file, *, count=None):
    """Let the end of a zip count its members in a zip64 record alone, so many or as many as there are."""
    content = file.read_bytes()
    at = content.rindex(b"PK\5\6")
    end = bytearray(content[at:])
    n, size, start = struct.unpack_from("<HII", end, 10)
    n = n if count is None else count
    record = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, n, n, size, start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, at, 1)
    struct.pack_into("<HHII", end, 8, 2**16 - 1, 2**16 - 1, 2**32 - 1, 2**32 - 1)
    file.write_bytes(content[:at] + record + locator + end)
    return file

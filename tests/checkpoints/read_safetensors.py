"""Reads a safetensors file by the format alone and compares each tensor with a file of raw bytes.
Usage: read_safetensors.py FILE LIST; a line of LIST: name, dtype, dims with commas, file of bytes, split by tabs."""
import json
import struct
import sys

with open(sys.argv[1], "rb") as file:
    content = file.read()
(length,) = struct.unpack("<Q", content[:8])
header = json.loads(content[8:8 + length])
data = content[8 + length:]
assert length % 8 == 0
metadata = header.pop("__metadata__")
assert all(isinstance(value, str) for value in metadata.values()), metadata
size = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2}
at = 0
for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    first, last = entry["data_offsets"]
    assert first == at, (name, "a hole or an overlap")
    assert first % size[entry["dtype"]] == 0, (name, "not aligned")
    at = last
assert at == len(data), "bytes behind the last tensor"
expected = 0
for line in open(sys.argv[2], encoding="utf-8"):
    name, dtype, dims, raw = line.rstrip("\n").split("\t")
    entry = header[name]
    assert entry["dtype"] == dtype, (name, entry["dtype"], dtype)
    assert entry["shape"] == [int(dim) for dim in dims.split(",") if dim], (name, entry["shape"])
    first, last = entry["data_offsets"]
    assert data[first:last] == open(raw, "rb").read(), (name, "other bytes")
    expected += 1
assert expected == len(header), (expected, sorted(header))

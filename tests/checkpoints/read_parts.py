"""Reads a checkpoint by checkpoints/FORMAT.md alone, without libzero and HDF5, and compares every tensor with what was
saved. Also checks every checksum and rule of that page that a reader can check.

usage: read_parts.py CHECKPOINT EXPECTED   where EXPECTED has lines "path<tab>dtype<tab>dims<tab>file of raw bytes", the
path being that of index.h5.
"""
import json
import os
import sys

BYTES = {"fp32": 4, "fp64": 8, "bf16": 2, "fp16": 2, "int32": 4, "int64": 8, "uint8": 1,
         "complex64": 8, "complex128": 16}
BLOCK = 1 << 20

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def crc32c(data):
    state = 0xFFFFFFFF
    for byte in data:
        state = (state >> 8) ^ TABLE[(state ^ byte) & 255]
    return state ^ 0xFFFFFFFF


def text(number):
    return format(number, "08x")


def read_manifest(folder):
    raw = open(os.path.join(folder, "MANIFEST.json"), "rb").read()
    line = raw[: raw.index(b"\n") + 1]
    assert line.startswith(b'{"head":') and line.endswith(b'",\n') and len(line) <= 8192
    head = line[8 : -len(b',"head_crc32c":"01234567",\n')]
    assert line[8 + len(head) :] == b',"head_crc32c":"' + text(crc32c(head)).encode() + b'",\n', "sum of the first line"
    assert raw.endswith(b'"crc32c":"' + text(crc32c(raw[:-11])).encode() + b'"}\n'), "sum of the manifest"
    manifest = json.loads(raw.decode("utf-8"))
    assert manifest["head"] == json.loads(head) and manifest["head"]["libzero_checkpoint"] == 1
    assert manifest["head"]["step"] == manifest["run"]["step"]
    return manifest


def read_extents(folder, manifest):
    """The bytes of every extent, after all checks of its part."""
    extents, data = manifest["extents"], [None] * len(manifest["extents"])
    uuid, files = manifest["head"]["uuid"], manifest["files"]
    for k, file in enumerate(files):
        assert file["name"] == "part-%s-%05d-of-%05d.h5" % (uuid[:8], k, len(files))
        raw = open(os.path.join(folder, file["name"]), "rb").read()
        assert len(raw) == file["bytes"], "length"
        identity = ("libzero %s %05d/%05d" % (uuid, k, len(files))).ljust(64).encode()
        assert raw[file["identity"] : file["identity"] + 64] == identity, "identity"
        sums = [raw[at : at + 4] for at in range(file["integrity"], file["integrity"] + 4 * file["blocks"], 4)]
        frame, end, blocks = b"", 0, 0
        mine = [e for e in range(len(extents)) if extents[e]["file"] == k]
        for e in sorted(mine, key=lambda e: extents[e]["offset"]):
            extent = extents[e]
            data[e] = raw[extent["offset"] : extent["offset"] + extent["count"] * BYTES[extent["dtype"]]]
            assert extent["offset"] >= end, "extents lie apart"
            frame, end = frame + raw[end : extent["offset"]], extent["offset"] + len(data[e])
            for i, at in enumerate(range(0, len(data[e]), BLOCK)):
                assert sums[extent["block"] + i] == crc32c(data[e][at : at + BLOCK]).to_bytes(4, "little"), "block"
                blocks += 1
        assert text(crc32c(frame + raw[end:])) == file["frame_crc32c"] and blocks == file["blocks"], "frame"
    assert sum(map(len, data)) == manifest["head"]["bytes"]
    return data


def read_arrays(manifest, data):
    """Yields (path in the index, dtype, dims, bytes)."""
    for tensor in manifest["tensors"]:
        assert tensor["vectors"][0]["state"] == "value"
        for vector in tensor["vectors"]:
            size, end, whole = BYTES[vector["dtype"]], 0, b""
            for extent, offset, first, count in vector["pieces"]:
                assert first == end and manifest["extents"][extent]["dtype"] == vector["dtype"]
                whole, end = whole + data[extent][offset * size : (offset + count) * size], end + count
            folder = "/parameters/" if vector["state"] == "value" else "/states/%s/" % vector["state"]
            yield folder + tensor["name"], vector["dtype"], tensor["dims"], whole
    for one in manifest["attachments"]:
        folder = "/attached/per_rank/rank-%05d/" % one["rank"] if one["per_rank"] else "/attached/replicated/"
        yield folder + one["name"], one["dtype"], one["dims"], data[one["extent"]] if one["extent"] >= 0 else b""


def main(folder, expected):
    manifest = read_manifest(folder)
    index = open(os.path.join(folder, "index.h5"), "rb").read()
    assert len(index) == manifest["index"]["bytes"] and text(crc32c(index)) == manifest["index"]["crc32c"], "index"
    arrays = read_arrays(manifest, read_extents(folder, manifest))
    found = {path: (dtype, dims, raw) for path, dtype, dims, raw in arrays}
    lines = [line.rstrip("\n").split("\t") for line in open(expected, encoding="utf-8")]
    for path, dtype, dims, raw in lines:
        path = path[:-6] if path.endswith(".value") else path  # a name that the index had to change
        dims = [int(d) for d in dims.split(",") if d]
        assert found[path] == (dtype, dims, open(raw, "rb").read()), path
    print("read", len(lines), "arrays")
    return len(lines) == 0


if __name__ == "__main__":
    assert crc32c(b"123456789") == 0xE3069283
    sys.exit(main(*sys.argv[1:]))

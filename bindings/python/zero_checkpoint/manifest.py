"""MANIFEST.json: read, its checksums and rules compared (checkpoints/FORMAT.md). Not here: the data."""
import json
import os
from math import prod

from .crc32c import crc32c, text
from .dtypes import STORED, itemsize
from .errors import CheckpointError, Damaged, NotThere, OtherFormat

NAME = "MANIFEST.json"
BLOCK = 1 << 20  # bytes under one checksum
_MOST_BYTES = 1 << 31
_FIRST_LINE = 8192


def _no_key_twice(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _json(raw):
    return json.loads(raw.decode("utf-8"), object_pairs_hook=_no_key_twice)


def _head_of(path, line):
    """The object of the first line, its checksum compared."""
    begin, end = b'{"head":', b',"head_crc32c":"'
    if not line.startswith(begin) or line[-27:-11] != end or line[-3:] != b'",\n':
        raise Damaged(f"{path}: the first line is not that of a manifest")
    raw = line[len(begin):-27]
    if line[-11:-3].decode("latin-1") != text(crc32c(raw)):
        raise Damaged(f"{path}: the checksum of the first line is wrong")
    try:
        head = _json(raw)
        version = head["libzero_checkpoint"]
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise Damaged(f"{path}: the first line is not as the format has it ({problem})") from None
    if version != 1:
        raise OtherFormat(f"{path} has format {version}; this version of zero_checkpoint reads format 1")
    return head


def _open(folder):
    path = os.path.join(folder, NAME)
    try:
        return path, open(path, "rb")
    except FileNotFoundError:
        raise NotThere(f"there is no checkpoint in {folder}") from None


def read_head(folder):
    """The first line alone: enough to list and to choose."""
    path, file = _open(folder)
    with file:
        return _head_of(path, file.readline(_FIRST_LINE))


def read_manifest(folder):
    path, file = _open(folder)
    with file:
        if os.fstat(file.fileno()).st_size > _MOST_BYTES:
            raise Damaged(f"{path}: more than 2 GiB")
        raw = file.read()
    _head_of(path, raw[:_FIRST_LINE].partition(b"\n")[0] + b"\n")
    if raw[-21:-11] != b'"crc32c":"':
        raise Damaged(f"{path}: it does not end as a manifest; it may be cut short")
    if raw[-3:] != b'"}\n' or raw[-11:-3].decode("latin-1") != text(crc32c(raw[:-11])):
        raise Damaged(f"{path}: its checksum is wrong")
    try:
        what = _json(raw)
        _check(what)
        return what
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as problem:
        raise Damaged(f"{path} is not as the format has it ({type(problem).__name__}: {problem})") from None


def _require(holds, sentence):
    if not holds:
        raise ValueError(sentence)


def _whole(value):
    """A number that counts something."""
    _require(type(value) is int and 0 <= value < 1 << 62, f"{value!r} is no count")
    return value


def _check(what):
    """What reading relies on; zero-ckpt verify compares everything."""
    files, extents = what["files"], what["extents"]
    for file in files:
        _require(file["name"].startswith("part-") and "/" not in file["name"], f"{file['name']!r} is no part")
        size = _whole(file["bytes"])
        _require(_whole(file["identity"]) + 64 <= size, "an identity lies outside of its file")
        _require(_whole(file["integrity"]) + 4 * _whole(file["blocks"]) <= size, "checksums lie outside of their file")
    ends = {}
    for extent in sorted(extents, key=lambda one: (_whole(one["file"]), _whole(one["offset"]))):
        file, bytes_ = files[extent["file"]], _whole(extent["count"]) * itemsize(extent["dtype"])
        _require(ends.get(extent["file"], 0) <= extent["offset"] <= file["bytes"] - bytes_,
                 "an extent lies outside of its file or over another")
        ends[extent["file"]] = extent["offset"] + bytes_
        _require(_whole(extent["block"]) + -(-bytes_ // BLOCK) <= file["blocks"], "an extent has too few checksums")
    for tensor in what["tensors"]:
        _require(isinstance(tensor["name"], str), "a tensor has no name")
        count = prod(map(_whole, tensor["dims"]))
        _require(tensor["vectors"][0]["state"] == "value", "a tensor has no values")
        for vector in tensor["vectors"]:
            _check_pieces(vector, count, extents)
    for one in what["attachments"]:
        count = prod(map(_whole, one["dims"]))
        _require(one["dtype"] in STORED, f"{one['dtype']!r} is no element type")
        if count > 0:
            _check_pieces({"dtype": one["dtype"], "pieces": [[_whole(one["extent"]), 0, 0, count]]}, count, extents)


def _check_pieces(vector, count, extents):
    end = 0
    for extent, offset, first, length in vector["pieces"]:
        source = extents[_whole(extent)]
        _require(first == end and length > 0 and 0 <= offset <= source["count"] - _whole(length),
                 "the pieces of a tensor do not cover it exactly once")
        _require(source["dtype"] == vector["dtype"], "a piece has another type than its tensor")
        end = first + length
    _require(end == count, "the pieces of a tensor do not cover it exactly once")


def candidates(folder):
    """(tag, head or None where it is damaged) of the checkpoints in a folder, newest commit first, damaged ones before all."""
    if not os.path.isdir(folder):
        raise NotThere(f"there is no folder {folder}")
    found = []
    for tag in os.listdir(folder):
        if tag.startswith(".") or not os.path.lexists(os.path.join(folder, tag, NAME)):
            continue
        try:
            found.append((tag, read_head(os.path.join(folder, tag))))
        except NotThere:
            continue  # another job's retention was quicker
        except CheckpointError:
            found.append((tag, None))

    def newest(one):
        tag, head = one
        return (head is None, head["sequence"] if head else 0, head["time"] if head else "", tag)

    return sorted(found, key=newest, reverse=True)


def checkpoint_at(path):
    """The folder of one checkpoint: path itself, or the newest in it."""
    if os.path.lexists(os.path.join(path, NAME)):
        return path
    found = candidates(path)
    if not found:
        raise NotThere(f"there is no checkpoint in {path}")
    return os.path.join(path, found[0][0])

"""The safetensors format: an 8-byte length, a JSON header, the data. Read by range, written in one pass."""
import json
import os
import struct
import tempfile
from contextlib import contextmanager
from math import prod

import numpy

from . import dtypes
from .errors import CheckpointError

_MOST_HEADER = 100_000_000
_NAMES = {theirs: ours for ours, theirs in dtypes.SAFETENSORS.items()}


class SafetensorsFile:
    """`entries`: name -> (type, shape); a type without a name here is named as the file has it."""

    def __init__(self, path):
        self.path = path
        self._file = open(path, "rb")
        try:
            self._read_header()
        except (ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError) as problem:
            self.close()
            raise CheckpointError(f"{path} is not readable as a safetensors file: {problem}") from None

    def _read_header(self):
        size = os.fstat(self._file.fileno()).st_size
        (length,) = struct.unpack("<Q", self._file.read(8))
        if length > min(size - 8, _MOST_HEADER):
            raise ValueError(f"its header would have {length} bytes")
        header = json.loads(self._file.read(length))
        self.metadata = header.pop("__metadata__", {})
        self.entries, self._offsets = {}, {}
        for name, one in header.items():
            dtype, shape, (first, last) = _NAMES.get(one["dtype"], one["dtype"]), tuple(one["shape"]), one["data_offsets"]
            if not 0 <= first <= last <= size - 8 - length:
                raise ValueError(f"the data of {name!r} lie outside of the file; it may be cut short")
            if dtype in dtypes.STORED and prod(shape) * dtypes.itemsize(dtype) != last - first:
                raise ValueError(f"{name!r} has {last - first} bytes, which does not fit its shape {list(shape)}")
            self.entries[name] = (dtype, shape)
            self._offsets[name] = (8 + length + first, 8 + length + last)

    def chunks(self, name, size=1 << 23):
        """The bytes of a tensor, some at a time."""
        first, last = self._offsets[name]
        for at in range(first, last, size):
            self._file.seek(at)
            part = self._file.read(min(size, last - at))
            if len(part) != min(size, last - at):
                raise CheckpointError(f"{self.path} became shorter while it was read")
            yield part

    def close(self):
        self._file.close()


@contextmanager
def new_file(path):
    """A file that appears under its name when it is whole and synced, and never replaces one."""
    if os.path.lexists(path):
        raise CheckpointError(f"{path} is there already")
    folder = os.path.dirname(os.path.abspath(path))
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".zero-", suffix=".part") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
        os.chmod(file.name, 0o666 & ~_umask())
        try:
            os.link(file.name, path)
        except FileExistsError:
            raise CheckpointError(f"{path} is there already") from None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write(file, tensors, metadata):
    """Writes tensors = [(name, type, shape, chunks)] into an open file; chunks is a function that yields bytes."""
    tensors = sorted(tensors, key=lambda one: -dtypes.itemsize(one[1]))  # so each lies at a multiple of its element
    header, at = {"__metadata__": metadata}, 0
    for name, dtype, shape, _ in tensors:
        size = prod(shape) * dtypes.itemsize(dtype)
        header[name] = {"dtype": dtypes.SAFETENSORS[dtype], "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    raw = json.dumps(header, ensure_ascii=False).encode()
    raw += b" " * (-len(raw) % 8)
    if len(raw) > _MOST_HEADER:
        raise CheckpointError(f"the header would have {len(raw)} bytes, more than safetensors allows")
    file.write(struct.pack("<Q", len(raw)) + raw)
    for name, _, _, chunks in tensors:
        for part in chunks():
            file.write(numpy.ascontiguousarray(part).data if isinstance(part, numpy.ndarray) else part)

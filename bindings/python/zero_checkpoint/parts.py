"""The data of a checkpoint, read by range straight from its parts. With `verify` every block of 2^20 bytes is summed the
first time that something of it is read, and every part is checked when it is opened."""
import os

import numpy

from .crc32c import crc32c, text
from .dtypes import itemsize
from .errors import Damaged
from .manifest import BLOCK

_MOST_OPEN = 64        # descriptors are few where jobs are large
_REQUEST = 8 * BLOCK


def _read(descriptor, path, offset, into):
    """Fills a buffer; a file that ends before is damage."""
    view = memoryview(into).cast("B")
    done = 0
    while done < len(view):
        now = os.preadv(descriptor, [view[done:done + (1 << 30)]], offset + done)
        if now == 0:
            raise Damaged(f"{path} is cut short")
        done += now


class Part:
    """One open file of a checkpoint."""

    def __init__(self, folder, what, number, verify):
        self._file = what["files"][number]
        self.path = os.path.join(folder, self._file["name"])
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise Damaged(f"{self.path} is missing") from None
        try:
            self._check(what, number, verify)
        except BaseException:
            self.close()
            raise

    def close(self):
        os.close(self._descriptor)

    def read(self, offset, into):
        _read(self._descriptor, self.path, offset, into)

    def bytes(self, offset, count):
        into = bytearray(count)
        self.read(offset, into)
        return bytes(into)

    def _check(self, what, number, verify):
        if os.fstat(self._descriptor).st_size != self._file["bytes"]:
            raise Damaged(f"{self.path} has another length than was written")
        identity = f"libzero {what['head']['uuid']} {number:05d}/{len(what['files']):05d}".ljust(64)
        if self.bytes(self._file["identity"], 64) != identity.encode():
            raise Damaged(f"{self.path} belongs to another checkpoint")
        self.sums = numpy.frombuffer(self.bytes(self._file["integrity"], 4 * self._file["blocks"]), "<u4")
        if verify and text(self._frame(what["extents"], number)) != self._file["frame_crc32c"]:
            raise Damaged(f"{self.path}: what lies around its data is not as written")

    def _frame(self, extents, number):
        """The sum of all bytes in no extent."""
        result, end = 0, 0
        mine = sorted((one["offset"], one["count"] * itemsize(one["dtype"])) for one in extents if one["file"] == number)
        for offset, count in mine + [(self._file["bytes"], 0)]:
            for at in range(end, offset, _REQUEST):
                result = crc32c(self.bytes(at, min(_REQUEST, offset - at)), result)
            end = offset + count
        return result


class Parts:
    """Reads elements of extents."""

    def __init__(self, folder, what, verify):
        self._folder, self._what, self._verify = folder, what, verify
        self._open = {}
        self._good = {}  # by file and extent: the blocks whose sums were right

    def close(self):
        while self._open:
            self._open.popitem()[1].close()

    def _part(self, number):
        if number not in self._open:
            if len(self._open) >= _MOST_OPEN:
                self.close()
            checked = self._verify and number not in self._good
            self._open[number] = Part(self._folder, self._what, number, checked)
            self._good.setdefault(number, {})
        return self._open[number]

    def read(self, number, first, into):
        """Elements first ... of an extent into a contiguous array of its stored type."""
        extent = self._what["extents"][number]
        part = self._part(extent["file"])
        width = itemsize(extent["dtype"])
        into = into.reshape(-1).view("u1")
        if self._verify:
            self._read_checked(part, number, extent, first * width, into)
        else:
            part.read(extent["offset"] + first * width, into)

    def _read_checked(self, part, number, extent, begin, into):
        size = extent["count"] * itemsize(extent["dtype"])
        good = self._good[extent["file"]].setdefault(number, set())
        end = begin + into.size
        for k in range(begin // BLOCK, -(-end // BLOCK)):
            low, high = k * BLOCK, min((k + 1) * BLOCK, size)
            from_, to = max(low, begin), min(high, end)
            target = into[from_ - begin:to - begin]
            if k in good:
                part.read(extent["offset"] + from_, target)
                continue
            block = target if target.size == high - low else numpy.empty(high - low, "u1")
            part.read(extent["offset"] + low, block)
            if crc32c(block) != part.sums[extent["block"] + k]:
                raise Damaged(f"{part.path}: {extent['dataset']} is damaged in elements "
                              f"{extent['first'] + low // itemsize(extent['dtype'])} to "
                              f"{extent['first'] + high // itemsize(extent['dtype']) - 1}")
            good.add(k)
            if block is not target:
                target[:] = block[from_ - low:to - low]

"""Lazy arrays: nothing is read before an element is asked for, and a slice reads what it needs."""
from bisect import bisect_right
from math import prod

import numpy

from . import dtypes

_GAP = 1 << 16    # bytes that are read along rather than skipped
_SPAN = 1 << 23   # bytes read at a time


def _positions(key, shape):
    """Per dimension (start, count, step, kept) with step above 0, and the axes to flip at the end."""
    key = key if isinstance(key, tuple) else (key,)
    open_ = [k for k, one in enumerate(key) if one is Ellipsis]
    if len(open_) > 1:
        raise IndexError("only one ... can stand in an index")
    if open_:
        key = key[:open_[0]] + (slice(None),) * (len(shape) - len(key) + 1) + key[open_[0] + 1:]
    if len(key) > len(shape):
        raise IndexError(f"{len(key)} indices for an array of {len(shape)} dimensions")
    found, flipped = [], []
    for axis, size in enumerate(shape):
        one = key[axis] if axis < len(key) else slice(None)
        if isinstance(one, slice):
            steps = range(size)[one]
            if len(steps) > 0 and steps.step < 0:
                flipped.append(sum(kept for _, _, _, kept in found))
                steps = steps[::-1]
            found.append((steps.start, len(steps), steps.step, True))
        else:
            try:
                number = range(size)[one]
            except IndexError:
                raise IndexError(f"index {one} is outside of dimension {axis}, which has {size}") from None
            except TypeError:
                raise TypeError(f"an index is a number, a slice or ...; for others read the array first: array[:][{one!r}]"
                                ) from None
            found.append((number, 1, 1, False))
    return found, flipped


def _runs(positions, shape):
    """Flat places at which runs of equal length begin, in rising order, and that length."""
    axis, length = len(shape), 1
    while axis > 0:  # the last dimensions that are taken without holes
        start, count, step, _ = positions[axis - 1]
        if step != 1 and count > 1:
            break
        axis, length = axis - 1, length * count
        if count != shape[axis]:
            break
    strides = [prod(shape[k + 1:]) for k in range(len(shape))]
    starts = numpy.array([sum(positions[k][0] * strides[k] for k in range(axis, len(shape)))], numpy.int64)
    for k in range(axis):
        start, count, step, _ = positions[k]
        places = (start + step * numpy.arange(count, dtype=numpy.int64)) * strides[k]
        starts = (starts[:, None] + places).reshape(-1) if k else (starts[0] + places)
    return starts, length


class Array:
    """An array of a checkpoint. `dtype` is libzero's name of the type; NumPy gets bf16 as float32."""

    def __init__(self, parts, name, shape, dtype, pieces):
        self.name, self.shape, self.dtype = name, tuple(shape), dtype
        self._parts, self._pieces = parts, pieces
        self._begins = [piece[2] for piece in pieces]

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return prod(self.shape)

    @property
    def nbytes(self):
        """In the checkpoint."""
        return self.size * dtypes.itemsize(self.dtype)

    def __len__(self):
        if not self.shape:
            raise TypeError(f"{self.name} has no dimensions")
        return self.shape[0]

    def __repr__(self):
        return f"<{self.name}: {self.dtype} {list(self.shape)}>"

    def __getitem__(self, key):
        return dtypes.widened(self._stored(key), self.dtype)

    def __array__(self, dtype=None, copy=None):
        whole = self[...]
        return whole if dtype is None else whole.astype(dtype)

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def bits(self, key=Ellipsis):
        """Elements as they lie in the file: of bf16 its 16 bits as uint16."""
        return self._stored(key)

    def torch(self, key=Ellipsis):
        """Elements as a torch tensor of the same type (imports torch)."""
        return to_torch(self._stored(key), self.dtype)

    def chunks(self, elements=1 << 21):
        """All elements in flat order, some at a time, as they lie in the file."""
        for first in range(0, self.size, elements):
            yield self._flat(first, min(elements, self.size - first))

    def _flat(self, first, count):
        into = numpy.empty(count, dtypes.STORED[self.dtype])
        at = max(bisect_right(self._begins, first) - 1, 0)
        while count > 0 and at < len(self._pieces) and self._pieces[at][2] < first + count:
            extent, offset, begin, length = self._pieces[at]
            low, high = max(first, begin), min(first + count, begin + length)
            self._parts.read(extent, offset + low - begin, into[low - first:high - first])
            at += 1
        return into

    def _stored(self, key):
        positions, flipped = _positions(key, self.shape)
        taken = [count for _, count, _, _ in positions]
        if prod(taken) == 0:
            result = numpy.empty(taken, dtypes.STORED[self.dtype])
        else:
            starts, length = _runs(positions, self.shape)
            result = self._gather(starts, length).reshape(taken)
        result = result.reshape([count for _, count, _, kept in positions if kept])
        return numpy.ascontiguousarray(numpy.flip(result, flipped)) if flipped else result

    def _gather(self, starts, length):
        if starts.size == 1:
            return self._flat(int(starts[0]), length)
        width = dtypes.itemsize(self.dtype)
        result = numpy.empty((starts.size, length), dtypes.STORED[self.dtype])
        gap = (starts[1:] - starts[:-1] - length) * width > _GAP
        span = (starts * width) // _SPAN
        cuts = numpy.flatnonzero(gap | (span[1:] != span[:-1])) + 1
        for low, high in zip([0, *cuts.tolist()], [*cuts.tolist(), starts.size]):
            first, last = int(starts[low]), int(starts[high - 1]) + length
            flat = self._flat(first, last - first)
            result[low:high] = flat[(starts[low:high] - first)[:, None] + numpy.arange(length)]
        return result


class Tensor(Array):
    """A tensor. As an array it is its values as they are stored: the fp32 master where there is one, so that nothing is
    lost. `registered` is the type it has in the program."""

    def __init__(self, parts, name, what):
        values = what["vectors"][0]
        super().__init__(parts, name, what["dims"], values["dtype"], values["pieces"])
        self.registered, self.frozen, self.group, self.model = what["dtype"], what["frozen"], what["group"], what["model"]
        self.states = {one["state"]: Array(parts, f"{name} ({one['state']})", what["dims"], one["dtype"], one["pieces"])
                       for one in what["vectors"][1:]}

    @property
    def has_master(self):
        return self.dtype != self.registered

    def values(self, key=Ellipsis):
        """Rounded to the registered type, as the program sees them."""
        return dtypes.widened(dtypes.narrowed(self[key], self.registered), self.registered)


def to_torch(stored, dtype):
    import torch
    if dtype == "bf16":
        return torch.from_numpy(stored.view("<i2")).view(torch.bfloat16)
    return torch.from_numpy(stored)


def from_torch(tensor):
    """(libzero's name of the type, its elements as they lie in a file)."""
    import torch
    name = str(tensor.dtype).removeprefix("torch.")
    names = {theirs: ours for ours, theirs in dtypes.TORCH.items()}
    tensor = tensor.detach().to("cpu").contiguous()
    if name == "bfloat16":
        return "bf16", tensor.view(torch.int16).numpy().view("<u2")
    return names.get(name, name), tensor.numpy()

"""Element types: libzero's names, NumPy's, those of safetensors and of torch. NumPy has no bf16: its values are float32 in
NumPy, its bits uint16."""
import numpy

STORED = {"fp32": "<f4", "fp64": "<f8", "bf16": "<u2", "fp16": "<f2", "int32": "<i4", "int64": "<i8", "uint8": "u1",
          "complex64": "<c8", "complex128": "<c16"}  # as the bytes lie in a file
SAFETENSORS = {"fp32": "F32", "fp64": "F64", "bf16": "BF16", "fp16": "F16", "int32": "I32", "int64": "I64", "uint8": "U8",
               "complex64": "C64"}
TORCH = {"fp32": "float32", "fp64": "float64", "bf16": "bfloat16", "fp16": "float16", "int32": "int32", "int64": "int64",
         "uint8": "uint8", "complex64": "complex64", "complex128": "complex128"}
PARAMETERS = ("fp32", "fp64", "bf16", "fp16")


def itemsize(dtype):
    return numpy.dtype(STORED[dtype]).itemsize


def numpy_dtype(dtype):
    """What an array of this type is in NumPy."""
    return numpy.dtype("<f4" if dtype == "bf16" else STORED[dtype])


def widened(stored, dtype):
    """Elements as they lie in a file, as numbers."""
    if dtype != "bf16":
        return stored
    return numpy.asarray(stored.astype("<u4") << numpy.uint32(16)).view("<f4")


def narrowed(values, dtype):
    """Numbers rounded to nearest even, as they lie in a file of that type; NaN stays NaN, overflow becomes infinity."""
    if dtype != "bf16":
        with numpy.errstate(over="ignore", invalid="ignore"):
            return values.astype(STORED[dtype])
    if values.dtype.itemsize == 8:
        values = _to_odd(values)
    bits = numpy.ascontiguousarray(values, "<f4").view("<u4").reshape(values.shape)
    rounded = (bits + (numpy.uint32(0x7FFF) + (bits >> 16 & 1))) >> 16
    not_a_number = (bits & 0x7FFFFFFF) > 0x7F800000
    return numpy.where(not_a_number, bits >> 16 | 0x40, rounded).astype("<u2")


def _to_odd(values):
    """fp64 as fp32 whose last bit is set where anything was lost: rounding that once more to bf16 rounds but once."""
    with numpy.errstate(over="ignore", invalid="ignore"):
        nearest = numpy.ascontiguousarray(values).astype("<f4").reshape(values.shape)
        back = nearest.astype("<f8")
        bits = nearest.view("<u4")
        inexact = (back != values) & (bits & 1 == 0) & ~numpy.isnan(values)
        step = numpy.where(abs(back) > abs(values), numpy.uint32(0xFFFFFFFF), numpy.uint32(1))
        return (bits + numpy.where(inexact, step, numpy.uint32(0)).astype("<u4")).view("<f4")

"""Reads a checkpoint as a stranger would, with h5py alone, and compares every dataset with the bytes that were saved.

usage: read_index.py INDEX EXPECTED   where EXPECTED has lines "path<tab>dtype<tab>dims<tab>file of raw bytes".
"""
import sys

import h5py
import numpy

KINDS = {"fp32": "<f4", "fp64": "<f8", "fp16": "<f2", "int64": "<i8", "uint8": "u1", "int32": "<i4"}


def expected_values(dtype, dims, raw):
    if dtype == "bf16":
        return (numpy.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4").reshape(dims)
    return numpy.frombuffer(raw, KINDS[dtype]).reshape(dims)


def main(index, expected):
    wrong = 0
    seen = 0
    with h5py.File(index, "r") as file:
        for line in open(expected, encoding="utf-8"):
            path, dtype, dims, raw = line.rstrip("\n").split("\t")
            dims = tuple(int(d) for d in dims.split(",") if d)
            values = expected_values(dtype, dims, open(raw, "rb").read())
            dataset = file[path]
            found = numpy.asarray(dataset[()])
            if dataset.shape != dims or not numpy.array_equal(found, values) or found.dtype != values.dtype:
                print("wrong:", path, dataset.shape, found.dtype, found, values)
                wrong += 1
            if path.startswith("/parameters") and not {"name", "dtype", "group", "storage_order", "uuid"} <= set(dataset.attrs):
                print("attributes are missing:", path, list(dataset.attrs))
                wrong += 1
            seen += 1
        run = file["run"].attrs
        if run["step"] != 7 or run["optimizer"] != "adam" or run["ranks"] != 3 or "verify" not in run["note"]:
            print("wrong: /run", dict(run))
            wrong += 1
    print("read", seen, "datasets,", wrong, "wrong")
    return wrong != 0 or seen == 0


sys.exit(main(*sys.argv[1:]))

"""Reads a checkpoint as a stranger would, with h5py alone, and compares every dataset with the bytes that were saved.

usage: read_index.py INDEX EXPECTED [STEP]   where EXPECTED has lines "path<tab>dtype<tab>dims<tab>file of raw bytes" and
STEP (7) is that of the checkpoint.
"""
import sys

import numpy

KINDS = {"fp32": "<f4", "fp64": "<f8", "fp16": "<f2", "int64": "<i8", "uint8": "u1", "int32": "<i4"}


def expected_values(dtype, dims, raw):
    if dtype == "bf16":
        return (numpy.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4").reshape(dims)
    return numpy.frombuffer(raw, KINDS[dtype]).reshape(dims)


def attributes_problem(path, attributes, uuid):
    """What the descriptive attributes lack, or None."""
    wanted = {"name", "storage_order", "uuid"}
    if not path.startswith("/attached"):
        wanted |= {"dtype", "group"}
    if path.startswith("/parameters"):
        wanted |= {"holds"}
    if not wanted <= set(attributes):
        return f"only {list(attributes)}"
    if attributes["storage_order"] != "row-major" or uuid not in (None, attributes["uuid"]):
        return f"wrong: {dict(attributes)}"
    named = path[:-6] if path.endswith(".value") else path  # a name that is also the folder of another
    return None if named.endswith("/" + attributes["name"]) else f"the name {attributes['name']}"


def main(index, expected, step="7"):
    import h5py
    wrong = 0
    seen = 0
    with h5py.File(index, "r") as file:
        run = file["run"].attrs
        if run["step"] != int(step) or run["optimizer"] != "adam" or run["ranks"] != 3 or "verify" not in run["note"]:
            print("wrong: /run", dict(run))
            wrong += 1
        for line in open(expected, encoding="utf-8"):
            path, dtype, dims, raw = line.rstrip("\n").split("\t")
            dims = tuple(int(d) for d in dims.split(",") if d)
            if path.startswith("/attached") and dims == ():
                dims = (1,)
            values = expected_values(dtype, dims, open(raw, "rb").read())
            dataset = file[path]
            found = numpy.asarray(dataset[()])
            if dataset.shape != dims or not numpy.array_equal(found, values) or found.dtype != values.dtype:
                print("wrong:", path, dataset.shape, found.dtype, found, values)
                wrong += 1
            problem = attributes_problem(path, dataset.attrs, run["uuid"])
            if problem:
                print("attributes:", path, problem)
                wrong += 1
            seen += 1
    print("read", seen, "datasets,", wrong, "wrong")
    return wrong != 0 or seen == 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

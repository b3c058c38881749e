"""Reads the index of a checkpoint as netCDF-4, with h5netcdf and xarray, and compares every dataset with what was saved.

usage: read_netcdf.py INDEX EXPECTED   where EXPECTED is as for read_index.py.
"""
import sys
import warnings

import h5netcdf
import numpy
import xarray

from read_index import expected_values

warnings.filterwarnings("ignore")  # h5netcdf tells of extents without names


def main(index, expected):
    wrong = seen = 0
    opened = {}
    with h5netcdf.File(index, "r", phony_dims="sort") as file:
        for line in open(expected, encoding="utf-8"):
            path, dtype, dims, raw = line.rstrip("\n").split("\t")
            dims = tuple(int(d) for d in dims.split(",") if d)
            values = expected_values(dtype, dims, open(raw, "rb").read())
            if path.startswith("/attached") and dims == ():
                values = values.reshape(1)
            group, _, name = path.rpartition("/")
            variable = file[path.lstrip("/")]
            if group not in opened:
                opened[group] = xarray.open_dataset(index, engine="h5netcdf", group=group, phony_dims="sort",
                                                    decode_cf=False)
            array = opened[group][name]
            for who, found in (("h5netcdf", numpy.asarray(variable[...])), ("xarray", array.values)):
                if found.shape != values.shape or found.dtype != values.dtype or not numpy.array_equal(found, values):
                    print("wrong:", who, path, found.shape, found.dtype, "and not", values.shape, values.dtype)
                    wrong += 1
            if array.attrs["storage_order"] != "row-major" or array.attrs["name"] not in path:
                print("wrong attributes:", path, dict(array.attrs))
                wrong += 1
            seen += 1
        if "verify" not in file["run"].attrs["note"]:
            print("wrong: /run", dict(file["run"].attrs))
            wrong += 1
    print("read", seen, "datasets,", wrong, "wrong")
    return wrong != 0 or seen < 40


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

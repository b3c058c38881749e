"""What the tests of zero_checkpoint share: where the saved checkpoints are, and what was saved."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy

from zero_checkpoint import dtypes

SAVED = os.environ["ZERO_TEST_SAVED"]
CHECKPOINTS = os.path.join(SAVED, "checkpoints")
TOOL = os.environ["ZERO_TEST_CKPT"]


def elements(dtype, dims, raw):
    """As they lie in a file; bf16 as its 16 bits."""
    return numpy.fromfile(raw, dtypes.STORED[dtype]).reshape(dims)


def lines(name):
    """(path or name, dtype, dims, elements as stored) of SAVED/values or SAVED/expected."""
    with open(os.path.join(SAVED, name), encoding="utf-8") as file:
        for line in file:
            path, dtype, dims, raw = line.rstrip("\n").split("\t")
            dims = tuple(int(dim) for dim in dims.split(",") if dim)
            yield path, dtype, dims, elements(dtype, dims, raw)


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def load_in_a_job(folder):
    """Lets two ranks load the weights of the newest checkpoint by zero_load; what they then hold, by name."""
    out = tempfile.mkdtemp()
    done = subprocess.run([*os.environ["ZERO_TEST_JOB"].split(), "load", folder, out], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise AssertionError(done.stdout)
    found = {}
    with open(os.path.join(out, "values"), encoding="utf-8") as file:
        for line in file:
            name, dtype, dims, raw = line.rstrip("\n").split("\t")
            found[name] = elements(dtype, tuple(int(dim) for dim in dims.split(",") if dim), raw)
    return found


def run_module(*words):
    """python3 -m zero_checkpoint; its exit code and what it said."""
    done = subprocess.run([sys.executable, "-B", "-m", "zero_checkpoint", *words], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def run_tool(*words):
    return subprocess.run([TOOL, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT).returncode


class Test(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def place(self, *names):
        return os.path.join(self.folder, *names)

    def copy(self):
        """A checkpoint that may be damaged."""
        shutil.copytree(os.path.join(CHECKPOINTS, "again"), self.place("c", "t"))
        return self.place("c", "t")

"""zero_checkpoint reads what zero_save wrote: every array, any slice of it, no more than needed, and no damage unseen."""
import os
import pathlib
import random
import shutil
import sys
import unittest

import numpy

import zero_checkpoint
from support import CHECKPOINTS, SAVED, Test, lines, run_module, same_bits
from zero_checkpoint import dtypes, parts
from zero_checkpoint.crc32c import crc32c

AGAIN = os.path.join(CHECKPOINTS, "again")


def array_at(saved, path):
    """The array that index.h5 has at a path."""
    path = path[:-6] if path.endswith(".value") else path
    kind, rest = path.lstrip("/").split("/", 1)
    if kind == "parameters":
        return saved[rest]
    first, rest = rest.split("/", 1)
    if kind == "states":
        return saved[rest].states[first]
    if first == "replicated":
        return saved.attached[rest]
    rank, name = rest.split("/", 1)
    return saved.attached_per_rank[name][int(rank[5:])]


class Counted:
    """Counts the bytes that are read while it is open."""

    def __enter__(self):
        self.bytes, self.kept = 0, parts._read

        def read(descriptor, path, offset, into):
            self.bytes += memoryview(into).nbytes
            self.kept(descriptor, path, offset, into)

        parts._read = read
        return self

    def __exit__(self, *_):
        parts._read = self.kept


class Reading(Test):
    def test_only_numpy_is_imported(self):
        for module in ("torch", "h5py", "safetensors"):
            self.assertNotIn(module, sys.modules)

    def test_every_array_has_the_saved_bits(self):
        seen = 0
        with zero_checkpoint.open(CHECKPOINTS) as saved:  # the newest commit is "again"
            self.assertEqual((saved.head["tag"], saved.step, saved.head["ranks"]), ("again", 2, 3))
            for path, dtype, dims, expected in lines("expected"):
                array = array_at(saved, path)
                self.assertEqual((array.dtype, array.shape), (dtype, dims), path)
                self.assertTrue(same_bits(array.bits(), expected), path)
                values = dtypes.widened(expected, dtype)
                self.assertTrue(same_bits(array[...], values), path)
                self.assertTrue(same_bits(numpy.asarray(array), values), path)
                self.assertEqual(array[...].dtype, dtypes.numpy_dtype(dtype))
                seen += 1
        self.assertGreater(seen, 40)

    def test_values_as_the_program_sees_them(self):
        with zero_checkpoint.open(AGAIN) as saved:
            all_ = saved.state_dict()
            for name, dtype, dims, expected in lines("values"):
                tensor = saved[name]
                self.assertEqual((tensor.registered, tensor.shape), (dtype, dims))
                self.assertTrue(same_bits(tensor.values(), dtypes.widened(expected, dtype)), name)
                self.assertTrue(same_bits(all_[name], dtypes.widened(expected, dtype)), name)
            self.assertEqual(list(all_), [name for name, *_ in lines("values")])
            self.assertTrue(saved["half"].has_master and not saved["w"].has_master)
            self.assertTrue(saved["ice/bf16"].frozen and not saved["ice/bf16"].states)
            states = saved.state_dict("stored", states=True)
            self.assertTrue(same_bits(states["states/exp_avg/w"], saved["w"].states["exp_avg"][...]))
            self.assertEqual(states["half"].dtype, numpy.float32)
            with self.assertRaises(ValueError):
                saved.state_dict("int8")

    def test_any_slice(self):
        draw = random.Random(5)

        def index_of(size):
            kind = draw.randrange(4)
            if kind == 0 and size > 0:
                return draw.randrange(-size, size)
            if kind == 1:
                return slice(None)
            ends = [draw.choice([None, draw.randrange(-size - 2, size + 3)]) for _ in range(2)]
            return slice(*ends, draw.choice([None, 1, 2, 3, -1, -2, 7]))

        with zero_checkpoint.open(AGAIN) as saved:
            for name, tensor in saved.items():
                whole = tensor[...]
                for _ in range(40 if name == "large" else 150):
                    key = [index_of(size) for size in tensor.shape[:draw.randrange(tensor.ndim + 1)]]
                    if draw.randrange(3) == 0:
                        key.insert(draw.randrange(len(key) + 1), Ellipsis)
                        key = [one if k <= key.index(Ellipsis) else slice(None, None, -1) for k, one in enumerate(key)]
                    key = tuple(key)
                    self.assertTrue(same_bits(tensor[key], numpy.ascontiguousarray(whole[key]).reshape(whole[key].shape)),
                                    (name, key))
            w = saved["w"]
            for wrong in ((0, 0, 0, 0), (5,), (0, -8), (..., ...)):
                with self.assertRaises(IndexError):
                    w[wrong]
            with self.assertRaises(TypeError):
                w[[1, 2]]
            self.assertEqual((len(w), w.ndim, w.size, w.nbytes), (5, 3, 105, 420))
            self.assertTrue(same_bits(numpy.stack(list(w)), w[...]))

    def test_a_slice_reads_what_it_needs(self):
        for verify in (False, True):
            with zero_checkpoint.open(AGAIN, verify) as saved:
                large = saved["large"]
                pieces = len(large._pieces)
                large[0:1], large[500:501], large[1000:1001]  # opens the parts
                for key, needed in ((slice(3, 13), 10 * 1003 * 4), ((700, slice(5, 9)), 16), ((slice(None, None, 500), 1), 12)):
                    with Counted() as count:
                        large[key]
                    # each piece at most two blocks more when their sums are compared
                    self.assertLessEqual(count.bytes, needed + (pieces * 2 * parts.BLOCK if verify else 0), (key, verify))
                    self.assertGreater(count.bytes, 0)
                    with Counted() as count:
                        large[key]
                    self.assertEqual(count.bytes, needed)  # a block is summed once

    def test_chunks_are_the_whole(self):
        with zero_checkpoint.open(AGAIN) as saved:
            for name in ("large", "w", "empty", "scalar"):
                parts_ = [numpy.empty(0, "<f4"), *saved[name].chunks(1000)]
                self.assertTrue(same_bits(numpy.concatenate(parts_), saved[name][...].reshape(-1)))


class Sums(Test):
    def test_crc32c(self):
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)
        data = random.Random(1).randbytes(3_000_001)
        for cut in (0, 1, 127, 128, 129, 1 << 20, (1 << 21) + 1):
            self.assertEqual(crc32c(data[cut:], crc32c(data[:cut])), crc32c(data))

    def test_rounding_to_bf16(self):
        values = numpy.array([1.0, 1.00390625, 1.01171875, 1.0039062500000002, 3.4e38, numpy.inf, -numpy.inf, numpy.nan, 0.0, -0.0,
                              1e-45])
        wanted = [0x3F80, 0x3F80, 0x3F82, 0x3F81, 0x7F80, 0x7F80, 0xFF80, 0x7FC0, 0, 0x8000, 0]
        self.assertEqual(dtypes.narrowed(values, "bf16").tolist(), wanted)
        self.assertEqual(dtypes.narrowed(values.astype("<f4"), "bf16").tolist(), [*wanted[:3], 0x3F80, *wanted[4:]])


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 4]))


class Damage(Test):
    def test_damaged_data_are_found_when_they_are_read(self):
        folder = self.copy()
        with zero_checkpoint.open(folder) as saved:
            extent = saved.manifest["extents"][saved["double"].states["exp_avg"]._pieces[0][0]]
            offset = saved["double"].states["exp_avg"]._pieces[0][1]
            part = os.path.join(folder, saved.manifest["files"][extent["file"]]["name"])
        flip(part, extent["offset"] + 8 * offset)
        with zero_checkpoint.open(folder) as saved:
            self.assertTrue(same_bits(saved["w"][...], next(e for p, _, _, e in lines("expected") if p.endswith("/w.value"))))
            with self.assertRaisesRegex(zero_checkpoint.Damaged, "part-.*exp_avg is damaged"):
                saved["double"].states["exp_avg"][0]
            with self.assertRaises(zero_checkpoint.Damaged):
                saved.state_dict(states=True)
        with zero_checkpoint.open(folder, verify=False) as saved:
            saved["double"].states["exp_avg"][0]
        code, text = run_module("export", folder, "--states", "--safetensors", self.place("x"))
        self.assertEqual((code, os.path.exists(self.place("x"))), (2, False), text)
        self.assertEqual([name for name in os.listdir(self.folder)], ["c"])

    def test_parts_that_are_not_as_written(self):
        other = os.path.join(CHECKPOINTS, "second")
        for what in ("cut", "missing", "other", "frame", "sums"):
            folder = self.copy()
            with zero_checkpoint.open(folder) as saved:
                tensor = "large"
                file = saved.manifest["files"][saved.manifest["extents"][saved[tensor]._pieces[0][0]]["file"]]
            part = os.path.join(folder, file["name"])
            if what == "cut":
                os.truncate(part, file["bytes"] - 1)
            elif what == "missing":
                os.remove(part)
            elif what == "other":
                number = file["name"][14:]
                (same,) = [name for name in os.listdir(other) if name.endswith(number) and name.startswith("part-")]
                shutil.copyfile(os.path.join(other, same), part)
            else:
                flip(part, 5 if what == "frame" else file["integrity"])
            for verify in (True, False) if what in ("cut", "missing", "other") else (True,):
                with zero_checkpoint.open(folder, verify) as saved, self.assertRaisesRegex(zero_checkpoint.Damaged, "part-"):
                    saved[tensor][0]
            shutil.rmtree(folder)

    def test_a_manifest_of_which_a_bit_is_flipped(self):
        folder = self.copy()
        path = pathlib.Path(folder, "MANIFEST.json")
        raw = path.read_bytes()
        draw = random.Random(3)
        for at in [*range(0, 60), *(draw.randrange(len(raw)) for _ in range(200)), *range(len(raw) - 25, len(raw))]:
            bad = bytearray(raw)
            bad[at] ^= 1 << draw.randrange(8)
            path.write_bytes(bad)
            with self.assertRaises(zero_checkpoint.Damaged):
                zero_checkpoint.open(folder)
            path.write_bytes(raw[:at])
            with self.assertRaises(zero_checkpoint.Damaged):
                zero_checkpoint.open(folder)
        path.write_bytes(raw)
        zero_checkpoint.open(folder).close()


class CommandLine(Test):
    def test_list_and_show(self):
        code, text = run_module("list", CHECKPOINTS)
        self.assertEqual(code, 0, text)
        self.assertEqual([line.split()[0] for line in text.splitlines()], ["again", "second", "first"])
        code, text = run_module("show", CHECKPOINTS)
        self.assertEqual(code, 0, text)
        for words in ("step 2 (0 skipped)", "Größe/λ b", "[5, 7, 3]", "exp_avg, exp_avg_sq", "frozen", "attached, rank 2"):
            self.assertIn(words, text)

    def test_exit_codes(self):
        folder = self.copy()
        flip(pathlib.Path(folder, "MANIFEST.json"), 0)
        self.assertEqual(run_module("show", folder)[0], 1)
        self.assertEqual(run_module("list", self.place("c")), (0, "t  damaged\n"))
        for command in ("list", "show"):
            self.assertEqual(run_module(command, self.place("nowhere"))[0], 3)
            self.assertEqual(run_module(command, self.folder)[0], 3)
            self.assertEqual(run_module(command)[0], 2)
        self.assertEqual(run_module("export", SAVED, "--safetensors", self.place("x"))[0], 2)
        self.assertEqual(run_module("export", folder)[0], 2)


if __name__ == "__main__":
    unittest.main()

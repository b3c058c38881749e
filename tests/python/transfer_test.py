"""zero_checkpoint export and import with safetensors: the same as zero-ckpt writes, and back into a job by zero_load."""
import json
import os
import struct
import sys
import unittest
from unittest import mock

import numpy

import zero_checkpoint
from support import CHECKPOINTS, TOOL, Test, lines, load_in_a_job, run_module, run_tool, same_bits
from zero_checkpoint import dtypes, safetensors, transfer


def contents(path):
    """name -> (type, shape, bytes), and the metadata, by our reader."""
    file = safetensors.SafetensorsFile(path)
    found = {name: (*entry, b"".join(file.chunks(name))) for name, entry in file.entries.items()}
    file.close()
    return found, file.metadata


class Transfer(Test):
    def bring_in(self, source, **how):
        return zero_checkpoint.import_state_dict(source, self.place("new"), "t", zero_ckpt=TOOL, **how)

    def write(self, name, tensors):
        """tensors: {name: array as stored} of fp32, fp64, int64 ..."""
        types = {numpy.dtype(stored): dtype for dtype, stored in dtypes.STORED.items()}
        with open(self.place(name), "wb") as file:
            safetensors.write(file, [(key, types[one.dtype], one.shape, lambda one=one: [one]) for key, one in tensors.items()],
                              {"format": "pt"})
        return self.place(name)

    def test_export_is_that_of_the_tool(self):
        for more in ([], ["--states"], ["--dtype", "fp32"], ["--dtype", "stored", "--states"], ["--dtype", "bf16"],
                     ["--dtype", "fp64"], ["--dtype", "fp16"]):
            ours, theirs = self.place("ours"), self.place("theirs")
            code, text = run_module("export", CHECKPOINTS, "--safetensors", ours, *more)
            self.assertEqual(code, 0, text)
            self.assertEqual(run_tool("export", CHECKPOINTS, "--safetensors", theirs, *more), 0)
            self.assertEqual(contents(ours), contents(theirs), more)
            self.assertEqual(run_module("export", CHECKPOINTS, "--safetensors", ours)[0], 2)  # it is there
            os.remove(ours), os.remove(theirs)
        self.assertEqual(os.listdir(self.folder), [])

    def test_out_and_back_into_a_job(self):
        code, text = run_module("export", CHECKPOINTS, "--safetensors", self.place("x.safetensors"), "--states")
        self.assertEqual(code, 0, text)
        code, text = run_module("import", self.place("x.safetensors"), self.place("new"), "t", "--zero-ckpt", TOOL)
        self.assertEqual((code, text), (0, ""))
        self.assertEqual(run_tool("verify", "--full", self.place("new", "t")), 0)
        loaded = load_in_a_job(self.place("new"))
        for name, _, _, expected in lines("values"):
            self.assertTrue(same_bits(loaded[name], expected), name)
        self.assertEqual(sorted(os.listdir(self.place("new"))), ["LATEST", "t"])
        code, text = run_module("import", self.place("x.safetensors"), self.place("new"), "t", "--zero-ckpt", TOOL)
        self.assertEqual(code, 2)
        self.assertIn("t", text)

    def test_several_files_with_an_index_and_other_names(self):
        values = {name: dtypes.widened(stored, dtype) for name, dtype, _, stored in lines("values")}
        half = len(values) // 2
        names = list(values)
        os.mkdir(self.place("model"))
        weight_map = {}
        for k, mine in enumerate((names[:half], names[half:])):
            file = f"model-0000{k + 1}-of-00002.safetensors"
            self.write(os.path.join("model", file), {"module." + name: values[name] for name in mine})
            weight_map.update({"module." + name: file for name in mine})
        with open(self.place("model", "model.safetensors.index.json"), "w", encoding="utf-8") as file:
            json.dump({"metadata": {}, "weight_map": weight_map}, file)
        code, text = run_module("import", self.place("model"), self.place("new"), "t", "--rename", r"^module\.=", "--zero-ckpt", TOOL)
        self.assertEqual((code, text), (0, ""))
        with zero_checkpoint.open(self.place("new")) as saved:
            self.assertEqual(sorted(saved), sorted(values))
            for name, tensor in saved.items():
                self.assertTrue(same_bits(tensor[...], values[name]), name)

    def test_what_has_no_place_is_named(self):
        path = self.write("x.safetensors", {"a": numpy.ones(3, "<f4"), "steps": numpy.ones(2, "<i8"), "b": numpy.ones((), "<f8")})
        with self.assertRaisesRegex(zero_checkpoint.CheckpointError, r"steps \(int64\)"):
            self.bring_in(path)
        self.assertFalse(os.path.exists(self.place("new")))
        with self.assertRaisesRegex(zero_checkpoint.CheckpointError, "both be called 'c'"):
            self.bring_in(path, rename=lambda name: "c")
        with self.assertRaisesRegex(zero_checkpoint.CheckpointError, "no tensor"):
            self.bring_in(path, rename=lambda name: None)
        with self.assertRaisesRegex(zero_checkpoint.CheckpointError, "not allowed|tensor"):
            self.bring_in(path, rename=lambda name: "../" + name, skip_others=True)
        self.assertEqual(os.listdir(self.place("new")), [])  # the folder was made, nothing is left in it
        self.assertEqual(self.bring_in(path, skip_others=True), ["steps (int64)"])
        with zero_checkpoint.open(self.place("new", "t")) as saved:
            self.assertEqual(sorted(saved), ["a", "b"])

    def test_what_is_no_model(self):
        for name, raw in (("x.safetensors", b"1234567"), ("x.safetensors", struct.pack("<Q", 1 << 40)),
                          ("x.safetensors", struct.pack("<Q", 2) + b"[]"),
                          ("x.safetensors", struct.pack("<Q", 58) + b'{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,1000]}} '),
                          ("x.json", b"{}"), ("x.json", b"{")):
            with open(self.place(name), "wb") as file:
                file.write(raw)
            with self.assertRaisesRegex(zero_checkpoint.CheckpointError, self.place(name)):
                self.bring_in(self.place(name))
        for missing in (self.place("nothing"), self.folder):
            with self.assertRaises(zero_checkpoint.CheckpointError):
                self.bring_in(missing)
        with mock.patch.dict(os.environ, {"PATH": "/nowhere"}), self.assertRaisesRegex(zero_checkpoint.CheckpointError, "zero-ckpt"):
            zero_checkpoint.import_state_dict(self.place("x"), self.place("new"), "t")

    def test_without_torch_there_is_a_sentence(self):
        with open(self.place("pytorch_model.bin"), "wb") as file:
            file.write(b"PK")
        with mock.patch.dict(sys.modules, {"torch": None}):
            with self.assertRaisesRegex(zero_checkpoint.CheckpointError, "needs PyTorch.*install torch"):
                self.bring_in(self.place("pytorch_model.bin"))
            with self.assertRaisesRegex(zero_checkpoint.CheckpointError, "needs PyTorch.*install torch"):
                zero_checkpoint.export_torch(CHECKPOINTS, self.place("y"))

    def test_damage_ends_an_export_without_a_file(self):
        with mock.patch.object(transfer, "_items", side_effect=zero_checkpoint.Damaged("x")):
            with self.assertRaises(zero_checkpoint.Damaged):
                zero_checkpoint.export_safetensors(CHECKPOINTS, self.place("x"))
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()

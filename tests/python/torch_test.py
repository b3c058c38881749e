"""zero_checkpoint with PyTorch: a consolidated fp32 state dict, as DeepSpeed's zero_to_fp32.py writes it, into a job; torch
tensors and files out of a checkpoint."""
import collections
import json
import os
import unittest

import numpy
import torch

import zero_checkpoint
from support import CHECKPOINTS, TOOL, Test, lines, load_in_a_job, run_module, same_bits
from zero_checkpoint import dtypes
from zero_checkpoint.arrays import from_torch, to_torch


class Torch(Test):
    def fp32_state_dict(self):
        """The values of the saved model as zero_to_fp32.py has them: an OrderedDict of fp32 tensors."""
        return collections.OrderedDict(
            (name, torch.from_numpy(numpy.asarray(dtypes.widened(stored, dtype).astype("<f4"))))
            for name, dtype, _, stored in lines("values"))

    def check_loaded(self):
        loaded = load_in_a_job(self.place("new"))
        for name, dtype, _, expected in lines("values"):
            through = dtypes.narrowed(dtypes.widened(expected, dtype).astype("<f4"), dtype)  # fp64 lost bits
            self.assertTrue(same_bits(loaded[name], through), name)

    def test_pytorch_model_bin(self):
        torch.save(self.fp32_state_dict(), self.place("pytorch_model.bin"))
        code, text = run_module("import", self.place("pytorch_model.bin"), self.place("new"), "t", "--zero-ckpt", TOOL)
        self.assertEqual((code, text), (0, ""))
        self.check_loaded()

    def test_several_files(self):
        os.mkdir(self.place("out"))
        weight_map = {}
        for k, (name, tensor) in enumerate(self.fp32_state_dict().items()):
            file = f"pytorch_model-{k}.bin"
            torch.save({name: tensor}, self.place("out", file))
            weight_map[name] = file
        with open(self.place("out", "pytorch_model.bin.index.json"), "w", encoding="utf-8") as file:
            json.dump({"weight_map": weight_map}, file)
        zero_checkpoint.import_state_dict(self.place("out"), self.place("new"), "t", zero_ckpt=TOOL)
        self.check_loaded()

    def test_tensors_and_files_of_torch(self):
        code, text = run_module("export", CHECKPOINTS, "--torch", self.place("x.bin"), "--states")
        self.assertEqual(code, 0, text)
        held = torch.load(self.place("x.bin"), weights_only=True)
        with zero_checkpoint.open(CHECKPOINTS) as saved:
            of_torch = saved.state_dict(torch=True)
            for name, dtype, dims, expected in lines("values"):
                for tensor in (held[name], of_torch[name]):
                    self.assertEqual(str(tensor.dtype), "torch." + dtypes.TORCH[dtype])
                    self.assertEqual(tuple(tensor.shape), dims)
                    self.assertTrue(same_bits(from_torch(tensor)[1], expected), name)
            self.assertTrue(same_bits(held["states/exp_avg/half"].numpy(), saved["half"].states["exp_avg"][...]))
            rows = saved["ice/bf16"].torch((slice(1, 3), ...))
            self.assertEqual(rows.dtype, torch.bfloat16)
            self.assertTrue(same_bits(rows.float().numpy(), saved["ice/bf16"][1:3]))
            self.assertEqual(saved.attached["counter"].torch().dtype, torch.int64)
        self.assertEqual(run_module("export", CHECKPOINTS, "--torch", self.place("x.bin"))[0], 2)  # it is there
        self.assertEqual(os.listdir(self.folder), ["x.bin"])

    def test_what_is_no_state_dict(self):
        torch.save({"module": {"a": torch.ones(3)}}, self.place("deep.bin"))
        torch.save(torch.ones(3), self.place("one.bin"))
        with open(self.place("no.bin"), "wb") as file:
            file.write(b"nothing")
        for name, words in (("deep.bin", "no plain state dict"), ("one.bin", "no plain state dict"), ("no.bin", "torch cannot read")):
            with self.assertRaisesRegex(zero_checkpoint.CheckpointError, words):
                zero_checkpoint.import_state_dict(self.place(name), self.place("new"), "t", zero_ckpt=TOOL)
        self.assertFalse(os.path.exists(self.place("new")))

    def test_bits_of_every_type_survive(self):
        for dtype in dtypes.STORED:
            stored = numpy.frombuffer(bytes(range(64)), dtypes.STORED[dtype]).copy()
            self.assertTrue(same_bits(from_torch(to_torch(stored, dtype))[1], stored), dtype)
            self.assertEqual(from_torch(to_torch(stored, dtype))[0], dtype)


if __name__ == "__main__":
    unittest.main()

"""zero-ckpt as a user calls it, on checkpoints that zero_save wrote on three ranks: one test per command.

usage: tool_test.py list|show|verify|diff|merge|export|import|prune
"""
import json
import os
import shutil
import subprocess
import sys

from support import CHECKPOINTS, TOOL, Test, lines, load_in_a_job, same_bits
from zero_checkpoint import dtypes, safetensors

TAGS = ["again", "second", "first"]  # newest commit first; "again" has the state of "second"


class Tool(Test):
    def ask(self, exit_code, *words):
        done = subprocess.run([TOOL, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, exit_code, f"{words}: {done.stdout}")
        return done.stdout

    def answer(self, exit_code, command, *words):
        return json.loads(self.ask(exit_code, command, "--json", *words))

    def check_loaded(self, folder):
        loaded = load_in_a_job(folder)
        for name, _, _, expected in lines("values"):
            self.assertTrue(same_bits(loaded[name], expected), name)

    def test_list(self):
        found = self.answer(0, "list", CHECKPOINTS)
        self.assertEqual([one["tag"] for one in found], TAGS)
        self.assertEqual([one["step"] for one in found], [2, 2, 1])
        self.assertEqual([one["whole"] for one in found], [True] * 3)
        self.assertIn("again", self.ask(0, "list", CHECKPOINTS))

    def test_show(self):
        found = self.answer(0, "show", "--statistics", CHECKPOINTS)
        self.assertEqual((found["tag"], found["ranks"], found["stage"], found["optimizer"]), ("again", 3, 2, "adam"))
        self.assertEqual(len(found["files"]), 3)
        shown = {one["name"]: one for one in found["tensors"]}
        self.assertEqual(list(shown), [name for name, *_ in lines("values")])
        for name, dtype, dims, _ in lines("values"):
            self.assertEqual((shown[name]["dtype"], tuple(shown[name]["dims"])), (dtype, dims))
            self.assertEqual(shown[name]["frozen"], name.startswith("ice/"))
        statistics = {}
        for one in found["tensors"]:
            statistics["/parameters/" + one["name"]] = one["statistics"]["value"]
            for state in set(one["vectors"]) - {"value"}:
                statistics[f"/states/{state}/{one['name']}"] = one["statistics"][state]
        for path, dtype, _, stored in lines("expected"):
            path = path.removesuffix(".value")
            if path.startswith("/attached"):
                continue
            values, said = dtypes.widened(stored, dtype).astype("<f8"), statistics.pop(path)
            self.assertEqual(said["not_finite"], 0)
            if values.size == 0:
                self.assertIsNone(said["min"])
                continue
            self.assertEqual((said["min"], said["max"]), (values.min(), values.max()), path)
            self.assertAlmostEqual(said["mean"], values.mean(), 12, path)
        self.assertEqual(statistics, {})
        attached = {(one["name"], one["rank"]): one["dims"] for one in found["attached"]}
        self.assertEqual((attached["counter", 0], attached["rng", 0], attached["rng", 2]), ([3], [7], [9]))

    def test_verify(self):
        for tag in TAGS:
            self.ask(0, "verify", "--full", os.path.join(CHECKPOINTS, tag))
        folder = self.copy()
        with open(os.path.join(folder, "MANIFEST.json"), "rb") as file:
            manifest = json.load(file)
        for extent in manifest["extents"]:  # each rank's share of each kind of vector
            part = os.path.join(folder, manifest["files"][extent["file"]]["name"])
            with open(part, "r+b") as file:
                file.seek(extent["offset"])
                byte = file.read(1)
                for changed in (bytes([byte[0] ^ 1]), byte):
                    file.seek(extent["offset"])
                    file.write(changed)
                    file.flush()
                    if changed != byte:
                        said = self.ask(1, "verify", "--full", folder)
                        self.assertIn(os.path.basename(part), said)
                        self.assertIn(extent["dataset"], said)
        self.ask(0, "verify", "--full", folder)

    def test_diff(self):
        found = self.answer(0, "diff", os.path.join(CHECKPOINTS, "second"), os.path.join(CHECKPOINTS, "again"))
        self.assertEqual((found["equal"], found["equal_tensors"]), (True, len(list(lines("values")))))
        found = self.answer(1, "diff", os.path.join(CHECKPOINTS, "first"), CHECKPOINTS)
        moved = {name for name, _, _, stored in lines("values") if stored.size > 0 and not name.startswith("ice/")}
        self.assertEqual({one["name"] for one in found["different"]}, moved)
        self.assertEqual((found["only_in_a"], found["only_in_b"]), ([], []))
        for one in found["different"]:
            for vector in one["values"]:
                self.assertGreater(vector["different"], 0)

    def test_merge(self):
        file = self.place("whole.h5")
        self.answer(0, "merge", "--states", CHECKPOINTS, file)
        seen = 0
        for path, _, _, stored in lines("expected"):
            if path.startswith("/attached"):
                continue
            subprocess.run(["h5dump", "-d", path, "-b", "FILE", "-o", self.place("bytes"), file], check=True,
                           stdout=subprocess.PIPE)
            with open(self.place("bytes"), "rb") as found:
                self.assertEqual(found.read(), stored.tobytes(), path)
            seen += 1
        self.assertGreater(seen, 30)

    def test_export(self):
        said = self.answer(0, "export", "--states", CHECKPOINTS, "--safetensors", self.place("x"))
        file = safetensors.SafetensorsFile(self.place("x"))
        expected = {name: (dtype, dims, stored) for name, dtype, dims, stored in lines("values")}
        for path, dtype, dims, stored in lines("expected"):
            if path.startswith("/states/"):
                expected[path[1:].removesuffix(".value")] = (dtype, dims, stored)
        self.assertEqual(said["arrays"], len(expected))
        self.assertEqual(set(file.entries), set(expected))
        for name, (dtype, dims, stored) in expected.items():
            self.assertEqual(file.entries[name], (dtype, dims))
            self.assertEqual(b"".join(file.chunks(name)), stored.tobytes(), name)
        file.close()

    def test_import(self):
        self.ask(0, "export", CHECKPOINTS, "--safetensors", self.place("x"))
        said = self.answer(0, "import", "--safetensors", self.place("x"), self.place("c"), "new")
        self.assertEqual(said["tensors"], len(list(lines("values"))))
        self.ask(0, "verify", "--full", self.place("c", "new"))
        self.check_loaded(self.place("c"))

    def test_prune(self):
        folder = self.place("c")
        shutil.copytree(CHECKPOINTS, folder)
        said = self.answer(0, "prune", "--keep-last", "1", "--dry-run", folder)
        self.assertEqual(sorted(said["removed"]), ["first", "second"])
        self.assertEqual(sorted(os.listdir(folder)), sorted([*TAGS, "LATEST"]))
        self.ask(0, "prune", "--keep-last", "1", folder)
        self.assertEqual(sorted(os.listdir(folder)), ["LATEST", "again"])
        self.ask(0, "verify", "--full", folder)
        self.check_loaded(folder)


if __name__ == "__main__":
    import unittest
    if sys.argv[1:] == ["merge"] and shutil.which("h5dump") is None:
        print("SKIPPED: h5dump was not found (Debian: hdf5-tools)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + ["Tool.test_" + name for name in sys.argv[1:]])

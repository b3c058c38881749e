"""Between checkpoints and the files of PyTorch and DeepSpeed: safetensors and torch.save, one file or several with an index.
A checkpoint is written by `zero-ckpt import`; torch is imported only where such a file is asked for."""
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import dtypes, safetensors
from .arrays import from_torch
from .checkpoint import Checkpoint
from .errors import CheckpointError

IN_A_FOLDER = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")


def _torch(why):
    try:
        import torch
    except ImportError:
        raise CheckpointError(f"{why} needs PyTorch, which this Python ({_python()}) does not have: install torch, or use "
                              "safetensors, which needs nothing (zero_to_fp32.py writes it with --safe_serialization)") from None
    return torch


def _python():
    import sys
    return sys.executable


# --- a checkpoint becomes a file ---

def _items(checkpoint, dtype, states):
    def bytes_of(array, wanted):
        def chunks():
            for part in array.chunks():
                yield part if wanted == array.dtype else dtypes.narrowed(dtypes.widened(part, array.dtype), wanted)
        return chunks

    found = [(name, wanted, array.shape, bytes_of(array, wanted)) for name, array, wanted in checkpoint.arrays(dtype, states)]
    names = {one[0] for one in found}
    if len(names) != len(found) or "__metadata__" in names:
        raise CheckpointError("two tensors would have one name in the file: export without states")
    return found


def export_safetensors(path, file, dtype="registered", states=False, verify=True):
    """Writes whole tensors, a few MiB in memory at a time."""
    with Checkpoint(path, verify) as checkpoint:
        metadata = {"format": "pt", "libzero_uuid": checkpoint.head["uuid"], "libzero_step": str(checkpoint.step)}
        if states:
            metadata["libzero_states"] = "states/"
        tensors = _items(checkpoint, dtype, states)
        with safetensors.new_file(file) as to:
            safetensors.write(to, tensors, metadata)


def export_torch(path, file, dtype="registered", states=False, verify=True):
    """Writes a state dict by torch.save, as pytorch_model.bin is one. All of it is in memory at once."""
    torch = _torch("writing a torch file")
    with Checkpoint(path, verify) as checkpoint:
        all_ = checkpoint.state_dict(dtype, states, torch=True)
    with safetensors.new_file(file) as to:
        torch.save(all_, to)


# --- a file becomes a checkpoint ---

class _TorchFile:
    """A state dict of torch.save with the interface of SafetensorsFile."""

    def __init__(self, path):
        torch = _torch(f"reading {path}")
        try:
            try:
                held = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
            except TypeError:  # before torch 2.1
                held = torch.load(path, map_location="cpu", weights_only=True)
            except RuntimeError as problem:
                if "mmap" not in str(problem):
                    raise
                held = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as problem:  # torch has many
            raise CheckpointError(f"torch cannot read {path} as weights: {problem}") from None
        if not isinstance(held, dict) or not all(isinstance(one, torch.Tensor) for one in held.values()):
            raise CheckpointError(f"{path} is no plain state dict of names and tensors; make one by DeepSpeed's zero_to_fp32.py")
        self.metadata, self._held, names = {}, held, {theirs: ours for ours, theirs in dtypes.TORCH.items()}
        self.entries = {}
        for name, one in held.items():
            theirs = str(one.dtype).removeprefix("torch.")
            self.entries[name] = (names.get(theirs, theirs), tuple(one.shape))

    def chunks(self, name):
        _, elements = from_torch(self._held[name])
        yield elements

    def close(self):
        self._held = {}


def _open_all(path):
    """Every file of one model."""
    path = Path(path)
    if path.is_dir():
        there = [path / name for name in IN_A_FOLDER if (path / name).exists()]
        if len(there) != 1:
            found = ", ".join(one.name for one in there) or "none"
            raise CheckpointError(f"{path} must hold one of {', '.join(IN_A_FOLDER)}; found: {found}")
        path = there[0]
    if not path.exists():
        raise CheckpointError(f"there is no file {path}")
    names = [path]
    if path.suffix == ".json":
        try:
            names = [path.parent / name for name in dict.fromkeys(json.loads(path.read_text())["weight_map"].values())]
        except (ValueError, KeyError, AttributeError, TypeError) as problem:
            raise CheckpointError(f"{path} is no index of a model in several files ({problem})") from None
    opened = []
    try:
        for name in names:
            opened.append((safetensors.SafetensorsFile if name.suffix == ".safetensors" else _TorchFile)(name))
    except BaseException:
        for one in opened:
            one.close()
        raise
    return opened


def _wanted(files, rename, skip_others):
    """[(name, type, shape, chunks)] of what becomes a tensor; names of what is left out."""
    found, others, taken = [], [], {}
    for file in files:
        for name, (dtype, shape) in file.entries.items():
            if file.metadata.get("libzero_states") and name.startswith("states/"):
                continue
            new = rename(name) if rename else name
            if new is None:
                continue
            if dtype not in dtypes.PARAMETERS:
                others.append(f"{name} ({dtype})")
                continue
            if new in taken:
                raise CheckpointError(f"{taken[new]} and {name} would both be called {new!r}")
            taken[new] = name
            found.append((new, dtype, shape, lambda file=file, name=name: file.chunks(name)))
    if others and not skip_others:
        raise CheckpointError(f"a checkpoint holds {', '.join(dtypes.PARAMETERS)}, so these have no place in it: "
                              f"{', '.join(others)}. Leave them out (skip_others, --skip-others)")
    if not found:
        raise CheckpointError("no tensor is left to import")
    return found, others


def _tool(named):
    beside = Path(__file__).resolve().parents[3] / "bin" / "zero-ckpt"  # where an installation has it
    program = named or (str(beside) if beside.exists() else shutil.which("zero-ckpt"))
    if not program:
        raise CheckpointError("zero-ckpt, which writes checkpoints, was not found in PATH: say where it is (zero_ckpt, --zero-ckpt)")
    return program


def import_state_dict(source, folder, tag, rename=None, skip_others=False, zero_ckpt=None):
    """Makes the checkpoint folder/tag of values alone, for "checkpoint.load": "weights". Returns the names left out.

    source: a safetensors or torch file, the index of several, or a folder with one of these (what DeepSpeed's
    zero_to_fp32.py writes). rename: a function from their names to yours; None leaves a tensor out.
    """
    program = _tool(zero_ckpt)
    files = _open_all(source)
    try:
        found, others = _wanted(files, rename, skip_others)
        os.makedirs(folder, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".import-", suffix=".safetensors") as file:
            safetensors.write(file, found, {"format": "pt"})
            file.flush()
            command = [program, "import", "--safetensors", file.name, str(folder), tag]
            done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as problem:
        raise CheckpointError(f"could not import {source}: {problem}") from None
    finally:
        for one in files:
            one.close()
    if done.returncode != 0:
        raise CheckpointError(done.stderr.strip() or f"{program} ended with {done.returncode}")
    return others

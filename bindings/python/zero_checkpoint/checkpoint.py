"""A checkpoint opened for reading: a mapping from names of tensors to lazy tensors."""
from collections.abc import Mapping

from . import dtypes
from .arrays import Array, Tensor, to_torch
from .manifest import checkpoint_at, read_manifest
from .parts import Parts


class Checkpoint(Mapping):
    """Names to tensors, in the order of registration. With several model ranks a name begins with model-<m>/."""

    def __init__(self, path, verify=True):
        self.folder = checkpoint_at(path)
        self.manifest = read_manifest(self.folder)
        self._parts = Parts(self.folder, self.manifest, verify)
        self._tensors = {}
        for one in self.manifest["tensors"]:
            name = self._shown(one)
            self._tensors[name] = Tensor(self._parts, name, one)
        self.attached, self.attached_per_rank = {}, {}
        for one in self.manifest["attachments"]:
            name = self._shown(one)
            pieces = [[one["extent"], 0, 0, self._count(one)]] if one["extent"] >= 0 else []
            array = Array(self._parts, name, one["dims"], one["dtype"], pieces)
            if one["per_rank"]:
                self.attached_per_rank.setdefault(name, {})[one["rank"]] = array
            else:
                self.attached[name] = array

    @staticmethod
    def _count(one):
        count = 1
        for dim in one["dims"]:
            count *= dim
        return count

    def _shown(self, one):
        several = self.manifest["head"]["model_ranks"] > 1
        return f"model-{one['model']}/{one['name']}" if several else one["name"]

    @property
    def head(self):
        """uuid, tag, time, step, ranks, stage ... (checkpoints/FORMAT.md)."""
        return self.manifest["head"]

    @property
    def run(self):
        """Step, learning rate, loss scale, optimizer, the options ... of the run."""
        return self.manifest["run"]

    @property
    def step(self):
        return self.manifest["head"]["step"]

    def __getitem__(self, name):
        return self._tensors[name]

    def __iter__(self):
        return iter(self._tensors)

    def __len__(self):
        return len(self._tensors)

    def __repr__(self):
        return f"<checkpoint {self.folder}: step {self.step}, {len(self)} tensors>"

    def close(self):
        self._parts.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def arrays(self, dtype="registered", states=False):
        """Yields (name, array, type to give it) for every tensor and, as states/<state>/<name>, every state.

        dtype of the values: registered, stored (the fp32 master), fp32, fp64, bf16 or fp16.
        """
        if dtype not in ("registered", "stored", *dtypes.PARAMETERS):
            raise ValueError(f"dtype {dtype!r} is none of registered, stored, {', '.join(dtypes.PARAMETERS)}")
        for name, tensor in self.items():
            yield name, tensor, {"registered": tensor.registered, "stored": tensor.dtype}.get(dtype, dtype)
        for name, tensor in self.items() if states else ():
            for state, array in tensor.states.items():
                yield f"states/{state}/{name}", array, array.dtype

    def state_dict(self, dtype="registered", states=False, torch=False):
        """All values in memory, by name: NumPy arrays (bf16 rounded, as float32), or torch tensors."""
        found = {}
        for name, array, wanted in self.arrays(dtype, states):
            elements = array.bits() if wanted == array.dtype else dtypes.narrowed(array[...], wanted)
            found[name] = to_torch(elements, wanted) if torch else dtypes.widened(elements, wanted)
        return found

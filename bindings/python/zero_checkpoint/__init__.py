"""Reads libzero checkpoints without libzero, MPI and HDF5, and moves weights from and to PyTorch. Needs NumPy alone.

    import zero_checkpoint
    with zero_checkpoint.open("checkpoints") as saved:      # the newest; or one: "checkpoints/step-000000001200"
        rows = saved["layer0/w"][:10]                       # reads these rows: NumPy, the fp32 master of 16-bit tensors
        moment = saved["layer0/w"].states["exp_avg"][...]
        weights = saved.state_dict(torch=True)              # torch tensors in the registered types

What is read is compared with the checksums of the checkpoint; open(..., verify=False) leaves that out.
"""
from .arrays import Array, Tensor
from .checkpoint import Checkpoint
from .errors import CheckpointError, Damaged, NotThere, OtherFormat
from .manifest import candidates
from .transfer import export_safetensors, export_torch, import_state_dict

__all__ = ["Array", "Checkpoint", "CheckpointError", "Damaged", "NotThere", "OtherFormat", "Tensor", "candidates",
           "export_safetensors", "export_torch", "import_state_dict", "open"]


def open(path, verify=True):
    """The checkpoint at path, or the newest in the folder path, as a Checkpoint. verify: compare what is read with the
    checksums (about 200 MB/s)."""
    return Checkpoint(path, verify)

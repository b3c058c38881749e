"""What can be wrong with a checkpoint."""


class CheckpointError(Exception):
    """Something that cannot be done; the text says why."""


class NotThere(CheckpointError):
    """No such folder, or no checkpoint in it."""


class Damaged(CheckpointError):
    """A checkpoint is not what was written."""


class OtherFormat(CheckpointError):
    """A checkpoint of a format that this version does not know."""

"""python3 -m zero_checkpoint: list, show, export, import. The tool zero-ckpt has more, and needs to be built."""
import argparse
import re
import sys

from . import dtypes
from .checkpoint import Checkpoint
from .errors import CheckpointError, Damaged, NotThere
from .manifest import candidates
from .transfer import export_safetensors, export_torch, import_state_dict

CODES = """Exit codes of list and show: 0 fine, 1 damage found, 2 wrong usage, 3 no checkpoint there, 4 not readable.
Of export and import: 0 done, 2 trouble."""


def list_(words):
    found = candidates(words.folder)
    if not found:
        raise NotThere(f"there is no checkpoint in {words.folder}")
    for tag, head in found:
        if head is None:
            print(f"{tag}  damaged")
        else:
            print(f"{tag}  step {head['step']}  {head['time']}  {head['ranks']} ranks, stage {head['stage']}, "
                  f"{head['bytes']} bytes")


def show(words):
    with Checkpoint(words.folder) as saved:
        head, run = saved.head, saved.run
        print(f"{saved.folder}\nsaved {head['time']} as commit {head['sequence']}, uuid {head['uuid']}")
        print(f"step {saved.step} ({run['skipped']} skipped), lr {run['lr']}, loss scale {run['scale']}, "
              f"optimizer {run['optimizer']}, {head['ranks']} ranks, stage {head['stage']}\n")
        for name, tensor in saved.items():
            more = "frozen" if tensor.frozen else ", ".join(tensor.states)
            print(f"  {name:<30} {tensor.registered:<9} {str(list(tensor.shape)):<20} {more}")
        for name, array in saved.attached.items():
            print(f"  {name:<30} {array.dtype:<9} {str(list(array.shape)):<20} attached")
        for name, of_ranks in saved.attached_per_rank.items():
            for rank, array in sorted(of_ranks.items()):
                print(f"  {name:<30} {array.dtype:<9} {str(list(array.shape)):<20} attached, rank {rank}")


def export(words):
    write, file = (export_torch, words.torch) if words.torch else (export_safetensors, words.safetensors)
    write(words.folder, file, words.dtype, words.states, not words.no_verify)


def import_(words):
    rules = []
    for rule in words.rename:
        pattern, equals, by = rule.partition("=")
        if not equals:
            raise CheckpointError(f"--rename {rule} is not PATTERN=REPLACEMENT")
        rules.append((re.compile(pattern), by))

    def rename(name):
        for pattern, by in rules:
            name = pattern.sub(by, name)
        return name or None

    for name in import_state_dict(words.source, words.folder, words.tag, rename, words.skip_others, words.zero_ckpt):
        print(f"left out: {name}", file=sys.stderr)


def read_words(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m zero_checkpoint", epilog=CODES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description="Reads libzero checkpoints and moves weights from and to PyTorch.")
    commands = parser.add_subparsers(required=True, metavar="list|show|export|import")

    def add(name, function, text, *places):
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(function=function, on_error=4 if name in ("list", "show") else 2)
        for place in places:
            command.add_argument(place)
        return command

    add("list", list_, "the checkpoints of a folder, newest commit first", "folder")
    add("show", show, "what a checkpoint holds (of a folder of checkpoints: the newest)", "folder")
    out = add("export", export, "whole tensors of a checkpoint as a file for PyTorch", "folder")
    kind = out.add_mutually_exclusive_group(required=True)
    kind.add_argument("--safetensors", metavar="FILE")
    kind.add_argument("--torch", metavar="FILE", help="a state dict by torch.save; needs torch")
    out.add_argument("--states", action="store_true", help="optimizer states too, as states/<state>/<tensor>")
    out.add_argument("--dtype", default="registered", choices=("registered", "stored", *dtypes.PARAMETERS))
    out.add_argument("--no-verify", action="store_true", help="do not compare checksums")
    into = add("import", import_, 'a checkpoint of values alone, for "checkpoint.load": "weights"', "source", "folder", "tag")
    into.add_argument("--rename", action="append", default=[], metavar="PATTERN=REPLACEMENT",
                      help="regular expression on names; may be repeated; a name that becomes empty is left out")
    into.add_argument("--skip-others", action="store_true", help="leave out what is not fp32, fp64, bf16 or fp16")
    into.add_argument("--zero-ckpt", metavar="PROGRAM", help="the tool that writes (default: from PATH)")
    return parser.parse_args(arguments)


def main(arguments=None):
    words = read_words(arguments)
    try:
        words.function(words)
        return 0
    except (CheckpointError, OSError, ValueError, re.error) as problem:
        print(f"zero_checkpoint: {problem}", file=sys.stderr)
        if words.on_error == 2:
            return 2
        return 1 if isinstance(problem, Damaged) else 3 if isinstance(problem, NotThere) else 4


if __name__ == "__main__":
    sys.exit(main())

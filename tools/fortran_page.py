#!/usr/bin/env python3
"""Prints docs/fortran.md, the page of all Fortran calls: signatures from the Fortran sources, meanings from zero.h. --write
puts it there, --check says whether it stands there and whether every C function has its call. It explains nothing itself."""
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORTRAN = ROOT / "bindings/fortran"
# C functions whose Fortran call has another name.
OTHER_NAMES = {"zero_init_f": "zero_init", "zero_set_model_comm_f": "zero_set_model_comm", "zero_last_error": "zero_error_text",
               "zero_set_int": "zero_set", "zero_set_real": "zero_set", "zero_set_text": "zero_set",
               "zero_get_int": "zero_get", "zero_get_real": "zero_get", "zero_get_text": "zero_get"}
WITHOUT_C = {"zero_reset_log": "zero_set_log"}  # Fortran calls that stand beside another one

PREFACE = """# Every Fortran call

Printed by `tools/fortran_page.py` from `bindings/fortran` and `include/zero/zero.h`; the tests compare it. How to move a code:
[guide.md](guide.md). Error codes: [errors.md](errors.md).

```fortran
use zero_optimizer     ! compile and link with zero::fortran, or pkg-config zero_fortran
```

- **ierr** is optional and last everywhere. Pass it by keyword, `ierr=code`. Without it a failure prints its sentence and ends in
  `MPI_Abort`.
- **Communicators**: an `integer` of `mpi` or `mpif.h`, or a `type(MPI_Comm)` of `mpi_f08`.
- **Kinds and ranks** of values and gradients: `real(real32)` for `ZERO_F32`, `real(real64)` for `ZERO_F64`, ranks 0 to 7. The bits of
  16-bit tensors are `integer(int16)`. States, masters and slices are `real(real32)`, for `ZERO_F64` tensors `real(real64)`.
- **Arrays that the library keeps** (`zero_register` with values, `zero_rebind`, `zero_attach`) need the attribute `target` and must
  stay where they are. Without `target` the compiler says "There is no specific subroutine for the generic". All arrays must be
  contiguous: a section with gaps is `ZERO_ERR_ARGUMENT`.
- **Counting**: ids, groups and ranks count from 0, as in C and MPI. Element numbers (`first` of `zero_slice`) count from 1.
- **Shapes**: extents are given as Fortran sees them, and stored reversed, because files and C are row-major: `w(m, n)` is
  `[n, m]` for h5py and `zero-ckpt`.
- **Texts**: trailing blanks are cut on the way in; results are padded with blanks or cut.
- Where the meanings below, which are those of zero.h, speak of NULL, leave the argument out; what "may be NULL" is always given
  here. "(c)" is collective: all ranks make the call. `ZERO_EVERYONE` as root means every rank.

Constants:
CONSTANTS.
"""

F77 = """## Fortran 77: external subroutines without a module

For codes in fixed form; source `zero_f77.f90`, constants `zerof.h` (both installed beside the module). Compile the source with
your own flags, so that `INTEGER` is the same on both sides.

"""


def joined(text):
    """Fortran source with continued lines joined."""
    return re.sub(r"&[ \t]*\n[ \t]*&?", "", text)


class Procedure:
    """A subroutine: arguments in order, what is said about each, and the comment above it."""

    def __init__(self, comment, arguments, body):
        self.comment, self.arguments = comment, arguments
        self.calls = re.findall(r"call (zero_\w+)", " ".join(body))
        self.declared = {}
        for line in body:
            match = re.match(r"\s*(.+?)\s*::\s*(.+?)\s*(?:!.*)?$", line)
            if not match:
                continue
            for item in re.findall(r"(\w+)(\([^()]*\))?", match.group(2)):
                if item[0] in arguments and item[0] not in self.declared:
                    self.declared[item[0]] = (match.group(1), item[1])

    def optional(self, name):
        return "optional" in self.declared[name][0]


def procedures(text):
    found, comment, lines = {}, [], joined(text).splitlines()
    for number, line in enumerate(lines):
        if re.match(r"\s*!", line):
            comment.append(line.strip("! "))
            continue
        match = re.match(r"\s*subroutine (\w+)\((.*?)\)", line)
        if match:
            end = next(k for k in range(number, len(lines)) if lines[k].strip().startswith("end subroutine"))
            said = " ".join(one for one in comment if not one.startswith("---"))
            found[match.group(1)] = Procedure(said, re.findall(r"\w+", match.group(2)), lines[number + 1:end])
        comment = []
    return found


def interfaces(text):
    """Generic name -> its specific procedures."""
    found = {}
    for name, body in re.findall(r"^ *interface (\w+).*?\n(.*?)^ *end interface", joined(text), re.M | re.S):
        found[name] = re.findall(r"\w+", " ".join(re.findall(r"module procedure (.*)", body)))
    return found


def argument_text(name, of):
    """Type, rank and intent of an argument over all specific procedures that have it."""
    types, ranks, marks = [], set(), set()
    for one in of:
        if name not in one.arguments:
            continue
        attributes, shape = one.declared[name]
        parts = re.split(r",\s*(?![^()]*\))", attributes)
        kind = "type(MPI_Comm)" if "MPI_Comm" in parts[0] else parts[0]
        if kind not in types:
            types.append(kind)
        ranks.add(shape.count(":") if ":" in shape else (shape if shape else 0))
        marks.update(part for part in parts[1:] if part.startswith("intent") or part in ("pointer", "optional"))
    text = ", ".join(f"`{one}`" for one in types)
    numbers = sorted(one for one in ranks if isinstance(one, int))
    if len(numbers) > 1:
        text += f", rank {numbers[0]} to {numbers[-1]}"
    elif numbers and numbers[0] > 0:
        text += f", rank {numbers[0]}"
    text += "".join(f", `{name}{one}`" for one in ranks if isinstance(one, str))
    words = {"intent(in)": "in", "intent(out)": "out", "intent(inout)": "in and out"}
    ways = ", ".join(words[one] for one in sorted(marks) if one in words)
    if "pointer" in marks:
        ways = "in, kept: needs `target`" if "intent(in)" in marks else "out, a pointer of yours"
    return f"| `{name}` | {text} | {ways}{', may be left out' if 'optional' in marks else ''} |"


def call_lines(name, of):
    """The different lists of arguments of a call, the longest first."""
    lines = []
    for one in of:
        inner = ""
        for argument in one.arguments:
            if argument == "ierr":
                inner += "[, ierr]" if inner else "[ierr]"
            elif one.optional(argument):
                inner += f" [, {argument}] "
            else:
                inner += (", " if inner else "") + argument
        line = f"call {name}({inner.strip()})".replace(" [, ierr]", "[, ierr]").replace("  ", " ")
        if line not in lines:
            lines.append(line)
    return sorted(lines, key=lambda line: -line.count(","))


def sections(header):
    """(title, [(C functions, comment)]) in the order of zero.h."""
    found = []
    for title, body in re.findall(r"/\* ---- (.*?) -+ \*/\n(.*?)(?=/\* ---- |#ifdef __cplusplus\n}|\Z)", header, re.S):
        entries = []
        for comment, declarations in re.findall(r"/\* (.*?) ?\*/\n((?:ZERO_API [^;]*;\n)+)", body, re.S):
            entries.append((re.findall(r"(zero_\w+)\(", declarations), re.sub(r"\s*\n \*[ ]?", "\n", comment).strip()))
        found.append((title, entries))
    return found


def module_calls():
    text = (FORTRAN / "zero_optimizer_calls.f90").read_text() + (FORTRAN / "zero_optimizer.f90").read_text()
    known = procedures(text)
    generic = interfaces(text)
    public = [name for name in re.findall(r"\b(zero_\w+)", " ".join(re.findall(r"public ::(.*)", text))) if name != "zero_t"]
    calls = {}
    for name in dict.fromkeys(public):
        calls[name] = [known[one] for one in generic.get(name, [name])]
    return calls


def wrapped(text):
    return textwrap.fill(re.sub(r"([*<])", r"\\\1", text), 125, break_long_words=False, break_on_hyphens=False)


def markdown(text):
    """A comment of zero.h: indented lists stay as they are, errors become a paragraph of their own."""
    blocks = []  # (is it a list, lines)
    for line in text.split("\n"):
        listed, errors = line.startswith("  "), line.startswith("Errors:")
        if errors or not blocks or blocks[-1][0] != listed:
            blocks.append((listed, []))
        blocks[-1][1].append(line)
    made = []
    for listed, lines in blocks:
        if listed:
            made.append("```\n" + textwrap.dedent("\n".join(lines)) + "\n```")
        else:
            made.append(re.sub(r"^Errors:", "*Errors:*", wrapped(" ".join(lines))))
    return "\n\n".join(made)


def one_call(name, of, meaning):
    lines = [f"### {name}", "", "```fortran", *call_lines(name, of), "```", ""]
    arguments = list(dict.fromkeys(argument for one in of for argument in one.arguments if argument not in ("z", "ierr")))
    if arguments:
        lines += ["| argument | type | |", "|---|---|---|", *(argument_text(one, of) for one in arguments), ""]
    notes = list(dict.fromkeys(one.comment for one in of if one.comment))
    if notes:
        lines += [wrapped("In Fortran: " + " ".join(notes)), ""]
    return "\n".join(lines) + "\n" + meaning + "\n"


def fortran77():
    text = (FORTRAN / "zero_f77.f90").read_text().split("end module zero_f77_handles", 1)[1]
    text += (FORTRAN / "zero_f77_arrays.f90").read_text().split("\n\n", 1)[1]
    found = procedures(text)
    lines = ["| call | |", "|---|---|"]
    for name, one in found.items():
        twin = name.endswith("_s") and name[:-2] + "_d" in found
        if not twin:
            note = (one.comment or f"as `{one.calls[0]}`") + (" Ends in `_S` for REAL\\*4." if name.endswith("_d") else "")
            note = note.replace("<", "\\<").replace("INTEGER*8", "INTEGER\\*8")
            lines.append(f"| `CALL {name.upper()}({', '.join(one.arguments).upper()})` | {note.strip()} |")
    return "\n".join(lines) + "\n"


def constants():
    text = (FORTRAN / "zero_optimizer_base.f90").read_text()
    names = re.findall(r"(ZERO_\w+) = ", " ".join(re.findall(r"integer, parameter, public ::(.*)", text)))
    return textwrap.fill(", ".join(f"`{name}`" for name in names), 125)


def page():
    calls, written = module_calls(), set()
    out = PREFACE.replace("CONSTANTS", constants())
    for title, entries in sections((ROOT / "include/zero/zero.h").read_text()):
        out += f"\n## {title[0].upper()}{title[1:]}\n"
        meanings = {}
        for functions, comment in entries:
            for function in functions:
                name = OTHER_NAMES.get(function, function)
                if name not in calls:
                    sys.exit(f"zero.h has {function}, module zero_optimizer has no {name}")
                if not function.endswith("_f") and comment not in meanings.setdefault(name, []):
                    meanings[name].append(comment)
        for name, comments in meanings.items():
            out += "\n" + one_call(name, calls[name], "\n\n".join(markdown(one) for one in comments))
            written.add(name)
            for beside in (one for one, other in WITHOUT_C.items() if other == name):
                out += "\n" + one_call(beside, calls[beside], f"See `{name}`.")
                written.add(beside)
    if set(calls) - written:
        sys.exit(f"zero_optimizer has {sorted(set(calls) - written)}, zero.h has not")
    return out + "\n" + F77 + fortran77()


def main():
    path, made = ROOT / "docs/fortran.md", page()
    if sys.argv[1:] == ["--write"]:
        path.write_text(made)
    elif sys.argv[1:] == ["--check"]:
        if not path.exists() or path.read_text() != made:
            sys.exit("docs/fortran.md differs from the Fortran sources and zero.h: run tools/fortran_page.py --write")
        print("the page of the Fortran calls is as its sources say")
    elif not sys.argv[1:]:
        print(made, end="")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Prints the table of error codes from ZERO_ERROR_TABLE in src/core/error.hpp: tools/errors_table.py
--write puts it between the two markers of docs/errors.md, --check says whether it stands there and whether zero.h has
the same names and numbers. Not here: what the codes mean in practice (docs/errors.md, below the table)."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROW = re.compile(r'row\(\w+,\s*(\d+),\s*"(\w+)",\s*"([^"]+)"\)')
BEGIN, END = "<!-- from src/core/error.hpp -->", "<!-- end -->"


def rows():
    found = ROW.findall((ROOT / "src/core/error.hpp").read_text())
    if not found:
        sys.exit("src/core/error.hpp has no rows that this script understands")
    return [(int(number), name, text) for number, name, text in found]


def table():
    lines = ["| code | number | meaning |", "|---|---|---|"]
    return "\n".join(lines + [f"| `{name}` | {number} | {text} |" for number, name, text in rows()])


def parts(text):
    """What stands before, between and after the markers."""
    before, begin, rest = text.partition(BEGIN)
    between, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"docs/errors.md lacks {BEGIN} or {END}")
    return before, between.strip(), after


def differences(document, header):
    """Sentences about what has drifted; none when all agree."""
    found = []
    if parts(document)[1] != table():
        found.append("docs/errors.md differs from src/core/error.hpp: run tools/errors_table.py --write")
    public = {name: int(number) for name, number in re.findall(r"(ZERO_(?:OK|ERR_\w+)) = (\d+)", header)}
    ours = {name: number for number, name, _ in rows()}
    for name in sorted(public.keys() | ours.keys()):
        if public.get(name) != ours.get(name):
            found.append(f"{name} is {public.get(name)} in zero.h and {ours.get(name)} in src/core/error.hpp")
    described = set(re.findall(r"^### (ZERO_ERR_\w+)$", document, re.M))
    for name in sorted((ours.keys() - {"ZERO_OK"}) ^ described):
        found.append(f"docs/errors.md: {name} has {'no section' if name in ours else 'a section but no row'}")
    return found


def main():
    document = ROOT / "docs/errors.md"
    if sys.argv[1:] == ["--write"]:
        before, _, after = parts(document.read_text())
        document.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}")
    elif sys.argv[1:] == ["--check"]:
        found = differences(document.read_text(), (ROOT / "include/zero/zero.h").read_text())
        print("\n".join(found) or "the codes agree")
        sys.exit(1 if found else 0)
    elif not sys.argv[1:]:
        print(table())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

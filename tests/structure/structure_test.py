#!/usr/bin/env python3
"""Breaks each rule of structure.py once in a small tree: a check that cannot fail is worth nothing."""
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from structure import LONGEST_FILE, Tree  # noqa: E402

OPENING = "// What it is.\n"
CASES = [  # file, text, part of the sentence that must come ("" = nothing may come)
    ("src/core/a.cpp", OPENING + '#include "core/b.hpp"\n#include <vector>\n', ""),
    ("src/core/a.cpp", OPENING + '#include "stage/b.hpp"\n', "src/core may not include stage"),
    ("src/core/agreement.hpp", OPENING + '#include "comm/communicator.hpp"\n', ""),
    ("src/core/log.hpp", OPENING + '#include "comm/communicator.hpp"\n', "src/core may not include comm"),
    ("src/stage/a.cpp", OPENING + '#include "engine/engine.hpp"\n', "src/stage may not include engine"),
    ("src/stage/a.cpp", OPENING + "#include <mpi.h>\n", "only src/comm/ may include <mpi.h>"),
    ("src/stage/a.cpp", OPENING + "#include <hdf5.h>\n", "only checkpoints/ may include <hdf5.h>"),
    ("src/comm/a.cpp", OPENING + "#include <mpi.h>\n", ""),
    ("src/engine/a.cpp", OPENING + '#include "checkpoints/writer.hpp"\n', "knows nothing of checkpoints"),
    ("src/engine/a.cpp", OPENING + "#include <zero/zero.h>\n", "knows nothing of the C interface"),
    ("src/novel/a.cpp", OPENING + '#include "core/error.hpp"\n', "no place among the layers"),
    ("checkpoints/a.cpp", OPENING + '#include "capi/guard.hpp"\n', "may not include capi"),
    ("capi/a.cpp", OPENING + '#include "checkpoints/writer.hpp"\n#include <zero/zero.h>\n', ""),
    ("include/zero/zero.h", "#include <stdio.h>\n", "includes stdio.h"),
    ("src/core/a.cpp", OPENING + "int f() { return use(MPI_COMM_WORLD); }\n", "MPI_COMM_WORLD"),
    ("src/core/a.cpp", OPENING + '// MPI_COMM_WORLD\nconst char* t = "exit(1)";\n', ""),
    ("src/core/a.cpp", OPENING + 'void f() { std::printf("x"); }\n', "prints nothing"),
    ("src/core/a.cpp", OPENING + 'void f() { std::cout << 1; }\n', "prints nothing"),
    ("src/core/a.cpp", OPENING + "void f() { g(stdout); }\n", "prints nothing"),
    ("capi/a.cpp", OPENING + "void f() { std::fputs(t, stderr); }\n", "prints nothing"),
    ("src/core/a.cpp", OPENING + "void f() { std::snprintf(b, 1, f); }\n", ""),
    ("src/core/a.cpp", OPENING + "void f() { std::abort(); }\n", "never ends the program"),
    ("capi/a.cpp", OPENING + "void f() { exit(1); }\n", "never ends the program"),
    ("checkpoints/tool/a.cpp", OPENING + "int main() { exit(1); }\n", ""),
    ("src/core/a.cpp", "int x;\n", "a file opens with"),
    ("examples/a.c", "\n" * (LONGEST_FILE + 1), "longer than"),
    ("docs/a.md", "see /" + "home/someone/x\n", "path of one machine"),
    ("bindings/fortran/m.fypp", "end\n", "differs from what fypp makes"),
    ("docs/options.md", "another table\n", "differs from the table in src/config"),
    ("README.md", "nothing\n", "does not show tests/install/hello.c"),
]


def problems_of(name, text):
    with tempfile.TemporaryDirectory() as root:
        files = {"tests/install/hello.c": "int main;\n", name: text}
        for file, content in files.items():
            path = pathlib.Path(root) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        printer = shutil.which("echo") if name == "docs/options.md" else None
        return Tree(root, printer).check_all()


def main():
    failed = 0
    cases = [case for case in CASES if shutil.which("fypp") or not case[0].endswith(".fypp")]
    for name, text, wanted in cases:
        found = problems_of(name, text)
        good = any(wanted in one for one in found) if wanted else not found
        if not good:
            failed += 1
            print(f"{name}: wanted {wanted or 'nothing'!r}, found {found}\n{text[:200]}")
    print(f"{len(cases)} cases, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

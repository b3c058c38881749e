#!/usr/bin/env python3
"""Keeps the tree honest: which folder may include which, what the library may never call, how long a file may be, and that
nothing that comes from one table or one template has drifted. Run by CTest; structure_test.py breaks every rule once."""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

# Inside src, from the bottom up: a folder may include itself and what stands here.
MAY_INCLUDE = {
    "core": set(),
    "tensor": {"core", "device"},
    "partition": {"core", "tensor"},
    "device": {"core"},
    "schedule": set(),
    "optimizer": {"core", "device", "tensor"},
    "compute": {"core", "device", "optimizer", "tensor"},
    "config": {"core", "optimizer", "schedule"},
    "comm": {"compute", "core", "device", "partition", "tensor"},
    "offload": {"compute", "core", "device", "optimizer", "tensor"},
    "stage": {"comm", "compute", "config", "core", "device", "offload", "optimizer", "partition", "tensor"},
    "engine": {"comm", "compute", "config", "core", "device", "offload", "optimizer", "partition", "stage", "tensor"},
}
# Agreement between ranks is part of core and needs the ranks; comm itself includes nothing of agreement.
EXCEPTIONS = {("src/core/agreement.hpp", "comm/communicator.hpp")}

LIBRARY = ("src/", "capi/", "checkpoints/")
TOOL = "checkpoints/tool/"  # a program of its own: it may print and exit
SYSTEM_HEADERS = {  # header -> the only places of the library that may include it
    r"mpi\.h": ("src/comm/",),
    r"hdf5\.h|H5\w*\.h": ("checkpoints/",),
    r"hwloc\.h": ("src/core/",),
    r"cuda\w*\.h|nccl\.h": ("src/device/", "src/comm/", "src/compute/"),
}
FORBIDDEN = [
    (r"\bMPI_COMM_WORLD\b", "the caller's communicator is the only one"),
    (r"\bMPI_(Init|Init_thread|Finalize|Abort)\b", "MPI's life belongs to the caller"),
    (r"(?<![.>\w])(std::)?(printf|vprintf|puts|putchar|fprintf|fputs|perror)\s*\(", "the library prints nothing"),
    (r"\bstd::(cout|cerr|clog)\b|\b(stdout|stderr)\b|\bfmt::print\b", "the library prints nothing"),
    (r"(?<![.>\w])(std::)?(exit|_exit|quick_exit|abort|terminate)\s*\(", "the library never ends the program"),
]
PRINTS = {"src/core/log.cpp"}  # the default log sink writes to stderr when ZERO_LOG_LEVEL is set

LONGEST_FILE = 600
CODE = {".c", ".h", ".cpp", ".hpp", ".cu", ".f90", ".f", ".fypp", ".py", ".sh", ".cmake"}
TEXT = CODE | {".md", ".txt", ".json", ".in", ".map", ".supp"}
MACHINE_PATHS = r"(?<![\w.$}/])/(work|home|root|Users)/[\w.]+"
SKIPPED_FOLDERS = re.compile(r"^(\.git|build.*|__pycache__|\.cache|shared)$")


def without_comments_and_strings(text):
    """C++ text in which comments and literals are blanks; line numbers stay."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
    return token.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


class Tree:
    """The files under check, and what is wrong with them."""

    def __init__(self, root, options_table=None):
        self.root = pathlib.Path(root)
        self.options_table = options_table
        self.problems = []
        self.texts = {}
        for path in sorted(self.root.rglob("*")):
            parts = path.relative_to(self.root).parts
            if any(SKIPPED_FOLDERS.match(part) for part in parts[:-1]) or not path.is_file():
                continue
            if path.suffix in TEXT or path.name in ("run", "CMakeLists.txt"):
                self.texts["/".join(parts)] = path.read_text(errors="replace")

    def problem(self, name, line, sentence):
        self.problems.append(f"{name}:{line}: {sentence}")

    def library_files(self):
        return ((name, text) for name, text in self.texts.items()
                if name.startswith(LIBRARY) and pathlib.Path(name).suffix in (".cpp", ".hpp", ".h", ".cu"))

    # --- layers ---

    def includes(self, text):
        for number, line in enumerate(text.splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if match:
                yield number, match.group(1) == "<", match.group(2)

    def check_layers(self):
        for name, text in self.library_files():
            for line, _, header in self.includes(text):
                sentence = self.include_fault(name, header)
                if sentence:
                    self.problem(name, line, sentence)

    def include_fault(self, name, header):
        for pattern, places in SYSTEM_HEADERS.items():
            if re.fullmatch(pattern, header) and not name.startswith(places):
                return f"only {' and '.join(places)} may include <{header}>"
        first = header.split("/")[0] if "/" in header else None
        if first is None:
            return None  # a system header, or a neighbour in the same folder
        layer = name.split("/")[0]
        if first == "zero" and layer != "capi":
            return f"{layer} knows nothing of the C interface (<{header}>)"
        if first == "capi" and layer != "capi":
            return f"{layer} may not include capi"
        if first == "checkpoints" and layer == "src":
            return "src knows nothing of checkpoints"
        if layer == "src":
            folder = name.split("/")[1]
            if folder not in MAY_INCLUDE:
                return f"src/{folder} has no place among the layers (tests/structure/structure.py)"
            if first in MAY_INCLUDE and first != folder and first not in MAY_INCLUDE[folder] \
                    and (name, header) not in EXCEPTIONS:
                return f"src/{folder} may not include {first}"
        return None

    def check_public_headers(self):
        allowed = {"mpi.h", "stdint.h", "stddef.h", "zero/version.h"}
        for line, _, header in self.includes(self.texts.get("include/zero/zero.h", "")):
            if header not in allowed:
                self.problem("include/zero/zero.h", line, f"includes {header}; allowed are {sorted(allowed)}")

    # --- manners ---

    def check_forbidden(self):
        for name, text in self.library_files():
            if name.startswith(TOOL):
                continue
            for number, line in enumerate(without_comments_and_strings(text).splitlines(), 1):
                for pattern, why in FORBIDDEN:
                    match = re.search(pattern, line)
                    if match and not (name in PRINTS and "prints" in why):
                        self.problem(name, number, f"{match.group().strip(' (')}: {why}")

    def check_lengths(self):
        for name, text in self.texts.items():
            path = pathlib.Path(name)
            if path.suffix not in CODE and path.name != "CMakeLists.txt":
                continue
            generated = path.suffix == ".f90" and path.with_suffix(".fypp").as_posix() in self.texts
            lines = text.count("\n")
            if lines > LONGEST_FILE and not generated:
                self.problem(name, lines, f"longer than {LONGEST_FILE} lines: split it by ideas")

    def check_opening(self):
        for name, text in self.library_files():
            if not text.startswith(("//", "/*")):
                self.problem(name, 1, "a file opens with two or three lines that say what it is and what it is not")

    def check_machine_paths(self):
        for name, text in self.texts.items():
            for number, line in enumerate(text.splitlines(), 1):
                match = re.search(MACHINE_PATHS, line)
                if match:
                    self.problem(name, number, f"{match.group()} is a path of one machine")

    # --- nothing written twice ---

    def check_generated_fortran(self):
        templates = [name for name in self.texts if re.match(r"bindings/fortran/\w+\.fypp$", name)]
        if templates and not shutil.which("fypp"):
            print("fypp is not installed: the generated Fortran is not compared")
            return
        for template in templates:
            target = str(pathlib.Path(template).with_suffix(".f90"))
            made = subprocess.run(["fypp", pathlib.Path(template).name], cwd=self.root / "bindings/fortran", text=True,
                                  capture_output=True)
            if made.returncode != 0:
                self.problem(template, 1, f"fypp fails: {made.stderr.strip()}")
            elif made.stdout != self.texts.get(target, ""):
                self.problem(target, 1, f"differs from what fypp makes of {template}: "
                                        f"run fypp {template} {target}")

    def check_options_table(self):
        name = "docs/options.md"
        if not self.options_table:
            return
        printed = subprocess.run([self.options_table], text=True, capture_output=True, check=True).stdout
        if printed != self.texts.get(name):
            self.problem(name, 1, "differs from the table in src/config: print it again with zero_options_table")

    def check_readme_programs(self):
        readme = self.texts.get("README.md")
        for program in ("tests/install/hello.c", "tests/install/hello.f90"):
            if readme is not None and program in self.texts and self.texts[program].strip() not in readme:
                self.problem("README.md", 1, f"does not show {program} as it is (the installed tree is tested with it)")

    def check_all(self):
        for name in [name for name in dir(self) if name.startswith("check_") and name != "check_all"]:
            getattr(self, name)()
        return self.problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root")
    parser.add_argument("--options-table", help="program that prints docs/options.md")
    arguments = parser.parse_args()
    tree = Tree(arguments.root, arguments.options_table)
    problems = tree.check_all()
    print("\n".join(problems) or f"{len(tree.texts)} files in order")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

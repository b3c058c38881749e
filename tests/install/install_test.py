#!/usr/bin/env python3
"""Installs the build into a new prefix, moves that, then compiles and runs hello.c and hello.f90 against it by find_package
and by pkg-config, shared and static, on 2 ranks; checks the libraries' exported names and that nothing points into the build.
With --subdirectory the build is a project that holds libzero by add_subdirectory, without HDF5 and Fortran."""
import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = ["1.062e-04", "7.968e-05", "5.312e-05", "2.656e-05"]  # (4, 3, 2, 1) * 0.9**100
EXPORTED = {
    "libzero.so": r"zerof?_\w+",
    "libzero_fortran.so": r"zerof?_\w+|__zero_\w+",
}


def run(*command, cwd=None, environment=None):
    """Runs a command; its output, or the end of the test with everything it said."""
    command = [str(word) for word in command]
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **(environment or {})}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"FAILED ({done.returncode}): {shlex.join(command)}\n{done.stdout}")
    return done.stdout


def in_order_of_use(paths):
    """Fortran files, a module before those who use it."""
    texts = {path: path.read_text().lower() for path in sorted(paths)}
    home = {name: path for path, text in texts.items() for name in re.findall(r"^\s*module (\w+)\s*$", text, re.M)}
    ordered = []

    def add(path):
        for name in re.findall(r"^\s*use\s*(?:,\s*\w+\s*::)?\s*(\w+)", texts[path], re.M):
            if home.get(name, path) != path:
                add(home[name])
        if path not in ordered:
            ordered.append(path)

    for path in texts:
        add(path)
    return ordered


def check_output(options, name, program):
    text = run(*shlex.split(options.mpiexec), "-n", 2, program)
    lines = [line for line in text.splitlines() if line.startswith("w =")]
    good = len(lines) == 2 and all(line.lower().split()[2:6] == EXPECTED for line in lines)
    if not good:
        sys.exit(f"FAILED: {name} printed\n{text}instead of two lines with {EXPECTED}")
    print(f"ok: {name}")


def build_subdirectory(options, root):
    """Builds package_subdirectory and runs its programs; its build folder."""
    build = root / "subdirectory"
    run(options.cmake, "-S", HERE / "package_subdirectory", "-B", build, "-G", options.generator,
        f"-DCMAKE_C_COMPILER={options.cc}", *shlex.split(options.definitions))
    run(options.cmake, "--build", build, "-j", os.cpu_count())
    for program in ("hello", "hello_static"):
        check_output(options, f"{program} by add_subdirectory", build / program)
    run(*shlex.split(options.mpiexec), "-n", 2, build / "without_hdf5")
    print("ok: zero_save and zero_load without HDF5")
    return build


class Installed:
    """The installed tree and the ways to build against it."""

    def __init__(self, options, root):
        self.options = options
        self.root = root
        self.prefix = root / "prefix"
        self.libraries = self.prefix / options.libdir
        run(options.cmake, "--install", options.build, "--prefix", root / "first")
        (root / "first").rename(self.prefix)  # an installed tree may move

    def check_output(self, name, program):
        check_output(self.options, name, program)

    def by_cmake(self, language):
        source = HERE / f"package_{language}"
        build = self.root / f"cmake_{language}"
        compiler = {"c": f"-DCMAKE_C_COMPILER={self.options.cc}",
                    "fortran": f"-DCMAKE_Fortran_COMPILER={self.options.fc}"}[language]
        flags = [f"-DCMAKE_EXE_LINKER_FLAGS={self.options.flags}"] if self.options.flags else []
        run(self.options.cmake, "-S", source, "-B", build, "-G", self.options.generator, compiler,
            f"-DCMAKE_PREFIX_PATH={self.prefix}", *flags)
        run(self.options.cmake, "--build", build)
        for program in ("hello", "hello_static"):
            self.check_output(f"{language} {program} by find_package", build / program)

    def pkg_config(self, *arguments):
        path = {"PKG_CONFIG_PATH": str(self.libraries / "pkgconfig")}
        return shlex.split(run("pkg-config", *arguments, environment=path))

    def by_pkg_config(self, language):
        package = {"c": "zero", "fortran": "zero_fortran"}[language]
        compiler = {"c": [self.options.cc, "-std=c99", HERE / "hello.c"],
                    "fortran": [self.options.fc, HERE / "hello.f90"]}[language]
        flags = shlex.split(self.options.flags)
        shared = self.pkg_config("--cflags", "--libs", package) + [f"-Wl,-rpath,{self.libraries}"]
        static = self.pkg_config("--cflags", "--static", "--libs", package)
        static = [re.sub(r"^-l(zero(_fortran)?)$", r"-l:lib\1.a", word) for word in static]
        for name, words in (("shared", shared), ("static", static)):
            program = self.root / f"pkg_{language}_{name}"
            run(*compiler, *flags, "-o", program, *words, cwd=self.root)
            self.check_output(f"{language} {name} by pkg-config", program)

    def module_from_source(self):
        """The installed module source compiles by itself with 8-byte default kinds."""
        folder = self.root / "module"
        folder.mkdir()
        words = self.pkg_config("--cflags", "zero_fortran")
        sources = in_order_of_use((self.prefix / "include/zero/fortran").glob("*.f90"))
        for source in sources:
            run(self.options.fc, "-fdefault-integer-8", "-c", source, *words, f"-J{folder}", cwd=folder)
        print("ok: the module source with -fdefault-integer-8")

    def exported_names(self):
        for library, pattern in EXPORTED.items():
            path = self.libraries / library
            if not path.exists():
                continue
            names = [line.split()[-1].split("@")[0] for line in run("nm", "-D", "--defined-only", path).splitlines()
                     if line.split()[-2] != "A"]
            strange = [name for name in names if not re.fullmatch(pattern, name)]
            if strange or not names:
                sys.exit(f"FAILED: {library} exports {strange[:20] or 'nothing'}")
            print(f"ok: {library} exports {len(names)} names, all of them ours")

    def python_package(self):
        folder = self.prefix / "lib/python"
        for python in (sys.executable, "/usr/bin/python3"):
            if folder.exists() and subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0:
                run(python, "-B", "-m", "zero_checkpoint", "export", "--help", cwd=self.root, environment={"PYTHONPATH": str(folder)})
                print("ok: the Python package")
                return
        print("the Python package is not tried: no NumPy, or not installed")

    def nothing_points_into_the_build(self):
        here = [str(self.options.build), str(HERE.parent.parent)]
        for path in self.prefix.rglob("*"):
            if path.suffix in (".cmake", ".pc", ".h", ".hpp", ".f90", ".py"):
                found = [word for word in here if word in path.read_text()]
                if found:
                    sys.exit(f"FAILED: {path.name} names {found}")
        print("ok: no path of the build in the installed text files")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("cmake", "cc", "generator", "mpiexec", "libdir"):
        parser.add_argument(f"--{name}", required=True)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--build")
    source.add_argument("--subdirectory", action="store_true")
    parser.add_argument("--definitions", default="", help="for CMake in package_subdirectory")
    parser.add_argument("--fc", default="")
    parser.add_argument("--flags", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        if options.subdirectory:
            options.build = build_subdirectory(options, pathlib.Path(root))
        tree = Installed(options, pathlib.Path(root))
        tree.exported_names()
        tree.python_package()
        tree.nothing_points_into_the_build()
        for language in ["c"] + (["fortran"] if options.fc else []):
            tree.by_cmake(language)
            tree.by_pkg_config(language)
        if options.fc:
            tree.module_from_source()


if __name__ == "__main__":
    main()

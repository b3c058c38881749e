#!/usr/bin/env python3
"""README.md and docs lead to what is there: links, headings, paths, functions of zero.h and keys of docs/options.md
that they name, and a row for every folder of src. That README shows the tested programs is checked by structure.py."""
import pathlib
import re
import sys
import tempfile

FORTRAN_ONLY = {"zero_error_text", "zero_optimizer", "zero_fortran", "zero_set", "zero_get", "zero_reset_log"}
NOT_FUNCTIONS = {"zero_optimization", "zero_options_table", "zero_test", "zero_t", "zero_f77", "zero_checkpoint",
                 "zero_to_fp32"}
FOLDERS = r"(?:src|capi|tests|tools|examples|bindings|benchmarks|include|checkpoints)"
SECTIONS = r"(?:zero_optimization|optimizer|scheduler|fp16|bf16|checkpoint|libzero)"


def anchors(text):
    """Headings as GitHub links to them."""
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


class Reader:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.problems = []
        names = ["README.md"] + sorted(f"docs/{path.name}" for path in self.root.glob("docs/*.md"))
        self.texts = {name: (self.root / name).read_text() for name in names if (self.root / name).exists()}

    def links(self):
        for name, text in self.texts.items():
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match(r"https?:", target):
                    continue
                file, _, anchor = target.partition("#")
                path = (self.root / name).parent / file if file else self.root / name
                if not path.exists():
                    self.problems.append(f"{name}: {target} leads nowhere")
                elif anchor and anchor not in anchors(path.read_text()):
                    self.problems.append(f"{name}: {target}: there is no such heading")

    def paths(self):
        for name, text in self.texts.items():
            for path in re.findall(rf"`({FOLDERS}/[\w./]*)`", text):
                if not (self.root / path).exists():
                    self.problems.append(f"{name}: there is no {path}")

    def functions(self):
        header = (self.root / "include/zero/zero.h").read_text()
        known = set(re.findall(r"\bzero_\w+", header)) | FORTRAN_ONLY | NOT_FUNCTIONS
        for name, text in self.texts.items():
            if name == "docs/options.md":
                continue
            for word in sorted(set(re.findall(r"(?<![\w.])zero_[a-z_0-9]+\b(?!\*)", text)) - known):
                if not word.endswith("_"):
                    self.problems.append(f"{name}: zero.h has no {word}")

    def keys(self):
        known = set(re.findall(r"^\| `([\w.<>]+)`", self.texts.get("docs/options.md", ""), re.M))
        for name, text in self.texts.items():
            for key in sorted(set(re.findall(rf'[`"]({SECTIONS}\.[\w.]+)[`"]', text))):
                if known and key not in known and not re.search(r"\.(\w+_test|hpp|cpp)$", key):
                    self.problems.append(f"{name}: there is no key {key}")

    def folders(self):
        text = self.texts.get("docs/architecture.md", "")
        for folder in sorted(path.name for path in self.root.glob("src/*") if any(path.glob("*.hpp"))):
            if text and f"| `src/{folder}/` |" not in text:
                self.problems.append(f"docs/architecture.md: no row for src/{folder}/")

    def all(self):
        for check in (self.links, self.paths, self.functions, self.keys, self.folders):
            check()
        return self.problems


BROKEN = [  # README text, part of the sentence that must come
    ("[x](docs/none.md)", "leads nowhere"),
    ("[x](docs/options.md#none)", "no such heading"),
    ("see `src/none/`", "there is no src/none/"),
    ("call `zero_nothing`", "zero.h has no zero_nothing"),
    ("set `fp16.nothing`", "there is no key fp16.nothing"),
    ("", "no row for src/core/"),
    ("[x](docs/options.md#options) `src/core/` `zero_step` `fp16.enabled`", "no row for src/core/"),
]


def check_itself():
    """A check that cannot fail is worth nothing: each is broken once in a small tree."""
    failed = []
    for readme, wanted in BROKEN:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for made in ("docs", "src/core", "include/zero"):
                (root / made).mkdir(parents=True)
            (root / "src/core/error.hpp").write_text("")
            (root / "README.md").write_text(readme)
            (root / "docs/options.md").write_text("# Options\n\n| `fp16.enabled` | x |\n")
            (root / "docs/architecture.md").write_text("# Architecture\n")
            (root / "include/zero/zero.h").write_text("int zero_step(zero_t z);\n")
            found = Reader(root).all()
            expected = 1 if "src/core/" in wanted else 2
            if len(found) != expected or not any(wanted in one for one in found):
                failed.append(f"{readme!r}: wanted {wanted!r}, found {found}")
    return failed


if __name__ == "__main__":
    problems = check_itself() + Reader(sys.argv[1]).all()
    print("\n".join(problems) or "README and docs lead to what is there")
    sys.exit(1 if problems else 0)

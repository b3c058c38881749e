#!/usr/bin/env python3
"""Makes the man page of zero-ckpt out of its --help. It does not install it.

usage: man_page.py ZERO_CKPT            prints the page
       man_page.py ZERO_CKPT --check F  exit code 1 where F is not that page
"""
import re
import subprocess
import sys


def escaped(line):
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + line if line[:1] in (".", "'") else line


def help_of(tool, *command):
    text = subprocess.run([tool, *command, "--help"], check=True, capture_output=True, text=True).stdout
    return text.rstrip("\n").split("\n\nExit codes of ")[0].split("\n")


def page(tool):
    full = subprocess.run([tool, "--help"], check=True, capture_output=True, text=True).stdout
    commands = re.findall(r"^  (\w+) +\S", full[full.index("Subcommands:"):], re.MULTILINE)
    codes = "Exit codes of " + full.split("Exit codes of ", 1)[1].strip()
    lines = ['.TH ZERO\\-CKPT 1 "" "libzero" "User Commands"', ".SH NAME", "zero\\-ckpt \\- looks at libzero checkpoints",
             ".SH DESCRIPTION", escaped(full.split("\n", 1)[0])]
    for command in commands:
        lines += [".SH " + command.upper(), ".nf", *map(escaped, help_of(tool, command)), ".fi"]
    lines += [".SH EXIT STATUS", ".nf", *map(escaped, codes.split("\n")), ".fi"]
    return "\n".join(lines) + "\n"


def main(tool, check=None, path=None):
    made = page(tool)
    if check is None:
        sys.stdout.write(made)
        return 0
    if open(path, encoding="utf-8").read() == made:
        return 0
    print(f"{path} is not what zero-ckpt says now: write it again with man_page.py {tool} > {path}")
    return 1


sys.exit(main(*sys.argv[1:]))

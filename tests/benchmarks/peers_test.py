#!/usr/bin/env python3
"""Where torch is missing, benchmarks/peers.py says so, measures nothing and does not fail."""
import json
import os
import subprocess
import sys
import tempfile

script = sys.argv[1]
with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "torch.py"), "w") as file:
        file.write('raise ImportError("as if it were not installed")\n')
    environment = dict(os.environ, PYTHONPATH=folder)
    said = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0 and said.stdout == "peers: not measured: torch is not installed\n", said
    said = subprocess.run([sys.executable, script, "--json"], env=environment, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said
    result = json.loads(said.stdout)
    assert result["rows"] == [] and result["not measured"] == "torch is not installed", result

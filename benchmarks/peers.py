#!/usr/bin/env python3
"""Communication and update of one training step: DistributedDataParallel, ZeroRedundancyOptimizer and FSDP2 on CPUs (gloo over
loopback, AdamW fused), in turns with step_node of this library and its MPICH row. Needs torch; where it is missing, says so and
measures nothing. What a step takes beyond compute is its time minus that of the same model on one rank in the same run.
Not here: DeepSpeed.

  benchmarks/peers.py [--json] [--build FOLDER] [--hidden 1024] [--layers 8] [--rounds 9] [--variants ddp,zro,fsdp2]
"""
import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

TITLE = "peers: communication + update beyond compute, fp32, 2 ranks; peers by gloo over loopback, libzero by shared memory"
STAGE = {"ddp": 0, "zro": 1, "fsdp2": 3}
GOAL = {"zro": 7.0, "fsdp2": 20.0}


def missing():
    for name in ("torch", "torch.distributed"):
        try:
            importlib.import_module(name)
        except ImportError:
            return name
    return None


def rank_main(job):
    """One rank: for every line on stdin a few steps, whose times go to stdout."""
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    torch.manual_seed(1)
    layers = [torch.nn.Linear(job["hidden"], job["hidden"]) for _ in range(job["layers"])]
    model, variant = torch.nn.Sequential(*layers), job["variant"]
    if variant != "local":
        dist.init_process_group("gloo", init_method="file://" + job["meet"], rank=job["rank"], world_size=job["ranks"])
    if variant in ("ddp", "zro"):
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    elif variant == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (job["ranks"],))
        for layer in layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    if variant == "zro":
        from torch.distributed.optim import ZeroRedundancyOptimizer
        update = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-4, fused=True)
    elif variant == "local":
        update = None
    else:
        update = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    data = torch.randn(8, job["hidden"])
    for _ in sys.stdin:
        times = []
        for _ in range(3):
            start = time.perf_counter()
            model(data).square().mean().backward()
            if update is not None:
                update.step()
            times.append(time.perf_counter() - start)
            model.zero_grad(set_to_none=False)
        print(json.dumps(times), flush=True)


class Ranks:
    """Stay alive and sleep between their turns."""

    def __init__(self, options, variant, ranks, folder):
        environment = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", MALLOC_MMAP_MAX_="0",
                           MALLOC_TRIM_THRESHOLD_="4294967296")
        self.processes = []
        for rank in range(ranks):
            job = {"variant": variant, "rank": rank, "ranks": ranks, "hidden": options.hidden, "layers": options.layers,
                   "meet": os.path.join(folder, variant)}
            self.processes.append(subprocess.Popen([sys.executable, __file__, "rank", json.dumps(job)], env=environment, text=True,
                                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE))

    def turn(self):
        for process in self.processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for process in self.processes]
        return statistics.median(max(step) for step in zip(*answers))

    def stop(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            process.wait(30)


def own_turn(options, stage):
    mebibytes = max(1, options.layers * options.hidden * (options.hidden + 1) * 4 >> 20)
    environment = dict(os.environ, MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_="4294967296")
    done = subprocess.run(["mpiexec", "-n", "2", os.path.join(options.build, "benchmarks", "step_node"), "--json", "--type", "fp32", "--stage",
                           str(stage), "--mebibytes", str(mebibytes), "--rounds", "3"], env=environment, stdout=subprocess.PIPE, text=True,
                          timeout=600, check=True)
    one = next(row for row in json.loads(done.stdout)["rows"] if row["tensors"] == 1)
    return one["library ms"], one["MPICH ms"]


def measure(options):
    names, rows = options.variants.split(","), []
    with tempfile.TemporaryDirectory() as folder:
        local = Ranks(options, "local", 1, folder)
        sets = {name: Ranks(options, name, 2, folder) for name in names}
        times = {name: [] for name in names}
        for turn in range(-1, options.rounds):
            compute = local.turn()
            for name, ranks in sets.items():
                beyond = (ranks.turn() - compute) * 1e3
                ours, mpich = own_turn(options, STAGE[name])
                if turn >= 0:
                    times[name].append((beyond, ours, mpich))
        for ranks in (local, *sets.values()):
            ranks.stop()
    for name, all_turns in times.items():
        ratio = statistics.median(peer / ours for peer, ours, _ in all_turns)
        goal = GOAL.get(name)
        rows.append({"peer": name, "stage": STAGE[name], "peer ms": statistics.median(t[0] for t in all_turns),
                     "library ms": statistics.median(t[1] for t in all_turns), "MPICH ms": statistics.median(t[2] for t in all_turns),
                     "peer/library": ratio, "goal": f">= {goal:g}" if goal else "", "reached": "" if not goal else "yes" if ratio >= goal else "no"})
    return rows


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "rank":
        return rank_main(json.loads(sys.argv[2]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--build", default=os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build", "release"))
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--variants", default="ddp,zro,fsdp2")
    options = parser.parse_args()
    lacking = missing()
    result = {"benchmark": TITLE, "rows": [] if lacking else measure(options)}
    if lacking:
        result["not measured"] = f"{lacking} is not installed"
    if options.json:
        print(json.dumps(result, indent=1))
    elif lacking:
        print(f"peers: not measured: {lacking} is not installed")
    else:
        for row in result["rows"]:
            print("  ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""A picture of the same load of requests under several collectors: the process's memory and the requests' times.

    picture.py RUBY OUT.svg [--count N] [--with NAME=VAR=VALUE,...]

RUBY is a command. matplotlib draws Ruby's own collector and heapwright's; --with adds one (--with
mmtk=RUBY_GC_LIBRARY=mmtk). With --with, the axis is the number of requests served, because a slow collector would press
the others into a corner. The total time is beside each name. Only requests of more than twice the median are drawn.
"""
import argparse
import array
import bisect
import itertools
import os
import shlex
import statistics
import subprocess
import tempfile
import time

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

HERE = os.path.dirname(os.path.abspath(__file__))
STEP = 0.05  # seconds between two looks at the memory


def run(ruby, environment, count):
    """Megabytes by the second since the start, and the times of requests in microseconds."""
    with tempfile.NamedTemporaryFile() as times:
        environment = environment | {"REQUEST_TIMES": times.name}
        process = subprocess.Popen(ruby + [f"{HERE}/bench/requests.rb", str(count)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        memory, began = [], time.monotonic()
        with open(f"/proc/{process.pid}/statm") as statm:
            while process.poll() is None:
                statm.seek(0)
                fields = statm.read().split()
                if len(fields) > 1 and fields[1] != "0":
                    memory.append((time.monotonic() - began, int(fields[1]) * os.sysconf("SC_PAGESIZE") / 1e6))
                time.sleep(STEP)
        if process.returncode != 0:
            raise SystemExit(f"picture.py: {shlex.join(ruby)} ended with {process.returncode}")
        return memory, array.array("I", times.read())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ruby")
    parser.add_argument("out")
    parser.add_argument("--count", type=int, default=60_000)
    parser.add_argument("--with", dest="more", action="append", default=[])
    options = parser.parse_args()
    plain = {name: value for name, value in os.environ.items() if name != "RUBY_GC_LIBRARY"}
    kinds = {"Ruby's own": plain, "heapwright": plain | {"RUBY_GC_LIBRARY": "heapwright"}}
    for word in options.more:
        name, setting = word.split("=", 1)
        kinds[name] = plain | dict(pair.split("=", 1) for pair in setting.split(","))

    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "heapwright", "font.size": 9, "path.simplify": True}
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 6), sharex=True, layout="constrained")
    for number, (name, environment) in enumerate(kinds.items()):
        memory, times = run(shlex.split(options.ruby), environment, options.count)
        # Before the first request the store is filled.
        ended = [memory[-1][0] - sum(times) / 1e6 + so_far / 1e6 for so_far in itertools.accumulate(times)]
        if options.more:
            name = f"{name} ({memory[-1][0]:.1f} s)"
            # At the last look the process may have given memory back already.
            memory = [(bisect.bisect(ended, at) / 1e3, size) for at, size in memory[:-1]]
            ended = [served / 1e3 for served in range(1, len(times) + 1)]
        above.plot(*zip(*memory), label=name, color=f"C{number}")
        # Hundreds of thousands of short requests would be a grey carpet, so each pixel shows its
        # longest.
        median, longest = statistics.median(times), {}
        for at, taken in zip(ended, times):
            if taken > 2 * median:
                pixel = int(at / ended[-1] * 250)
                longest[pixel] = max(longest.get(pixel, (0, 0)), (taken / 1e3, at))
        below.scatter([at for _, at in longest.values()], [taken for taken, _ in longest.values()], s=6, color=f"C{number}")
    above.set(ylabel="memory of the process (RSS), MB", ylim=(0, None), title=f"{options.count:,} requests: JSON, ERB, a store of 20,000 sessions")
    below.set(ylabel="a request took, ms (scale of tens)", xlabel="thousands of requests served" if options.more else "seconds", yscale="log")
    above.legend(frameon=False)
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    figure.savefig(options.out, metadata={"Date": None})


main()

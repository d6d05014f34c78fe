#!/usr/bin/env python3
"""Programs under Ruby's own collector and heapwright's, in turns: medians of ratios of processor time and peak memory.

    compare.py RUBY [--rounds N] [--stdlib FOLDER] [--optcarrot FOLDER] [--with NAME=VAR=VALUE,...] [--limit SECONDS] [PROGRAM...]

RUBY is a command (its first words may be an interpreter's and options). PROGRAMs are names in bench/; none: all. --with
adds a column: --with jemalloc=LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2, or --with
immix=RUBY_GC_LIBRARY=mmtk,MMTK_PLAN=Immix. A column's mean leaves out programs that fail or take longer than --limit.
"""
import argparse
import os
import re
import shlex
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import measure

PROGRAMS = ["gcbench", "trees", "rdoc", "templates", "optcarrot", "requests", "parse", "nbody"]


def command(ruby, name, options):
    if name == "optcarrot":
        if not options.optcarrot:
            return None
        folder = options.optcarrot
        return ruby + [f"{folder}/bin/optcarrot", "--benchmark", "--frames", "120", f"{folder}/examples/Lan_Master.nes"]
    arguments = {"parse": ["2"], "rdoc": ["300"], "gcbench": [], "trees": ["15"], "templates": ["1500"], "requests": ["12000"], "nbody": ["300000"]}[name]
    if name in ("parse", "rdoc") and options.stdlib:
        arguments = arguments + [options.stdlib]
    return ruby + [f"{HERE}/bench/{name}.rb"] + arguments


def interval(ratios):
    """The middle half of the ratios, or all of them if there are few."""
    ratios = sorted(ratios)
    cut = len(ratios) // 4
    kept = ratios[cut:len(ratios) - cut] or ratios
    return f"{statistics.median(ratios):.2f} ({kept[0]:.2f} to {kept[-1]:.2f})"


def attempt(arguments, kind, environment, limit, missing):
    """Runs a program. `missing` notes a run that takes too long, or fails under a third collector."""
    try:
        result = measure.run(arguments, environment, limit)
        if result is None:
            missing[kind] = f"more than {limit} s"
        return result
    except SystemExit as failure:
        if kind in ("default", "heapwright"):
            raise
        print(failure, file=sys.stderr)
        missing[kind] = "fails"


def mean(figures, programs):
    """The geometric mean, with the number of programs if some are missing."""
    if not figures:
        return ""
    return f"**{statistics.geometric_mean(figures):.2f}**" + (f" (of {len(figures)})" if len(figures) != programs else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ruby")
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--stdlib")
    parser.add_argument("--optcarrot")
    parser.add_argument("--with", dest="more", action="append", default=[])
    parser.add_argument("--limit", type=int, help="seconds by the clock that a program may take")
    options = parser.parse_intermixed_args()
    ruby = shlex.split(options.ruby)
    unknown = set(options.programs) - set(PROGRAMS)
    if unknown:
        parser.error(f"there is no program {', '.join(sorted(unknown))}; there are {', '.join(PROGRAMS)}")

    plain = {name: value for name, value in os.environ.items() if name != "RUBY_GC_LIBRARY"}
    kinds = {"default": plain, "heapwright": plain | {"RUBY_GC_LIBRARY": "heapwright"}}
    for word in options.more:
        name, setting = word.split("=", 1)
        kinds[name] = plain | dict(pair.split("=", 1) for pair in setting.split(","))

    others = [kind for kind in kinds if kind != "default"]
    print("| program | default: s, MiB | " + " | ".join(f"{kind}: time | memory" for kind in others) + " |")
    print("|---|--:|" + "--:|--:|" * len(others))
    means = {kind: ([], []) for kind in others}
    latencies = []
    for name in options.programs or PROGRAMS:
        arguments = command(ruby, name, options)
        if arguments is None:
            print(f"| {name} | not measured: --optcarrot says where it is |")
            continue
        results = {kind: [] for kind in kinds}
        missing = {}
        for turn in range(options.rounds):
            order = list(kinds) if turn % 2 == 0 else list(reversed(kinds))
            for kind in order:
                if kind not in missing:
                    results[kind].append(attempt(arguments, kind, kinds[kind], options.limit, missing))
        if "default" in missing:
            print(f"| {name} | {missing['default']} |", flush=True)
            continue
        base = results["default"]
        cells = [f"{statistics.median(r[0] for r in base):.2f}, {statistics.median(r[1] for r in base) / 1024:.0f}"]
        for kind in others:
            if kind in missing:
                cells += [missing[kind], ""]
                continue
            if name != "optcarrot" and results[kind][0][2] != base[0][2]:
                sys.exit(f"compare.py: {name} prints something else with {kind}")
            times = [mine[0] / its[0] for mine, its in zip(results[kind], base)]
            memory = [mine[1] / its[1] for mine, its in zip(results[kind], base)]
            means[kind][0].append(statistics.median(times))
            means[kind][1].append(statistics.median(memory))
            cells += [interval(times), interval(memory)]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        if name == "requests":
            for kind in kinds:
                if kind in missing:
                    continue
                figures = [[float(figure) for figure in re.findall(rb"(?<= )[\d.]+(?= |$)", result[3].strip().splitlines()[-1])] for result in results[kind]]
                latencies.append((kind, [statistics.median(column) for column in zip(*figures)]))
    measured = max(len(figures[0]) for figures in means.values())
    print("| **geomean** | | " + " | ".join(mean(figures, measured) for kind in others for figures in means[kind]) + " |")
    if latencies:
        print("\n| requests | requests/s | p50, us | p99 | p99.9 | p100 |\n|---|--:|--:|--:|--:|--:|")
        for kind, figures in latencies:
            print(f"| {kind} | " + " | ".join(f"{figure:.0f}" for figure in figures) + " |")


main()

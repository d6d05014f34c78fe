#!/usr/bin/env python3
"""Programs under Ruby's own collector and heapwright's, in turns: processor time and peak memory, medians of ratios with their intervals.

    compare.py RUBY [--rounds N] [--stdlib FOLDER] [--optcarrot FOLDER] [--with NAME=VAR=VALUE,...] [PROGRAM...]

RUBY is a command (its first words may be an interpreter's and options). PROGRAMs are names in bench/; none: all. --with adds a
column: --with jemalloc=LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2, or --with mmtk=RUBY_GC_LIBRARY=mmtk.
"""
import argparse, math, os, re, shlex, statistics, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
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


def run(arguments, environment):
    """Seconds of processor time, MiB of peak memory, standard output, standard error."""
    with subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, err = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"compare.py: {shlex.join(arguments)} ended with {process.returncode}:\n{err[-2000:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out, err


def interval(ratios):
    """The middle half or, of few, all."""
    ratios = sorted(ratios)
    cut = len(ratios) // 4
    kept = ratios[cut:len(ratios) - cut] or ratios
    return f"{statistics.median(ratios):.2f} ({kept[0]:.2f} to {kept[-1]:.2f})"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("ruby")
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--stdlib")
    parser.add_argument("--optcarrot")
    parser.add_argument("--with", dest="more", action="append", default=[])
    options = parser.parse_args()
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
        for turn in range(options.rounds):
            order = list(kinds) if turn % 2 == 0 else list(reversed(kinds))
            for kind in order:
                results[kind].append(run(arguments, kinds[kind]))
        base = results["default"]
        cells = [f"{statistics.median(r[0] for r in base):.2f}, {statistics.median(r[1] for r in base):.0f}"]
        for kind in others:
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
                figures = [[float(figure) for figure in re.findall(r"[\d.]+$|(?<= )[\d.]+(?= )", line[3].strip().splitlines()[-1])] for line in results[kind]]
                latencies.append((kind, [statistics.median(column) for column in zip(*figures)]))
    def mean(values):
        return math.exp(statistics.mean(math.log(value) for value in values))
    print("| **geomean** | | " + " | ".join(f"**{mean(means[kind][0]):.2f}** | **{mean(means[kind][1]):.2f}**" for kind in others) + " |")
    if latencies:
        print("\n| requests | requests/s | p50, us | p99 | p99.9 | p100 |\n|---|--:|--:|--:|--:|--:|")
        for kind, figures in latencies:
            print(f"| {kind} | " + " | ".join(f"{figure:.0f}" for figure in figures) + " |")


main()

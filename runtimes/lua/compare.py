#!/usr/bin/env python3
"""Lua's benchmarks on its own collector and on heapwright's, in turns: CPU time at equal peak memory.

    compare.py OWN HEAPWRIGHT [--rounds N] [--quick] [NAME...]

OWN and HEAPWRIGHT are two builds of the same Lua. Both run each benchmark with each of their collector's settings
(below), one after the other, N times. The least CPU time (user and system, all threads) and the median peak of
resident memory count. Then, for two amounts of memory, each collector's fastest setting that needs no more:

    best     the memory of the fastest setting of Lua's own collector
    least    the memory of its most frugal setting, or of ours if that is more

All runs must print the same. Prints a table in Markdown; a last line has the geometric mean of the ratios at `best`.
"""

import argparse
import math
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import measure

BENCHMARKS = ["trees", "life", "strings", "tables", "closures", "coroutines"]
OWN = [f"'incremental', {pause}, 100" for pause in (125, 150, 200, 300, 400, 600)] + [
    f"'generational', {minor}, 100" for minor in (20, 50)]
OURS = [f"factor={factor},least={4 << 20}" for factor in (120, 140, 200, 250, 300, 400)] + [f"factor=200,least={1 << 20}"]


def fastest(results, most):
    """Of settings that need no more than so many KiB."""
    fitting = [(seconds, peak, setting) for setting, (seconds, peak) in results.items() if peak <= most]
    return min(fitting, default=None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("own")
    parser.add_argument("heapwright")
    parser.add_argument("names", nargs="*", default=BENCHMARKS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round of one setting: that it works")
    parser.add_argument("--all", action="store_true", help="print each setting's figures as well")
    parser.add_argument("--markers", type=int, default=1, help="threads that mark")
    given = parser.parse_intermixed_args()
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench")
    own, ours, rounds = (OWN[:1] + OWN[-1:], OURS[:2], 1) if given.quick else (OWN, OURS, given.rounds)
    plain = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "HEAPWRIGHT")}
    print("| benchmark | at | memory, MiB | Lua's own | s | heapwright | s | ratio |\n|---|---|---|---|---|---|---|---|")
    ratios = []
    for name in given.names:
        program = os.path.join(here, name + ".lua")
        runs = [("own", setting, [given.own, "-e", f"collectgarbage({setting})", program], plain) for setting in own]
        runs += [("ours", setting, [given.heapwright, program],
                  dict(plain, LUA_HEAPWRIGHT=f"{setting},markers={given.markers}")) for setting in ours]
        seen = {}
        printed = set()
        for _ in range(rounds):
            for side, setting, command, environment in runs:
                seconds, peak, out, _ = measure.run(command, environment)
                seen.setdefault((side, setting), []).append((seconds, peak))
                printed.add(out)
        if len(printed) != 1:
            sys.exit(f"compare.py: {name} does not always print the same")
        result = {"own": {}, "ours": {}}
        for (side, setting), values in seen.items():
            result[side][setting] = min(v[0] for v in values), statistics.median(v[1] for v in values)
            if given.all:
                print(f"  {name} {side} {setting}: {result[side][setting][0]:.2f} s, {result[side][setting][1] / 1024:.1f} MiB")
        best = min(result["own"].values())[1]
        least = max(min(peak for _, peak in result["own"].values()), min(peak for _, peak in result["ours"].values()))
        for at, most in ("best", best), ("least", least):
            a, b = fastest(result["own"], most), fastest(result["ours"], most)
            if a is None or b is None:
                print(f"| {name} | {at} | {most / 1024:.1f} | {a and f'{a[0]:.2f}'} | | none fits | | |")
                continue
            ratio = b[0] / a[0]
            if at == "best":
                ratios.append(ratio)
            ours_words = b[2].replace(f",least={1 << 20}", "").replace(f",least={4 << 20}", ",least=4M")
            print(f"| {name} | {at} | {most / 1024:.1f} | {a[2]} | {a[0]:.2f} | {ours_words} | {b[0]:.2f} | {ratio:.2f} |")
        sys.stdout.flush()
    if ratios:
        print(f"\ngeometric mean at best: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}; most {max(ratios):.2f}")


if __name__ == "__main__":
    main()

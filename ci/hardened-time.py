"""What hardening costs, from a race's JSON (ci/hardened.sh --time): for each allocator the geometric mean of its time to
mimalloc's and to glibc's, over the programs that ran under both, and of its peak memory to glibc's where that is 32 MiB
or more."""

import json
import math
import statistics
import sys

HEAVY = 32 << 20


def geomean(values):
    return math.exp(statistics.fmean(map(math.log, values))) if values else float("nan")


def main():
    with open(sys.argv[1]) as file:
        race = json.load(file)
    names = [allocator["name"] for allocator in race["allocators"]]
    programs = []
    for program in race["programs"]:
        if program["name"] != "empty":
            programs.append({r["allocator"]: r["runs"] for r in program["results"] if r["outcome"] == "ok" and r["runs"]})
    for runs in (runs for program in programs for runs in program.values()):
        for run in runs:
            run["cpu_ns"] = run["user_ns"] + run["system_ns"] or 1

    def over(name, other, what, least=0):
        """The mean over what ran under both; of a program the median of the ratios round by round, for rounds turn."""
        return geomean([statistics.median(a[what] / b[what] for a, b in zip(p[name], p[other]))
                        for p in programs if name in p and other in p
                        and statistics.median(run["peak_rss_bytes"] for run in p[other]) >= least])

    print(f"{len(programs)} programs, {race['rounds']} rounds\n")
    print("| allocator | ran | time to mimalloc | CPU time to mimalloc | time to glibc | peak to glibc, from 32 MiB |")
    print("|---|---|---|---|---|---|")
    for name in names:
        cells = [over(name, "mimalloc", "wall_ns"), over(name, "mimalloc", "cpu_ns"), over(name, "glibc", "wall_ns"),
                 over(name, "glibc", "peak_rss_bytes", HEAVY)]
        print(f"| {name} | {sum(name in p for p in programs)} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")


if __name__ == "__main__":
    main()

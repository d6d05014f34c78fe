"""ci/profile.sh --accuracy: the distance of a heap profile's estimates from the truth, site by site.

The debug heap knows the truth: the live blocks of each stack when a program ends. The profile is of the same program at
the same moment. `heapwright report --format json` reads both. Sites are matched by their frames' offsets in files.

    profile.py COMMAND LIBRARY SUITE SITES SCRATCH SEEDS

Programs of SUITE that keep memory until they end, and SITES, a load of any size, run twice for the truth, and SEEDS times
for each distance of samples. A site with another amount in the second run (as of hash tables) does not count.
"""

import glob
import json
import math
import os
import statistics
import subprocess
import sys
import tomllib
import types

# Programs with the same blocks in each run, and sizes of the load, in mebibytes. (sqlite3, jq, json-tree free theirs.)
PROGRAMS = ["git-log", "python3-malloc", "perl"]
LOADS = [64, 1024]
PERIODS = [512, 64]  # KiB
LEAST = 0.01  # a site's share of the live bytes
# Python frees everything before it ends, unless it ends so.
KEEP = """import ctypes, runpy, sys
kept = runpy.run_path(sys.argv[1])
sys.stdout.flush()
ctypes.CDLL(None).exit(0)"""
SAME = 0.01  # a site's truth in two runs may differ by this share
# Estimates are grouped by the expected number of samples.
EDGES = [0, 10, 30, 100, 300, 1000, math.inf]


def run(program, options, library):
    """Runs a program with these options of heapwright."""
    environment = dict(os.environ, **program.get("environment", {}), LD_PRELOAD=library, HEAPWRIGHT=options)
    stdin = open(program["stdin"]) if "stdin" in program else subprocess.DEVNULL
    ended = subprocess.run(program["command"], env=environment, stdin=stdin, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, timeout=600)
    if ended.returncode != 0:
        sys.exit(f"profile.py: {program['name']} fails under HEAPWRIGHT={options}: {ended.stderr.decode()}")


def record(program, options, name, at):
    """Runs a program, and reads its record: returns the last check, and a function from a stack to its places."""
    for old in glob.glob(f"{at.scratch}/record.*"):
        os.remove(old)
    run(program, f"{options},{name}={at.scratch}/record", at.library)
    # Programs that it starts have records, too.
    reports = []
    for found in glob.glob(f"{at.scratch}/record.*"):
        said = subprocess.run([at.command, "report", "--format", "json", found], stdout=subprocess.PIPE)
        reports += [report for report in [json.loads(said.stdout)] if report["processes"][0]["checks"]]
    if not reports:
        sys.exit(f"profile.py: {program['name']} left no record under HEAPWRIGHT={options}")
    report = max(reports, key=lambda report: report["processes"][0]["checks"][-1]["live"]["bytes"])
    frames, stacks = report["frames"], report["stacks"]

    def places(stack):
        return tuple((frames[f]["module"], frames[f]["offset"]) for f in stacks[stack]["frames"])

    return report["processes"][0]["checks"][-1], places


def truth(program, at):
    """Live blocks and bytes of each stack when a program ends, and all live bytes."""
    check, places = record(program, "mode=debug,traces=32,leaks=exit,reachable=none,quiet=yes", "record", at)
    sites = {}
    for usage in check["usage"]:
        blocks, size = sites.get(places(usage["stack"]), (0, 0))
        sites[places(usage["stack"])] = blocks + usage["blocks"], size + usage["bytes"]
    return sites, check["live"]["bytes"]


def estimate(program, period, at):
    """Estimated live bytes of each stack."""
    check, places = record(program, f"sample={period}k", "profile", at)
    sites = {}
    for site in check["profile"]["sites"]:
        where = places(site["stack"])
        sites[where] = sites.get(where, 0) + site["live"]["bytes"]
    return sites


def expected(blocks, size, period):
    """The standard error of an estimate, and the expected number of samples, as if all blocks had one size."""
    mean = size / blocks
    chance = -math.expm1(-mean / (period << 10))
    return math.sqrt(blocks * (1 - chance) / chance) * mean, blocks * chance


def percent(share):
    return f"{100 * share:.1f} %"


def main(command, library, suite, sites, scratch, seeds):
    at = types.SimpleNamespace(command=command, library=library, scratch=scratch)
    with open(suite, "rb") as file:
        listed = {program["name"]: program for program in tomllib.load(file)["program"]}
    programs = [listed[name] for name in PROGRAMS if name in listed]
    for program in programs:
        if program["name"] == "python3-malloc":
            program["command"] = [program["command"][0], "-c", KEEP, program["command"][1]]
    programs += [{"name": f"sites, {mib} MiB", "command": [sites, str(mib)]} for mib in LOADS]
    print("| program, live at its end | one sample per | sites | samples of a site: median | error: median | 90th percentile | expected: median "
          "| within 10 % | within 3 % | mean square in standard errors |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    every = []
    for program in programs:
        (known, live), (again, _) = truth(program, at), truth(program, at)
        large = {where: facts for where, facts in known.items() if facts[1] >= LEAST * live}
        same = {where: facts for where, facts in large.items() if abs(again.get(where, (0, 0))[1] / facts[1] - 1) <= SAME}
        for period in PERIODS:
            # For each estimate: its error, the expected error, and the expected number of samples.
            offs = []
            for _ in range(seeds):
                found = estimate(program, period, at)
                for where, (blocks, size) in same.items():
                    error, samples = expected(blocks, size, period)
                    offs.append((found.get(where, 0) / size - 1, max(error, 1) / size, samples))
            shares = sorted(abs(off) for off, _, _ in offs)
            within = [sum(share <= bound for share in shares) / len(shares) for bound in (0.10, 0.03)]
            cells = [f"{program['name']}: {live / 2**20:.1f} MiB", f"{period} KiB", f"{len(same)} of {len(large)}",
                     f"{statistics.median(samples for _, _, samples in offs):.0f}", percent(statistics.median(shares)),
                     percent(shares[len(shares) * 9 // 10]), percent(statistics.median(error for _, error, _ in offs)),
                     *(f"{100 * share:.0f} %" for share in within), f"{statistics.mean((off / error) ** 2 for off, error, _ in offs):.2f}"]
            print("| " + " | ".join(cells) + " |", flush=True)
            every += offs
    print("\n| samples that a site should have | estimates | error: median | 90th percentile | within 10 % | within 3 % |\n|---|--:|--:|--:|--:|--:|")
    for least, most in zip(EDGES, EDGES[1:]):
        shares = sorted(abs(off) for off, _, samples in every if least <= samples < most)
        if shares:
            within = [f"{100 * sum(share <= bound for share in shares) / len(shares):.0f} %" for bound in (0.10, 0.03)]
            ends = [percent(statistics.median(shares)), percent(shares[len(shares) * 9 // 10])]
            print("| " + " | ".join([f"{least} to {most}", str(len(shares)), *ends, *within]) + " |")
    # Fails if an estimate is wrong on average, or if its error does not fit the number of samples.
    seen = [off / error for off, error, samples in every if samples >= 10]
    square, mean = statistics.mean(error**2 for error in seen), statistics.mean(seen)
    print(f"\n{len(seen)} estimates of sites with 10 samples and more: in standard errors the mean is {mean:+.2f}, "
          f"the mean square {square:.2f} (0 and 1, if they are what they should be)")
    if abs(mean) > 0.25 + 6 / math.sqrt(len(seen)) or not 0.5 < square < 2:
        sys.exit("profile.py: the estimates are not what the number of samples says")


main(*sys.argv[1:6], int(sys.argv[6]))

"""The judge of corpus/hardened, for ci/hardened.sh: runs the programs under each allocator, and prints by group how
many were caught. corpus/hardened/README.md defines the words.

    judge.py MISUSE [--warm] [--right] [--groups G,...] [--jobs N] [--missed] [--json FILE]
                [--check FILE] --under NAME=[VAR=VALUE ...][LIBRARY] ...
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys

PATIENCE = 30
# A line of an allocator that says what is wrong.
NAMED = re.compile(rb"heapwright: (?!option)|fatal allocator error|Scudo ERROR|mimalloc: error|free\(\)|malloc\(\)|realloc\(\)|"
                   rb"double free|corrupt|Check '|snmalloc|munmap_chunk|invalid pointer|Abort")
OURS = re.compile(rb"^(begin|survived|end|harm: .*|harmless: .*|a wrong answer|no memory)$")
WORDS = "at-once late harmless missed harm broken".split()

Outcome = collections.namedtuple("Outcome", "word named detail")


def run(program, arguments, settings):
    """The merged output and how the program ended: its status, negative for a signal, None for a hang."""
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "HEAPWRIGHT")}
    environment.update(settings)
    child = subprocess.Popen([program, *arguments], env=environment, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        output, _ = child.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.communicate()[0], None
    return output, child.returncode


def ending(status):
    if status is None:
        return f"did not end in {PATIENCE} s"
    return signal.Signals(-status).name if status < 0 else f"status {status}"


def judge_bad(output, status):
    stage, harm, harmless, report = "before", None, None, None
    for line in output.split(b"\n"):
        if OURS.match(line):
            text = line.decode()
            if text.startswith("harm: "):
                harm = text
            elif text.startswith("harmless: "):
                harmless = text
            else:
                stage = text
        elif report is None and NAMED.search(line):
            report = (stage, line.decode(errors="replace").strip())
    said = report[1] if report else ""
    # The stage at which the program was stopped: by heapwright's first report (it may go on), or by its end.
    stopped = None
    if report and "heapwright: " in said:
        stopped = report[0]
    elif status is not None and (status < 0 or (status > 0 and stage != "end")):
        stopped = stage
    if b"heapwright: option" in output:
        return Outcome("broken", False, "an option that the library does not know")
    if stopped in ("before", "no memory") or stage in ("before", "no memory"):
        return Outcome("broken", False, f"before the misuse: {ending(status)} {said}")
    if stopped == "begin":
        return Outcome("at-once", bool(said), said or ending(status))
    if stopped is not None:
        return Outcome("late", bool(said), said or ending(status))
    if status is None:
        return Outcome("harm", False, ending(status))
    if harm:
        return Outcome("harm", False, harm)
    if harmless:
        return Outcome("harmless", False, harmless)
    return Outcome("missed", False, "")


def judge_right(output, status):
    """What a right twin did wrong; empty if nothing."""
    if output == b"begin\nsurvived\nend\n" and status == 0:
        return ""
    other = [line for line in output.split(b"\n") if line and line not in (b"begin", b"survived", b"end")]
    return f"{ending(status)} {other[0].decode(errors='replace') if other else ''}".strip()


def variants(program, groups):
    listed = subprocess.run([program, "--list"], stdout=subprocess.PIPE, check=True, text=True).stdout
    for line in listed.splitlines():
        group, name, *sizes = line.split()
        if not groups or group in groups:
            for size in sizes:
                yield group, name, size


def parsed(under):
    """NAME=[VAR=VALUE ...][LIBRARY] as a name and an environment."""
    name, _, rest = under.partition("=")
    settings = {}
    words = rest.split(" ")
    while words and re.match(r"[A-Z_0-9]+=", words[0]):
        variable, _, value = words.pop(0).partition("=")
        settings[variable] = value
    if words and words[0]:
        settings["LD_PRELOAD"] = " ".join(words)
    return name, settings


def table(results, rows, order, title):
    """Prints a row for each group, with a column for each allocator: caught at once + late (+ harmless)."""
    print(f"\n{title}: at once + late (+ harmless)\n")
    print("| group | variants | " + " | ".join(order) + " |")
    print("|---|---|" + "---|" * len(order))
    for group, count in rows.items():
        cells = []
        for name in order:
            words = collections.Counter(o.word for (n, g, _, _), o in results.items() if n == name and g == group)
            cells.append(f"{words['at-once']} + {words['late']}" + (f" (+ {words['harmless']})" if words["harmless"] else ""))
        print(f"| {group} | {count} | " + " | ".join(cells) + " |")
    total = sum(rows.values())
    sums = {name: collections.Counter(o.word for (n, *_), o in results.items() if n == name) for name in order}
    named = {name: sum(o.named for (n, *_), o in results.items() if n == name) for name in order}

    def line(label, value):
        print(f"| **{label}** | {total} | " + " | ".join(str(value(name)) for name in order) + " |")
    line("caught", lambda n: sums[n]["at-once"] + sums[n]["late"])
    line("of which in words", lambda n: named[n])
    line("harmless", lambda n: sums[n]["harmless"])
    line("missed", lambda n: sums[n]["missed"] + sums[n]["harm"])
    line("of which harm was shown", lambda n: sums[n]["harm"])
    line("stopped", lambda n: f"{100 * stopped(sums[n]) / total:.1f} %")
    broken = {n: sums[n]["broken"] for n in order if sums[n]["broken"]}
    if broken:
        print(f"\nended before the misuse: {broken}")
    return sums


def stopped(words):
    return words["at-once"] + words["late"] + words["harmless"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--under", action="append", required=True)
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--right", action="store_true")
    parser.add_argument("--groups", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--check")
    options = parser.parse_args()
    allocators = dict(parsed(under) for under in options.under)
    all_variants = list(variants(options.program, set(filter(None, options.groups.split(",")))))
    rows = collections.Counter(group for group, _, _ in all_variants)
    warmth = "warm" if options.warm else "cold"
    kind = "right" if options.right else "bad"

    def one(job):
        name, group, case, size = job
        output, status = run(options.program, [case, size, kind, warmth], allocators[name])
        return job, (judge_right if options.right else judge_bad)(output, status)

    jobs = [(name, *variant) for variant in all_variants for name in allocators]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = dict(pool.map(one, jobs))

    failed = False
    if options.right:
        print(f"\nright twins, {warmth}: {len(all_variants)} programs")
        for name in allocators:
            alarms = {job: why for job, why in results.items() if job[0] == name and why}
            print(f"  {name}: {len(alarms)} false alarms")
            for (_, _, case, size), why in list(alarms.items())[:40]:
                print(f"    {case} {size}: {why}")
            failed |= bool(alarms) and name.startswith("heapwright")
    else:
        sums = table(results, rows, list(allocators), f"{warmth}, {len(all_variants)} variants")
        if options.missed:
            for (name, _, case, size), outcome in results.items():
                if outcome.word in ("missed", "harm", "broken"):
                    print(f"{name}: {outcome.word}: {case} {size} {outcome.detail}")
        if options.check:
            failed |= not at_least(options.check, warmth, sums, len(all_variants))
    if options.json:
        with open(options.json, "w") as file:
            json.dump([[*job, outcome if options.right else outcome._asdict()] for job, outcome in results.items()], file, indent=0)
    return 1 if failed else 0


def at_least(path, warmth, sums, total):
    """Whether at least the PERCENT of the file's lines `NAME cold|warm PERCENT` are stopped."""
    good = True
    with open(path) as file:
        for line in file:
            name, *rest = line.split("#")[0].split() or [None]
            if name in sums and rest[0] == warmth:
                percent = 100 * stopped(sums[name]) / total
                if percent < float(rest[1]):
                    print(f"FAIL {name}, {warmth}: {percent:.1f} % are stopped; {rest[1]} are asked")
                    good = False
    return good


if __name__ == "__main__":
    sys.exit(main())

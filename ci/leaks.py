"""What ci/leaks.sh asks of Python: the headers of corpus/leaks, the reports of
heapwright, LeakSanitizer and valgrind read into one shape, and the judgement.

A leak, whoever reports it, is a Leak: see below. What heapwright writes is read
in one place, `heapwright()`.
"""

import collections
import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

# reach: definite, indirect, possible or reachable; with_*: what was lost with it,
# None where the tool does not say; frames: innermost first.
Leak = collections.namedtuple("Leak", "reach blocks bytes with_blocks with_bytes frames")
Frame = collections.namedtuple("Frame", "function file line object address", defaults=(0,))

REACH = {
    "definitely-lost": "definite",
    "indirectly-lost": "indirect",
    "possibly-lost": "possible",
    "still-reachable": "reachable",
}


# --- what the tools write ----------------------------------------------------


def heapwright(path):
    """`heapwright check --format json -o PATH`: its leaks, and the headings of other findings."""
    with open(path) as file:
        report = json.load(file)
    frames = [list(functions_of(frame)) for frame in report["frames"]]
    leaks = []
    for leak in report["leaks"]:
        indirect = leak["indirect"]
        stack = [f for frame in report["stacks"][leak["stack"]]["frames"] for f in frames[frame]]
        leaks.append(Leak(REACH[leak["reach"]], leak["blocks"], leak["bytes"], indirect["blocks"],
                          indirect["bytes"], stack))
    return leaks, [error["kind"] for error in report["errors"]]


def functions_of(frame):
    """The functions at a place, those that were inlined there first."""
    # As valgrind names it: the file that a link leads to.
    module = os.path.basename(os.path.realpath(frame["module"])) if frame["module"] else ""
    address = int(frame["address"], 0)
    for f in frame["functions"] or [{}]:
        yield Frame(f.get("name") or "", os.path.basename(f.get("source") or ""), f.get("line") or 0, module,
                    address)


def lsan(path):
    """LeakSanitizer's text."""
    leaks, errors = [], []
    for line in open(path, errors="replace"):
        if m := re.match(r"(Direct|Indirect) leak of (\d+) byte\(s\) in (\d+) object", line):
            reach = "definite" if m[1] == "Direct" else "indirect"
            leaks.append(Leak(reach, int(m[3]), int(m[2]), None, None, []))
        elif (m := re.match(r" +#\d+ 0x[0-9a-f]+ (?:in (.*) )?\(?(\S+?)(?::(\d+))?(?::\d+)?(?:\+0x[0-9a-f]+\))?(?: \(BuildId.*)?$", line)) and leaks:
            leaks[-1].frames.append(Frame(m[1] or "", os.path.basename(m[2]), int(m[3] or 0), ""))
        elif m := re.search(r"ERROR: (?!LeakSanitizer: detected)(.*)", line):
            errors.append(m[1])
    return leaks, errors


def valgrind(path):
    """memcheck's XML. A process that was killed leaves it without an end."""
    text = open(path, errors="replace").read()
    leaks, errors = [], []
    for block in re.findall(r"<error>.*?</error>", text, re.S):
        error = ElementTree.fromstring(block)
        kind = error.findtext("kind")
        if not kind.startswith("Leak_"):
            errors.append(kind)
            continue
        said = error.findtext("xwhat/text")
        split = re.match(r"([\d,]+) \(([\d,]+) direct, ([\d,]+) indirect\)", said)
        whole = int(error.findtext("xwhat/leakedbytes"))
        number = lambda t: int(t.replace(",", ""))
        frames = [
            Frame(f.findtext("fn") or "", f.findtext("file") or "", int(f.findtext("line") or 0),
                  os.path.basename(f.findtext("obj") or ""), int(f.findtext("ip") or "0", 0))
            for f in error.find("stack")
        ]
        reach = {"DefinitelyLost": "definite", "IndirectlyLost": "indirect", "PossiblyLost": "possible",
                 "StillReachable": "reachable"}[kind[5:]]
        leaks.append(Leak(reach, int(error.findtext("xwhat/leakedblocks")), number(split[2]) if split else whole,
                          None, number(split[3]) if split else 0, frames))
    return leaks, errors


TOOLS = {"heapwright": heapwright, "lsan": lsan, "valgrind": valgrind}


# --- the headers -------------------------------------------------------------

Expected = collections.namedtuple("Expected", "reach blocks bytes at function origin with_blocks with_bytes text")
Program = collections.namedtuple("Program", "name path keys leaks marks says")


def program(path):
    """A source: its header, the lines of its marks, and its sentence."""
    keys, leaks, says, marks, head = {}, [], [], {}, True
    for number, line in enumerate(open(path), 1):
        if head and (m := re.match(r"// ([a-z]+): +(.*)", line)):
            if m[1] == "leaks":
                leaks.append(m[2])
            else:
                keys[m[1]] = m[2]
        elif head and line.startswith("// "):
            says.append(line[3:].strip())
        else:
            head = False
        if m := re.search(r"// LEAK (\w+)\s*$", line):
            marks[m[1]] = number
    name = re.sub(r"\.[a-z]+$", "", os.path.basename(path))
    return Program(name, path, keys, leaks, marks, " ".join(says))


GRAMMAR = re.compile(
    r"(definite|indirect|possible|reachable) (\S+) (\S+) at ([\w|]+)(?: in (\S+))?(?: from (\w+))?(?: with (\S+) (\S+))?$"
)


def expectations(of, size):
    def count(text):
        if text is None or text == "?":
            return None
        if not re.fullmatch(r"[\dSIZE+*()-]+", text):
            sys.exit(f"{of.path}: no count: {text}")
        return eval(text.replace("SIZE", str(size)))  # of digits and + * ( ) - alone

    for text in of.leaks:
        m = GRAMMAR.match(text)
        if not m:
            sys.exit(f"{of.path}: not understood: {text}")
        for mark in m[4].split("|") + ([m[6]] if m[6] else []):
            if mark not in of.marks:
                sys.exit(f"{of.path}: no mark {mark}")
        yield Expected(m[1], count(m[2]), count(m[3]), [of.marks[a] for a in m[4].split("|")], m[5],
                       of.marks.get(m[6]), count(m[7]) if m[7] else 0, count(m[8]) if m[7] else 0, text)


# --- the judgement -----------------------------------------------------------


def plain(function):
    """A function's last name, without namespaces, arguments, hashes and clones."""
    function = re.sub(r"::h[0-9a-f]{16}$", "", function)
    function = re.sub(r"\(.*|\[abi:.*|<.*|\{.*", "", function)
    return re.sub(r"\.(constprop|isra|part|cold|llvm)\..*", "", function.split("::")[-1]).strip()


def own(leak, source):
    return [f for f in leak.frames if f.file == os.path.basename(source)]


def fits(leak, expected, source):
    frames = own(leak, source)
    if not frames or frames[0].line not in expected.at:
        return False
    if expected.function and plain(frames[0].function) != expected.function:
        return False
    return expected.origin is None or any(f.line == expected.origin for f in frames[1:])


def place(leak, source):
    frames = own(leak, source) or leak.frames[:3]
    return " <- ".join(f"{plain(f.function)}:{f.line}" if f.line else f.function or f.object for f in frames) or "no stack"


def judge(tool, of, size, bad, leaks, errors, status):
    """What is wrong with a report, in words; and how many definite leaks were right, of how many."""
    wrong, right, asked = [], 0, 0
    expected = list(expectations(of, size)) if bad else []
    explained = set()
    for e in expected:
        found = [(i, l) for i, l in enumerate(leaks) if l.reach == e.reach and fits(l, e, of.path)]
        explained.update(i for i, _ in found)
        if tool == "lsan" and e.reach == "reachable":
            continue
        blocks, size_ = sum(l.blocks for _, l in found), sum(l.bytes for _, l in found)
        lost = [(l.with_blocks, l.with_bytes) for _, l in found]
        asked += e.reach == "definite"
        is_ = []
        if e.blocks is not None and blocks != e.blocks:
            is_.append(f"{blocks} blocks")
        if e.bytes is not None and size_ != e.bytes:
            is_.append(f"{size_} bytes")
        for n, want, what in ((0, e.with_blocks, "blocks"), (1, e.with_bytes, "bytes")):
            have = [l[n] for l in lost]
            if e.reach == "definite" and found and want is not None and None not in have and sum(have) != want:
                is_.append(f"with {sum(have)} {what}")
        if is_:
            wrong.append(f"asked {e.text}: " + ("nothing there" if not found else ", ".join(is_)))
        else:
            right += e.reach == "definite"
    with_ = [e.with_blocks for e in expected if e.reach == "definite"]
    indirect = sum(l.blocks for l in leaks if l.reach == "indirect")
    if None not in with_ and indirect != sum(with_):
        wrong.append(f"{indirect} blocks indirectly lost, not {sum(with_)}")
    for i, l in enumerate(leaks):
        if i not in explained and l.reach in ("definite", "possible"):
            wrong.append(f"{l.reach} {l.blocks} {l.bytes} at {place(l, of.path)}: not asked for")
    wrong += [f"reported {e}" for e in errors]
    if tool == "heapwright":
        want = 99 if any(e.reach == "definite" for e in expected) else 0
        if status != want:
            wrong.append(f"status {status}, not {want}")
    elif not bad and tool == "valgrind" and status != 0:
        wrong.append(f"status {status}")
    return wrong, right, asked


def rows(paths):
    for path in paths:
        of = program(path)
        list(expectations(of, 24))
        if not of.leaks:
            sys.exit(f"{path}: no line of what leaks")
        print(of.name, path, *(of.keys.get(k, "-") for k in ("sizes", "flags", "plugin")), sep="\t")


def judge_all(tool, runs, verbose):
    """RUNS: kind, name, path, size, status and the reports' files of each run, tabs in between."""
    verdicts, programs = [], set()
    definite, asked, twins, twins_reported, disagreed = 0, 0, 0, 0, set()
    for line in open(runs):
        kind, name, path, size, status, *files = line.rstrip("\n").split("\t")
        of = program(path)
        programs.add(path)
        leaks, errors = [], []
        try:
            if tool == "heapwright" and not files:
                raise ValueError("no report")
            for file in files:
                more = TOOLS[tool](file)
                leaks += more[0]
                errors += more[1]
            wrong, right, of_ = judge(tool, of, int(size) if size != "none" else 24, kind == "bad", leaks, errors, int(status))
        except (ValueError, KeyError, TypeError, OSError) as error:
            wrong, right, of_ = [f"report not readable: {type(error).__name__} {error} (status {status})"], 0, \
                sum(e.reach == "definite" for e in expectations(of, 24)) if kind == "bad" else 0
        definite, asked = definite + right, asked + of_
        label = name if size == "none" else f"{name} {size}"
        known = tool != "heapwright" and of.keys.get(tool, "").startswith("differs")
        if kind == "twin":
            twins += 1
            twins_reported += bool(wrong)
        if wrong:
            disagreed.add(path)
        verdict = "ok" if not wrong else "differs" if known else "FAIL"
        verdicts.append((verdict, kind, label, "; ".join(wrong)))
    for path in programs - disagreed:
        of = program(path)
        if tool in of.keys:
            verdicts.append(("FAIL", "bad", of.name, f"the header says that {tool} differs, and it does not"))
    verdicts.sort(key=lambda v: (v[2], v[1]))
    for verdict, kind, label, why in verdicts:
        if verbose or verdict == "FAIL":
            print(f"{verdict:8}{kind:5} {label}" + (f": {why}" if why else ""))
    runs_ = sum(1 for _ in open(runs))
    print(f"{'leaks' if tool == 'heapwright' else tool}: {len(programs)} programs, {runs_} runs, definite leaks right {definite} of {asked}, "
          f"twins reported {twins_reported} of {twins}"
          + (f"; differs as the headers say in {len(disagreed)} programs" if tool != "heapwright" else ""))
    return 1 if any(v[0] == "FAIL" for v in verdicts) else 0


def table(paths):
    """For people: what each program loses, and who sees it otherwise."""
    print("| program | what comes out | sees it otherwise |\n|---|---|---|")
    total = collections.Counter()
    for path in paths:
        of = program(path)
        for e in expectations(of, 24):
            total[e.reach] += 1
        differs = ", ".join({"lsan": "LeakSanitizer", "valgrind": "valgrind"}[t] for t in ("lsan", "valgrind") if t in of.keys)
        what = "; ".join(re.sub(r" at [\w|]+( in \S+)?( from \w+)?", "", t) for t in of.leaks)
        print(f"| {os.path.basename(path)} | {what} | {differs} |")
    print(f"\n{len(paths)} programs: " + ", ".join(f"{total[r]} {r}" for r in REACH.values()))


# --- real programs -----------------------------------------------------------

ALLOCATORS = re.compile(
    r"^(malloc|calloc|realloc|reallocarray|free|aligned_alloc|posix_memalign|memalign|valloc|operator new.*|_Zn.*|hw_.*)$"
)


# Frames that are compared: a place in a program, and not each way there. Of thousands of leaks a stray
# word hides one or the other, in either tool, from run to run.
DEPTH = 5


def chain(leak):
    """Where a block was allocated, without the allocator's own: a name, a file and an address for each frame.

    Functions that were inlined into one have its address; the outermost name stays.
    """
    frames = []
    for f in leak.frames:
        if f.object.startswith(("libheapwright", "vgpreload")) or ALLOCATORS.match(f.function):
            continue
        if frames and f.address and frames[-1][2] == f.address:
            frames.pop()
        frames.append((plain(f.function.split("@")[0]), f.object, f.address))
    return frames[:DEPTH]


def same(a, b):
    """Whether two chains are one. Files lie at other addresses in each run, but what is between two frames of one
    file stays; names count where both have one, and where a file is alone in a chain there is nothing else."""
    n = min(len(a), len(b))
    seen = {}
    for (name, object_, address), (other_name, other_object, other_address) in zip(a[:n], b[:n]):
        if object_ and other_object and object_ != other_object:
            return False
        if address and other_address:
            if seen.setdefault(object_, address - other_address) != address - other_address:
                return False
        elif name and other_name and name != other_name:
            return False
    return n > 0


def said(frames):
    return " <- ".join(name or object_ or "?" for name, object_, _ in frames)


def compare(name, ours, theirs):
    """OURS, THEIRS: files, separated by spaces. A row of the table; and what only we report.

    A block that we call definitely lost and valgrind calls lost in another way is lost all
    the same: which block of several counts as the first, and whether a word that calls have
    left on the stack counts as a pointer, are matters of the tool."""
    lost = lambda leaks: [l for l in leaks if l.reach != "reachable"]
    definite = lambda leaks: [l for l in leaks if l.reach == "definite"]
    all_ours = lost(l for f in ours.split() for l in heapwright(f)[0])
    errors = [e for f in ours.split() for e in heapwright(f)[1]]
    all_theirs = lost(l for f in theirs.split() for l in valgrind(f)[0])
    mine, other = definite(all_ours), definite(all_theirs)
    chains = [chain(l) for l in all_theirs]
    only = [l for l in mine if not any(same(chain(l), c) for c in chains)]
    known = [chain(m) for m in all_ours]
    missed = [c for c in map(chain, other) if not any(same(c, k) for k in known)]
    count = lambda ls: f"{sum(l.blocks for l in ls)} / {sum(l.bytes for l in ls)}"
    print(f"| {name} | {count(mine)} | {count(other)} | {count(only)} | {len(missed)} |")
    for l in only:
        print(f"FAIL {name}: only we report {l.blocks} blocks, {l.bytes} bytes: "
              + said(chain(l)), file=sys.stderr)
    for e in errors:
        print(f"FAIL {name}: reported {e}", file=sys.stderr)
    places = collections.Counter()
    sizes = collections.Counter()
    for l in (l for l in mine if l not in only):
        place = said(chain(l)[:4])
        places[place] += l.blocks
        sizes[place] += l.bytes
    for place, bytes_ in sizes.most_common(8):
        print(f"true {name}: {places[place]} blocks, {bytes_} bytes: {place}", file=sys.stderr)
    if len(sizes) > 8:
        print(f"true {name}: ... and {len(sizes) - 8} places more", file=sys.stderr)
    return 1 if only or errors else 0


def main(arguments):
    action, *rest = arguments
    if action == "rows":
        rows(rest)
    elif action == "table":
        table(rest)
    elif action == "judge":
        sys.exit(judge_all(rest[0], rest[1], "-v" in rest))
    elif action == "compare":
        sys.exit(compare(*rest))


main(sys.argv[1:])

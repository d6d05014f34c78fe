"""Leaks: the corpus of ci/leaks.sh, and real programs beside valgrind (ci/programs.sh leaks).

    judge.py corpus [-v] [--by TOOL] [NAME...]
    judge.py compare NAME FOLDER        FOLDER has our reports (*.json) and valgrind's (*.xml) of the same runs

Each tool's reports are read into one shape: leaks, and the headings of other findings.
"""

import argparse
import collections
import glob
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

# reach: definite, indirect, possible or reachable; with_*: what was lost with the block, None if the tool does not
# say; frames: innermost first.
Leak = collections.namedtuple("Leak", "reach blocks bytes with_blocks with_bytes frames")
Frame = collections.namedtuple("Frame", "function file line object address", defaults=("", 0))


def reach(words):
    """Of "still-reachable", "DefinitelyLost" and the like."""
    word = re.sub(r"still|lost|-", "", words.lower())
    return {"definitely": "definite", "indirectly": "indirect", "possibly": "possible"}.get(word, word)


def heapwright(path):
    """`heapwright check --format json -o PATH`."""
    with open(path) as file:
        report = json.load(file)
    frames = [list(functions_of(frame)) for frame in report["frames"]]
    leaks = []
    for leak in report["leaks"]:
        stack = [f for frame in report["stacks"][leak["stack"]]["frames"] for f in frames[frame]]
        leaks.append(Leak(reach(leak["reach"]), leak["blocks"], leak["bytes"], leak["indirect"]["blocks"], leak["indirect"]["bytes"], stack))
    return leaks, [error["kind"] for error in report["errors"]]


def functions_of(frame):
    """The functions at a place; inlined functions come first."""
    # The module is the file that a link leads to, as in valgrind's reports.
    module = os.path.basename(os.path.realpath(frame["module"])) if frame["module"] else ""
    for f in frame["functions"] or [{}]:
        yield Frame(f.get("name") or "", os.path.basename(f.get("source") or ""), f.get("line") or 0, module, int(frame["address"], 0))


def lsan(path):
    """LeakSanitizer's text."""
    leaks, errors = [], []
    place = re.compile(r" +#\d+ 0x[0-9a-f]+ (?:in (.*) )?\(?(\S+?)(?::(\d+))?(?::\d+)?(?:\+0x[0-9a-f]+\))?(?: \(BuildId.*)?$")
    for line in open(path, errors="replace"):
        if m := re.match(r"(Direct|Indirect) leak of (\d+) byte\(s\) in (\d+) object", line):
            leaks.append(Leak("definite" if m[1] == "Direct" else "indirect", int(m[3]), int(m[2]), None, None, []))
        elif (m := place.match(line)) and leaks:
            leaks[-1].frames.append(Frame(m[1] or "", os.path.basename(m[2]), int(m[3] or 0)))
        elif m := re.search(r"ERROR: (?!LeakSanitizer: detected)(.*)", line):
            errors.append(m[1])
    return leaks, errors


def valgrind(path):
    """memcheck's XML. A killed process leaves a file without an end."""
    leaks, errors = [], []
    for block in re.findall(r"<error>.*?</error>", open(path, errors="replace").read(), re.S):
        error = ElementTree.fromstring(block)
        kind = error.findtext("kind")
        if not kind.startswith("Leak_"):
            errors.append(kind)
            continue
        split = re.match(r"[\d,]+ \(([\d,]+) direct, ([\d,]+) indirect\)", error.findtext("xwhat/text"))
        direct, indirect = [int(number.replace(",", "")) for number in split.groups()] if split else (int(error.findtext("xwhat/leakedbytes")), 0)
        frames = [Frame(f.findtext("fn") or "", f.findtext("file") or "", int(f.findtext("line") or 0), os.path.basename(f.findtext("obj") or ""),
                        int(f.findtext("ip") or "0", 0)) for f in error.find("stack")]
        leaks.append(Leak(reach(kind[5:]), int(error.findtext("xwhat/leakedblocks")), direct, None, indirect, frames))
    return leaks, errors


TOOLS = {"heapwright": heapwright, "lsan": lsan, "valgrind": valgrind}
VALGRIND = "valgrind --quiet --leak-check=full --num-callers=30 --trace-children=yes --keep-debuginfo=yes --xml=yes --undef-value-errors=no".split()


def plain(function):
    """A function's last name, without namespaces, arguments, hashes and clones."""
    function = re.sub(r"::h[0-9a-f]{16}$", "", function)
    function = re.sub(r"\(.*|\[abi:.*|<.*|\{.*", "", function)
    return re.sub(r"\.(constprop|isra|part|cold|llvm)\..*", "", function.split("::")[-1]).strip()


# The corpus.

Expected = collections.namedtuple("Expected", "reach blocks bytes at function origin with_blocks with_bytes text")
GRAMMAR = re.compile(r"(definite|indirect|possible|reachable) (\S+) (\S+) at ([\w|]+)(?: in (\S+))?(?: from (\w+))?(?: with (\S+) (\S+))?$")


def expectations(program, size):
    """What a program's first lines say that it loses."""
    def count(text):
        if text in (None, "?"):
            return None
        if not re.fullmatch(r"[\dSIZE+*()-]+", text):
            sys.exit(f"{program.path}: no count: {text}")
        return eval(text.replace("SIZE", str(size)))  # of digits and + * ( ) - alone

    with open(program.path) as file:
        marks = {m[1]: number for number, line in enumerate(file, 1) if (m := re.search(r"// LEAK (\w+)\s*$", line))}
    for text in program.keys.get("leaks") or sys.exit(f"{program.path}: no line of what leaks"):
        m = GRAMMAR.match(text) or sys.exit(f"{program.path}: not understood: {text}")
        for mark in m[4].split("|") + ([m[6]] if m[6] else []):
            if mark not in marks:
                sys.exit(f"{program.path}: no mark {mark}")
        yield Expected(m[1], count(m[2]), count(m[3]), [marks[a] for a in m[4].split("|")], m[5], marks.get(m[6]),
                       count(m[7]) if m[7] else 0, count(m[8]) if m[7] else 0, text)


def own(leak, source):
    return [f for f in leak.frames if f.file == os.path.basename(source)]


def fits(leak, expected, source):
    frames = own(leak, source)
    return bool(frames and frames[0].line in expected.at and (not expected.function or plain(frames[0].function) == expected.function)
                and (expected.origin is None or any(f.line == expected.origin for f in frames[1:])))


def place(leak, source):
    frames = own(leak, source) or leak.frames[:3]
    return " <- ".join(f"{plain(f.function)}:{f.line}" if f.line else f.function or f.object for f in frames) or "no stack"


def judge(tool, program, size, bad, leaks, errors, status):
    """The faults of a report, in words; the number of definite leaks that were right; and the number expected."""
    wrong, right, explained = [], 0, set()
    expected = list(expectations(program, size)) if bad else []
    for e in expected:
        found = [l for l in leaks if l.reach == e.reach and fits(l, e, program.path)]
        explained.update(map(id, found))
        if tool == "lsan" and e.reach == "reachable":
            continue
        pairs = [(e.blocks, sum(l.blocks for l in found), "blocks"), (e.bytes, sum(l.bytes for l in found), "bytes")]
        if e.reach == "definite" and found:
            for want, have, what in ((e.with_blocks, [l.with_blocks for l in found], "blocks with it"),
                                     (e.with_bytes, [l.with_bytes for l in found], "bytes with it")):
                pairs += [(want, sum(have), what)] if None not in have else []
        others = [f"{have} {what}" for want, have, what in pairs if want is not None and have != want]
        if others:
            wrong.append(f"asked {e.text}: {', '.join(others) if found else 'nothing there'}")
        else:
            right += e.reach == "definite"
    with_ = [e.with_blocks for e in expected if e.reach == "definite"]
    indirect = sum(l.blocks for l in leaks if l.reach == "indirect")
    if None not in with_ and indirect != sum(with_):
        wrong.append(f"{indirect} blocks indirectly lost, not {sum(with_)}")
    wrong += [f"{l.reach} {l.blocks} {l.bytes} at {place(l, program.path)}: not asked for" for l in leaks
              if id(l) not in explained and l.reach in ("definite", "possible")]
    wrong += [f"reported {e}" for e in errors]
    want = 99 if tool == "heapwright" and with_ else 0
    if status != want and (tool == "heapwright" or tool == "valgrind" and not bad):
        wrong.append(f"status {status}, not {want}")
    return wrong, right, len(with_)


class Corpus:
    def __init__(self, tool):
        sys.path.insert(0, "corpus")
        import judge as corpus
        self.tool, self.corpus = tool, corpus
        self.cache = f"{corpus.TARGET}/corpus-leaks"
        os.makedirs(self.cache, exist_ok=True)
        # For each run: definite leaks that were right, those expected, whether it is a twin's, whether it is wrong.
        self.runs, self.disagreed = [], set()

    def run(self, program, out, command):
        """Runs it under the tool: the status, and the reports' files."""
        if self.tool == "lsan":
            settings = f"allocator_may_return_null=1:fast_unwind_on_malloc=0:max_leaks=0:log_path={out}.lsan"
            done = self.corpus.run(command, patience=60, LSAN_OPTIONS=settings)
        elif self.tool == "valgrind":
            done = self.corpus.run([*VALGRIND, "--show-leak-kinds=all", "--show-mismatched-frees=no", f"--xml-file={out}.valgrind.%p", *command],
                                   patience=60)
        else:
            options = os.environ.get("HEAPWRIGHT_OPTIONS", "").split()
            done = self.corpus.run([os.environ["HEAPWRIGHT_COMMAND"], "check", "--format", "json", "-o", f"{out}.json", *options, "--", *command],
                                   patience=60)
        return done.status, glob.glob(glob.escape(out) + ".*")

    def judge(self, program):
        """The verdicts of one program in all its sizes, and of its twin."""
        for kind in ("bad", "twin"):
            path, wrong = self.corpus.built(program, kind, self.cache, "leak" if self.tool == "lsan" else None)
            if wrong:
                yield "FAIL", "build", kind, program.name, f"does not compile: {wrong}"
                return
            for label, arguments in self.corpus.sizes(program):
                status, files = self.run(program, f"{self.corpus.SCRATCH}/{kind}.{label.replace(' ', '.')}", [path, *arguments])
                try:
                    read = [TOOLS[self.tool](file) for file in files]
                    if self.tool == "heapwright" and not files:
                        raise ValueError("no report")
                    wrong, right, asked = judge(self.tool, program, int(arguments[0]) if arguments else 24, kind == "bad",
                                                [l for one in read for l in one[0]], [e for one in read for e in one[1]], status)
                except (ValueError, KeyError, TypeError) as error:
                    wrong, right, asked = [f"report not readable: {error} (status {status})"], 0, 0
                self.runs.append((right, asked, kind == "twin", bool(wrong)))
                known = program.keys.get(self.tool, "").startswith("differs")
                if wrong:
                    self.disagreed.add(program.name)
                yield "ok" if not wrong else "differs" if known else "FAIL", self.tool, kind, label, "; ".join(wrong)
        if self.tool in program.keys and program.name not in self.disagreed:
            yield "FAIL", self.tool, "bad", program.name, f"the first lines say that {self.tool} differs, and it does not"


def corpus_main(words):
    parser = argparse.ArgumentParser(prog="ci/leaks.sh")
    parser.add_argument("-v", action="store_true", dest="verbose")
    parser.add_argument("--by", choices=TOOLS, default="heapwright")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args(words)
    judged = Corpus(asked.by)
    rows = judged.corpus.programs("corpus/leaks")
    if asked.names:
        rows = judged.corpus.chosen(rows, asked.names)
    verdicts = judged.corpus.workers(lambda program: list(judged.judge(program)), rows)
    judged.corpus.show(verdicts, *(["ok", "differs"] if asked.verbose else []), "FAIL")
    right, wanted, twins, _ = map(sum, zip(*judged.runs))
    print(f"{asked.by}: {len(rows)} programs, {len(judged.runs)} runs, definite leaks right {right} of {wanted}, "
          f"twins reported {sum(twin and wrong for _, _, twin, wrong in judged.runs)} of {twins}; differs in {len(judged.disagreed)} programs")
    return any(v[0] == "FAIL" for v in verdicts)


# Real programs.

ALLOCATORS = re.compile(r"^(malloc|calloc|realloc|reallocarray|free|aligned_alloc|posix_memalign|memalign|valloc|operator new.*|_Zn.*|hw_.*)$")
# The number of frames that are compared: enough for a place in a program, and not each way there. Among thousands of
# leaks, stray words hide a few from either tool, others in each run.
DEPTH = 5


def chain(leak):
    """The place that allocated a block, without the allocator's frames: a name, a file and an address for each frame.
    Inlined functions have the address of the function around them, whose name stays."""
    frames = []
    for f in leak.frames:
        if f.object.startswith(("libheapwright", "vgpreload")) or ALLOCATORS.match(f.function):
            continue
        if frames and f.address and frames[-1][2] == f.address:
            frames.pop()
        frames.append((plain(f.function.split("@")[0]), f.object, f.address))
    return frames[:DEPTH]


def same(a, b):
    """Whether two chains may be of one place, as far as the shorter one goes. Files lie at other addresses in each run,
    but the distance between two frames of a file stays; a file's only frame fits any of that file. Frames without
    addresses are compared by name. What a tool does not say (a file, a name) fits anything."""
    seen = {}
    for (name, object_, address), (other_name, other_object, other_address) in zip(a, b):
        if object_ and other_object and object_ != other_object:
            return False
        if address and other_address:
            if seen.setdefault(object_, address - other_address) != address - other_address:
                return False
        elif name and other_name and name != other_name:
            return False
    return bool(a and b)


def compare(name, folder):
    """Prints a row of the table, and the blocks that only we report. If valgrind calls a block lost in another way, it
    counts as reported: tools differ in which of several blocks is the first, and whether a word that calls have left
    on the stack is a pointer."""
    def lost(read, ending):
        found = [read(file) for file in sorted(glob.glob(f"{folder}/*.{ending}"))]
        return [l for leaks, _ in found for l in leaks if l.reach != "reachable"], [e for _, errors in found for e in errors]

    (ours, errors), (theirs, _) = lost(heapwright, "json"), lost(valgrind, "xml")
    mine, other = ([l for l in leaks if l.reach == "definite"] for leaks in (ours, theirs))
    only = [l for l in mine if not any(same(chain(l), chain(t)) for t in theirs)]
    missed = [l for l in other if not any(same(chain(l), chain(o)) for o in ours)]

    def count(leaks):
        return f"{sum(l.blocks for l in leaks)} / {sum(l.bytes for l in leaks)}"

    print(f"| {name} | {count(mine)} | {count(other)} | {count(only)} | {len(missed)} |")
    for l in only:
        print(f"FAIL {name}: only we report {l.blocks} blocks, {l.bytes} bytes: " + " <- ".join(n or o or "?" for n, o, _ in chain(l)))
    for e in errors:
        print(f"FAIL {name}: reported {e}")
    return bool(only or errors)


if __name__ == "__main__":
    sys.exit(corpus_main(sys.argv[2:]) if sys.argv[1] == "corpus" else compare(*sys.argv[2:]))

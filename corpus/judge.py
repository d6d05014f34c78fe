"""The judge of the misuse corpus, and what ci/leaks.sh shares with it: reads the programs' first lines, builds and
runs the programs. corpus/README.md says how a program is written; ci/corpus.sh says what must be found.

    a program   (name, path, keys of its first lines); built once as the bad program and once as its twin, under
                names with a hash of the contents
    a run       status, output and error output of one program with one of its sizes
    a verdict   (ok, FAIL, miss or blind; pass; bad, twin or right; name and size; words)
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import functools
import glob
import hashlib
import inspect
import os
import re
import subprocess
import sys
import sysconfig
import threading

TARGET, SCRATCH = os.environ["CARGO_TARGET_DIR"], os.environ["SCRATCH"]
JOBS = int(os.environ.get("JOBS", 2))
# The most seconds of a run: of processor time, which does not depend on other work of the machine, and by the clock,
# for programs that wait for ever.
PATIENCE, WAIT = 20, 300

Program = collections.namedtuple("Program", "name path keys")
Run = collections.namedtuple("Run", "status out err")


def head(path):
    """The keys of a source's first lines. `leaks` may have several lines."""
    keys = {}
    with open(path) as file:
        for line in file:
            if not line.startswith("//"):
                break
            if found := re.match(r"// ([a-z]+): +(.*)", line):
                if found[1] == "leaks":
                    keys.setdefault("leaks", []).append(found[2])
                else:
                    keys[found[1]] = found[2]
    return keys


def programs(*folders):
    paths = [path for folder in folders for end in ("c", "cc", "rs") for path in glob.glob(f"{folder}/*.{end}")]
    named = {}
    for path in paths:
        name = os.path.basename(path).rsplit(".", 1)[0]
        if name == "corpus":
            continue
        if name in named:
            sys.exit(f"two programs have one name: {path} {named[name].path}")
        named[name] = Program(name, path, head(path))
    return [named[name] for name in sorted(named)]


def chosen(all_programs, names):
    found = [p for p in all_programs if any(fnmatch.fnmatchcase(p.name, name) for name in names)]
    return found or sys.exit(f"no such program: {' '.join(names)}")


# Building.


def compile_to(source, out, sanitizer, flags):
    """Compiles one program. `flags` may have -DBAD (--cfg=bad for Rust). Returns the compiler's error, or nothing."""
    environment = dict(os.environ, RUSTC_BOOTSTRAP="1" if sanitizer else "0")
    if source.endswith(".rs"):
        flags = ["--cfg=bad" if flag == "-DBAD" else flag for flag in flags]
        command = ["rustc", "--edition", "2021", "-C", "opt-level=1", "-g", "-A", "warnings", "--crate-name", "corpus_program",
                   *([f"-Zsanitizer={sanitizer}"] if sanitizer else []), *flags, "-o", out, source]
    elif source.endswith(".py.c"):
        # A module, and a script that calls the function of it that is its argument, in its own process.
        module = out.removesuffix(".new") + ".module"
        command = ["cc", "-std=gnu11", "-O1", "-g", "-w", "-fno-builtin", f"-I{sysconfig.get_paths()['include']}", *flags, "-shared", "-fPIC",
                   "-o", module, source]
        with open(out, "w") as script:
            script.write(f'#!{sys.executable} -IS\nimport importlib.util as u, importlib.machinery as m, sys\npath = "{module}"\n'
                         'spec = u.spec_from_file_location("reads", path, loader=m.ExtensionFileLoader("reads", path))\n'
                         "getattr(u.module_from_spec(spec), sys.argv[1])()\n")
        os.chmod(out, 0o755)
    else:
        compiler = ["c++", "-std=c++17"] if source.endswith(".cc") else ["cc", "-std=gnu11"]
        command = [*compiler, "-O1", "-g", "-w", "-fno-builtin", "-I", "corpus", *([f"-fsanitize={sanitizer}"] if sanitizer else []), "-o", out,
                   *flags, source, "-rdynamic", "-ldl"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return "" if done.returncode == 0 else next((line for line in done.stderr.splitlines() if "error" in line.lower()), done.stderr[-300:])


@functools.cache
def tools():
    """What all programs depend on, as a part of each hash."""
    said = [subprocess.run([tool, "--version"], capture_output=True, text=True).stdout for tool in ("cc", "c++", "rustc")]
    shared = [open(f"corpus/{name}").read() for name in ("corpus.h", "corpus.rs", "reads/reads.h")]
    return "\n".join([inspect.getsource(compile_to), *shared, *said])


def built(program, kind, cache, sanitizer=None):
    """The path of a program, compiled unless that was done, and what the compiler said."""
    # Programs of corpus/reads are several to a file.
    name = os.path.basename(program.path) if "/reads/" in program.path else program.name
    flags, plugin = program.keys.get("flags", ""), program.keys.get("plugin")
    with open(program.path) as file:
        text = "\n".join([tools(), flags, str(plugin), file.read()])
    start = f"{cache}/{name}.{f'{sanitizer}-' if sanitizer else ''}{kind}"
    path = f"{start}.{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if os.access(path, os.X_OK):
        return path, ""
    for old in glob.glob(glob.escape(start) + ".*"):
        os.remove(old)
    words = flags.split() + (["-DBAD"] if kind == "bad" else [])
    wrong = plugin and compile_to(program.path, f"{path}.so", sanitizer, [*words, "-DPLUGIN", "-shared", "-fPIC"])
    wrong = wrong or compile_to(program.path, f"{path}.new", sanitizer, words)
    if not wrong:
        os.rename(f"{path}.new", path)
    return path, wrong


# Running.


def run(command, prefix="", patience=PATIENCE, **settings):
    """Runs a command with these variables, behind `prefix`, a shell's text."""
    words = [f"{name}={value}" for name, value in settings.items()]
    folder = f"{SCRATCH}/in-{threading.get_ident()}"
    os.makedirs(folder, exist_ok=True)
    done = subprocess.run(["timeout", "-k", "1", str(WAIT), "bash", "-c", f'ulimit -c 0 -t {patience}; {prefix} exec env "$@"', "sh", *words, *command],
                          stdin=subprocess.DEVNULL, capture_output=True, cwd=folder)
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Run(status, done.stdout, done.stderr)


def sizes(program):
    """(label, arguments) of each run."""
    for size in program.keys.get("sizes", "").split() or [None]:
        yield (f"{program.name} {size}", [size]) if size else (program.name, [])


def workers(judge, rows):
    """Every row's verdicts, sorted by name."""
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        return sorted((v for verdicts in pool.map(judge, rows) for v in verdicts), key=lambda v: (v[3], v[1]))


def show(verdicts, *which):
    for wanted in which:
        for verdict, by, kind, label, words in verdicts:
            if verdict == wanted:
                print(f"{verdict:<5} {by:<8} {kind:<5} {label}{f': {words}' if words else ''}")


# The misuse corpus.

HEADINGS = """double-free invalid-free interior-free size-mismatch alignment-mismatch allocator-mismatch buffer-overflow
buffer-underflow write-after-free use-after-free invalid-realloc realloc-after-free""".split()
OPTIONS = {
    "guard": "mode=debug,guard=all", "default": "mode=debug", "loop-all": "mode=debug,guard=all", "loop": "mode=debug",
    "function": "mode=debug,guard=never",
    # What the right programs must also bear.
    "never": "mode=debug,guard=never", "little": "mode=debug,guard=all,memory=2m,slots=4",
    "plain": "mode=debug,traces=0,detect=-guard,detect=-fill",
    "light": "mode=hardened", "full": "mode=hardened:full", "light-never": "mode=hardened,guard=never",
    "full-never": "mode=hardened:full,guard=never",
}
HARDER = ["never", "little", "plain"]
# What --without proves: for each detection, options, and the programs that no other detection then finds (HEADING, or
# HEADING+guard and HEADING+bounds for programs that need these). The options keep out guards, which also see writes.
WITHOUT = {
    "double-free": ("mode=debug,guard=never", "double-free realloc-after-free"),
    "fill": ("mode=debug,guard=never", "write-after-free"),
    "canary": ("mode=debug,detect=-guard", "buffer-overflow buffer-underflow"),
    "bounds": ("mode=debug,detect=-guard", "buffer-overflow+bounds buffer-underflow+bounds use-after-free+bounds"),
    "guard": ("mode=debug,guard=all", "buffer-overflow+guard buffer-underflow+guard use-after-free+guard"),
    "mismatch": ("mode=debug", "allocator-mismatch"),
    "size": ("mode=debug", "size-mismatch alignment-mismatch"),
}
# AddressSanitizer's words for each heading. (It says SEGV or BUS of addresses where it has no shadow.)
ASAN = {
    "double-free": "attempting double-free", "invalid-free": "attempting free on address|SEGV|BUS",
    "interior-free": "attempting free on address", "size-mismatch": "new-delete-type-mismatch",
    "alignment-mismatch": "new-delete-type-mismatch", "allocator-mismatch": "alloc-dealloc-mismatch",
    "buffer-overflow": "heap-buffer-overflow", "buffer-underflow": "heap-buffer-overflow", "write-after-free": "heap-use-after-free",
    "use-after-free": "heap-use-after-free|malloc_usable_size", "invalid-realloc": "attempting free on address",
    "realloc-after-free": "attempting double-free|heap-use-after-free",
}


def rows(asan):
    for program in programs("corpus", "corpus/functions", "corpus/right"):
        if "/right/" in program.path:
            program.keys["finds"] = "right"
        yield program
    # A file of reads has several programs, each behind a line `// read: NAME HEADING function|loop`; NAME selects it.
    has_python = os.path.exists(sysconfig.get_paths()["include"] + "/Python.h") and not asan
    if not has_python and not asan:
        print("no Python.h: the reads of Python's extension are left out")
    for path in sorted(glob.glob("corpus/reads/*.c")) + sorted(glob.glob("corpus/reads/*.cc") + glob.glob("corpus/reads/*.rs")):
        if has_python or not path.endswith(".py.c"):
            for name, heading, by in re.findall(r"^// read: (\S+) (\S+) (\S+)", open(path).read(), re.M):
                keys = {"finds": heading, "sizes": name, "needs": "bounds" if by == "function" else "guards"}
                yield Program(f"read-{os.path.basename(path)}-{name}".replace(".", "-"), path, keys)


def is_in(program, folder):
    return f"/{folder}/" in program.path


class Corpus:
    def __init__(self, action, detection, passes):
        self.action, self.detection, self.passes = action, detection, passes
        self.sanitizer = "address" if action == "asan" else None
        self.cache, self.plain_runs = f"{TARGET}/corpus", {}
        os.makedirs(self.cache, exist_ok=True)

    def built(self, program, kind):
        return built(program, kind, self.cache, self.sanitizer)

    def judge(self, program):
        """The verdicts of one program in all its sizes and passes."""
        heading = program.keys["finds"]
        kinds = ["twin"] if heading == "right" or self.action == "hardened" else ["bad"] if self.action == "without" else ["bad", "twin"]
        paths = {}
        for kind in kinds:
            paths[kind], wrong = self.built(program, kind)
            if wrong:
                return [("FAIL", "build", kind, program.name, f"does not compile: {wrong}")]
        prefix = program.keys.get("run", "")
        how = {"asan": self.by_asan, "without": self.without}.get(self.action, self.by_us)
        return [v for label, arguments in sizes(program) for v in how(program, heading, label, arguments, prefix, paths)]

    def by_asan(self, program, heading, label, arguments, prefix, paths):
        settings = "allocator_may_return_null=1:detect_stack_use_after_return=0:handle_abort=0"
        about = program.keys.get("asan", "")
        if "bad" in paths:
            err = run([paths["bad"], *arguments], prefix, ASAN_OPTIONS=settings).err.decode(errors="replace")
            said = (re.search(r"ERROR: AddressSanitizer(.*)", err) or [err, ""])[1]
            right = re.search(ASAN[heading.split("|")[0]], said)
            yield "blind" if about.startswith("blind") else "ok" if right else "FAIL", "asan", "bad", label, said
        if not about.startswith("alien"):
            done = run([paths["twin"], *arguments], prefix, ASAN_OPTIONS=settings)
            yield "FAIL" if done.status or b"Sanitizer" in done.err else "ok", "asan", "twin", label, last(done) if done.status else ""

    def without(self, program, heading, label, arguments, prefix, paths):
        """The bug must be found with the detection, and missed without it. What neither finds has no verdict."""
        options = WITHOUT[self.detection][0]
        found = []
        for more in ("", f",detect=-{self.detection}"):
            done = run([paths["bad"], *arguments], prefix, LD_PRELOAD=library(program), HEAPWRIGHT=options + more)
            found.append(bool(re.search(rf"heapwright: ({heading}):".encode(), done.err)))
        if not found[0]:
            yield "miss", "without", "bad", label, f"not found with {self.detection} either"
        else:
            yield "FAIL" if found[1] else "ok", "without", "bad", label, f"found without {self.detection}" if found[1] else "missed"

    def by_us(self, program, heading, label, arguments, prefix, paths):
        plain = self.plain(paths["twin"], arguments, prefix)
        if plain.status:
            yield "FAIL", "plain", "twin", label, f"status {plain.status} without the preload: {last(plain)}"
            return
        passes = self.passes + (HARDER if self.action == "check" and heading == "right" else [])
        if self.action == "check" and (is_in(program, "functions") or is_in(program, "reads")):
            passes = ["loop-all", "loop"] if program.keys.get("needs") == "guards" else ["function"]
        found_by_all = False
        for each in passes:
            settings = {"LD_PRELOAD": library(program), "HEAPWRIGHT": OPTIONS[each]}
            if "bad" in paths:
                wrong = unlike(program, heading, arguments, run([paths["bad"], *arguments], prefix, **settings))
                # A read by a loop may go without a report, but not by the default alone. (See "nine in ten" below.)
                missed = each.startswith("loop") and not found_by_all and wrong.startswith("no report")
                yield "ok" if not wrong else "miss" if missed else "FAIL", each, "bad", label, wrong and f"{heading}: {wrong}"
                found_by_all |= each == "loop-all" and not wrong
            wrong = harmed(plain, run([paths["twin"], *arguments], prefix, **settings))
            yield "FAIL" if wrong else "ok", each, "right" if heading == "right" else "twin", label, wrong

    def plain(self, twin, arguments, prefix):
        """The run of a twin without heapwright, once for each build and arguments."""
        key = (twin, *arguments)
        if key not in self.plain_runs:
            self.plain_runs[key] = run([twin, *arguments], prefix)
        return self.plain_runs[key]


def library(program):
    checked = is_in(program, "functions") or is_in(program, "reads") or program.keys.get("library") == "check"
    return os.environ["HEAPWRIGHT_CHECK_SO" if checked else "HEAPWRIGHT_SO"]


def last(done):
    return (done.err.decode(errors="replace").splitlines() or [""])[-1]


def unlike(program, heading, arguments, done):
    """What is wrong with the report of a bad program; nothing if it is the right one."""
    err = done.err.decode(errors="replace")
    first = (re.search(r"heapwright: [a-z-]*: .*", err) or [""])[0]
    if done.status in (124, 137):
        return f"did not end in {PATIENCE} s of processor time, or {WAIT} s"
    if not first:
        return f"no report (status {done.status})"
    called = first.split(": ")[1]
    # A guard sees the write itself, and may call it what a read would be called.
    if heading == "write-after-free" and called == "use-after-free":
        called = heading
    words = program.keys.get("words", "").replace("%SIZE%", arguments[0] if arguments else "none")
    stack = program.keys.get("stack", "")
    if called not in heading.split("|"):
        return f"reported as: {first}"
    if words not in first:
        return f'no "{words}" in: {first}'
    return "" if re.search(rf"(?<!\w){re.escape(stack)}(?!\w)", err) or not stack else f"no {stack} in its stacks"


def harmed(plain, done):
    """How a right program's run differs from `plain`, its run without heapwright; nothing if it does not."""
    if done.status != plain.status:
        return f"status {done.status}: {last(done)}"
    if said := re.search(rb"heapwright:.*", done.err):
        return f"reported: {said[0].decode(errors='replace')}"
    return "another output" if done.out != plain.out else f"another error output: {last(done)}" if done.err != plain.err else ""


def table(all_rows):
    """The table of corpus/README.md."""
    plain = [p for p in all_rows if not is_in(p, "functions") and not is_in(p, "reads")]

    def line(label, of):
        ends = collections.Counter(p.path.rsplit(".", 1)[1] for p in of)
        guards = sum("guard=all" in p.keys.get("needs", "") for p in of)
        print("|", " | ".join(map(str, [label, len(of), guards, ends["c"], ends["cc"], ends["rs"], sum(len(list(sizes(p))) for p in of)])), "|")

    print("| heading | programs | of which need guards | C | C++ | Rust | runs |\n|---|---|---|---|---|---|---|")
    for heading in HEADINGS:
        line(heading, [p for p in plain if p.keys["finds"].split("|")[0] == heading])
    line("all, each with its twin", [p for p in plain if p.keys["finds"] != "right"])
    line("right programs", [p for p in plain if p.keys["finds"] == "right"])
    by = collections.Counter(p.keys["needs"] for p in all_rows if is_in(p, "reads"))
    print(f"\ncorpus/functions: {dict(collections.Counter(p.keys['finds'] for p in all_rows if is_in(p, 'functions')))}")
    print(f"corpus/reads: {by['bounds']} by functions, {by['guards']} by loops")


def depends(program, dependent):
    needs = program.keys.get("needs", "")
    return program.keys["finds"] + ("+guard" if "guard=all" in needs else "+bounds" if "bounds" in needs else "") in dependent.split()


def main(words):
    parser = argparse.ArgumentParser(prog="ci/corpus.sh")
    parser.add_argument("-v", action="store_true", dest="verbose")
    for flag in ("--list", "--asan", "--hardened", "--default-only"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--without", choices=WITHOUT)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args(words)
    action = "asan" if asked.asan else "hardened" if asked.hardened else "without" if asked.without else "check"
    passes = {"hardened": ["light", "full", "light-never", "full-never"]}.get(action, ["default"] if asked.default_only else ["guard", "default"])
    all_rows = list(rows(asked.asan))
    if asked.list:
        return table(all_rows)
    if asked.names:
        all_rows = chosen(all_rows, asked.names)
    if action == "hardened":
        # (Twins of reads prove nothing that the other twins do not.)
        all_rows = [p for p in all_rows if not is_in(p, "reads")]
    if action == "without":
        all_rows = [p for p in all_rows if depends(p, WITHOUT[asked.without][1])] or sys.exit(f"no program depends on {asked.without}")

    corpus = Corpus(action, asked.without, passes)
    # Programs of one file are built here, because two workers would build them at the same time.
    for program in {p.path: p for p in all_rows if is_in(p, "reads")}.values():
        for kind in ("bad", "twin"):
            corpus.built(program, kind)
    verdicts = workers(lambda program: list(corpus.judge(program)), all_rows)
    show(verdicts, *(["ok", "miss", "blind"] if asked.verbose else []), "FAIL")

    def count(verdict, by, kind):
        return sum(v[0] in verdict.split("|") and v[1] == by and v[2] == kind for v in verdicts)

    def of(verdict, by, kind):
        return f"{count(verdict, by, kind)} of {count('ok|FAIL', by, kind)}"

    print(f"corpus: {len(all_rows)} programs")
    failed = any(v[0] == "FAIL" for v in verdicts)
    if action == "check":
        for each in passes:
            print(f"{OPTIONS[each]}: found {of('ok', each, 'bad')} runs; twins reported {of('FAIL', each, 'twin')}, "
                  f"right programs harmed {of('FAIL', each, 'right')}")
        if count("ok|FAIL", "function", "bad"):
            print(f"by functions: found {of('ok', 'function', 'bad')} runs, twins reported {of('FAIL', 'function', 'twin')}")
        loops, by_default, by_all = count("ok|FAIL|miss", "loop", "bad"), count("ok", "loop", "bad"), count("ok", "loop-all", "bad")
        if loops:
            print(f"reads by loops: found {by_default} of {loops} by default, {by_all} by guard=all, "
                  f"twins reported {of('FAIL', 'loop', 'twin')} and {of('FAIL', 'loop-all', 'twin')}")
        # (Fewer than 20 prove nothing about nine in ten.)
        if loops >= 20 and min(by_default, by_all) * 10 < loops * 9:
            sys.exit("corpus: nine in ten must be found")
        for each in HARDER:
            print(f"{OPTIONS[each]}: right programs harmed {of('FAIL', each, 'right')}")
    elif action == "hardened":
        for each in passes:
            print(f"{OPTIONS[each]}: twins disturbed {of('FAIL', each, 'twin')}, right programs {of('FAIL', each, 'right')}")
    elif action == "without":
        print(f"without {asked.without}: missed {of('ok', 'without', 'bad')} runs that are found with it, {count('miss', 'without', 'bad')} are not")
        # A proof of nothing is none.
        failed |= not count("ok", "without", "bad")
    else:
        print(f"AddressSanitizer: reported {of('ok', 'asan', 'bad')} runs, blind to {count('blind', 'asan', 'bad')} more; "
              f"twins reported {of('FAIL', 'asan', 'twin')}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

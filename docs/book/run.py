"""Runs the commands of the book's pages, and compares the outputs with the pages' text. Called by ci/book.sh.

    docs/book/run.py PREFIX SCRATCH [PAGE...]       PREFIX: the folder of packaging/install.sh and install-command.sh

The pages are README.md and those that docs/SUMMARY.md names. One shell runs a page from its top to its end, in an empty
folder. So variables, background jobs and files last to the end of the page. These parts count:

    <!-- file: leak.c -->          writes the block of code behind it to that file
    <!-- file: PATH as NAME -->    copies a file of docs/book; the block behind it is a part of it
    <!-- patch -->                 applies the unified diff behind it with patch -p0
    <!-- before: COMMAND -->       the command runs before the block behind it; $ROOT is this checkout
    <!-- cargo: FEATURES -->       the page's Cargo finds the crate heapwright in this checkout
    ```console                     lines that begin with `$ ` are commands (a `\\` at the end: the next line, too). The whole
                                   output of a command follows it: standard output and standard error

A command ends with 0, unless the next one is `echo $?`. These parts of an output may differ from the page:

    ...            stands for any lines, or none, if it is a line; else for any text of its line
    ==4242==       the number of a process
    0x7f31c0       an address
    1.5 ms, 0.02s  a time, in any unit from ns to min; also 2.2 to 2.9 ms
    spaces         a run of them has any length; at a line's end they do not count
    /home/you      the folder of the page

and, for the one block behind such a comment,

    <!-- numbers: within 20 % -->  a number, with its unit, may be as far from the page's
    <!-- numbers: any -->          a number may be any; its unit may not

In README and docs/book every block of a shell's commands is of this kind. A block ```sh behind <!-- run by:
ci/packages.sh --> runs in CI in another way; the script must exist. The documents beside docs/book also have ```sh for
calls with a reader's programs: their subcommands and options must exist.
"""

import functools
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
# Comments in front of a block, nothing but space between them and it.
ORDERS = re.compile(r"((?:<!-- [^\n]* -->\s*)*)\Z")
ORDER = re.compile(r"<!-- ([^\n]*) -->")
SHELLS = {"sh", "bash", "shell"}
SECONDS = 300
NUMBER = r"\d[\d,]*(?:\.\d+)?"


def pages():
    """README, and the pages that SUMMARY.md names, in its order."""
    return [ROOT / "README.md"] + [DOCS / path for path in re.findall(r"\]\(([^)]+\.md)\)", (DOCS / "SUMMARY.md").read_text())]


class Wrong(Exception):
    """What a page says is not so; the text is for its writer."""


# Reading a page.


def steps(page):
    """A page as steps: ("file", name, text), ("copy", path, name), ("patch", text), ("cargo", features) and
    ("run", command, expected lines, how numbers are compared, line in the page)."""
    text = page.read_text()
    ours = (DOCS / "book") in page.parents or page == ROOT / "README.md"
    for block in FENCE.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        orders = ORDER.findall(ORDERS.search(text, 0, block.start())[1])
        language, body = block[1].strip(), block[2]
        numbers = None
        for order in orders:
            word, _, rest = order.partition(": ")
            if word == "file":
                path, _, name = rest.partition(" as ")
                if name and body not in (DOCS / "book" / path).read_text():
                    raise Wrong(f"line {line}: this is not in docs/book/{path} as it stands here")
                yield ("copy", DOCS / "book" / path, name) if name else ("file", path, body)
            elif word == "patch":
                yield ("patch", body)
            elif word in ("before", "cargo"):
                yield (word, rest)
            elif word == "numbers":
                numbers = rest
                if rest != "any" and not re.fullmatch(r"within \d+ %", rest):
                    raise Wrong(f"line {line}: numbers can be 'any' or 'within N %', not '{rest}'")
            elif word == "run by":
                if not (ROOT / rest).exists():
                    raise Wrong(f"line {line}: there is no {rest}")
        if language == "console":
            yield from commands(body, numbers, line)
        elif ours and language in SHELLS and not any(order.startswith(("run by: ", "file: ")) for order in orders):
            raise Wrong(f"line {line}: a block of commands that nothing runs: make it ```console, or say <!-- run by: SCRIPT -->")


def commands(body, numbers, line):
    """The commands of a block, each with what it prints."""
    found = []
    continued = False
    for number, text in enumerate(body.splitlines(), line + 1):
        if continued:
            found[-1][0].append(text)
        elif text.startswith("$ "):
            found.append(([text[2:]], [], number))
        elif found:
            found[-1][1].append(text)
        else:
            raise Wrong(f"line {number}: output before any command")
        continued = found[-1][0][-1].endswith("\\") and not found[-1][1]
    if not found:
        raise Wrong(f"line {line}: a console block without a command")
    for command, expected, number in found:
        yield ("run", "\n".join(command), expected, numbers, number)


# Blocks that show how a command is called, with programs and files of the reader's (```sh in the documents).


def unknown_calls(text, known):
    """Of blocks of a shell, the calls of heapwright with a subcommand or an option that it does not have."""
    for block in FENCE.finditer(text):
        if block[1].strip() not in SHELLS:
            continue
        for number, line in enumerate(block[2].splitlines(), text.count("\n", 0, block.start()) + 2):
            for call in re.split(r"\s(?:[;&|]+|#)\s?|;\s", line):
                words = call.split()
                while words and re.fullmatch(r"\w+=\S*", words[0]):
                    words.pop(0)
                if words[:1] != ["heapwright"] or words[1:2] == ["valgrind"]:
                    continue
                ours = words[1 : words.index("--")] if "--" in words else words[1:]
                subcommand = next((word for word in ours if not word.startswith("-")), None)
                options = {re.match(r"--[a-z-]+", word)[0] for word in ours if word.startswith("--")}
                if subcommand in known or subcommand is None:
                    options -= known.get(subcommand, {"--help", "--version"})
                if subcommand not in known and subcommand is not None or options:
                    yield f"line {number}: heapwright has no such {' '.join(sorted(options)) or subcommand}: {call}"


def known_calls(prefix):
    """Each subcommand, with its options."""

    def said(*words):
        return subprocess.run([f"{prefix}/bin/heapwright", *words, "--help"], capture_output=True, text=True, check=True).stdout

    names = re.findall(r"^  ([a-z]+) ", said().split("Commands:")[1].split("\n\n")[0], re.M)
    return {name: set(re.findall(r"--[a-z][a-z-]*", said(name))) for name in names if name != "help"}


# Comparing.


def tidied(line, folder):
    """What may differ anywhere, as one word for all."""
    line = line.replace(str(folder), "/home/you")
    line = re.sub(r"==\d+==", "==4242==", line)
    line = re.sub(r"\b0x[0-9a-f]{5,}", "0xADDRESS", line)
    line = re.sub(r"(?<![\w.])(?:\d[\d,.]* to )?\d[\d,]*(?:(?:\.\d+)? |\.\d+)(?:ns|us|µs|ms|s|min)(?!\w)", "SOME TIME", line)
    return re.sub(r"\s+", " ", line).rstrip()


def same_line(expected, got, numbers):
    """Whether a line is what the page says: `...` for any text, numbers as asked for."""
    pattern = r".*".join(
        r"({})".format(NUMBER).join(re.escape(part) for part in re.split(NUMBER, piece)) if numbers else re.escape(piece)
        for piece in expected.split("...")
    )
    found = re.fullmatch(pattern, got)
    if found is None or numbers in (None, "any"):
        return found is not None
    allowed = int(re.search(r"\d+", numbers)[0]) / 100
    wanted = [value(text) for piece in expected.split("...") for text in re.findall(NUMBER, piece)]
    return all(abs(value(text) - want) <= allowed * want for text, want in zip(found.groups(), wanted))


def value(text):
    return float(text.replace(",", ""))


def same(expected, got, numbers):
    """Whether all lines are. A line `...` takes as few as will do."""

    @functools.lru_cache(maxsize=None)
    def from_(i, j):
        if i == len(expected):
            return j == len(got)
        if expected[i].strip() == "...":
            return from_(i + 1, j) or (j < len(got) and from_(i, j + 1))
        return j < len(got) and same_line(expected[i], got[j], numbers) and from_(i + 1, j + 1)

    sys.setrecursionlimit(100_000)
    return from_(0, 0)


# Running.

RUNNER = """
last=0
for step in "$STEPS"/*.do; do
    text=$(<"$step")
    (exit $last)
    eval "$text" >"${step%.do}.out" 2>&1 </dev/null
    last=$?
    echo $last >"${step%.do}.code"
done
# What a page has left running ends with it.
for job in $(jobs -p); do kill "$job" 2>/dev/null; done
wait 2>/dev/null
"""


def environment(prefix, home, work):
    """As after an installation, and nothing of the caller's."""
    kept = {name: os.environ[name] for name in ("CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "TMPDIR") if name in os.environ}
    real = Path(os.environ.get("HOME", "/root"))
    kept.setdefault("CARGO_HOME", str(real / ".cargo"))
    kept.setdefault("RUSTUP_HOME", str(real / ".rustup"))
    return kept | {
        "PATH": f"{prefix}/bin:{kept['CARGO_HOME']}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "CPATH": f"{prefix}/include",
        "LIBRARY_PATH": f"{prefix}/lib",
        "LD_LIBRARY_PATH": f"{prefix}/lib",
        "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig",
        "CARGO_NET_OFFLINE": "true",
        "CARGO_TERM_QUIET": "true",
    }


def run(page, prefix, scratch):
    """Runs a page; how many commands it has."""
    todo = list(steps(page))
    runs = [step for step in todo if step[0] == "run"]
    if not runs:
        return 0
    work = scratch / str(page.relative_to(ROOT)).replace("/", "-").removesuffix(".md")
    folder, hidden = work / "you", work / "steps"
    folder.mkdir(parents=True)
    hidden.mkdir()
    for number, step in enumerate(todo):
        do = hidden / f"{number:03}.do"
        if step[0] == "run":
            do.write_text(step[1] + "\n")
        elif step[0] == "file":
            (hidden / f"{number:03}.text").write_text(step[2])
            do.write_text(f"mkdir -p \"$(dirname '{folder}/{step[1]}')\" && cp '{hidden}/{number:03}.text' '{folder}/{step[1]}'\n")
        elif step[0] == "before":
            do.write_text(f"ROOT='{ROOT}'\n{step[1]}\n")
        elif step[0] == "copy":
            do.write_text(f"cp '{step[1]}' '{folder}/{step[2]}'\n")
        elif step[0] == "patch":
            (hidden / f"{number:03}.text").write_text(step[1])
            do.write_text(f"patch -s -p0 <'{hidden}/{number:03}.text'\n")
        elif step[0] == "cargo":
            (work / ".cargo").mkdir(exist_ok=True)
            crate = ROOT / "crates" / "heapwright"
            (work / ".cargo" / "config.toml").write_text(f'[patch.crates-io]\nheapwright = {{ path = "{crate}" }}\n')
            do.write_text(":\n")
    process = subprocess.Popen(
        ["bash", "-c", RUNNER], cwd=folder, env=environment(prefix, folder, work) | {"STEPS": str(hidden)},
        stdin=subprocess.DEVNULL, start_new_session=True,
    )
    try:
        process.wait(timeout=SECONDS)
        late = False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        late = True
    for number, step in enumerate(todo):
        out, code = hidden / f"{number:03}.out", hidden / f"{number:03}.code"
        said = out.read_text(errors="replace") if out.exists() else ""
        where = f"line {step[4]}: $ {step[1]}" if step[0] == "run" else f"{step[0]}: {step[1]}"
        if not code.exists():
            raise Wrong(f"{where}\n{said}\nhas not ended: {'a page may take %d s' % SECONDS if late else 'the shell has'}")
        status = int(code.read_text())
        told = number + 1 < len(todo) and todo[number + 1][0] == "run" and todo[number + 1][1] == "echo $?"
        if status != 0 and not told:
            raise Wrong(f"{where}\n{said}ends with {status}, of which the page says nothing (`echo $?`)")
        if step[0] == "run":
            got = [tidied(line, folder) for line in said.splitlines()]
            expected = [tidied(line, folder) for line in step[2]]
            while got and not got[-1]:
                got.pop()
            while expected and not expected[-1]:
                expected.pop()
            if not same(tuple(expected), tuple(got), step[3]):
                raise Wrong(f"{where}\n--- the page says\n" + "\n".join(step[2]) + f"\n--- it prints\n{said.rstrip()}\n---")
    return len(runs)


def main():
    prefix, scratch = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    chosen = [Path(path).resolve() for path in sys.argv[3:]]
    known = pages()
    for page in chosen:
        if page not in known:
            sys.exit(f"book.py: docs/SUMMARY.md names no {page}")
    # A page that nobody finds is not checked either.
    unknown = set((DOCS / "book").rglob("*.md")) - set(known)
    if unknown:
        sys.exit("book.py: not in docs/SUMMARY.md: " + " ".join(sorted(str(page.relative_to(ROOT)) for page in unknown)))
    wrong, total = 0, 0
    calls = known_calls(prefix)
    for page in chosen or known:
        began = time.monotonic()
        try:
            unknown = list(unknown_calls(page.read_text(), calls))
            if unknown:
                raise Wrong("\n".join(unknown))
            count = run(page, prefix, scratch)
        except Wrong as what:
            print(f"WRONG {page.relative_to(ROOT)}, {what}")
            wrong += 1
            continue
        total += count
        if count:
            print(f"ok   {page.relative_to(ROOT)}: {count} commands, {time.monotonic() - began:.1f} s")
    print(f"book: {len(chosen or known)} pages, {total} commands print what the pages say, {wrong} pages are wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()

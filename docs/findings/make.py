"""What ci/book.sh findings makes in docs/findings: the reports of the pages' own
examples, what the corpus says of each heading, and the table of all.

A page's first block of code is its example: a whole program. Behind it comes

    <!-- report: OPTIONS -->      or  <!-- check: -->  for what `heapwright check` says
    ```text
    ...                           made by this
    ```

and somewhere in the page a `<!-- measured -->` with a paragraph that is made, too.
"""

import collections
import glob
import os
import re
import subprocess
import sys

PAGES = "docs/findings"
TABLE = f"{PAGES}/measured.tsv"
ORDER = """double-free invalid-free interior-free size-mismatch alignment-mismatch allocator-mismatch buffer-overflow
buffer-underflow write-after-free use-after-free invalid-realloc realloc-after-free""".split()
VALUES = ["uninitialised-value"]
LEAKS = "definitely-lost indirectly-lost possibly-lost still-reachable growth".split()
# Of no program in the corpus: found where a program asks for it.
ASKED = ["use-after-poison", "may-overflow"]
LANGUAGES = {"c": ["cc", "-std=gnu11"], "cpp": ["c++", "-std=c++17"], "rust": ["rustc"]}
SUFFIX = {"c": "c", "cpp": "cc", "rust": "rs"}
CODE = re.compile(r"```(c|cpp|rust)\n(.*?)```", re.S)
REPORT = re.compile(r"(<!-- (report|check): ?(.*?) ?-->\n```text\n)(.*?)(```)", re.S)


def example(page, text, scratch):
    """Compiles the page's example; its path."""
    language, code = CODE.search(text).groups()
    folder = f"{scratch}/{page}"
    os.makedirs(folder, exist_ok=True)
    source = f"{page}.{SUFFIX[language]}"
    with open(f"{folder}/{source}", "w") as file:
        file.write(code)
    command = LANGUAGES[language] + (
        ["--edition", "2021", "-Copt-level=1", "-g", "-Awarnings"] if language == "rust" else
        ["-O1", "-g", "-w", "-fno-builtin", "-pthread"])
    subprocess.run(command + [source, "-o", page], cwd=folder, check=True)
    return folder


def tidied(report, page):
    """Without what differs from run to run and from machine to machine."""
    out, beyond, in_main = [], False, False
    for line in report.splitlines():
        line = re.sub(r"==\d+==", "==4242==", line).replace(f"({page[:15]})", "(prog)")
        frame = re.match(r"( *)#(\d+) 0x[0-9a-f]+ in (.*?)(?: (\S+:\d+(?::\d+)?))?(?: \((\S+)\+0x[0-9a-f]+\))?(?: \(BuildId: .*\))?$", line)
        if re.match(r" +>? +\d+ \|", line):
            # Lines of the program's source.
            if not beyond or in_main:
                out.append(line)
            continue
        if frame is None:
            beyond = in_main = False
            if line.startswith("==4242== ") or not line.strip():
                continue
            line = re.sub(r"allocated [^ ]+( [mµ]?s)?( to [^ ]+)? [mµ]?s before", "allocated 0.5 ms before", line)
            line = re.sub(r"grow by .*", "grow by 3.6 MiB a second, from 375.4 KiB to 11.5 MiB in 3.12 s (100 % of later counts are higher)", line)
            if "reachable from" in line:
                line = re.sub(r"[^ ]*/([^ /]*)(?=,|$| at)", r"\1", line)
            # A thread's name is the program's, cut.
            out.append(re.sub(r"0x[0-9a-f]{6,}", "0x7f31c0c8a0c0", line))
            continue
        in_main = False
        if not beyond:
            indent, number, function, place, module = frame.groups()
            place = " " + os.path.basename(place) if place else ""
            if module and os.path.basename(module) != page:
                # How much is known of libraries differs from machine to machine.
                function, place = re.sub("^(__GI_)?_*", "", function), ""
            out.append(f"{indent}#{number} {re.sub(r'::h[0-9a-f]{16}', '', function)}{place}")
            beyond = in_main = function.split("::")[-1] == "main"
    return "".join(line.rstrip() + "\n" for line in out)


def report(page, text, kind, options, scratch):
    folder = example(page, text, scratch)
    environment = dict(os.environ)
    cli = os.environ["HEAPWRIGHT_COMMAND"]
    if kind == "check":
        if subprocess.run([cli, "check", "--help"], capture_output=True).returncode != 0:
            return None
        subprocess.run([cli, "check", *options.split(), "-o", "report", "--", f"./{page}"], cwd=folder, capture_output=True,
                       stdin=subprocess.DEVNULL)
        with open(f"{folder}/report") as file:
            return tidied(file.read(), page)
    environment["HEAPWRIGHT"] = f"mode=debug,record={folder}/record" + (f",{options}" if options else "")
    environment["LD_PRELOAD"] = os.environ["HEAPWRIGHT_SO"]
    subprocess.run([f"./{page}"], cwd=folder, env=environment, capture_output=True)
    records = glob.glob(f"{folder}/record.*")
    if len(records) != 1:
        sys.exit(f"{page}: {len(records)} records")
    said = subprocess.run([cli, "report", records[0]], capture_output=True, text=True).stdout
    if f"heapwright: {page}:" not in said:
        sys.exit(f"{page}: its example does not give it: {said[:200]}")
    os.remove(records[0])
    # The first finding is what the page is about.
    return tidied(said.split("\n\n")[0], page)


def corpus():
    """The corpus: heading -> programs and runs, from the headers."""
    programs, runs, guarded = collections.Counter(), collections.Counter(), collections.Counter()
    for path in glob.glob("corpus/*.c") + glob.glob("corpus/*.cc") + glob.glob("corpus/*.rs"):
        head = "".join(l for l in open(path).read(1000).splitlines(True) if l.startswith("//"))
        if finds := re.search(r"^// finds: ([a-z-]+)", head, re.M):
            sizes = re.search(r"^// sizes: (.*)", head, re.M)
            programs[finds[1]] += 1
            runs[finds[1]] += len(sizes[1].split()) if sizes else 1
    return programs, runs


def measure(lines):
    """The output of `ci/corpus.sh -v`, summed by heading."""
    found = collections.Counter()
    for line in lines:
        if m := re.match(r"ok +(guard|default) +bad +([a-z-]+)", line):
            heading = next((h for h in ORDER if m[2].startswith(h + "-") or m[2] == h), None)
            found[heading, m[1]] += 1
    programs, runs = corpus()
    with open(TABLE, "w") as file:
        print("heading\tprograms\truns\tdefault\tguard=all", file=file)
        for h in ORDER:
            print(h, programs[h], runs[h], found[h, "default"], found[h, "guard"], sep="\t", file=file)


def measured():
    rows = {}
    for line in open(TABLE).read().splitlines()[1:]:
        heading, *numbers = line.split("\t")
        rows[heading] = [int(n) for n in numbers]
    programs, runs = corpus()
    for h in ORDER:
        if rows.get(h, [0, 0])[:2] != [programs[h], runs[h]]:
            sys.exit(f"{TABLE} is of another corpus ({h}): ci/book.sh findings --measure")
    return rows


def words(heading, row):
    programs, runs, default, guarded = row
    of = f"The [misuse corpus](../../corpus/README.md) has {programs} programs for it, with {runs} runs. "
    if default == guarded == runs:
        return of + "It is found in all of them, by default and with `guard=all`."
    return of + f"It is found in {default} by default, in {guarded} with `guard=all`."


def first_sentence(text):
    return text.split("\n\n")[1].split(". ")[0].replace("\n", " ").rstrip(".")


def main(scratch, action):
    rows = measured()
    stale, told = [], 0
    for page in ORDER + VALUES + LEAKS + ASKED:
        path = f"{PAGES}/{page}.md"
        old = new = open(path).read()
        if page in rows:
            new = re.sub(r"(<!-- measured -->\n)(?:The .*\n)?", lambda m: m[1] + words(page, rows[page]) + "\n", new)
        for m in REPORT.finditer(new):
            text = report(page, new, m[2], m[3], scratch)
            if text is not None:
                new = new.replace(m[0], m[1] + text + m[5])
                told += 1
        if new != old:
            stale.append(path)
            if action != "check":
                open(path, "w").write(new)
    lines = ["| finding | what it is | corpus: programs, runs | by default | `guard=all` |", "|---|---|--:|--:|--:|"]
    for page in ORDER:
        programs, runs, default, guarded = rows[page]
        about = first_sentence(open(f"{PAGES}/{page}.md").read())
        lines.append(f"| [{page}]({page}.md) | {about} | {programs}, {runs} | {100 * default // runs} % | {100 * guarded // runs} % |")
    total = [sum(r[i] for r in rows.values()) for i in range(4)]
    lines.append(f"| all | | {total[0]}, {total[1]} | {100 * total[2] // total[1]} % | {100 * total[3] // total[1]} % |")
    path = f"{PAGES}/README.md"
    old = open(path).read()
    new = re.sub(r"(<!-- table -->\n)(?:\|.*\n)*", lambda m: m[1] + "".join(l + "\n" for l in lines), old)
    if new != old:
        stale.append(path)
        if action != "check":
            open(path, "w").write(new)
    said = "changed" if action != "check" else "not current (ci/book.sh findings)"
    for path in stale:
        print(f"{path}: {said}")
    print(f"findings: {len(ORDER + VALUES + LEAKS + ASKED)} pages, {told} reports made again, {len(stale)} {said}")
    sys.exit(action == "check" and bool(stale))


if sys.argv[1] == "measure":
    measure(open(sys.argv[2]))
else:
    main(sys.argv[2], sys.argv[1])

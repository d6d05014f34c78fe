"""The imports of the modules of a crate, for ci/floors.sh.

    floors.py floors PICTURE CRATE SOURCES    names each import that points upward, and modules in the wrong crate
    floors.py circle SOURCES [MODULE]         the largest circle of files: its size, and then the files

A module is a file. It imports the items of its paths, in `use` trees and in code: `crate::`, `super::`, `self::`, the
name of a module that it declares, or a name that another module passes on (`use`). Code for tests or loom does not count.
"""

import re
import sys
from pathlib import Path

TESTS = re.compile(r"(^|/)(tests?|loom\w*|\w+_tests?)(/|$)|^testing(/|$)")
# A module of tests ends the file. Another item for tests ends with its line, or with its semicolon.
TEST_MODULE = re.compile(r"#\[cfg\((?:all\()?test\b[^\n]*\n(?:\s*#\[[^\n]*\n)*\s*(?:pub(?:\([^)]*\))? )?mod \w+ \{.*", re.S)
TEST_ITEM = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*[^;{]*(?:;|\{[^\n]*\n)")
# The visibility of an item is no import.
SEEN_BY = re.compile(r"\bpub\((?:crate|super|self|in [\w:]+)\)")


class Module:
    def __init__(self, path, file):
        self.path, self.file = path, file
        text = re.sub(r"//[^\n]*", "", file.read_text())
        self.text = SEEN_BY.sub("", TEST_ITEM.sub("", TEST_MODULE.sub("", text)))
        self.children = set(re.findall(r"\bmod (\w+)\s*[;{]", self.text))
        # The file's names from elsewhere: a path for each.
        self.names = {}
        for used in re.finditer(r"\buse ([^;]+);", self.text):
            for path, name in tree(used[1]):
                self.names.setdefault(name, path)

    def paths(self):
        """Every path in it, as words."""
        for found in re.finditer(r"(?<![\w:])(crate|super|self)((?:::\w+)*)(::[{*])?", self.text):
            words = [found[1], *found[2].split("::")[1:]]
            if found[3] == "::{":
                yield from (words + path for path, _ in tree(group(self.text, found.end())))
            elif len(words) > 1 or found[3]:
                yield words


def group(text, start):
    """The text from `start`, which is behind an open brace, to the closing brace."""
    depth = 1
    for end in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            return text[start:end]
    return ""


def tree(text):
    """The paths of a `use` tree, each with the name that it gets."""
    parts, depth, last = [], 0, 0
    for at, letter in enumerate(text + ","):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(text[last:at].strip())
            last = at + 1
    for part in filter(None, parts):
        if nested := re.match(r"((?:\w+::)*)\{(.*)\}$", part, re.S):
            for path, name in tree(nested[2]):
                yield nested[1].split("::")[:-1] + path, name
        else:
            path, _, name = part.partition(" as ")
            words = [word for word in path.split("::") if word != "*"]
            if words and words[-1] == "self":
                words.pop()
            yield words, name.strip() or (words[-1] if words else "")


class Crate:
    def __init__(self, sources):
        self.modules = {}
        for file in sorted(Path(sources).rglob("*.rs")):
            path = str(file.relative_to(sources))[:-3]
            words = path.split("/")
            if TESTS.search(path):
                continue
            if words[-1] in ("mod", "lib", "main"):
                words.pop()
            elif words[-1:] == words[-2:-1]:
                words.pop()  # X/X.rs, which #[path] names
            self.modules[tuple(words)] = Module(tuple(words), file)

    def absolute(self, at, words):
        """A path's words from the crate's root, as they stand in the module `at`; None: of another crate."""
        if words[:1] == ["crate"]:
            return tuple(words[1:])
        if words[:1] == ["self"]:
            return at + tuple(words[1:])
        if words[:1] == ["super"]:
            up = next((n for n, word in enumerate(words) if word != "super"), len(words))
            return at[: len(at) - up] + tuple(words[up:])
        module = self.modules.get(at)
        return at + tuple(words) if module and words and words[0] in module.children else None

    def leads_to(self, path, depth=0):
        """The module that contains the item of a path, beyond `use` that passes it on."""
        known = next(path[:n] for n in range(len(path), -1, -1) if path[:n] in self.modules or n == 0)
        rest = path[len(known):]
        passed = self.modules[known].names.get(rest[0]) if rest and known in self.modules else None
        if passed and depth < 8 and (further := self.absolute(known, passed)) and further != path:
            return self.leads_to(further + rest[1:], depth + 1)
        return known

    def imports(self):
        """(module, path from the root, the module that it leads to) for each path."""
        for at, module in self.modules.items():
            for words in module.paths():
                path = self.absolute(at, words)
                if path is not None:
                    yield at, path, self.leads_to(path)


def floors(picture, name, sources):
    text = Path(picture).read_text()
    floor, owner = {}, {}
    # A crate's floors stand between two rules, the first of which is below the crate's line. A name ends at two spaces.
    for part in ("heapwright", "heapwright-substrate"):
        found = re.search(rf"^{part}  .*?\n-+\n(.*?)\n-+\n", text, re.M | re.S)
        if not found:
            sys.exit(f"no picture of the floors of {part}")
        for line in found[1].splitlines():
            if not line[:1].isspace():
                for module in re.split(r"  +", line)[0].split(" "):
                    floor[module], owner[module] = len(floor), part
    crate, wrong = Crate(sources), set()
    for path, module in crate.modules.items():
        if path and owner.get(path[0]) != name:
            wrong.add(f"{module.file}: no floor of {name} in {picture} has `{path[0]}`")
    for at, path, to in crate.imports():
        for named in {path[:1], to[:1]} - {()}:
            if at and at[0] in floor and named[0] in floor and named != at[:1] and floor[named[0]] <= floor[at[0]]:
                wrong.add(f"{crate.modules[at].file}: `{at[0]}` names `{named[0]}`, which does not stand below it")
    for line in sorted(wrong):
        print(line)
    return bool(wrong)


def circles(graph):
    """The strongly connected parts of a graph, the largest first (Tarjan's way)."""
    index, low, stack, parts = {}, {}, [], []

    def visit(at):
        index[at] = low[at] = len(index)
        stack.append(at)
        for to in graph[at]:
            if to not in index:
                visit(to)
            if to in stack:
                low[at] = min(low[at], low[to])
        if low[at] == index[at]:
            cut = stack.index(at)
            parts.append(stack[cut:])
            del stack[cut:]

    sys.setrecursionlimit(10_000)
    for at in graph:
        if at not in index:
            visit(at)
    return sorted(parts, key=len, reverse=True)


def circle(sources, module=None):
    crate = Crate(sources)
    inside = {at for at in crate.modules if module is None or at[:1] == (module,)}
    graph = {at: set() for at in inside}
    for at, _, to in crate.imports():
        if at in inside and to in inside and at != to:
            graph[at].add(to)
    largest = circles(graph)[0]
    print(len(largest) if len(largest) > 1 else 0, *sorted("::".join(path) or "lib" for path in largest))


if __name__ == "__main__":
    sys.exit({"floors": floors, "circle": circle}[sys.argv[1]](*sys.argv[2:]))

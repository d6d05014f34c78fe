"""mdBook's preprocessor for docs/book (docs/book/book.toml): texts from other files, and links.

A page of the reference is a line that names the place of its text.

    {{#page PATH}}            another document of the project, from the root (ARCHITECTURE.md)
    {{#part PATH NAME}}       the part of a document between <!-- ANCHOR: NAME --> and <!-- ANCHOR_END: NAME -->
    {{#help SUBCOMMAND}}      a subcommand's --help ($HEAPWRIGHT_COMMAND)
    {{#commands}}             the same of all subcommands, with a heading each
    {{#functions}}            the C functions and types, from the headers
    {{#crate PATH}}           a crate's description, without rustdoc's links

A link to a document of the book leads to its page. A link to another file of the project becomes its words, with the
file's name. A link to a missing file is an error. `docs/book/preprocess.py links SITE` finds links to missing headings
in the built site. SVG pictures become part of the page, so that their colours follow the chosen theme.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "packaging"))
import man3  # noqa: E402

DIRECTIVE = re.compile(r"^\{\{#(page|part|help|commands|functions|crate)(?: ([^}]*))?\}\}$", re.M)
# Code, in which nothing is a link; or a link or picture.
CODE_OR_LINK = re.compile(r"(^```.*?^```|`[^`\n]*`)|(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)", re.M | re.S)
problems = []


def main():
    if sys.argv[1:2] == ["supports"]:
        sys.exit(sys.argv[2] != "html")
    if sys.argv[1:2] == ["links"]:
        check_site(Path(sys.argv[2]).resolve())
        end()
    _, book = json.load(sys.stdin)
    chapters = list(all_chapters(book["items"]))
    # Where each document of the project is in the book.
    places = {}
    for chapter in chapters:
        if chapter["source_path"] is None:
            continue
        source = DOCS / chapter["source_path"]
        places[source] = source
        for kind, argument in DIRECTIVE.findall(chapter["content"]):
            if kind == "page":
                places[ROOT / argument] = source
    for chapter in chapters:
        if chapter["source_path"] is not None:
            source = DOCS / chapter["source_path"]
            text = linked(chapter["content"], source, source, places)
            chapter["content"] = DIRECTIVE.sub(lambda found: made(found[1], found[2], source, places), text)
    if not problems:
        json.dump(book, sys.stdout)
    end()


def end():
    sys.exit("\n".join(f"preprocess.py: {problem}" for problem in problems) or 0)


def all_chapters(items):
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from all_chapters(item["Chapter"]["sub_items"])


# What is made of other files.


def made(kind, argument, page, places):
    if kind == "page":
        return linked((ROOT / argument).read_text(), ROOT / argument, page, places)
    if kind == "part":
        path, name = argument.split()
        text = (ROOT / path).read_text()
        found = re.search(rf"<!-- ANCHOR: {name} -->\n(.*?)<!-- ANCHOR_END: {name} -->", text, re.S)
        if found is None:
            problems.append(f"{path} has no part '{name}'")
            return ""
        return linked(found[1], ROOT / path, page, places)
    if kind == "help":
        return helped(argument)
    if kind == "commands":
        names = re.findall(r"^  ([a-z]+) ", said("--help").split("Commands:")[1].split("\n\n")[0], re.M)
        return "\n".join(f"## {name}\n\n{helped(name)}\n" for name in names if name != "help")
    if kind == "functions":
        return functions()
    return crate((ROOT / argument).read_text())


def said(*arguments):
    command = os.environ.get("HEAPWRIGHT_COMMAND", "heapwright")
    try:
        return subprocess.run([command, *arguments], check=True, capture_output=True, text=True).stdout
    except FileNotFoundError:
        sys.exit(f"preprocess.py: there is no {command}: set HEAPWRIGHT_COMMAND to the built command")


def helped(subcommand):
    return f"```text\n{said(subcommand, '--help').rstrip()}\n```"


def functions():
    """The headers, by what the functions' names begin with."""
    found, types = man3.read([ROOT / "include" / name for name in ("heapwright.h", "heapwright_gc.h")])
    groups = {
        "hw_heap_": "Heaps of one's own", "hw_pool_": "Pools", "hw_shared_pool_": "Pools for threads", "hw_arena_": "Arenas",
        "hw_gc_": "The collected heap", "hw_profile_": "Profiles", "hw_count_": "Counting allocations", "": "The process's heap",
    }
    members = {prefix: [] for prefix in groups}
    for name in found:
        members[next(prefix for prefix in groups if name.startswith(prefix))].append(name)
    out = []
    for prefix, title in sorted(groups.items(), key=lambda group: group[0]):
        if members[prefix]:
            out.append(f"## {title}\n")
        for name in members[prefix]:
            _, comment, prototype = found[name]
            out.append(f"### {name}\n\n```c\n{prototype}\n```\n\n{prose(comment)}\n")
    out.append("## Types\n")
    out += [f"```c\n{code}\n```\n\n{prose(comment)}\n" for comment, code in types]
    return "\n".join(out)


def prose(comment):
    """A comment of C as Markdown: what is indented stays as it is written, nothing is HTML."""
    blocks = []
    for block in re.split(r"\n\s*\n", comment.strip("\n")):
        if re.search(r"^ {2,}", block, re.M) and not re.search(r"^[-*] ", block, re.M):
            blocks.append(f"```text\n{block}\n```")
        else:
            blocks.append(re.sub(r"([<*_\[\]])", r"\\\1", block) if not re.search(r"^[-*] ", block, re.M) else block.replace("<", "\\<"))
    return "\n\n".join(blocks)


def crate(text):
    """A crate's page: its examples are Rust, and rustdoc's own links are words."""
    text = re.sub(r"\[(`[^`]+`)\](\([^)]*\))?", r"\1", text)
    fences = iter(range(10_000))
    return re.sub(r"^```$", lambda _: "```rust" if next(fences) % 2 == 0 else "```", text, flags=re.M)


# Links.


def linked(text, source, page, places):
    """The text of a document at `source`, to stand in `page`."""

    def change(found):
        if found[1] is not None:
            return found[0]
        picture, words, target = found[2], found[3], found[4]
        if re.match(r"[a-z]+:", target):
            return found[0]
        path, _, heading = target.partition("#")
        file = Path(os.path.normpath(source.parent / path)) if path else source
        if not file.exists():
            problems.append(f"{source.relative_to(ROOT)}: there is no {target}")
            return words
        if picture and file.suffix == ".svg" and DOCS / "book" in file.parents:
            return inlined(file, words)
        inside = DOCS in file.parents and file.suffix != ".md" and file.is_file()
        if file not in places and not inside:
            name = file.relative_to(ROOT)
            return f"`{name}`" if Path(words.strip("`")).name == name.name else f"{words} (`{name}`)"
        # A README is its folder's page.
        leads = os.path.relpath(places.get(file, file), page.parent)
        leads = re.sub(r"README\.md$", "index.md", leads) if path or source != page else ""
        return f"{picture}[{words}]({leads}{'#' + heading if heading else ''})"

    return CODE_OR_LINK.sub(change, text)


def inlined(file, words):
    """A picture as part of the page, described by its words."""
    # Its own style is for those who look at the file; its arrow heads are this picture's.
    svg = re.sub(r"<style>.*?</style>|<title>.*?</title>|\n\s*", "", file.read_text(), flags=re.S)
    svg = re.sub(r'(id="|url\(#)arrow', rf"\1arrow-{file.stem}", svg)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{words}" ', 1)
    return f'\n<figure class="drawing">{svg}<figcaption>{words}</figcaption></figure>\n'


# The built site.


def check_site(site):
    """Says which links within the site lead nowhere."""
    texts = {page: page.read_text() for page in site.rglob("*.html")}
    names = {page: set(re.findall(r' id="([^"]+)"', text)) for page, text in texts.items()}
    for page, text in texts.items():
        # (Of all pages in one, and of none.)
        if page.name in ("print.html", "404.html", "toc.html"):
            continue
        for target in sorted(set(re.findall(r'<a[^>]* href="([^"]+)"', text))):
            path, _, name = target.partition("#")
            leads = Path(os.path.normpath(page.parent / path)) if path else page
            if re.match(r"[a-z]+:", target):
                continue
            if not leads.exists() or name and leads in names and name not in names[leads]:
                problems.append(f"{page.relative_to(site)}: {target} leads nowhere")


if __name__ == "__main__":
    main()

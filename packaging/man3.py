#!/usr/bin/env python3
"""Manual pages of section 3, from the headers.

    packaging/man3.py VERSION DATE FOLDER HEADER...

Each function of the headers has a page, with its comment as the description. heapwright(3) has the first header's
introduction, each function with a sentence, and each type. docs/book/preprocess.py uses `read`, too.

The headers have a known shape (ci/lint.sh header): a comment ends in the line before its item. A prototype begins in a
line's first column and ends with a semicolon. An inline function ends its head with a brace.
"""

import re
import sys
from pathlib import Path

COMMENT = re.compile(
    r"^/\*\*?(?P<comment>(?:(?!\*/).)*)\*/\n"
    r"(?P<code>(?:typedef |struct |enum |union )[^;{(]*\{.*?^\}[^;\n]*;|[A-Za-z][^;{#]*?\([^;{]*\)(?:;| \{$))",
    re.MULTILINE | re.DOTALL,
)
NAME = re.compile(r"(\w+)\(")


def main():
    version, date, folder, *headers = sys.argv[1:]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    functions, types = read(headers)

    def head(name):
        return f'.TH {name.upper()} 3 "{date}" "heapwright {version}" "Library Functions Manual"\n'

    for name, (header, comment, prototype) in functions.items():
        page = head(name)
        page += f".SH NAME\n{name} \\- {escaped(first_sentence(comment))}\n"
        page += f".SH LIBRARY\nheapwright (libheapwright, \\-lheapwright)\n"
        page += f".SH SYNOPSIS\n.nf\n#include <{header}>\n.PP\n{escaped(prototype)}\n.fi\n"
        description, _, duties = comment.partition("The program's duties:")
        page += f".SH DESCRIPTION\n{paragraphs(description)}"
        if duties:
            page += f".SH THE PROGRAM'S DUTIES\n{paragraphs(duties)}"
        others = sorted(set(re.findall(r"\bhw_\w+", comment)) & functions.keys() - {name})
        see = [f".BR {other} (3)" for other in others] + [".BR heapwright (3)"]
        page += ".SH SEE ALSO\n" + " ,\n".join(see) + "\n"
        (folder / f"{name}.3").write_text(page)

    essay = re.match(r"/\*(.*?)\*/", Path(headers[0]).read_text(), re.DOTALL)
    page = head("heapwright")
    page += ".SH NAME\nheapwright \\- malloc, heaps, pools, arenas, a collected heap and questions about any address\n"
    page += ".SH LIBRARY\nheapwright (libheapwright, \\-lheapwright)\n"
    page += ".SH SYNOPSIS\n.nf\n" + "".join(f"#include <{Path(header).name}>\n" for header in headers) + ".fi\n"
    page += f".SH DESCRIPTION\n{paragraphs(clean(essay[1]))}"
    page += ".SH FUNCTIONS\n"
    for name, (_, comment, _) in sorted(functions.items()):
        page += f".TP\n.BR {name} (3)\n{escaped(first_sentence(comment))}\n"
    page += ".SH TYPES\n"
    for comment, code in types:
        page += f"{paragraphs(comment)}.PP\n.nf\n{escaped(code)}\n.fi\n.PP\n"
    page = page.removesuffix(".PP\n")
    page += ".SH SEE ALSO\n.BR heapwright (1),\n.BR malloc (3)\n"
    (folder / "heapwright.3").write_text(page)


def read(headers):
    """The headers' functions, name -> (header, comment, prototype), and types, (comment, code)."""
    functions, types = {}, []
    for header in headers:
        text = Path(header).read_text()
        for found in COMMENT.finditer(text):
            comment, code = clean(found["comment"]), found["code"]
            # A type of a callback is written with parentheses, too.
            if "{" in code.rstrip(" {") or code.startswith("typedef"):
                types.append((comment, code))
            else:
                prototype = re.sub(r"^HW_GC_INLINE ", "", code.rstrip(" {;")) + ";"
                functions[NAME.search(prototype)[1]] = (Path(header).name, comment, prototype)
    declared = {name for header in headers for name in re.findall(r"^[a-z][\w *]*?\b(hw_\w+)\(", Path(header).read_text(), re.M)}
    missing = declared - functions.keys()
    if missing or len(functions) < 50:
        sys.exit(f"man3.py: no comment before {', '.join(sorted(missing)) or 'most functions'}")
    return functions, types


def clean(comment):
    """A comment's text without the stars in front of its lines."""
    return "\n".join(re.sub(r"^ ?\* ?", "", line).rstrip() for line in comment.strip().splitlines())


def first_sentence(comment):
    return " ".join(re.split(r"(?<=[.:;])\s", comment.split("\n\n")[0] + " ", maxsplit=1)[0].rstrip(".:; ").split())


def escaped(text):
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in lines)


def paragraphs(text):
    """Paragraphs; what is indented, or a list, stays as it is written."""
    out = ""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if not block.strip():
            continue
        out += ".PP\n" if out else ""
        if re.search(r"^( {2,}|[-*|] )", block, re.MULTILINE):
            out += f".nf\n{escaped(block)}\n.fi\n"
        else:
            out += escaped(block.strip()) + "\n"
    return out


if __name__ == "__main__":
    main()

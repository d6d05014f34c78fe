"""What the command reports of a record (`heapwright report --format json`), and its words in a test's failure."""

import json
import os

from . import command, sizes

# A stack is shown down to the interpreter, because the frames below are the same for all tests.
INTERPRETER = ("_PyEval_", "PyEval_", "_PyObject_MakeTpCall", "_PyObject_Vectorcall", "PyObject_Vectorcall")


class Report:
    """A record as the command reads it."""

    def __init__(self, heapwright, path, suppressions, at=None):
        arguments = [heapwright, "report", "--format", "json"]
        for file in suppressions:
            arguments += ["--suppress", file]
        if at is not None:
            arguments += ["--at", str(at)]
        self.json = json.loads(command.output([*arguments, path]))

    def errors(self):
        """The errors, each under a key that no other error of the run has."""
        pid = self.json["processes"][0]["pid"]
        return {f"{pid}/{error['here']['ns']}/{error['here']['sequence']}/{error['kind']}": error for error in self.json["errors"]}

    def lost(self):
        """The definitely lost blocks by their stacks: blocks and bytes, with what is lost with them."""
        found = {}
        for leak in self.json["leaks"]:
            if leak["reach"] == "definitely-lost":
                key = tuple(self.json["frames"][frame]["address"] for frame in self.json["stacks"][leak["stack"]]["frames"])
                blocks, size, _ = found.get(key, (0, 0, None))
                blocks += leak["blocks"] + leak["indirect"]["blocks"]
                size += leak["bytes"] + leak["indirect"]["bytes"]
                found[key] = (blocks, size, leak)
        return found

    def stack(self, number):
        """The lines of a stack, down to the interpreter."""
        lines = []
        for index in self.json["stacks"][number]["frames"]:
            frame = self.json["frames"][index]
            module = os.path.basename(frame["module"] or "?")
            if not frame["functions"]:
                lines.append(f"    {module}+{frame['offset']}")
            for function in frame["functions"]:
                if function["name"].startswith(INTERPRETER):
                    return [*lines, "    (Python)"]
                where = f"{function['source']}:{function['line']}" if function["source"] else module
                lines.append(f"    {function['name']} {where}")
        return lines

    def of_error(self, error):
        """An error in words: a heading, the moments and their stacks."""
        times = "" if error["times"] == 1 else f" (so far {error['times']} times)"
        lines = [f"{error['kind']}: {error['sentence']}{times}"]
        for moment in ("here", "freed", "allocated"):
            if error[moment]:
                lines += [f"  {error[moment]['title']}", *self.stack(error[moment]["stack"])]
        return [*lines, f"  to suppress it: {error['suppression'] or 'no function has a name'}"]

    def of_leak(self, blocks, size, leak):
        """A leak in words."""
        heading = f"{sizes.show(size)} in {blocks} block{'s'[: blocks != 1]}: definitely lost; allocated by {leak['origin']} in"
        return [heading, *self.stack(leak["stack"]), f"  to suppress it: {leak['suppression'] or 'no function has a name'}"]


def difference(before, after):
    """By how much `after` exceeds `before`, both from `Report.lost`, for each stack; the most bytes first."""
    more = []
    for key, (blocks, size, leak) in after.items():
        had_blocks, had_size, _ = before.get(key, (0, 0, None))
        if size > had_size or blocks > had_blocks:
            more.append((blocks - had_blocks, size - had_size, leak))
    return sorted(more, key=lambda one: -one[1])

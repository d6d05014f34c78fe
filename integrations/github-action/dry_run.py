"""A dry run: runs the steps of a composite GitHub action as a runner does, with the features that our action uses.

    dry_run.py ACTION.YML FOLDER [NAME=VALUE ...]     inputs, and github.event_name and the like

Shell steps run in the current folder with the runner's variables and files, which lie in FOLDER. A step that uses
another action is printed with its inputs. Ends with the exit code of the first step that fails. An unknown feature (for
example a function in an expression) is an error, so that tests cover all features that the action uses.
"""

import os
import re
import subprocess
import sys

import yaml

NAME = re.compile(r"(?:inputs|github|steps)\.[\w.-]+")


class Runner:
    def __init__(self, action, folder, given):
        self.values = {}
        self.folder = os.path.abspath(folder)
        self.place = os.path.dirname(os.path.abspath(action))
        with open(action, encoding="utf-8") as file:
            self.action = yaml.safe_load(file)
        inputs = self.action["inputs"]
        for name, value in given.items():
            if not name.startswith("github."):
                if name not in inputs:
                    sys.exit(f"the action has no input {name}")
                name = f"inputs.{name}"
            self.values[name] = value
        for name, about in inputs.items():
            if f"inputs.{name}" not in self.values:
                if about.get("required"):
                    sys.exit(f"the action needs the input {name}")
                self.values[f"inputs.{name}"] = self.text(about["default"])

    def value(self, name):
        # An output that no step has given is empty, as is a field that an event does not have.
        if name.startswith("steps.") or name.startswith("github."):
            return self.values.get(name, "")
        return self.values[name]

    def text(self, text):
        """A text with its expressions replaced."""

        def replaced(match):
            if not NAME.fullmatch(match[1]):
                sys.exit(f"not known: {match[0]}")
            return self.value(match[1])

        return re.sub(r"\$\{\{\s*(.*?)\s*\}\}", replaced, str(text))

    def holds(self, condition):
        for part in condition.split("&&"):
            match = re.fullmatch(r"\s*(\S+)\s*(==|!=)\s*'([^']*)'\s*", part)
            if not match or not NAME.fullmatch(match[1]):
                sys.exit(f"not known: {part}")
            if (self.value(match[1]) == match[3]) != (match[2] == "=="):
                return False
        return True

    def run(self):
        for step in self.action["runs"]["steps"]:
            name = step["name"]
            if "if" in step and not self.holds(step["if"]):
                print(f"== {name}: skipped")
                continue
            if "uses" in step:
                given = {key: self.text(value) for key, value in step["with"].items()}
                print(f"== {name}: {step['uses']} {given}")
                continue
            print(f"== {name}", flush=True)
            code = self.shell(step)
            if code:
                print(f"== {name}: failed with {code}")
                return code
        for name, about in self.action["outputs"].items():
            print(f"== output {name}: {self.text(about['value'])}")
        return 0

    def shell(self, step):
        files = {name: os.path.join(self.folder, name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        open(files["GITHUB_OUTPUT"], "w").close()
        environment = {
            **os.environ,
            **files,
            "GITHUB_ACTION_PATH": self.place,
            "GITHUB_REPOSITORY": "owner/project",
            "RUNNER_TEMP": self.folder,
            **{key: self.text(value) for key, value in step.get("env", {}).items()},
        }
        script = os.path.join(self.folder, "step.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write(self.text(step["run"]))
        assert step["shell"] == "bash"
        code = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", script], env=environment).returncode
        with open(files["GITHUB_OUTPUT"], encoding="utf-8") as file:
            for line in file.read().splitlines():
                key, _, value = line.partition("=")
                self.values[f"steps.{step.get('id')}.outputs.{key}"] = value
        return code


if __name__ == "__main__":
    sys.exit(Runner(sys.argv[1], sys.argv[2], dict(one.split("=", 1) for one in sys.argv[3:])).run())

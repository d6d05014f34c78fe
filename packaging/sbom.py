#!/usr/bin/env python3
"""The bill of materials of the command and the libraries, as CycloneDX 1.5, from `cargo metadata`.

    packaging/sbom.py TARGET > heapwright.cdx.json

It leaves out crates that only tests need. The same commit gives the same bytes.
"""

import json
import subprocess
import sys

PACKAGES = ["heapwright-cli", "heapwright-malloc", "heapwright-hardened", "heapwright-check"]


def main():
    target = sys.argv[1]
    metadata = json.loads(
        subprocess.check_output(["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target])
    )
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [package["id"] for package in packages.values() if package["name"] in PACKAGES and not package["source"]]
    seen, edges = set(waiting), {}
    while waiting:
        at = waiting.pop()
        edges[at] = sorted(
            dependency["pkg"]
            for dependency in nodes[at]["deps"]
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
        )
        fresh = [other for other in edges[at] if other not in seen]
        seen.update(fresh)
        waiting.extend(fresh)
    version = next(package["version"] for package in packages.values() if package["name"] == "heapwright-cli")

    def reference(identity):
        return f"pkg:cargo/{packages[identity]['name']}@{packages[identity]['version']}"

    def component(identity):
        package = packages[identity]
        made = {"type": "library", "bom-ref": reference(identity), "name": package["name"], "version": package["version"]}
        made["purl"] = reference(identity)
        if package["license"]:
            made["licenses"] = [{"expression": package["license"].replace("/", " OR ").replace("  ", " ")}]
        return made

    order = sorted(seen, key=reference)
    json.dump(
        {
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {"component": {"type": "application", "bom-ref": "heapwright", "name": "heapwright", "version": version}},
            "components": [component(identity) for identity in order],
            "dependencies": [
                {"ref": reference(identity), "dependsOn": sorted({reference(other) for other in edges[identity]})} for identity in order
            ],
        },
        sys.stdout,
        indent=1,
    )
    print()


main()

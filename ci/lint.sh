#!/usr/bin/env bash
# What a person runs before a commit: formatting, clippy, documentation.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

"$here/fmt.sh"
"$here/clippy.sh"
"$here/doc.sh"

#!/usr/bin/env bash
# The lengths of the fast paths of pools and arenas are a test, like those of malloc
# and free (ci/golden.sh): instructions a call, with the ret, by callgrind, against
# ci/golden-pools.txt. --bless writes the measured numbers there.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/pools.sh" --golden "$@"

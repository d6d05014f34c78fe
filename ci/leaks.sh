#!/usr/bin/env bash
# Tests reports of leaks: every program of corpus/leaks loses the blocks that its first lines name, and no others. Its
# twin, which differs in a line, loses none (corpus/leaks/README.md). ci/programs.sh leaks tests real programs.
#
#   ci/leaks.sh [NAME...]                   through `heapwright check`; NAME is a name or a pattern
#   ci/leaks.sh -v                          also prints what passed
#   ci/leaks.sh --by lsan|valgrind [NAME]   the corpus itself: that tool's findings in it
#
#   JOBS (2)            programs that run at once
#   HEAPWRIGHT_COMMAND  the command to test (default: built from this checkout)
#   HEAPWRIGHT_OPTIONS  words between `check` and `--`, if any
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup leaks
case " $* " in *' --by valgrind '* | *' --by lsan '*) ;; *) the_command ;; esac
SCRATCH=$SCRATCH python3 corpus/leaks/judge.py corpus "$@"

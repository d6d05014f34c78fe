#!/usr/bin/env bash
# Leaks: every program of corpus/leaks loses the blocks that its first lines name, and no others. Its twin, which
# differs in a line, loses none. (Leaks of real programs, beside valgrind: ci/programs.sh leaks.)
#
#   ci/leaks.sh [NAME...]                   through `heapwright check`
#   ci/leaks.sh -v                          also prints what passed
#   ci/leaks.sh --by lsan|valgrind [NAME]   the corpus itself: that tool's findings in it
#
# NAME is a program's name or a pattern of names. JOBS (2) run at once. corpus/leaks/README.md explains the first lines.
#
#   HEAPWRIGHT_COMMAND  the command to test (default: built from this checkout)
#   HEAPWRIGHT_OPTIONS  words between `check` and `--`, if any
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup leaks
case " $* " in
    *' --by valgrind '* | *' --by lsan '*) ;;
    *) the_command; export HEAPWRIGHT_COMMAND ;;
esac
SCRATCH=$SCRATCH python3 corpus/leaks/judge.py corpus "$@"

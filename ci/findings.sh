#!/usr/bin/env bash
# docs/findings, a page for each thing that heapwright finds: compiles and runs
# the pages' examples and puts in the reports they give, the figures of the
# corpus, and the table of all.
#
#   ci/findings.sh             makes them again
#   ci/findings.sh --check     only says whether they are current
#   ci/findings.sh --measure   runs the corpus first (ci/corpus.sh) and keeps its
#                              figures in docs/findings/measured.tsv
#
# Addresses, build-ids and what called main are left out of the reports.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

ACTION=make
case ${1:-} in
    '') ;;
    --check | --measure) ACTION=${1#--} ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) die "unknown option $1" ;;
esac
command_or_package python3 python3

if [ $ACTION = measure ]; then
    ci/corpus.sh -v >"$SCRATCH/corpus" || die "the corpus is not right: ci/corpus.sh"
    python3 ci/findings.py measure "$SCRATCH/corpus"
fi
preload_library
the_command
export HEAPWRIGHT_COMMAND
python3 ci/findings.py "$ACTION" "$SCRATCH"

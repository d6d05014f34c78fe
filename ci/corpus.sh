#!/usr/bin/env bash
# The misuse corpus (corpus/README.md). Debug mode must report every bad program, under the right heading and in the
# right words. It must report neither the program's twin, which differs in one line, nor the correct programs of
# corpus/right. The programs of corpus/functions and corpus/reads run on the library of `heapwright check`. Of the reads
# in loops, the default and guard=all must each find nine in ten, and the default all that guard=all finds.
#
#   ci/corpus.sh [NAME...]             two passes: guard=all, and the default; the right programs also under
#                                      harder options. The default must find what guard=all finds
#   ci/corpus.sh -v                    also prints what passed, and which reads are missed
#   ci/corpus.sh --default-only        leave out guard=all
#   ci/corpus.sh --without DETECTION   turn one detection off: the programs that only this detection finds must
#                                      now be missed
#   ci/corpus.sh --hardened            instead: right programs and twins under mode=hardened and
#                                      hardened:full, with guards and without; nothing may be reported
#   ci/corpus.sh --asan                check the corpus itself, with the compiler's AddressSanitizer
#   ci/corpus.sh --list                the headings, with the number of programs of each
#
# NAME is a name or a pattern. JOBS (2) run at once. Programs are built once, into $CARGO_TARGET_DIR/corpus.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup corpus
case " $* " in *' --asan '* | *' --list '*) ;; *) preload_library; check_library ;; esac
SCRATCH=$SCRATCH python3 corpus/judge.py "$@"

#!/usr/bin/env bash
# Which cache a thread uses: heapwright's exclusive, shared and per-CPU caches against each other and against other
# allocators, on the loads of bench/caches. docs/caches.md says how to read the results.
#
#   ci/caches.sh [OPTION...] [ttest1 | rpc | churn | idle | report]...
#
#   --threads 2,40,80   threads of ttest1 and rpc
#   --shared 8,32       values of K for shared:K, beside its default
#   --percent 100       of the work
#   --only NAME,...     only these settings and peers;  --with NAME=[VAR=VALUE ...]PATH  another library
#   --rounds 10         the rounds; intervals need 6
#   --quick             seconds: miniatures under each cache model and glibc
#
# The programs run in turns, each setting once a round; 10 rounds of all take an hour and a half of a quiet machine. The
# target folder's caches/ keeps each number, and tables.md. Ends with 1 if a figure is missed or a run of ours fails.
# --quick fails if a model is refused, if a program prints a wrong result, or if a block has lost its contents. It also
# fails if the programs do not notice an allocator that hands memory out twice. HEAPWRIGHT_SO measures another library.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup caches
. ci/figures.sh
. bench/caches/plan.sh

SECTIONS=(ttest1 rpc churn idle)
SETTINGS='threads shared percent only with'
figures_begin caches '' bench/caches/figures.txt "$@"
[ "${chosen[*]}" = report ] || caches_begin
figures_end

#!/usr/bin/env bash
# heapwright's pools and arenas beside Rust's pools (bench/pools): tables of medians, and the targets beside the
# measured figures. (ci/golden.sh pools counts instructions alone.)
#
#   ci/pools.sh [--rounds N] [--quick] [pairs | shared | churn | arenas | maps | resident | instructions | report]...
#
# A round runs every contender of every pattern once, each in a process of its own. Compared contenders run one after
# the other, in an order that turns from round to round. --quick does a tenth of the work in one round. Results are kept
# in the target folder's pools/. Ends with 1 if a figure is missed. 9 rounds take eight minutes of a quiet machine.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup pools
. ci/figures.sh
. bench/pools/plan.sh

SECTIONS=(pairs shared churn arenas maps resident instructions)
figures_begin pools '' bench/pools/figures.txt "$@"
bench build -p pools --bins
prepare_launcher
figures_end

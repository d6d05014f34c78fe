#!/usr/bin/env bash
# Measures heapwright's pools and arenas beside Rust's pools (bench/pools). Prints tables of medians, and the targets
# beside the measured figures. (ci/golden.sh pools only counts instructions.)
#
#   ci/pools.sh [--rounds N] [--quick] [pairs | shared | churn | arenas | maps | resident | instructions | report]...
#
# A round runs every contender of a pattern once, each in a process of its own, in an order that turns from round to
# round. There are 9 rounds, 3 of maps and 2 of resident: eight minutes of a quiet machine. --quick does a tenth of the
# work in one round. The target folder's pools/ keeps the results. Ends with 1 if a figure is missed.
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

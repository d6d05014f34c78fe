#!/usr/bin/env bash
# What hw_describe costs: nanoseconds a call on a warm address of every kind
# (own block, inside one, foreign, unmapped), at most 30, and never a fault.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

preload_library
cc -O2 -Wall -Wextra -Werror -I include -o "$SCRATCH/describe" bench/describe/describe.c \
    "$HEAPWRIGHT_SO" -Wl,-rpath,"$(dirname "$HEAPWRIGHT_SO")"
"$SCRATCH/describe" "${1:-30}"

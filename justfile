# What a person runs in a working day, each as CI runs it. `just` lists it.

so-folder := justfile_directory() / "target/dev-so"

_list:
    @just --list --unsorted

# All tests, or those that cargo's WORDS name
test *WORDS:
    ci/test.sh {{WORDS}}

# The preload libraries without link-time optimisation, in target/dev-so
so:
    cargo build --locked --profile dev-so -p heapwright-malloc
    cargo build --locked --profile dev-so -p heapwright-hardened
    cargo build --locked --profile dev-so -p heapwright-check

# Tests of the preload libraries, with those that `just so` builds
test-so *WORDS: so
    HEAPWRIGHT_TEST_LIBRARY={{so-folder}} cargo test --locked -p heapwright-malloc {{WORDS}}

# Formatting, warnings, documentation, and the lines of each part
lint:
    ci/lint.sh
    ci/lint.sh lines
    ci/floors.sh
    ci/safety.sh

# Instruction counts of the fast paths
golden *WORDS:
    ci/golden.sh {{WORDS}}

# Undefined behaviour and data races: the core under Miri
miri *FILTER:
    ci/miri.sh {{FILTER}}

# Lock-free parts in every order
loom *WORDS:
    ci/loom.sh {{WORDS}}

# heapwright beside its peers (an hour, on a quiet machine)
race *WORDS:
    ci/race.sh {{WORDS}}

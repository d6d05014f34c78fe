#!/usr/bin/env bash
# A SAFETY comment states its own invariant: one that points elsewhere ("as above", "the same
# contract", "see `x`", "as for all that follow") is untrue as soon as what it points to is moved,
# and nobody notices. Clippy asks that there be a comment; this asks what is in it.
#
#   ci/safety.sh     looks at the sources and tests of all crates
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# pointers FILE...: the SAFETY comments that point elsewhere, as file:line: text. A comment
# ends with the first line that is none; its lines are looked at as one.
pointers() {
    awk '
        function judge(text) {
            text = tolower(comment)
            if (text ~ /safety: *(as (above|before|below|there|for|in|at)[^a-z]|the same|same |see[^a-z]|likewise|ditto)/ ||
                text ~ /[ (](as|see) (above|below)[^a-z]|as for (all|what)|for all that follow|here and below|so below/)
                print at ": " comment
            comment = ""
        }
        FNR == 1 && comment != "" { judge() }
        /^[ \t]*\/\/.*SAFETY:/ {
            if (comment != "") judge()
            comment = $0; sub(/^[ \t]*\/+!? */, "", comment); comment = comment " "
            at = FILENAME ":" FNR; next
        }
        comment != "" && /^[ \t]*\/\// {
            line = $0; sub(/^[ \t]*\/+!? */, "", line); comment = comment line " "; next
        }
        comment != "" { judge() }
        END { if (comment != "") judge() }' "$@"
}

# That it finds what it is to find, and nothing else.
cat >"$SCRATCH/wrong.rs" <<'EOF'
    // SAFETY: as above.
    unsafe { one() };
    // SAFETY: The same contract, as the caller promises.
    unsafe { two() };
    // SAFETY: the pages are ours, as for
    // all that follow.
    unsafe { three() };
    // SAFETY: see `elsewhere`.
    unsafe { four() };
    // SAFETY: as in `other`.
    // SAFETY: likewise.
    unsafe { five() };
EOF
cat >"$SCRATCH/right.rs" <<'EOF'
    // SAFETY: the block was allocated above with this layout, and is freed once.
    unsafe { one() };
    // SAFETY: as many bytes as the caller says, which are seen by nobody else.
    unsafe { two() };
    // Why this is so: see above.
EOF
[ "$(pointers "$SCRATCH/wrong.rs" | wc -l)" -eq 6 ] || die "it does not find what points elsewhere"
[ -z "$(pointers "$SCRATCH/right.rs")" ] || die "it finds what states an invariant"

mapfile -t files < <(git ls-files 'crates/*/src/*.rs' 'crates/*/tests/*.rs')
[ ${#files[@]} -gt 300 ] || die "only ${#files[@]} files: are these all?"
found=$(pointers "${files[@]}")
[ -z "$found" ] || { say "$found"; die "$(wc -l <<<"$found") SAFETY comments point elsewhere: say what holds, where it is relied upon"; }
say "$(grep -c 'SAFETY:' "${files[@]}" | awk -F: '{ n += $2 } END { print n }') SAFETY comments, none of which points elsewhere"

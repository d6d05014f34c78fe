#!/usr/bin/env bash
# A SAFETY comment states its own invariant. A comment that points elsewhere ("as above", "as `len`", "the same
# contract", "see the module") becomes untrue without notice when that place changes. Clippy demands a comment; this
# script tests its text, in the sources, tests and benchmarks of all crates.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# pointers FILE...: prints the SAFETY comments that point elsewhere, as file:line: text. A comment ends before the
# first line that is none; its lines are read as one text. (`\x27` is an apostrophe.)
pointers() {
    perl -ne '
        sub judge {
            my $text = lc $comment;
            print "$at: $comment\n" if $text =~ m{
                safety:\s*(?: as\ (?:above|before|below|there|for|in|at|of|on|to|with)\b | the\ same\b | same\b | see\b
                    | likewise | ditto | like\ (?:above|before|`) | as\ `[^`]*`(?:\ do(?:es)?)?(?:[.,:;(]|\s*$) )
                | \bsee\ (?:`|\[|above|below|the|there|its|also) | \b(?:as|than)\ (?:above|below)\b
                | \bas\ for\ (?:all|what) | for\ all\ that\ follow | here\ and\ below | so\ below
                | the\ (?:module|comment|function|note|other|one)\ (?:above|below) }x;
            $comment = "";
        }
        my $is_comment = m{^\s*//+!?\s*(.*?)\s*$};
        my $text = $1;
        judge() if $comment ne "" and (!$is_comment or $text =~ /SAFETY:/ or $. == 1);
        if ($is_comment and $text =~ /SAFETY:/) { $at = "$ARGV:$."; $comment = $text }
        elsif ($comment ne "") { $comment .= " $text" }
        if (eof) { judge() if $comment ne ""; close ARGV }
        BEGIN { $comment = "" }' "$@"
}

# It must find wrong comments and nothing else: a line is a comment, and the next line is code.
cat >"$SCRATCH/wrong.rs" <<'EOT'
// SAFETY: as above.
// SAFETY: The same contract, as the caller promises.
// SAFETY: the pages are ours, as for all that follow.
// SAFETY: see `elsewhere`.
// SAFETY: as in `other`.
// SAFETY: likewise.
// SAFETY: as `len`.
// SAFETY: as of a `Gc`.
// SAFETY: it leads to an object: see the module above.
// SAFETY: the duties are kept; see `send`.
EOT
cat >"$SCRATCH/right.rs" <<'EOT'
// SAFETY: the block was allocated above with this layout, and is freed once.
// SAFETY: as many bytes as the caller says, which are seen by nobody else.
// SAFETY: as `layout` says, the block has so many bytes.
// SAFETY: one of as many places as there is room for.
EOT
sed -i 's/$/\nunsafe { code() };/' "$SCRATCH"/{wrong,right}.rs
printf '// Why this is so: see above.\n' >>"$SCRATCH/right.rs"
[ "$(pointers "$SCRATCH/wrong.rs" | wc -l)" -eq "$(grep -c SAFETY "$SCRATCH/wrong.rs")" ] ||
    die "it does not find comments that point elsewhere: $(pointers "$SCRATCH/wrong.rs")"
[ -z "$(pointers "$SCRATCH/right.rs")" ] || die "it finds comments that state an invariant: $(pointers "$SCRATCH/right.rs")"

mapfile -t files < <(git ls-files 'crates/*.rs' 'bench/*.rs' 'fuzz/*.rs')
[ ${#files[@]} -gt 300 ] || die "only ${#files[@]} files: are these all?"
found=$(pointers "${files[@]}")
[ -z "$found" ] || { say "$found"; die "$(wc -l <<<"$found") SAFETY comments point elsewhere: state each invariant where it is used"; }
say "$(cat "${files[@]}" | grep -c 'SAFETY:') SAFETY comments, none of which points elsewhere"

# What golden counts share; sourced by ci/golden.sh, ci/pools.sh and others after common.sh:
# calls read from what callgrind wrote, and held against the numbers of a file.
#
# Who sources it says where the numbers are and how they are written:
#   GOLDEN              a file with a line `name path` for each call
#   BLESS               the command that writes it

# counted_calls fn|cfn PATTERN MANY: a line `name path branches mean`, in no order, for
# each function call_NAME that matches, from callgrind's dumps $SCRATCH/part.*, each of
# which holds the counts since the one before. With fn the functions are the callers,
# and what they call is counted, callees included; with cfn they are the called
# themselves. `path` is the shortest of the parts with 8 calls, `mean` that of the
# shorter of the parts with MANY calls or more: the other one is the warm-up. `branches` (conditional) are those of the path, with
# --branch-sim=yes; callgrind leaves trailing zeros of a line of costs out.
counted_calls() {
    awk -v edge="$1=" -v pattern="$2" -v many="$3" '
        FNR == 1  { close_part() }
        /^events:/ { for (i = 2; i <= NF; i++) if ($i == "Bc") bc = i }
        index($0, edge) == 1 { fn = substr($0, length(edge) + 1); next }
        /^calls=/ { split(substr($0, 7), n, " "); getline
                    if (fn ~ pattern) { calls[fn] += n[1]; cost[fn] += $2; if (bc) branches[fn] += $bc } }
        function close_part(  fn, each) {
            for (fn in calls) {
                each = cost[fn] / calls[fn]
                if (calls[fn] == 8 && (!(fn in path) || each < path[fn])) { path[fn] = each; taken[fn] = branches[fn] / 8 }
                if (calls[fn] >= many && (!(fn in mean) || each < mean[fn])) mean[fn] = each
            }
            delete calls; delete cost; delete branches
        }
        END {
            close_part()
            for (fn in path) printf "%s %.1f %.1f %.1f\n", substr(fn, 6), path[fn], taken[fn], mean[fn]
        }
    ' "$SCRATCH"/part.*
}

# above A B: whether A is more, and not by rounding.
above() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b + 0.05) }'; }

# bless FILE [WHAT]: makes the numbers of a file of counted calls (or pairs) the golden ones.
bless() {
    {
        echo "# Instructions a ${2:-call} with the ret, x86-64, written by $BLESS."
        echo "# name path"
        cut -d' ' -f1,2 "$1"
    } >"$GOLDEN"
}

# golden_number NAME: nothing if it has none.
golden_number() { awk -v n="$1" '$1 == n { print $2 }' "$GOLDEN" 2>/dev/null || true; }

# judge NAME PATH LIMIT: says where a path is longer than its golden number or its
# limit (-: it has none), or has no number; 1 if so.
judge() {
    local status=0 number
    number=$(golden_number "$1")
    if [ -z "$number" ]; then
        say "FAIL $1 has no golden number in ${GOLDEN#"$ROOT"/}"; status=1
    elif above "$2" "$number"; then
        say "FAIL $1 takes $2 instructions; the golden number is $number"; status=1
    elif above "$number" "$2"; then
        say "note: $1 got shorter: please lower its golden number to $2 ($BLESS)"
    fi
    if [ "$3" != - ] && above "$2" "$3"; then
        say "FAIL $1 takes $2 instructions; the limit is $3"; status=1
    fi
    return $status
}

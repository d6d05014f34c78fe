# Mutants: the proof that a check can fail. Sourced, after common.sh, by scripts that
# define two functions:
#
#   run_mutant       runs the check in $SCRATCH/mutant, a copy of the tree
#   is_noticed FILE  whether that output shows the failure that is wanted, and not another
#
# Then: `copy_tree`, a `mutant` for each, and `all_noticed`. Mutants are cut into halves (common.sh: `in_half`);
# that each still has its line in the source is looked at in each run.

failures=0 mutants=0 mutants_run=0
copy_tree() {
    mkdir "$SCRATCH/mutant"
    tar cf - --exclude=./target --exclude=./.git --exclude='./*/target' . | tar xf - -C "$SCRATCH/mutant"
}
# mutant FILE NAME PATTERN REPLACEMENT: replaces the first match in FILE of the library's sources: of
# heapwright or its substrate, or gc/FILE, stacks/FILE of heapwright-gc, heapwright-stacks.
mutant() {
    local source=crates/heapwright/src/$1 name=$2 pattern=$3 replacement=$4
    [ -f "$source" ] || source=crates/heapwright-substrate/src/$1
    [ -f "$source" ] || source=crates/heapwright-${1%%/*}/src/${1#*/}
    mutants=$((mutants + 1))
    perl -0pe "s/$pattern/$replacement/" "$source" >"$SCRATCH/mutant/$source"
    if cmp -s "$source" "$SCRATCH/mutant/$source"; then
        printf 'FAIL %-44s the source has no such line any more\n' "$name"
        failures=$((failures + 1))
    elif ! in_half $mutants; then
        :
    elif mutants_run=$((mutants_run + 1)); run_mutant >"$SCRATCH/out" 2>&1; then
        printf 'FAIL %-44s nothing noticed\n' "$name"
        failures=$((failures + 1))
    elif is_noticed "$SCRATCH/out"; then
        printf 'ok   %s\n' "$name"
    else
        printf 'FAIL %-44s does not build, or fails otherwise\n' "$name"
        tail -5 "$SCRATCH/out"
        failures=$((failures + 1))
    fi
    cp "$source" "$SCRATCH/mutant/$source"
}
all_noticed() {
    [ $failures -eq 0 ] || die "$failures mutants survived"
    say "$mutants_run of $mutants mutants were tried (slice $SLICE), and noticed"
}

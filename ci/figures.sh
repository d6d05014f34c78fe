# The common part of ci/debug.sh and ci/check.sh; sourced behind common.sh, not run: the command
# line, the plan that bench/figures runs, and the report.
#
# The script sets SECTIONS, defines section_NAME for each of them and calls
#
#   figures_begin FOLDER PREFIX "$@"    reads the command line; results go to the target
#                                       folder's FOLDER, as results-PREFIX...SECTION.tsv
#   figures_end                         runs the requested sections, and reports
#
# PEERS, if set, names the other contenders. A section calls planned and its kin, then run_plan. Plans and results
# name a section by PREFIX and its name. figures_more, if defined, prints text behind the tables.

# Variables of run_plan and the sections.
quick='' slow='' fast='' given_rounds='' chosen=() failed=0
# Set if the library did not know the options.
without_mode=

figures_begin() {
    local folder=$1
    PREFIX=$2
    shift 2
    usage() { die "$1; usage: ci/$(basename "$0") [--quick [--valgrind] | --no-valgrind] [--rounds N] [${SECTIONS[*]} | report]..."; }
    while [ $# -gt 0 ]; do
        case $1 in
            --quick) quick=--quick ;;
            --valgrind) slow=1 ;;
            --no-valgrind) fast=1 ;;
            --rounds) [[ ${2:-} =~ ^[1-9][0-9]{0,2}$ ]] || usage "'${2:-}' is no number of rounds"; given_rounds=$2; shift ;;
            *) [[ " ${SECTIONS[*]} report " == *" $1 "* ]] || usage "'$1' is not understood"; chosen+=("$1") ;;
        esac
        shift
    done
    [ ${#chosen[@]} -gt 0 ] || chosen=("${SECTIONS[@]}")
    [ -n "$quick$fast" ] || slow=1
    OUT=$CARGO_TARGET_DIR/$folder${quick:+/quick}
    mkdir -p "$OUT"
    bench build -p debug-figures -p figures
}

# sized FULL QUICK: the requested one of the two.
sized() { if [ -n "$quick" ]; then echo "$2"; else echo "$1"; fi; }
rounds_of() { if [ -n "$given_rounds" ]; then echo "$given_rounds"; elif [ -n "$quick" ]; then echo 1; else echo "$1"; fi; }

# real_programs: the lines of bench/debug/prepare.sh, in $SCRATCH/programs. Installs the programs
# that Debian has.
real_programs() {
    # Debian starts a server when it installs one.
    [ ! -d /run/systemd/system ] || systemctl stop redis-server 2>/dev/null || true
    bench/debug/prepare.sh "$CARGO_TARGET_DIR/debug-work/inputs" "$(sized full quick)" >"$SCRATCH/programs"
}

# planned SECTION ROW COLUMN OF_ROUNDS STDIN [NAME=VALUE...] COMMAND...: a line of
# the plan, which plan.rs explains. The command is a path.
planned() {
    local IFS=$'\t'
    printf '%s\n' "$PREFIX$*" >>"$SCRATCH/plan.$1"
}

# planned_behind WRAPPER... :: the arguments of planned: another program runs the command, and
# the settings are for both.
planned_behind() {
    local wrapper=() head words
    while [ "$1" != :: ]; do wrapper+=("$1"); shift; done
    shift
    head=("${@:1:5}") words=("${@:6}")
    while [[ ${words[0]} =~ ^[A-Z_]+= ]]; do head+=("${words[0]}"); words=("${words[@]:1}"); done
    planned "${head[@]}" "${wrapper[@]}" "${words[@]}"
}

# Once, with what is in VALGRIND.
valgrind_planned() {
    [ -n "$slow" ] && command -v valgrind >/dev/null || return 0
    planned_behind "$(command -v valgrind)" "${VALGRIND[@]}" :: "${@:1:3}" 1 "${@:5}"
}

run_plan() { # SECTION ROUNDS
    # A library that does not know the options must not count as a fast one.
    [ -z "$without_mode" ] || note "$1" - - no_mode 1
    "$MADE/figures" run "$SCRATCH/plan.$1" "$(rounds_of "$2")" "$LAUNCHER" "$OUT/results-$PREFIX$1.tsv"
}
note() { # SECTION ROW COLUMN METRIC VALUE [ROUND]: a number that is not from a plan, of the section that runs
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$PREFIX$1" "$2" "$3" "${6:-1}" "$4" "$5" >>"$OUT/results-$PREFIX$SECTION.tsv"
}

figures_end() {
    local section files=()
    [ -n "$quick" ] || [ "${chosen[*]}" = report ] || quiet_machine >&2
    for section in "${chosen[@]}"; do
        [ "$section" != report ] || continue
        printf '%s\n' "--- $section" >&2
        rm -f "$OUT/results-$PREFIX$section.tsv"
        SECTION=$section
        "section_$section"
    done

    # Only the requested sections; for `report`, all results.
    for section in "${SECTIONS[@]}"; do
        [[ " ${chosen[*]} " == *" report "* || " ${chosen[*]} " == *" $section "* ]] || continue
        [ ! -s "$OUT/results-$PREFIX$section.tsv" ] || files+=("$OUT/results-$PREFIX$section.tsv")
    done
    [ ${#files[@]} -gt 0 ] || { say "there are no results"; exit "$failed"; }
    cat "${files[@]}" >"$SCRATCH/results"
    {
        [ -z "${PEERS:-}" ] || printf '%s.\n\n' "${PEERS#, }"
        "$MADE/debug-figures" $quick --tsv "$OUT/figures.tsv" "$SCRATCH/results" || failed=1
        ! declare -F figures_more >/dev/null || figures_more
        echo "$failed" >"$SCRATCH/failed"
    } >"$OUT/tables.md"
    cat "$OUT/tables.md"
    exit "$(cat "$SCRATCH/failed")"
}

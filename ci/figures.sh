# The common part of the scripts that measure with bench/figures: the command line, the plan that runs in turns, and the
# report by a file of figures (bench/figures/src/asked.rs). A script sources this file behind common.sh, sets SECTIONS,
# defines section_NAME for each section, and calls
#
#   figures_begin FOLDER PREFIX ASKED "$@"   reads the command line; results go to FOLDER/results-PREFIX...SECTION.tsv
#   figures_end                              runs the sections of the command line, and reports
#
# SETTINGS names options with a value (--NAME VALUE, in the variable given_NAME); --with NAME=[VAR=VALUE ...]PATH may be
# given several times. PEERS, if set, names the other allocators that run. A section calls planned and its kin, then
# run_plan. In plans and results a section's name follows PREFIX. figures_more, if defined, prints text behind the tables.

quick='' slow='' fast='' given_rounds='' chosen=() given_with=() failed=0
without_mode='' # set if the library did not know the options

figures_begin() {
    local folder=$1 name usage
    PREFIX=$2 ASKED=$ROOT/$3
    shift 3
    usage="usage: ci/$(basename "$0") [--quick [--valgrind] | --no-valgrind] [--rounds N]"
    for name in ${SETTINGS:-}; do
        usage+=" [--$name ${name^^}]"
        [ "$name" = with ] || printf -v "given_$name" %s ''
    done
    usage+=" [${SECTIONS[*]} | report]..."
    while [ $# -gt 0 ]; do
        name=${1#--}
        case $1 in
            --help | -h) say "$usage"; exit ;;
            --quick) quick=--quick ;;
            --valgrind) slow=1 ;;
            --no-valgrind) fast=1 ;;
            --rounds) [[ ${2:-} =~ ^[1-9][0-9]{0,2}$ ]] || die "'${2:-}' is no number of rounds; $usage"; given_rounds=$2; shift ;;
            --*)
                [[ $# -ge 2 && " ${SETTINGS:-} " == *" $name "* ]] || die "'$1' is not understood or needs a value; $usage"
                if [ "$name" = with ]; then given_with+=("$2"); else printf -v "given_$name" %s "$2"; fi
                shift
                ;;
            *) [[ " ${SECTIONS[*]} report " == *" $1 "* ]] || die "'$1' is not understood; $usage"; chosen+=("$1") ;;
        esac
        shift
    done
    [ ${#chosen[@]} -gt 0 ] || chosen=("${SECTIONS[@]}")
    [ -n "$quick$fast" ] || slow=1
    OUT=$CARGO_TARGET_DIR/$folder${quick:+/quick}
    mkdir -p "$OUT"
    bench build -p figures
}

# sized FULL QUICK: prints one of the two, as the command line requests.
sized() { if [ -n "$quick" ]; then echo "$2"; else echo "$1"; fi; }
rounds_of() { echo "${given_rounds:-$(sized "$1" 1)}"; }
# numbers LIST: words of a list with commas, each a number.
numbers() {
    [[ $1 =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || die "'$1' is no list of numbers"
    echo "${1//,/ }"
}

# real_programs: the lines of bench/debug/prepare.sh, in $SCRATCH/programs.
real_programs() {
    # Debian starts a server when it installs one.
    [ ! -d /run/systemd/system ] || systemctl stop redis-server 2>/dev/null || true
    bench/debug/prepare.sh "$CARGO_TARGET_DIR/debug-work/inputs" "$(sized full quick)" >"$SCRATCH/programs"
}

# planned SECTION ROW COLUMN OF_ROUNDS STDIN [NAME=VALUE...] COMMAND...: a line of the plan (plan.rs). COMMAND is a path.
planned() {
    local IFS=$'\t'
    printf '%s\n' "$PREFIX$*" >>"$SCRATCH/plan"
}

# planned_behind WRAPPER... :: ARGUMENTS-OF-PLANNED...: plans that WRAPPER runs the command. The settings are for both.
planned_behind() {
    local wrapper=() head words
    while [ "$1" != :: ]; do wrapper+=("$1"); shift; done
    shift
    head=("${@:1:5}") words=("${@:6}")
    while [[ ${words[0]} =~ ^[A-Z_]+= ]]; do head+=("${words[0]}"); words=("${words[@]:1}"); done
    planned "${head[@]}" "${wrapper[@]}" "${words[@]}"
}

# valgrind_planned: as planned, but for one round, and under valgrind with the words of VALGRIND.
valgrind_planned() {
    [ -n "$slow" ] && command -v valgrind >/dev/null || return 0
    planned_behind "$(command -v valgrind)" "${VALGRIND[@]}" :: "${@:1:3}" 1 "${@:5}"
}

# allocators OURS... [-- PEER,...]: sets ALLOCATORS to these, --with's and glibc, or to those of them that --only names.
allocators() {
    local all=() one name only=,${given_only:-},
    while [ $# -gt 0 ] && [ "$1" != -- ]; do all+=("$1"); shift; done
    if [ -z "$quick" ] && [ $# -gt 1 ]; then
        peers "$CARGO_TARGET_DIR/race/peers" "$2" >"$SCRATCH/peers"
        mapfile -t -O ${#all[@]} all <"$SCRATCH/peers"
    fi
    all+=(${given_with[@]+"${given_with[@]}"} glibc=)
    ALLOCATORS=()
    for one in "${all[@]}"; do
        name=${one%%=*}
        [ "$only" != ,, ] && [[ $only != *,$name,* ]] || ALLOCATORS+=("$one")
        only=${only//,$name,/,,}
    done
    [ -z "${only//,/}" ] || die "--only: there is no '${only//,/}'; there are $(printf '%s ' "${all[@]%%=*}")"
}
# settings_of ALLOCATOR: sets UNDER to NAME=VALUE words, LD_PRELOAD among them.
settings_of() {
    local words
    read -r -a words <<<"${1#*=}"
    UNDER=("${words[@]}")
    [ ${#words[@]} -eq 0 ] || UNDER[-1]=LD_PRELOAD=${words[-1]}
}
# planned_under SECTION ROW OF_ROUNDS COMMAND...: a column for each of ALLOCATORS.
planned_under() {
    local one
    for one in "${ALLOCATORS[@]}"; do
        settings_of "$one"
        planned "$1" "$2" "${one%%=*}" "$3" - ${UNDER[@]+"${UNDER[@]}"} "${@:4}"
    done
}

run_plan() { # ROUNDS
    # A library that does not know the options must not pass for a fast one.
    [ -z "$without_mode" ] || note "$SECTION" - heapwright failed 1
    "$MADE/figures" run "$SCRATCH/plan" "$(rounds_of "$1")" "$LAUNCHER" "$OUT/results-$PREFIX$SECTION.tsv"
}
note() { # SECTION ROW COLUMN METRIC VALUE [ROUND]: adds a number that no plan gives to the running section's results
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$PREFIX$1" "$2" "$3" "${6:-1}" "$4" "$5" >>"$OUT/results-$PREFIX$SECTION.tsv"
}

figures_end() {
    local section files=()
    [ -n "$quick" ] || [ "${chosen[*]}" = report ] || quiet_machine >&2
    for section in "${chosen[@]}"; do
        [ "$section" != report ] || continue
        printf '%s\n' "--- $section" >&2
        rm -f "$OUT/results-$PREFIX$section.tsv" "$SCRATCH/plan"
        SECTION=$section
        "section_$section"
    done

    for section in "${SECTIONS[@]}"; do
        [[ " ${chosen[*]} " == *" report "* || " ${chosen[*]} " == *" $section "* ]] || continue
        [ ! -s "$OUT/results-$PREFIX$section.tsv" ] || files+=("$OUT/results-$PREFIX$section.tsv")
    done
    [ ${#files[@]} -gt 0 ] || { say "there are no results"; exit "$failed"; }
    cat "${files[@]}" >"$SCRATCH/results"
    {
        [ -z "${PEERS:-}" ] || printf '%s.\n\n' "${PEERS#, }"
        "$MADE/figures" report $quick "$ASKED" "$SCRATCH/results" || failed=1
        ! declare -F figures_more >/dev/null || figures_more
        echo "$failed" >"$SCRATCH/failed"
    } >"$OUT/tables.md"
    cat "$OUT/tables.md"
    exit "$(cat "$SCRATCH/failed")"
}

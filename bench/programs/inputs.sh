# The common part of the scripts that make inputs of real programs; sourced. `inputs_in FOLDER` sets WORK.

INPUTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
unset LD_PRELOAD

inputs_in() {
    have perl || { echo "prepare.sh: perl makes the inputs; please install it" >&2; exit 1; }
    mkdir -p "$1"
    WORK=$(cd "$1" && pwd)
}
# A program that is not installed is left out with a line on stderr.
missing() { printf 'prepare.sh: %s is left out: %s\n' "$1" "$2" >&2; }
have() { command -v "$1" >/dev/null; }

# generated KIND COUNT FILE: makes an input, unless it is newer than generate.pl and prepare.sh.
generated() {
    local file=$WORK/$3
    [ "$file" -nt "$INPUTS/generate.pl" ] && [ "$file" -nt "$INPUTS/prepare.sh" ] && return
    perl "$INPUTS/generate.pl" "$1" "$2" >"$file.part"
    mv "$file.part" "$file"
}

# repository FOLDER COMMITS: makes a bare repository in WORK, with an artificial history.
repository() {
    generated history "$2" "$1.stream"
    [ ! "$WORK/$1/made" -nt "$WORK/$1.stream" ] || return 0
    rm -rf "${WORK:?}/$1"
    git init --quiet --bare --initial-branch main "$WORK/$1" >&2
    git -C "$WORK/$1" fast-import --quiet <"$WORK/$1.stream" >&2
    touch "$WORK/$1/made"
}

# The interpreter itself: a version manager's python3 is a script.
python_here() { python3 -c 'import sys; print(sys.executable)' 2>/dev/null; }
cc1_here() { local cc1; cc1=$(gcc -print-prog-name=cc1 2>/dev/null) && [ -x "$cc1" ] && echo "$cc1"; }

#!/bin/sh
# Installs the built command, its manual pages and its completions, for packages:
#
#   packaging/install-command.sh PREFIX
#
#   PREFIX/bin/heapwright, PREFIX/bin/cargo-heapwright
#   PREFIX/share/man/man1/heapwright.1, and a page for each subcommand
#   PREFIX/share/bash-completion/completions, PREFIX/share/zsh/site-functions, PREFIX/share/fish/vendor_completions.d
#
# Environment: DESTDIR is put before PREFIX (packagers), HEAPWRIGHT_COMMAND_DIR names the directory with the built command
# (target/release), SOURCE_DATE_EPOCH gives the pages' date. (For oneself: cargo install.)
set -eu

if [ $# -ne 1 ] || [ "${1#/}" = "$1" ]; then
    echo "usage: packaging/install-command.sh PREFIX (an absolute path, such as /usr/local)" >&2
    exit 2
fi
root=${DESTDIR:-}${1%/}
cd "$(dirname "$0")/.."
built=${HEAPWRIGHT_COMMAND_DIR:-${CARGO_TARGET_DIR:-target}/release}
if [ ! -x "$built/heapwright" ]; then
    echo "packaging/install-command.sh: $built/heapwright is not there; cargo build --release -p heapwright-cli builds it" >&2
    exit 1
fi

mkdir -p "$root/bin" "$root/share/man/man1" "$root/share/bash-completion/completions" \
    "$root/share/zsh/site-functions" "$root/share/fish/vendor_completions.d"
install -m 755 "$built/heapwright" "$built/cargo-heapwright" "$root/bin/"

date=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%d)
subcommands=$("$built/heapwright" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | grep -v -x help)
[ -n "$subcommands" ] || { echo "packaging/install-command.sh: heapwright --help names no command" >&2; exit 1; }
page() { # FILE [SUBCOMMAND]
    file=$1
    shift
    # The generator leaves the date out.
    "$built/heapwright" man "$@" | sed "s/^\(\.TH [^ ]* 1\)  /\1 \"$date\" /" > "$root/share/man/man1/$file"
    grep -q "^\.TH [^ ]* 1 \"$date\" " "$root/share/man/man1/$file" ||
        { echo "packaging/install-command.sh: the page $file has a head that is not understood" >&2; exit 1; }
}
page heapwright.1
for subcommand in $subcommands; do page "heapwright-$subcommand.1" "$subcommand"; done
# (As cargo help looks for it.)
page cargo-heapwright.1 cargo
"$built/heapwright" completions bash > "$root/share/bash-completion/completions/heapwright"
"$built/heapwright" completions zsh > "$root/share/zsh/site-functions/_heapwright"
"$built/heapwright" completions fish > "$root/share/fish/vendor_completions.d/heapwright.fish"

#!/usr/bin/env bash
# Tests the book (docs/book, docs/SUMMARY.md): runs the commands of its pages, compares outputs (docs/book/run.py), and
# builds the site. The build also finds links that lead nowhere (docs/book/preprocess.py).
#
#   ci/book.sh                 all of this. The site goes to the target folder's book/
#   ci/book.sh PAGE...         runs the commands of these pages only
#   ci/book.sh findings [--check | --measure]
#                              runs the examples of docs/findings, a page for each kind of finding. Writes reports, the
#                              corpus's figures and the table of all findings into the pages. --check only says whether
#                              the pages are current. --measure runs the corpus first (ci/corpus.sh), and
#                              keeps its figures in docs/findings/measured.tsv
#
#   HEAPWRIGHT_COMMAND  the command (default: built from this checkout)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup book

findings() {
    local ACTION=make
    case ${1:-} in
        '') ;;
        --check | --measure) ACTION=${1#--} ;;
        *) die "unknown option $1" ;;
    esac
    if [ $ACTION = measure ]; then
        ci/corpus.sh -v >"$SCRATCH/corpus" || die "the corpus is not right: ci/corpus.sh"
        python3 docs/findings/make.py measure "$SCRATCH/corpus"
    fi
    preload_library
    the_command
    python3 docs/findings/make.py "$ACTION" "$SCRATCH"
}

[ "${1:-}" != findings ] || { "$@"; exit; }

all_libraries
the_command

mkdir "$SCRATCH/built"
cp "$HEAPWRIGHT_SO" "$HEAPWRIGHT_HARDENED_SO" "$HEAPWRIGHT_CHECK_SO" "$(dirname "$HEAPWRIGHT_SO")/libheapwright.a" "$SCRATCH/built/"
cp "$(dirname "$HEAPWRIGHT_COMMAND")"/{heapwright,cargo-heapwright} "$SCRATCH/built/"
HEAPWRIGHT_LIBRARY_DIR=$SCRATCH/built sh packaging/install.sh "$SCRATCH/prefix" >/dev/null
HEAPWRIGHT_COMMAND_DIR=$SCRATCH/built sh packaging/install-command.sh "$SCRATCH/prefix"
mkdir "$SCRATCH/pages"
python3 docs/book/run.py "$SCRATCH/prefix" "$SCRATCH/pages" "$@"
[ $# -eq 0 ] || exit 0

mdbook=$(tool mdbook)
site=$CARGO_TARGET_DIR/book
rm -rf "$site"
"$mdbook" build docs/book --dest-dir "$site" >"$SCRATCH/said" 2>&1 || { cat "$SCRATCH/said"; die "the book is not built"; }
# (A warning means that mdBook did not understand a page.)
if grep -E 'WARN|ERROR' "$SCRATCH/said"; then die "mdBook complains"; fi
python3 docs/book/preprocess.py links "$site"
# Fonts, styles, scripts and pictures are the site's own.
if grep -rnoE --include=*.html '(src|href)="(https?:)?//[^"]*\.(js|css|woff2?|png|svg)[^"]*"|<(script|img|iframe)[^>]* src="(https?:)?//[^"]*"' "$site" |
    grep -v '<a '; then
    die "a page asks another machine for something"
fi
if grep -rnE --include=*.css "url\(['\"]?(https?:)?//|@import" "$site"; then die "a style asks another machine for something"; fi
say "ok   $(find "$site" -name '*.html' | wc -l) pages in $site"

#!/usr/bin/env bash
# Runs the compiler's tools and other checks on the source.
#
#   ci/lint.sh                    fmt, clippy and doc: to be run before a commit
#   ci/lint.sh fmt [--record]     rustfmt of both workspaces (the second is bench/). No part has more lines over 100
#                                 columns than ci/wide.txt allows; tables, links and blocks of code in Markdown do not
#                                 count. --record writes the numbers that fell
#   ci/lint.sh clippy             every warning is an error. Then most crates alone, and the library with one feature at
#                                 a time: this finds names that only another feature or crate brings. HEAPWRIGHT_QUICK
#                                 leaves out this second part
#   ci/lint.sh doc                the documentation of the library's crates and of the command builds without a warning
#   ci/lint.sh deps               the libraries depend only on our crates, on libc and on gimli's reader. The default
#                                 build has no peer and no tool of the race. libheapwright.so needs only the C library
#                                 and the compiler's runtime, and imports no allocation function
#   ci/lint.sh msrv               the workspace and the library compile with the oldest Rust that Cargo.toml permits
#   ci/lint.sh lines [--record]   no part of the repository has more lines than ci/lines.txt allows; --record writes the
#                                 numbers that fell. A commit that needs more raises the number there, with a reason
#   ci/lint.sh header [--write]   include/heapwright.h equals cbindgen's output; --write replaces it. Both
#                                 headers are C from C89 to C23 and C++ from C++11 to C++23, without a warning
#   ci/lint.sh messages [NAME...] the compiler's errors about a type that a realm cannot hold tell the fix: programs of
#                                 ci/messages do not compile, and their first lines quote the errors. One compiles
#   ci/lint.sh workflows          the workflows are valid, and the nightly one has each part of ci/deep.sh
#   ci/lint.sh semver [BASELINE]  heapwright keeps the last release's promises (UPGRADING.md), by cargo-semver-checks.
#                                 BASELINE is a tag or commit (default: the newest tag v*, or API_BASELINE). Passes if
#                                 the tool is not installed. Only ci/release.sh runs it: the tool takes long to build
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup lint

lint_fmt() {
    cargo fmt --all --check
    cargo fmt --all --check --manifest-path bench/Cargo.toml -- --config-path "$ROOT"
    say "formatted"
    ratchet wide 'lines over 100 columns' "$@"
}
# wide FILE...: the lines over 100 columns.
wide() {
    perl -CSD -ne '
        $fenced = 0 if $. == 1;
        $fenced ^= 1 if $ARGV =~ /\.md$/ and /^\s*(?:>\s*)?```/;
        chomp;
        print "$ARGV:$.: $_\n" if length > 100 and !$fenced and !m{^\s*(?://[/!]?\s*)?\|} and !m{https?://|\]\(|^\s*//[/!]?\s*\[[^\]]*\]:};
        close ARGV if eof' "$@" </dev/null
}
count_wide() { git ls-files -s -- "$1" | sed -n 's/^100.*\t//p' | grep -E '\.(rs|md)$' | (mapfile -t files; wide "${files[@]}") | wc -l; }

# ratchet NAME WHAT [--record]: no part has a larger count_NAME than ci/NAME.txt allows: lines NUMBER PART REASON.
ratchet() {
    local most part reason count status=0
    while read -r most part reason; do
        [ -n "$most" ] && [ "$most" != '#' ] || { say "$most $part $reason" >>"$SCRATCH/$1"; continue; }
        count=$("count_$1" "$part")
        if [ "$count" -gt "$most" ]; then say "FAIL $part has $count $2; ci/$1.txt allows $most"; status=1
        else say "ok   $part: $count of $most $2"; most=$count; fi
        printf '%6d %s%s\n' "$most" "$part" "${reason:+  $reason}" >>"$SCRATCH/$1"
    done <"ci/$1.txt"
    [ "${3:-}" != --record ] || [ $status -ne 0 ] || cp "$SCRATCH/$1" "ci/$1.txt"
    return $status
}

clippy() { say "clippy $*"; cargo clippy --quiet --locked "$@" -- -D warnings; }
lint_clippy() {
    local features bench=(--manifest-path bench/Cargo.toml --target-dir "$CARGO_TARGET_DIR/bench")
    clippy --workspace --all-targets
    clippy -p heapwright --all-targets --features allocator-api2-02,allocator-api2-03,allocator-api2-04,debug,derive,std,observe,symbols
    clippy -p heapwright --no-default-features
    clippy "${bench[@]}" --workspace --all-targets
    ! is_quick || return 0
    clippy -p heapwright --all-targets --features checked
    clippy "${bench[@]}" -p policies --features schedules --bin schedules
    for features in allocator-api2-02 allocator-api2-03 allocator-api2-04 debug derive,std observe symbols; do
        clippy -p heapwright --features $features
    done
    clippy -p heapwright-gc --all-targets
    clippy -p heapwright-gc --all-targets --features std
    clippy -p heapwright-realm --all-targets
    clippy -p heapwright-realm --all-targets --features derive,std
    clippy -p heapwright-stacks --all-targets
    clippy -p heapwright-substrate --all-targets
    clippy -p heapwright-substrate --all-targets --features debug,testing
    clippy -p heapwright-malloc
    clippy -p heapwright-malloc --features observe
    clippy -p heapwright-hardened --all-targets
    clippy -p heapwright-check --all-targets
}

lint_doc() {
    local package features
    export RUSTDOCFLAGS="-D warnings"
    for package in heapwright-record heapwright-substrate heapwright-stacks heapwright-gc heapwright-realm; do
        say "doc $package"
        features=()
        [ $package = heapwright-substrate ] && features=(--features debug)
        [ $package = heapwright-realm ] && features=(--features derive,std)
        cargo doc --quiet --locked --no-deps -p $package "${features[@]}"
    done
    say "doc heapwright"
    features=$(sed -n '/^\[package.metadata.docs.rs\]/,/^$/s/^features = \[\(.*\)\]$/\1/p' crates/heapwright/Cargo.toml | tr -d '" ')
    [ -n "$features" ] || die "the library's manifest names no features for docs.rs"
    # (docs.rs uses a nightly compiler.)
    RUSTC_BOOTSTRAP=1 RUSTDOCFLAGS="$RUSTDOCFLAGS --cfg docsrs" \
        cargo doc --quiet --locked --no-deps -p heapwright --features "$features" --target-dir "$CARGO_TARGET_DIR/docsrs"
    grep -q 'Available on <strong>crate features\? <code>debug' "$CARGO_TARGET_DIR/docsrs/doc/heapwright/debug/index.html" ||
        die "the page of the debug heap does not say which feature it needs"
    say "doc heapwright-cli"
    # (The command and the library share a name: these pages replace the library's.)
    cargo doc --quiet --locked --no-deps -p heapwright-cli --document-private-items
}

tree() { cargo tree --locked -e normal --prefix none --format '{p}' "$@" | sed 's/ v.*//' | sort -u; }
expect() { # WHAT ALLOWED < names
    local extra
    extra=$(grep -vxE "$2" || true)
    if [ -z "$extra" ]; then say "ok   $1"; else say "FAIL $1: $(echo $extra)"; status=1; fi
}
lint_deps() {
    local status=0
    # (lastpipe: variables that `expect` sets behind a pipe stay.)
    shopt -s lastpipe
    tree -p heapwright-substrate | expect "heapwright-substrate depends on libc and our record crate alone" 'heapwright-(record|substrate)|libc'
    tree -p heapwright-gc | expect "heapwright-gc adds nothing" 'heapwright-gc|heapwright-record|heapwright-substrate|libc'
    tree -p heapwright-realm | expect "heapwright-realm adds nothing" 'heapwright-(gc|realm|record|substrate)|libc'
    # The debug heap reads unwind tables with gimli, which is built without an allocator.
    tree -p heapwright-stacks | expect "heapwright-stacks adds gimli's reader" 'heapwright-(record|stacks|substrate)|libc|gimli'
    tree -p heapwright | expect "heapwright stands on our own crates and libc" 'heapwright(-gc|-realm|-record|-substrate)?|libc'
    tree -p heapwright-malloc | expect "heapwright-malloc adds the stacks" 'heapwright(-gc|-malloc|-realm|-record|-stacks|-substrate)?|libc|gimli'
    tree -p heapwright-entry | expect "heapwright-entry depends on nothing" 'heapwright-entry'
    tree -p heapwright-hardened | expect "heapwright-hardened adds its entries" 'heapwright(-entry|-gc|-hardened|-realm|-record|-stacks|-substrate)?|libc|gimli'
    tree -p heapwright-entry-reads | expect "heapwright-entry-reads stands on heapwright-entry" 'heapwright-entry(-reads)?'
    tree -p heapwright-check | expect "heapwright-check adds its entries" 'heapwright(-check|-entry|-entry-reads|-gc|-realm|-record|-stacks|-substrate)?|libc|gimli'
    cargo tree --locked -e normal --prefix none -p heapwright-malloc --format '{p} {f}' |
        { grep '^gimli' | grep -vE ' read-core( \(\*\))?$' || true; } |
        expect "gimli is its reader alone, without alloc" ''
    tree -p heapwright-workloads | expect "the workloads add libc alone" 'heapwright-workloads|libc'
    tree -p heapwright-launcher | expect "the launcher adds nothing" 'heapwright-launcher'
    cargo tree --locked --workspace -e normal,build,dev --prefix none --format '{p}' | sed 's/ v.*//' | sort -u |
        { grep -xE 'libmimalloc-sys|mimalloc|snmalloc.*|tikv-jemalloc.*|jemalloc.*|rpmalloc.*|rusty[_-]alloc.*|tcmalloc.*|scudo.*|criterion|gungraun|peers|figures' || true; } |
        expect "no peers and no tools of the race in the default build" ''

    preload_library
    readelf -d "$HEAPWRIGHT_SO" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        expect "libheapwright.so needs the C library alone" 'libc\.so\.6|ld-linux.*|libgcc_s\.so\.1|libpthread\.so\.0|libdl\.so\.2'
    # Initial-exec thread-locals: a call of __tls_get_addr could allocate.
    readelf --dyn-syms -W "$HEAPWRIGHT_SO" | awk '$7 == "UND" { sub(/@.*/, "", $8); print $8 }' |
        { grep -xE '__tls_get_addr|malloc|calloc|realloc|free|memalign|posix_memalign|aligned_alloc|_Zn.*|_Zd.*' || true; } |
        expect "libheapwright.so imports no allocator and no __tls_get_addr" ''
    return $status
}

lint_msrv() {
    local version
    version=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
    [ -n "$version" ] || die "Cargo.toml states no rust-version"
    setup msrv
    export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/msrv
    rustup run "$version" cargo check --quiet --locked --workspace
    rustup run "$version" cargo check --quiet --locked -p heapwright --features allocator-api2-02,allocator-api2-03,allocator-api2-04,derive,std
    say "compiles with Rust $version"
}

# (Symbolic links do not count.)
count_lines() { git ls-files -s -- "$1" | sed -n 's/^100.*\t//p' | xargs -d '\n' cat | wc -l; }
lint_lines() { ratchet lines lines "$@"; }

lint_header() {
    local made=$SCRATCH/heapwright.h cbindgen header standard language compiler
    setup header
    cbindgen=$(tool cbindgen)
    "$cbindgen" --quiet --config crates/heapwright-malloc/cbindgen.toml --output "$made" crates/heapwright-malloc
    # C89 knows neither comments to the end of a line nor a comma behind an enum's last name.
    sed -i -E "s/^ \* # Safety\$/ * The program's duties:/; s,^(#endif|\}) +// (.*)$,\1 /* \2 */," "$made"
    perl -0777 -pi -e 's/,(\n\})/$1/g' "$made"
    # (GCC up to 13 knows the last two standards by their drafts' names.)
    for header in "$made" include/heapwright_gc.h; do
        for standard in c89 c99 c11 c17 c2x c23 c++11 c++14 c++17 c++20 c++2b c++23; do
            language=c compiler=${CC:-cc}
            [[ $standard != c++* ]] || language=c++ compiler=${CXX:-c++}
            "$compiler" -std=$standard -fsyntax-only -x $language /dev/null 2>/dev/null || continue
            "$compiler" -std=$standard -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I "$SCRATCH" -I include -x $language -include "$header" /dev/null
        done
    done
    if [ "${1:-}" = --write ]; then install -m 644 "$made" include/heapwright.h; return; fi
    diff -u include/heapwright.h "$made" || die "include/heapwright.h differs from the sources; run ci/lint.sh header --write"
    say "heapwright.h matches the sources, and both headers compile"
}

# The search treats all white space as one space, because compilers wrap lines.
lint_messages() {
    local case name sentence command features count=0 failed=0
    mkdir -p "$SCRATCH/src"
    cp Cargo.lock "$SCRATCH"
    export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/messages
    for case in ci/messages/*.rs; do
        name=$(basename "$case" .rs)
        [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
        count=$((count + 1)) command=check features='"derive", "std"'
        ! grep -q '^//! features: none$' "$case" || features=
        ! grep -q '^//! compiles' "$case" || command=run
        printf '[package]\nname = "messages"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n[dependencies]\n%s\n' \
            "heapwright = { path = \"$ROOT/crates/heapwright\", default-features = false, features = [$features] }" >"$SCRATCH/Cargo.toml"
        cp "$case" "$SCRATCH/src/main.rs"
        if cargo $command --quiet --manifest-path "$SCRATCH/Cargo.toml" >"$SCRATCH/said" 2>&1; then
            [ $command = run ] || { say "$name: it compiles"; failed=1; }
        elif [ $command = run ]; then
            say "$name: it does not compile or run: $(cat "$SCRATCH/said")"
            failed=1
        fi
        tr -s '[:space:]' ' ' <"$SCRATCH/said" >"$SCRATCH/line"
        while read -r sentence; do
            grep -qF -- "$sentence" "$SCRATCH/line" || { say "$name: the compiler does not say '$sentence' but: $(cat "$SCRATCH/said")"; failed=1; }
        done < <(sed -n 's,^//! says: ,,p' "$case")
    done
    [ $count -gt 0 ] || die "there is no such case"
    [ $failed -eq 0 ] || die "see above"
    say "$count programs: the compiler says what to do"
}

# The commit with the promised public items, until there is a release. A change that breaks them must name a new one.
API_BASELINE=19ab6de08af5fe02d6f573d934cf36ac21289e08
lint_semver() {
    local baseline
    baseline=${1:-$(git tag --list 'v*' --sort=-version:refname | head -n 1)}
    baseline=${baseline:-$API_BASELINE}
    cargo semver-checks --version >/dev/null 2>&1 ||
        { say "NOT ASKED: cargo-semver-checks is not installed (cargo install --locked cargo-semver-checks --version ^0.51)"; exit 0; }
    git cat-file -e "$baseline^{commit}" || die "this clone does not have the commit $baseline (a shallow clone?)"
    cargo semver-checks --package heapwright --baseline-rev "$baseline" --only-explicit-features \
        --features allocator-api2-02,allocator-api2-03,allocator-api2-04,checked,debug,derive,std
}

lint_workflows() {
    local script
    setup workflows
    "$CARGO_TARGET_DIR/tools/python/bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
    diff <(ci/deep.sh --list) <(sed -n 's/^ *part: \[\(.*\)\]$/\1/p' .github/workflows/nightly.yml | tr -d ' ' | tr ',' '\n') ||
        die "nightly.yml names other parts than ci/deep.sh"
    for script in $(sed -nE 's,^ *- run: (bash )?(\.?ci/[a-z./]+).*,\2,p' .github/workflows/*.yml | sort -u); do
        bash -n "$script" || die "a workflow runs $script"
    done
    say "workflows: valid; each part of ci/deep.sh is a job"
}

[ $# -gt 0 ] || { lint_fmt; lint_clippy; lint_doc; exit; }
case $1 in
    fmt | clippy | doc | deps | msrv | lines | header | messages | semver | workflows) "lint_$1" "${@:2}" ;;
    *) die "usage: ci/lint.sh [fmt|clippy|doc|deps|msrv|lines|header|messages|semver|workflows]" ;;
esac

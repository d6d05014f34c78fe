#!/usr/bin/env bash
# Tests the crates as a registry has them, and as a user builds them: without the profile that .ci/run sets.
#
# 1. A dry run of publishing, in order: each crate but the command is built from its package alone.
# 2. The command is installed from a registry made of the packages and of the other packages that they need: by name,
#    without a network, in an empty environment, beside no checkout. It runs a program, names a mistake with a stack
#    in which no frame is ours, and is no larger than 12 MB.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# .ci/run embeds the files that it built; a user's Cargo has no such variables.
unset "${!HEAPWRIGHT_EMBED_@}" "${!CARGO_PROFILE_@}"
LIMIT=12000000

# README's first command names no binary.
cargo metadata --no-deps --locked --format-version 1 | grep -q '"default_run":"heapwright"' ||
    die "cargo run -p heapwright-cli does not know which binary is meant"

# Cargo keeps packages of an earlier version, and files that it unpacked for an earlier dry run.
rm -rf "$CARGO_TARGET_DIR/registry/package"
rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/heapwright*
cargo publish --dry-run --quiet --locked --allow-dirty --workspace --exclude heapwright-cli --target-dir "$CARGO_TARGET_DIR/registry"
say "ok   each crate but the command is built from its package alone"
published=$(cargo metadata --no-deps --locked --format-version 1 |
    python3 -c 'import json, sys; print(*(p["name"] for p in json.load(sys.stdin)["packages"] if p["publish"] != []))')
# shellcheck disable=SC2046 # one word a crate
cargo package --quiet --locked --allow-dirty --no-verify --target-dir "$CARGO_TARGET_DIR/registry" $(printf -- '-p %s ' $published)
packages=$CARGO_TARGET_DIR/registry/package
for crate in $published; do
    tar -tzf "$packages/$crate-"[0-9]*.crate >"$SCRATCH/files"
    for file in LICENSE-APACHE LICENSE-MIT; do
        grep -q "^[^/]*/$file$" "$SCRATCH/files" || die "the package of $crate has no $file"
    done
done
say "ok   packages: $published"

cd "$SCRATCH"
mkdir -p home registry
cargo vendor --quiet --locked --versioned-dirs --manifest-path "$ROOT/Cargo.toml" registry >/dev/null
for crate in $published; do
    package=("$packages/$crate-"[0-9]*.crate)
    tar -xzf "${package[0]}" -C registry
    printf '{"files":{},"package":"%s"}' "$(sha256sum "${package[0]}" | cut -d' ' -f1)" \
        >"registry/$(basename "${package[0]}" .crate)/.cargo-checksum.json"
done
mkdir cargo-home
printf '[source.crates-io]\nreplace-with = "here"\n[source.here]\ndirectory = "%s/registry"\n' "$SCRATCH" >cargo-home/config.toml
# An empty network of its own, if that is allowed.
alone=()
if unshare -n true 2>/dev/null; then alone=(unshare -n); fi
start=$SECONDS
"${alone[@]}" env -i PATH="$(rustc --print sysroot)/bin:/usr/bin:/bin" HOME="$SCRATCH/home" CARGO_HOME="$SCRATCH/cargo-home" \
    cargo install --quiet --locked --offline --root "$SCRATCH/installed" heapwright-cli
size=$(stat -c %s installed/bin/heapwright)
[ "$size" -le $LIMIT ] || die "the command has $size bytes, more than $LIMIT"
say "ok   installed from a registry in $((SECONDS - start)) s: $size bytes"

heapwright() { env -i PATH=/usr/bin:/bin HOME="$SCRATCH/home" "$SCRATCH/installed/bin/heapwright" "$@"; }
heapwright run --stats -- true 2>said
grep -q 'rounding' said || { cat said; die "no statistics"; }
heapwright doctor true >said || { cat said; die "doctor does not find that heapwright takes effect"; }
printf '#include <stdlib.h>\nint main(void) { char *p = malloc(10); free(p); free(p); return 0; }\n' >twice.c
cc -g -o twice twice.c
code=0
heapwright check -- ./twice >said 2>&1 || code=$?
[ $code -eq 99 ] && grep -q 'double-free' said && grep -q 'in main .*twice.c:2:' said || { cat said; die "check does not name a double free"; }
# (The program's own path names heapwright, too.)
if grep -E '#[0-9]+ 0x[0-9a-f]+ in ([^ ]*(heapwright|hw_)|.*/libheapwright)' said; then die "a stack shows frames of the library"; fi
say "ok   it runs a program, and names a double free"

#!/usr/bin/env bash
# Makes a release in a folder, and publishes nothing: the folder then has all files, checked.
#
#   ci/release.sh OUT
#
# By hand, before it:
#   1. CHANGELOG.md: "Unreleased" becomes the version and the date; UPGRADING.md has what breaks.
#   2. Cargo.toml: workspace.package.version, and the same in workspace.dependencies ("=VERSION"); cargo update --workspace.
#   3. bash .ci/run and ci/deep.sh pass; ci/benchmarks.sh has taken the figures of the last 30 days.
# By hand, after it:
#   4. git tag -s vVERSION; the files of OUT go where HEAPWRIGHT_RELEASE_URL says.
#   5. cargo publish --workspace (Cargo puts the crates in order and waits for each).
#   6. From another machine: cargo install heapwright-cli; the .deb in a bare Debian.
#
# Environment: HEAPWRIGHT_RELEASE_URL, HEAPWRIGHT_MAINTAINER (packaging/package.sh): both must be set, because a
# release has an address. cargo-deny and cargo-semver-checks run if they are installed (each takes minutes to build);
# otherwise a line says that they did not run.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -eq 1 ] || { echo "usage: ci/release.sh OUT" >&2; exit 2; }
[ -n "${HEAPWRIGHT_RELEASE_URL:-}" ] || die "HEAPWRIGHT_RELEASE_URL must name the place of the archives"
[ -n "${HEAPWRIGHT_MAINTAINER:-}" ] || die "HEAPWRIGHT_MAINTAINER must name the address for users of the packages: Name <name@example.org>"
[ -z "$(git status --porcelain)" ] || die "some changes are not committed"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
grep -q "^## \[*$version" CHANGELOG.md || die "CHANGELOG.md has no section $version"
if grep 'path = "crates/' Cargo.toml | grep -v "version = \"=$version\""; then die "Cargo.toml pins another version than $version"; fi

bench build -p figures
"$MADE/figures" check --days 30 || die "ci/benchmarks.sh takes these figures again, except those that it says are stored by hand"
if cargo deny --version >/dev/null 2>&1; then
    cargo deny --locked check
else
    say "NOT ASKED: cargo deny (cargo install --locked cargo-deny --version ^0.20)"
fi
ci/lint.sh semver
ci/registry.sh
packaging/package.sh --prove "$1"
python3 packaging/sbom.py "$(rustc -vV | sed -n 's/^host: //p')" >"$1/heapwright.cdx.json"
(cd "$1" && sha256sum heapwright.cdx.json >>SHA256SUMS)
say "heapwright $version is in $1; this script's first lines name the steps left to do by hand"

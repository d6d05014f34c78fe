#!/usr/bin/env bash
# Installs what the checks need: Debian packages, parts of Rust, tools from crates.io and PyPI. Prints what it installs.
# A second run does nothing. Without root, sudo or apt-get it names missing packages, and ends with 1.
#
#   ci/setup.sh             all groups but `more`, which ci/programs.sh more installs (700 MB)
#   ci/setup.sh GROUP...    these groups. A script that needs a group calls this when it begins
#   ci/setup.sh --list      the groups
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target} DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

# A word is a Debian package; COMMAND:PACKAGE if a command of that name is enough; ?PACKAGE if a script leaves
# something out without it; rust:NAME, a component; target:NAME, a target of Rust; toolchain:NAME[+COMPONENT...];
# pypi:NAME, in the target folder's tools/python; crate:NAME@VERSION[+FEATURE...], into the target folder's tools/bin.
C="cc:gcc c++:g++"
# Clang's runtime and Python's tests are packages of the versions that this system has.
CLANG=$({ clang -dumpversion || apt-cache depends clang | sed -n 's/.*Depends: clang-//p'; } 2>/dev/null | head -n 1 || true)
CLANG=libclang-rt-${CLANG%%.*}-dev
PYTHON=$(/usr/bin/python3 -c 'import sys; print("libpython%d.%d-testsuite" % sys.version_info[:2])' 2>/dev/null || true)
PEERS="?libjemalloc2 ?libtcmalloc-minimal4 ?libtbbmalloc2 ?$CLANG"
REAL="perl:perl ?ruby:ruby ?sqlite3:sqlite3 ?git:git ?redis-server:redis-server ?redis-cli:redis-tools ?python3:python3 ?jq:jq ?nm:binutils"
CROSS="gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
declare -A NEEDS=(
    [aarch64]="$C $CROSS qemu-user qemu-system-arm cpio target:aarch64-unknown-linux-gnu"
    [book]="$C python3:python3 patch:patch ps:procps crate:mdbook@=0.5.4+search"
    [bounds]="$C valgrind:valgrind"
    [caches]="$C $PEERS"
    [chaos]="$C gdb:gdb"
    [check]="$C make:make python3:python3 ?valgrind:valgrind $REAL"
    [corpus]="$C python3:python3"
    [debug]="$C ?valgrind:valgrind $REAL"
    [defrag]="$C make:make curl:curl pkg-config:pkg-config"
    [floors]="python3:python3"
    [fuzz]="$C toolchain:nightly"
    [fuzz-gc]="clang:clang $CLANG"
    [gc]="$C guile:guile-3.0 gsi:gambc python3:python3 ?libgc-dev"
    [golden]="$C valgrind:valgrind"
    [hardened]="$C python3:python3"
    [html]="?chromium:chromium ?fonts-dejavu-core"
    [integrations]="$C python3:python3 python3-yaml python3-dev libgtest-dev catch2 cmake:cmake meson:meson make:make"
    [projects]="dpkg-source:dpkg-dev bison xkb-data autoconf automake libtool autoconf-archive"
    [leaks]="$C python3:python3 valgrind:valgrind"
    [header]="$C crate:cbindgen@^0.29"
    [lint]="readelf:binutils rust:rustfmt rust:clippy"
    [lua]="$C patch:patch python3:python3 /usr/bin/time:time libreadline-dev"
    [miri]="toolchain:nightly+miri+rust-src"
    [msrv]="toolchain:$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)"
    [musl]="$C musl musl-dev musl-tools make:make busybox-static linux-libc-dev qemu-user bzip2 dpkg-source:dpkg-dev libc6-dev $CROSS qemu-system-arm cpio target:x86_64-unknown-linux-musl target:aarch64-unknown-linux-musl"
    [old-glibc]="$C objdump:binutils"
    [packages]="$C lintian mmdebstrap rpm zstd:zstd cmake:cmake pkg-config:pkg-config meson:meson ninja-build man-db mandoc"
    [pools]="$C valgrind:valgrind"
    [profile]="$C python3:python3 ?libjemalloc2 $REAL"
    [race]="$C $REAL $PEERS"
    [repeat]="$C python3:python3"
    [ruby]="$C make:make ruby:ruby /usr/bin/time:time"
    [strangers]="$C gdb:gdb pgrep:procps perl:perl prove:perl python3:python3 $PYTHON ruby:ruby stress-ng:stress-ng dpkg-source:dpkg-dev"
    [sweep]="$C $PEERS"
    [systems]="wine wine64 gcc-mingw-w64-x86-64 gcc-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-user target:x86_64-pc-windows-gnu target:riscv64gc-unknown-linux-gnu"
    [test]="$C pkg-config:pkg-config valgrind:valgrind perl:perl"
    [workflows]="python3:python3 pypi:check-jsonschema"
    [toy-vm]="$C python3:python3 pkg-config:pkgconf"
)
# --fixed: the groups of the steps of .ci/run.
FIXED=(bounds caches check corpus debug floors fuzz fuzz-gc gc golden hardened html integrations leaks lint miri pools profile programs ruby sweep test workflows)

# The files of real programs name the packages that they need.
of_programs() { # WAY
    local file
    for file in corpus/programs/*.sh; do
        if grep -qE "^# ways:.* $1( |\$)" "$file"; then sed -n 's/^# needs: *//p' "$file"; fi
    done | tr '\n' ' '
}
# Prints the package of Python's tests, or nothing if the first python3 on PATH has its tests.
python_tests() { python3 -c 'import test.test_json, test.test_dict' 2>/dev/null || echo "$PYTHON"; }
words_of() { # GROUP
    case $1 in
        programs) echo "$C ?valgrind:valgrind $(of_programs preload) $(of_programs check) $(python_tests)" ;;
        more) of_programs more ;;
        *) echo "${NEEDS[$1]-}" ;;
    esac
}
groups=("$@")
if [ $# -eq 0 ]; then mapfile -t groups < <(printf '%s\n' programs "${!NEEDS[@]}" | sort); fi
if [ "${1:-}" = --fixed ]; then groups=("${FIXED[@]}"); fi
if [ "${1:-}" = --list ]; then printf '%s\n' programs more "${!NEEDS[@]}" | sort; exit; fi

packages=() optional=() rust=() crates=() pypi=()
has() { # COMMAND:PACKAGE or PACKAGE
    if [[ $1 == *:* ]]; then
        command -v "${1%:*}" >/dev/null || [ -x "/usr/sbin/${1%:*}" ]
    else
        [[ $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) == *'ok installed'* ]]
    fi
}
for group in "${groups[@]}"; do
    words=$(words_of "$group")
    [ -n "$words" ] || { echo "ci/setup.sh: there is no group '$group'; --list names them" >&2; exit 2; }
    for word in $words; do
        case $word in
            rust:* | target:* | toolchain:*) rust+=("$word") ;;
            crate:*) crates+=("${word#crate:}") ;;
            pypi:*) [ -x "$CARGO_TARGET_DIR/tools/python/bin/${word#pypi:}" ] || pypi+=("${word#pypi:}") ;;
            '?'*) has "${word#?}" || optional+=("${word##*[?:]}") ;;
            *) has "$word" || packages+=("${word##*:}") ;;
        esac
    done
done

install_packages() { # PACKAGE...: with the present lists, or else with new ones
    local log status=0 root=()
    [ "$(id -u)" -eq 0 ] || root=(sudo -n)
    command -v apt-get >/dev/null && "${root[@]}" true 2>/dev/null || return 1
    log=$(mktemp)
    # Debian starts a server when it installs one, unless a policy forbids that.
    local policy=/usr/sbin/policy-rc.d
    [ -e $policy ] && policy='' || printf '#!/bin/sh\nexit 101\n' | "${root[@]}" install -m 755 /dev/stdin $policy
    # Another script may be installing packages, too.
    local words=(-y -qq --no-install-recommends -o DPkg::Lock::Timeout=600 "$@")
    "${root[@]}" apt-get install "${words[@]}" >"$log" 2>&1 ||
        { "${root[@]}" apt-get update -qq && "${root[@]}" apt-get install "${words[@]}"; } >"$log" 2>&1 || { status=1; cat "$log" >&2; }
    rm -f "$log"
    [ -z "$policy" ] || "${root[@]}" rm -f "$policy"
    return $status
}
missing() { echo "ci/setup.sh: please install: $*" >&2; exit 1; }
unique() { printf '%s\n' "$@" | sort -u; }
if [ ${#packages[@]} -gt 0 ]; then
    mapfile -t packages < <(unique "${packages[@]}")
    echo "installing ${packages[*]}"
    install_packages "${packages[@]}" || missing "${packages[@]}"
fi
if [ ${#optional[@]} -gt 0 ]; then
    for package in $(unique "${optional[@]}"); do
        echo "installing $package"
        install_packages "$package" 2>/dev/null || echo "without $package"
    done
fi
if [ ${#rust[@]} -gt 0 ]; then
    toolchains=$(rustup toolchain list) targets=$(rustup target list --installed) components=$(rustup component list --installed)
    for word in $(unique "${rust[@]}"); do
        name=${word#*:}
        case $word in
            rust:*) [[ $components == *"$name"* ]] || { echo "installing $name"; rustup component add "$name"; } ;;
            target:*) [[ $targets == *"$name"* ]] || { echo "installing $name"; rustup target add "$name"; } ;;
            toolchain:*)
                IFS=+ read -ra parts <<<"$name"
                [[ $toolchains == *"${parts[0]}"* ]] || { echo "installing $name"; rustup toolchain install "${parts[0]}" --profile minimal; }
                installed=$(rustup component list --installed --toolchain "${parts[0]}")
                for part in "${parts[@]:1}"; do
                    [[ $installed == *"$part"* ]] || { echo "installing $part"; rustup component add "$part" --toolchain "${parts[0]}"; }
                done
                ;;
        esac
    done
fi
for word in $(unique ${crates[@]+"${crates[@]}"}); do
    [ -n "$word" ] || continue
    features=${word#*+} version=${word#*@}
    [[ $word == *+* ]] && version=${version%%+*} || features=
    name=${word%@*} made=$CARGO_TARGET_DIR/tools/bin/${word%@*}
    have=$({ "$name" --version || "$made" --version; } 2>/dev/null | sed 's/.* v\?//' || true)
    [[ $have != "${version#[=^]}"* ]] || continue
    echo "installing $name $version"
    cargo install --quiet --locked --debug --force ${features:+--no-default-features --features "$features"} \
        --root "$CARGO_TARGET_DIR/tools" --target-dir "$CARGO_TARGET_DIR/tools/build" --version "$version" "$name"
done
if [ ${#pypi[@]} -gt 0 ]; then
    echo "installing ${pypi[*]}"
    python3 -m venv "$CARGO_TARGET_DIR/tools/python"
    "$CARGO_TARGET_DIR/tools/python/bin/pip" install --quiet --disable-pip-version-check "${pypi[@]}"
fi

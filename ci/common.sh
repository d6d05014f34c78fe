# The common part of the scripts of ci/, runtimes/, packaging/ and docs/, which source this file. A user may set:
#   CARGO_TARGET_DIR    where builds go (default: target/ of the repository)
#   HEAPWRIGHT_SO, HEAPWRIGHT_HARDENED_SO, HEAPWRIGHT_CHECK_SO, HEAPWRIGHT_COMMAND     files to test instead of ours
#   HEAPWRIGHT_QUICK    if it is not empty, scripts leave out long parts, which ci/deep.sh runs

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$ROOT/target}
mkdir -p "$CARGO_TARGET_DIR"
CARGO_TARGET_DIR=$(cd "$CARGO_TARGET_DIR" && pwd)
# Neither a library preloaded around us nor its options may leak into a test.
unset LD_PRELOAD HEAPWRIGHT
export LC_ALL=C.UTF-8

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# A folder for this run, gone at exit. Scripts that trap EXIT call tidy.
SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/heapwright-ci.XXXXXX")
tidy() { rm -rf "$SCRATCH"; }
trap tidy EXIT

# setup GROUP...: installs what these scripts need, if it is missing.
setup() { "$ROOT/ci/setup.sh" "$@"; }
# tool NAME: the path of a tool from crates.io that ci/setup.sh installs.
tool() { if [ -x "$CARGO_TARGET_DIR/tools/bin/$1" ]; then echo "$CARGO_TARGET_DIR/tools/bin/$1"; else command -v "$1"; fi; }

# apt_at FOLDER deb|deb-src [SUITE [ARCHITECTURE [HOST [OPTION...]]]]: lists of Debian's packages or sources in a
# folder of their own, for `apt-get "${APT[@]}" download ...`. The system's lists stay unchanged.
apt_at() {
    mkdir -p "$1/lists/partial" "$1/archives/partial"
    echo "$2 http://${5:-deb.debian.org/debian} ${3:-$(. /etc/os-release; echo "$VERSION_CODENAME")} main" >"$1/sources.list"
    APT=(-qq -o Dir::Etc::sourcelist="$1/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$1/lists"
        -o Dir::Cache="$1" -o Dir::State::status=/dev/null -o APT::Sandbox::User=root -o Acquire::Retries=2 -o Acquire::http::Timeout=20
        ${4:+-o APT::Architecture="$4" -o APT::Architectures="$4"} "${@:6}")
    [ -n "$(find "$1/lists" -maxdepth 1 -name '*_dists_*')" ] || apt-get "${APT[@]}" update
}
# fetched FOLDER FUNCTION...: runs the function, which makes files in FOLDER, once.
fetched() {
    [ ! -e "$1/done" ] || return 0
    rm -rf "$1"
    mkdir -p "$1"
    say "fetching ${1##*/}"
    # (The subshell is not part of a condition: in a condition a failure would not end it.)
    (set -e; "${@:2}") >"$SCRATCH/fetched" 2>&1 </dev/null &
    wait $! || { tail -n 20 "$SCRATCH/fetched" >&2; return 1; }
    : >"$1/done"
}

# source_package NAME [SUITE VERSION]: unpacks Debian's source package of this release, or of another, into
# $SOURCES/NAME, once. Prints a line and fails if there is none.
source_package() {
    [ ! -d "$SOURCES/$1" ] || return 0
    command -v apt-get >/dev/null || { say "no source of $1: there is no apt-get"; return 1; }
    command -v dpkg-source >/dev/null || setup projects
    mkdir -p "$SOURCES"
    fetched "$SOURCES.apt/$1" unpack_source "$@" || { say "no source of $1 (offline?)"; return 1; }
    rm -rf "$SOURCES.apt/${1:?}"
}
unpack_source() { # NAME [SUITE VERSION]
    local lists=$SOURCES.apt/lists${2:-}
    apt_at "$lists" deb-src "${2:-}"
    cd "$SOURCES.apt/$1"
    apt-get "${APT[@]}" source --download-only "$1${3:+=$3}"
    dpkg-source --no-check -x ./*.dsc unpacked
    mv unpacked "$SOURCES/$1"
}

is_quick() { [ -n "${HEAPWRIGHT_QUICK:-}" ]; }

# The library's packages for Cargo: some of its floors are crates of their own.
LIBRARY=(-p heapwright -p heapwright-gc -p heapwright-realm -p heapwright-stacks -p heapwright-substrate)
# The features of its tests. (A build for each feature would take longer than all tests; ci/lint.sh clippy compiles each.)
ALL=(--features "debug,derive,std,symbols,allocator-api2-02,allocator-api2-03,allocator-api2-04")

# as_shipped COMMAND...: runs it with Cargo.toml's release profile, not with .ci/run's, which builds tools quickly.
as_shipped() { env -u CARGO_PROFILE_RELEASE_LTO -u CARGO_PROFILE_RELEASE_CODEGEN_UNITS -u CARGO_PROFILE_RELEASE_DEBUG "$@"; }

# shipped PACKAGE FILE VARIABLE: stores the path of a library, as it is shipped, in a variable that is not set. Builds
# the library alone: Cargo would unite the features of several packages, and std could slip in.
shipped() {
    if [ -z "${!3:-}" ]; then
        as_shipped cargo build --quiet --release --locked -p "$1"
        printf -v "$3" %s "$CARGO_TARGET_DIR/release/$2"
    fi
    [ -f "${!3}" ] || die "no library at ${!3}"
    export "${3?}"
}
preload_library() { shipped heapwright-malloc libheapwright.so HEAPWRIGHT_SO; }
hardened_library() { shipped heapwright-hardened libheapwright_hardened.so HEAPWRIGHT_HARDENED_SO; }
check_library() { shipped heapwright-check libheapwright_check.so HEAPWRIGHT_CHECK_SO; }
all_libraries() { preload_library; hardened_library; check_library; }

# the_command: exports HEAPWRIGHT_COMMAND, built from this checkout if the caller's environment has none.
the_command() {
    [ -z "${HEAPWRIGHT_COMMAND:-}" ] || return 0
    cargo build --quiet --release --locked -p heapwright-cli
    export HEAPWRIGHT_COMMAND=$CARGO_TARGET_DIR/release/heapwright
}

# bench COMMAND WORDS...: cargo COMMAND in the workspace of the benchmarks, optimised. MADE has the built files.
MADE=$CARGO_TARGET_DIR/bench/release
bench() { cargo "$1" --quiet --release --locked --manifest-path bench/Cargo.toml --target-dir "$CARGO_TARGET_DIR/bench" "${@:2}"; }

# Sets LAUNCHER: bench/figures starts each planned run with it.
prepare_launcher() {
    [ -z "${LAUNCHER:-}" ] || return 0
    cargo build --quiet --release --locked -p heapwright-launcher
    LAUNCHER=$CARGO_TARGET_DIR/release/heapwright-launcher
}

# peers FOLDER NAMES: prints the available libraries of other allocators, each a line NAME=[VAR=VALUE ...]PATH.
peers() { bench build -p peers; "$MADE/peers" --work "$1" --only "$2"; }

# Warns if other work on the machine will distort the figures.
quiet_machine() {
    local load
    load=$(cut -d' ' -f1 /proc/loadavg)
    awk -v l="$load" 'BEGIN { exit !(l < 0.5) }' || say "warning: the load is $load; this machine is not quiet"
}

# refuses WHY PROGRAM ARGUMENT...: a program of the folder PROGRAMS prints WHY in one line, and ends with 2.
refuses() {
    local status=0
    "$PROGRAMS/$2" "${@:3}" >"$SCRATCH/out" 2>"$SCRATCH/errors" || status=$?
    { [ $status -eq 2 ] && [ "$(wc -l <"$SCRATCH/errors")" -eq 1 ] && grep -qF -- "$1" "$SCRATCH/errors"; } ||
        die "'${*:2}' ends with $status and says '$(cat "$SCRATCH/errors")', not '$1'"
}

# zig WORDS...: runs Zig 0.17, which zig_here installs from PyPI into a folder of its own. zig_program MODE SOURCE OUT
# builds a program for the baseline processor, as Rust does.
zig() { "$CARGO_TARGET_DIR/zig/bin/python" -m ziglang "$@"; }
zig_here() {
    local folder=$CARGO_TARGET_DIR/zig
    ! zig version >/dev/null 2>&1 || return 0
    command -v python3 >/dev/null &&
        python3 -m venv "$folder" >"$SCRATCH/venv" 2>&1 &&
        "$folder/bin/pip" install --quiet --disable-pip-version-check 'ziglang==0.17.*'
}
zig_program() {
    zig build-exe "-O$1" -mcpu=baseline "$2" -femit-bin="$3" --cache-dir "$CARGO_TARGET_DIR/zig/cache" \
        --global-cache-dir "$CARGO_TARGET_DIR/zig/cache"
}

# The median of the numbers on stdin; a dash if there are none.
median() { sort -n | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "-" }'; }

# A small aarch64 system under qemu-system: Debian's kernel and busybox. It has features that qemu-user lacks:
# restartable sequences, the kernel's own answers, preemption. It starts in four seconds.
#   system_begin                        fetches the kernel and busybox once; begins an empty system
#   system_file FILE PATH               puts a file there
#   system_row NAME VARIABLES COMMAND   adds a command, which must end well there (words without quotes)
#   system_run                          runs the system; prints a verdict for each row; the output stays in SYSTEM_LOG
system_begin() {
    SYSTEM_KERNEL=$CARGO_TARGET_DIR/aarch64-system
    fetched "$SYSTEM_KERNEL" fetch_system "$SYSTEM_KERNEL" || die "cannot fetch a kernel for aarch64"
    SYSTEM=$SCRATCH/system
    SYSTEM_LOG=$SCRATCH/system.log
    rm -rf "$SYSTEM"
    mkdir -p "$SYSTEM/tmp" "$SYSTEM/lib"
    system_file "$SYSTEM_KERNEL/bin/busybox" bin/busybox
    # Runs the lines of /rows. A program's status follows its output.
    install -m 755 /dev/stdin "$SYSTEM/init" <<'INIT'
#!/bin/busybox sh
for at in proc:/proc sysfs:/sys devtmpfs:/dev; do
    /bin/busybox mkdir -p ${at#*:}
    /bin/busybox mount -t ${at%:*} none ${at#*:}
done
exec >/dev/console 2>&1 </dev/null
while IFS='|' read -r name variables command; do
    /bin/busybox env -i $variables /bin/busybox timeout 240 $command </dev/null
    echo "row $? $name"
done </rows
/bin/busybox poweroff -f
INIT
}
fetch_system() { # FOLDER
    local package
    cd "$1"
    apt_at "$1" deb '' arm64
    apt-get "${APT[@]}" download busybox-static "$(apt-cache "${APT[@]}" depends linux-image-arm64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)"
    for package in ./*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -xf - --wildcards './boot/vmlinuz*' './bin/busybox' 2>/dev/null || true; done
    mv boot/vmlinuz-* kernel
    [ -x bin/busybox ]
    rm -rf lists archives boot ./*.deb
}
system_file() { install -D -m 755 "$1" "$SYSTEM/$2"; }
system_row() { printf '%s|%s|%s\n' "$1" "$2" "$3" >>"$SYSTEM/rows"; }
system_run() {
    local status name missing=0
    (cd "$SYSTEM" && find . | cpio --quiet -o -H newc | gzip -1) >"$SCRATCH/system.gz"
    timeout 600 qemu-system-aarch64 -M virt -cpu cortex-a72 -smp 2 -m 1024 -nographic -nic none -no-reboot -kernel "$SYSTEM_KERNEL/kernel" \
        -initrd "$SCRATCH/system.gz" -append "console=ttyAMA0 quiet panic=-1" >"$SYSTEM_LOG" 2>&1 </dev/null || true
    sed -i 's/\r$//' "$SYSTEM_LOG"
    while IFS='|' read -r name _; do
        status=$(sed -nE "s/^row ([0-9]+) (.*)/\1 \2/p" "$SYSTEM_LOG" | awk -v name="$name" 'substr($0, length($1) + 2) == name { print $1 }')
        if [ "$status" = 0 ]; then say "ok   $name"; else say "FAIL $name (status ${status:-none})"; missing=$((missing + 1)); fi
    done <"$SYSTEM/rows"
    [ $missing -eq 0 ] || tail -n 20 "$SYSTEM_LOG" | sed 's/^/     /'
    failures=$((failures + missing))
}

# A small aarch64 system under qemu-system: Debian's kernel and one process, for what qemu-user has not: restartable sequences,
# the kernel's own answers, preemption. Sourced after common.sh, by ci/aarch64.sh and ci/musl.sh. It starts in four seconds.
#
#   system_begin                             fetches the kernel once; an empty system
#   system_file FILE PATH                    puts a file there
#   system_row NAME VARIABLES COMMAND        something to be run there: ends well (words without quotes; see aarch64-system.c)
#   system_run                               runs it; prints a verdict for each; the output stays in SYSTEM_LOG

system_begin() {
    local at=$CARGO_TARGET_DIR/aarch64-kernel
    packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-system-arm cpio
    if [ ! -f "$at/kernel" ]; then
        say "fetching a kernel for aarch64"
        rm -rf "$at"
        {
            apt_aside "$at" arm64
            local package
            package=$(apt-cache "${APT[@]}" depends linux-image-arm64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
            (cd "$at" && apt-get "${APT[@]}" download "$package")
            dpkg-deb --fsys-tarfile "$at"/*.deb | tar -C "$at" -xf - ./boot
            mv "$at"/boot/vmlinuz-* "$at/made"
            rm -rf "$at/lists" "$at/archives" "$at/boot" "$at"/*.deb
            mv "$at/made" "$at/kernel"
        } >"$SCRATCH/fetch" 2>&1 </dev/null || { tail -n 5 "$SCRATCH/fetch" >&2; die "cannot fetch a kernel for aarch64"; }
    fi
    SYSTEM_KERNEL=$at/kernel
    SYSTEM=$SCRATCH/system
    SYSTEM_LOG=$SCRATCH/system.log
    rm -rf "$SYSTEM"
    mkdir -p "$SYSTEM/tmp" "$SYSTEM/lib"
    aarch64-linux-gnu-gcc -O1 -Wall -Wextra -Werror -static -o "$SYSTEM/init" ci/aarch64-system.c
}
system_file() { install -D -m 755 "$1" "$SYSTEM/$2"; }
system_row() { printf '%s|%s|%s\n' "$1" "$2" "$3" >>"$SYSTEM/rows"; }
system_run() {
    local status name missing=0
    (cd "$SYSTEM" && find . | cpio --quiet -o -H newc | gzip -1) >"$SCRATCH/system.gz"
    timeout 600 qemu-system-aarch64 -M virt -cpu cortex-a72 -smp 2 -m 1024 -nographic -nic none -no-reboot -kernel "$SYSTEM_KERNEL" \
        -initrd "$SCRATCH/system.gz" -append "console=ttyAMA0 quiet panic=-1" >"$SYSTEM_LOG" 2>&1 </dev/null || true
    sed -i 's/\r$//' "$SYSTEM_LOG"
    while IFS='|' read -r name _; do
        status=$(sed -nE "s/^row ([0-9]+) (.*)/\1 \2/p" "$SYSTEM_LOG" | awk -v name="$name" 'substr($0, length($1) + 2) == name { print $1 }')
        if [ "$status" = 0 ]; then
            printf 'ok   %s\n' "$name"
        else
            printf 'FAIL %s (status %s)\n' "$name" "${status:-none}"
            missing=$((missing + 1))
        fi
    done <"$SYSTEM/rows"
    [ $missing -eq 0 ] || tail -n 20 "$SYSTEM_LOG" | sed 's/^/     /'
    failures=$((failures + missing))
}

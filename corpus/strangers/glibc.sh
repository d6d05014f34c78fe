# glibc's malloc/tst-*.c on the public interface, with glibc's own test driver and support library.
# Tests of glibc's lists, tunables, removed symbols and internal containers are left out, and tests
# that link malloc statically.

GLIBC_TESTS=(
    mallocbug tst-calloc tst-free-errno tst-interpose-nothread tst-interpose-thread tst-mallinfo2
    tst-malloc tst-malloc-backtrace tst-malloc-check tst-malloc-fork-deadlock
    tst-malloc-stats-cancellation tst-malloc-tcache-leak tst-malloc-thread-exit
    tst-malloc-thread-fail tst-malloc-too-large tst-malloc_info tst-mallocalign1 tst-mallocfork
    tst-mallocfork2 tst-mallocfork3 tst-mallopt tst-memalign tst-mtrace tst-obstack
    tst-posix_memalign tst-pvalloc tst-pvalloc-fortify tst-realloc tst-reallocarray tst-tcfree1
    tst-tcfree2 tst-tcfree3 tst-trim1 tst-valloc
)

# What glibc's build would define before and beside the sources of support/.
glibc_shim() {
    local shim=$1 source=$2
    mkdir -p "$shim"
    ln -sfn "$source/support" "$shim/support"
    local header
    for header in array_length.h libc-diag.h intprops.h scratch_buffer.h; do
        ln -sf "$source/include/$header" "$shim/"
    done
    cat >"$shim/internal.h" <<'SHIM'
#include <limits.h>
#define libc_hidden_proto(name)
#define __always_inline inline __attribute__ ((__always_inline__))
#define __glibc_likely(condition) (condition)
SHIM
    cat >"$shim/malloc-size.h" <<'SHIM'
#include <stddef.h>
#define MALLOC_ALIGN_MASK (_Alignof (max_align_t) - 1)
SHIM
    echo 'const char support_objdir_root[] = "/nowhere", support_srcdir_root[] = "/nowhere";' >"$shim/roots.c"
}

# Files of support/ that need more of glibc than the shim has; no test of malloc uses them.
glibc_support_needs_glibc() {
    case $1 in
        *time64* | *nss* | *addrinfo* | *dns* | *hostent* | *netent* | *herrno* | *address_family* | resolv*) ;;
        tst-* | *container | links-dso* | test-driver | test-run-command | README* | *_main | timespec-*) ;;
        support_paths | support_descriptors | support_small_stack_thread_attribute | support_stack_alloc | xclone) ;;
        *) return 1 ;;
    esac
}

suite_glibc() {
    source_package glibc
    local source=$WORK/sources/glibc built=$WORK/glibc name file extra seconds
    local cc=(gcc -std=gnu11 -O2 -w -D_GNU_SOURCE -DTIMEOUTFACTOR=1 -include "$built/shim/internal.h" -I "$built/shim" -I "$source/support")
    if [ ! -e "$built/done" ]; then
        say "building glibc's tests"
        rm -rf "$built"
        mkdir -p "$built/support"
        glibc_shim "$built/shim" "$source"
        for file in "$source"/support/*.c; do
            name=$(basename "$file" .c)
            # support_test_main is the driver's main, not one of those that the pattern names.
            [ "$name" = support_test_main ] || ! glibc_support_needs_glibc "$name" || continue
            "${cc[@]}" -c "$file" -o "$built/support/$name.o"
        done
        "${cc[@]}" -c "$built/shim/roots.c" -o "$built/support/roots.o"
        ar rcs "$built/libsupport.a" "$built"/support/*.o
        for name in "${GLIBC_TESTS[@]}"; do
            extra=()
            case $name in tst-interpose-*) extra=("$source/malloc/tst-interpose-aux-${name#tst-interpose-}.c") ;; esac
            # -fno-builtin: gcc must not do away with calls of malloc.
            "${cc[@]}" -fno-builtin -I "$source/malloc" "$source/malloc/$name.c" "${extra[@]}" -o "$built/$name" \
                "$built/libsupport.a" -lpthread -ldl
        done
        : >"$built/done"
    fi
    for name in "${GLIBC_TESTS[@]}"; do
        case $name in
            tst-mallocfork[23]) seconds=400 ;; # 50 s of the system's time on glibc
            *) seconds=90 ;;
        esac
        add "$name" $seconds "$built/$name"
    done
}

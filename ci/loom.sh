#!/usr/bin/env bash
# Runs the lock-free parts in orders of threads that a machine does not show. Then proves that these checks can fail: it
# removes fences, orderings and other lines of the design one at a time, and a check must fail without each.
#
#   ci/loom.sh [TEST...]           loom: every interleaving of two or three threads, within a bound on preemptions, with
#                                  every value the memory model allows
#   ci/loom.sh shuttle [NUMBER]    the registries on NUMBER (3000) long random schedules of each kind
#                                  (bench/policies/src/schedules), which are too long for loom
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Each part defines `run_mutant`: runs the part's check in $SCRATCH/mutant, a copy of the tree; and `is_noticed FILE`:
# whether that output has the expected failure. HEAPWRIGHT_QUICK runs no mutant, but the source must have its line.
failures=0 mutants=0 mutants_run=0
copy_tree() {
    mkdir "$SCRATCH/mutant"
    tar cf - --exclude=./target --exclude=./.git --exclude='./*/target' . | tar xf - -C "$SCRATCH/mutant"
}
# mutant FILE NAME PATTERN REPLACEMENT: replaces the first match in the code of FILE, a source of heapwright or its
# substrate. Otherwise NAME/FILE is a source of heapwright-NAME.
mutant() {
    local source=crates/heapwright/src/$1 name=$2 pattern=$3 replacement=$4
    [ -f "$source" ] || source=crates/heapwright-substrate/src/$1
    [ -f "$source" ] || source=crates/heapwright-${1%%/*}/src/${1#*/}
    mutants=$((mutants + 1))
    perl -0pe 's{^\s*//[^\n]*\n}{}mg' "$source" >"$SCRATCH/code.rs"
    perl -0pe "s/$pattern/$replacement/" "$SCRATCH/code.rs" >"$SCRATCH/mutant/$source"
    if cmp -s "$SCRATCH/code.rs" "$SCRATCH/mutant/$source"; then
        printf 'FAIL %-44s the source has no such line any more\n' "$name"
        failures=$((failures + 1))
    elif is_quick; then
        :
    elif mutants_run=$((mutants_run + 1)); run_mutant >"$SCRATCH/out" 2>&1; then
        printf 'FAIL %-44s nothing noticed\n' "$name"
        failures=$((failures + 1))
    elif is_noticed "$SCRATCH/out"; then
        printf 'ok   %s\n' "$name"
    else
        printf 'FAIL %-44s does not build, or fails otherwise\n' "$name"
        tail -5 "$SCRATCH/out"
        failures=$((failures + 1))
    fi
    cp "$source" "$SCRATCH/mutant/$source"
}
all_noticed() {
    [ $failures -eq 0 ] || die "$failures mutants survived"
    say "$mutants_run of $mutants mutants were tried, and noticed"
}

if [ "${1:-}" = shuttle ]; then
    NUMBER=${2:-3000}
    # (shuttle warns at each run that it models only the strongest memory order.)
    export SHUTTLE_SILENCE_WARNINGS=1
    schedules() { # FOLDER NUMBER
        timeout 600 cargo run --quiet --release --locked --manifest-path "$1/bench/Cargo.toml" --target-dir "$2" -p policies --features schedules --bin schedules -- "$3"
    }
    schedules . "$CARGO_TARGET_DIR/bench" "$NUMBER"

    say "without exclusion between threads, a schedule must fail:"
    run_mutant() { schedules "$SCRATCH/mutant" "$SCRATCH/target" 300; }
    is_noticed() { grep -qE 'there are two holders|a mark was lost|somebody else left|deadlock|no such cache' "$1"; }
    copy_tree
    mutant registry/shared.rs "a thread that waits does not wait" 'let got = slot\.wait\(\)' 'let got = true'
    mutant registry/shared.rs "a lock is given back unasked" 'while !self\.try_lock\(\) \{' 'while !self.try_lock() { self.state.store(FREE, GIVES);'
    mutant registry/common.rs "a shared object is entered without looking" 'if current\.try_lock\(\) \{' 'if { let _ = current.try_lock(); true } {'
    mutant registry/thread_index.rs "an index is taken without looking" 'before & bit == 0' 'true'
    all_noticed
    exit
fi

export RUSTFLAGS="${RUSTFLAGS:-} --cfg loom"
export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/loom
export LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-3}
# Optimised, because there are many orders; but link-time optimisation takes longer than the tests.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
# With debug assertions an unexpected null is a failure, and does not end the test program.
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true

# The tests: all of loom's, or those of a module; and the crates that have them.
tests=loom crates=(-p heapwright-substrate -p heapwright-gc)
loom() { timeout 600 cargo test --quiet --locked --release --features loom "${crates[@]}" --lib $tests -- "$@"; }

loom "$@" | tee "$SCRATCH/out"
ran=$(grep -c 'test result: ok. [1-9]' "$SCRATCH/out" || true)
[ "$ran" -ge $(($# > 0 ? 1 : 2)) ] || die "no loom test ran, or those of one crate alone"

say "without a fence or an ordering of the design, a test must fail:"
run_mutant() { (cd "$SCRATCH/mutant" && loom); }
# If all threads sleep, loom's panic may end the test program.
is_noticed() { grep -q -e 'test result: FAILED' -e 'deadlock; threads' "$1"; }
copy_tree
tests=remote:: crates=(-p heapwright-substrate)
mutant remote.rs "the leaver does not fence" 'fence\(Ordering::SeqCst\);(\s+!stack)' '$1'
mutant remote.rs "the freer does not fence" 'fence\(Ordering::SeqCst\);(\s+self\.is_orphaned)' '$1'
mutant remote.rs "the leaver fences too weakly" 'fence\(Ordering::SeqCst\);(\s+!stack)' 'fence(Ordering::AcqRel);$1'
mutant remote.rs "a push does not release" 'compare_exchange_weak\(top, head, Ordering::Release' 'compare_exchange_weak(top, head, Ordering::Relaxed'
mutant remote.rs "a take does not acquire" 'null_mut\(\), Ordering::Acquire' 'null_mut(), Ordering::Relaxed'
mutant remote.rs "a claim does not acquire" 'ORPHANED, CLAIMED, Ordering::Acquire' 'ORPHANED, CLAIMED, Ordering::Relaxed'
mutant remote.rs "letting go does not release" 'ORPHANED, Ordering::Release' 'ORPHANED, Ordering::Relaxed'
mutant remote.rs "blocks are counted after the push" 'self\.count\.fetch_add\(count, Ordering::Relaxed\);' ''
tests=leases::
mutant leases.rs "a reference does not acquire" 'more, Ordering::Acquire' 'more, Ordering::Relaxed'
mutant leases.rs "a release does not release" 'fetch_sub\(1, Ordering::Release\)' 'fetch_sub(1, Ordering::Relaxed)'
mutant leases.rs "the last release does not acquire" 'fence\(Ordering::Acquire\);' ''
mutant leases.rs "a retirement does not acquire" 'retired, Ordering::Acquire' 'retired, Ordering::Relaxed'
mutant leases.rs "an object is not published" '(<< 32, Ordering::)Release(\);\s+generation)' '$1Relaxed$2'
mutant leases.rs "a retired object gets references" 'word >> 31 == u64::from\(generation\) << 1 && word & REFERENCES' 'word >> 32 == u64::from(generation) && word & REFERENCES'
tests=sync::owner_lock::
owner=sync/owner_lock.rs
mutant $owner "the owner does not fence" '#\[cfg\(loom\)\]\s+fence\(Ordering::SeqCst\);(\n\})' '$1'
mutant $owner "a visitor does not fence" 'fence\(Ordering::SeqCst\);(\s+true)' '$1'
mutant $owner "the owner does not look for a visitor" 'if self\.is_visited\.load\(Ordering::Acquire\) \{\s+return' 'if false { return'
mutant $owner "a quick owner does not look for a visitor" 'if self\.is_visited\.load\(Ordering::Acquire\) \{ None \}' 'if false { None }'
mutant $owner "the owner does not acquire" 'if self\.is_visited\.load\(Ordering::Acquire\) \{\s+return' 'if self.is_visited.load(Ordering::Relaxed) { return'
mutant $owner "the owner does not release" 'self\.lock\.is_in\.store\(false, Ordering::Release\)' 'self.lock.is_in.store(false, Ordering::Relaxed)'
mutant $owner "a quick owner does not release" 'self\.0\.is_in\.store\(false, Ordering::Release\)' 'self.0.is_in.store(false, Ordering::Relaxed)'
mutant $owner "a visitor does not look for the owner" '!self\.is_in\.load\(Ordering::Acquire\)' 'true'
mutant $owner "a visitor does not acquire" '!self\.is_in\.load\(Ordering::Acquire\)' '!self.is_in.load(Ordering::Relaxed)'
mutant $owner "a visitor does not release" 'self\.lock\.is_visited\.store\(is_always_visited\(\), Ordering::Release\)' 'self.lock.is_visited.store(is_always_visited(), Ordering::Relaxed)'
tests=registry::
mutant registry/thread_index.rs "releasing an index does not release" 'fetch_and\(([^;]*), Ordering::Release\)' 'fetch_and($1, Ordering::Relaxed)'
mutant registry/thread_index.rs "taking an index does not acquire" 'fetch_or\(bit, Ordering::Acquire\)' 'fetch_or(bit, Ordering::Relaxed)'
mutant registry/thread_index.rs "an index is taken without looking" 'before & bit == 0' 'true'
mutant registry/common.rs "a shared object is entered without looking" 'if current\.try_lock\(\) \{' 'if { let _ = current.try_lock(); true } {'
shared=registry/shared.rs
mutant $shared "taking a shared cache does not acquire" 'TAKES: Ordering = Ordering::Acquire' 'TAKES: Ordering = Ordering::Relaxed'
mutant $shared "giving it back does not release" 'GIVES: Ordering = Ordering::Release' 'GIVES: Ordering = Ordering::Relaxed'
mutant $shared "a thread that waits does not wait" 'let got = slot\.wait\(\)' 'let got = true'
mutant $shared "K is published without an order" 'self\.count\.store\(made, Ordering::Release\)' 'self.count.store(made, Ordering::Relaxed)'
mutant $shared "K is read without an order" 'self\.count\.load\(Ordering::Acquire\)' 'self.count.load(Ordering::Relaxed)'
mutant $shared "K is published before the slots" '(self\.slots\[made\]\.store)' 'self.count.store(made + 1, Ordering::Release); $1'
mutant $shared "K is published before the strides" '(let mut strides = 0;)' 'self.count.store(made, Ordering::Release); $1'
mutant $shared "the strides' number is published without an order" 'self\.stride_count\.store\(strides, Ordering::Release\)' 'self.stride_count.store(strides, Ordering::Relaxed)'
mutant $shared "the strides' number is read without an order" 'self\.registry\.stride_count\.load\(Ordering::Acquire\)' 'self.registry.stride_count.load(Ordering::Relaxed)'
tests=world:: crates=(-p heapwright-gc)
world=gc/world.rs
mutant $world "a thread that comes in does not fence" '(store\(IN, Ordering::Release\);\s+)fence\(Ordering::SeqCst\);' '$1'
mutant $world "a thread that stops does not fence" '(store\(state, Ordering::Release\);\s+)fence\(Ordering::SeqCst\);' '$1'
mutant $world "the collector does not fence" 'fence\(Ordering::SeqCst\);(\s+self\.each)' '$1'
mutant $world "a thread that comes in does not look at stop" 'if self\.stop\.load\(Ordering::Acquire\) == 0 \{' 'if true {'
mutant $world "a thread that comes in does not acquire" 'self\.stop\.load\(Ordering::Acquire\) == 0' 'self.stop.load(Ordering::Relaxed) == 0'
mutant $world "a thread that comes in stays in while it waits" 'self\.stand\(handshake, state\);(\s+false)' '$1'
mutant $world "a thread that has rested does not acquire" 'self\.stop\.load\(Ordering::Acquire\) != 0' 'self.stop.load(Ordering::Relaxed) != 0'
mutant $world "a thread that has rested does not look again" 'while (self\.stop\.load\(Ordering::Acquire\) != 0)' 'if $1'
mutant $world "a thread that stops does not release" 'store\(state, Ordering::Release\)' 'store(state, Ordering::Relaxed)'
mutant $world "a thread that stops does not notify" 'wake\(&self\.arrivals\);' ''
mutant $world "no stop is counted" 'self\.arrivals\.fetch_add\(1, Ordering::Relaxed\);' ''
mutant $world "the collector does not acquire a thread's stop" 'load\(Ordering::Acquire\) == IN' 'load(Ordering::Relaxed) == IN'
mutant $world "the collector counts before it acquires" 'self\.arrivals\.load\(Ordering::Acquire\)' 'self.arrivals.load(Ordering::Relaxed)'
mutant $world "the collector counts too late" '(let seen = [^;]*;)([\s\S]*?)(wait\(&self\.arrivals, seen)' '$2 $1 $3'
mutant $world "a second collector goes first as well" 'Ordering::Relaxed\)\.is_err\(\) \{' 'Ordering::Relaxed).is_err() \&\& false {'
mutant $world "nobody is asked to stop" '\.store\(1, Ordering::Relaxed\)' '.store(0, Ordering::Relaxed)'
mutant $world "nobody is told to go on" 'wake\(&self\.stop\);' ''
mutant $world "going on does not release" 'self\.stop\.store\(0, Ordering::Release\)' 'self.stop.store(0, Ordering::Relaxed)'
mutant $world "a thread that gives up does not go on" 'self\.go_on\(\);(\s+return Stop::Late)' '$1'
mutant $world "a thread that waits stays at work elsewhere" 'if handshake\.is_in\(\) && !but' 'if false \&\& !but'
mutant $world "a thread comes back to one world and waits for another" 'leave_all\(seats, None\);(\s+world\.wait)' '$1'
mutant $world "a fork waits with worlds stopped" 'world\.let_go\(forker\);(\s+if let Some)' '$1'
mutant $world "a fork waits at work" 'me\.filter\(\|me\| me\.is_in\(\)\)' 'me.filter(|_| false)'
mutant $world "a fork does not come back" 'World::come_in\(me\);' ''
tests=gang::
gang=gc/gang.rs
mutant $gang "a thread that waits counts as active" '(waits = true;\s+)inner\.active -= 1;' '$1'
mutant $gang "a thread that has waited is not active again" 'inner\.active \+= 1;(\s+\}\s+return full)' '$1'
mutant $gang "all is done while another works" 'if inner\.active == 0' 'if inner.active <= 1'
mutant $gang "nobody is told that all is done" 'self\.announce\(\);(\s+continue)' '$1'
mutant $gang "nobody is told to stop" '(inner\.done = true;\s+)self\.announce\(\);(\s+\})' '$1$2'
mutant $gang "work is not announced" '(full\.push\(chunk\) \};\s+)self\.announce\(\);' '$1'
mutant $gang "the work signal does not move" '(fn announce[^;]*)self\.work_signal\.fetch_add\(1, Ordering::Release\);' '$1'
mutant $gang "a thread that sleeps is not woken" 'if self\.idle\.load\(Ordering::Relaxed\) != 0 \{' 'if false {'
mutant $gang "a thread that goes does not notify" '(inner\.present -= 1;\s+self\.work_signal[^;]*;\s+)wake\(&self\.work_signal\);' '$1'
mutant $gang "a thread that comes is not counted" 'inner\.present \+= 1;' ''
mutant $gang "one comes before there is a gang" 'if self\.open\.load\(Ordering::Relaxed\) == 0 \{\s+return false;\s+\}(\s+let mut inner = self\.inner\.lock\(\);\s+let comes = !inner\.done) && inner\.present < inner\.most' '$1'
mutant $gang "more come than may" '&& inner\.present < inner\.most' ''
mutant $gang "closing does not wait" 'while inner\.present > 0' 'while false'
tests=held::
held=gc/held.rs
mutant $held "pages are not asked again after regions" '(is_fresh\(\) \{\s+return true;\s+\}\s+fence[^;]*;\s+)self\.holds\(marks, cycles, offset\)' '$1false'
mutant $held "pages are asked again without an order" '(is_fresh\(\) \{\s+return true;\s+\}\s+)fence[^;]*;' '$1'
mutant $held "a cursor is published without an order" 'self\.cursor\.set_released\(next\)' 'self.cursor.set(next)'
mutant $held "a cursor is read without an order" 'offset < self\.cursor\.get_acquired\(\)' 'offset < self.cursor.get()'
mutant $held "bits are read before the cursor" 'offset < self\.cursor\.get_acquired\(\) \|\| bits::is_set\(&self\.taken, offset\)' 'bits::is_set(\&self.taken, offset) || offset < self.cursor.get_acquired()'
mutant $held "the sweep moves the cursor first" '(let \(live, survivors\) = [^;]*;)(\s+)(self\.cursor\.set_released\(0\);)' '$3$2$1'
mutant $held "the sweep moves the cursor without an order" '(survivors\) = [^;]*;\s+)self\.cursor\.set_released\(0\)' '$1self.cursor.set(0)'
mutant $held "what moves is told by the cursor no more, then by bits" 'for offset in \(0\.\.self\.cursor\.get\(\)\)' 'for offset in (0..self.cursor.take())'
mutant $held "what moves loses the cursor without an order" '(bits::set\(&self\.taken, offset\);\s+\}\s+)self\.cursor\.set_released\(0\)' '$1self.cursor.set(0)'
mutant $held "marks go before the page is swept" '(self\.swept\.set_released\(2 \* cycle\);)(\s+fence[^;]*;)([\s\S]*?\};)' '$2 $3 $1'
mutant $held "marks go without an order" '(set_released\(2 \* cycle\);\s+)fence[^;]*;' '$1'
mutant $held "a mark is missed without an order" 'fence[^;]*;(\s+if self\.swept\(\) == swept)' '$1'
mutant $held "a thread that misses a mark does not look again" 'if self\.swept\(\) == swept' 'if true'
mutant $held "a thread that misses a mark believes what is taken" 'if self\.swept\(\) == swept' 'if false'
mutant $held "marks are not looked at" 'if swept != cycles\.get_acquired\(\)' 'if swept != cycles.get_acquired() \&\& false'
mutant $held "cycles are counted without an order" 'if swept != cycles\.get_acquired\(\)' 'if swept != cycles.get()'
mutant $held "swept is read without an order" 'self\.swept\.get_acquired\(\)( . 2)' 'self.swept.get()$1'
mutant $held "nobody looks whether the page is still the same" 'Seen\(self\.state\.get\(\)\) == seen' 'true || Seen(self.state.get()) == seen'
mutant $held "a thread that looks again does not fence" 'fence[^;]*;(\s+Seen\(self\.state)' '$1'
mutant $held "changes of a page are not counted" 'wrapping_add\(STATE \+ 1\)' 'wrapping_add(0)'
mutant $held "a thread that changes a page does not fence" 'fence[^;]*;(\s+set\(\);)' '$1'
mutant $held "a page is there before it is whole" 'set\(\);(\s+self\.cursor)' 'self.set_state(State::InUse); set();$1'
mutant gc/bits.rs "a mark is taken without an order" 'fetch_and\(!mask, Ordering::Release\)' 'fetch_and(!mask, Ordering::Relaxed)'
region=gc/region.rs
mutant $region "a region is closed without an order" 'fence[^;]*;(\s+self\.next\.set\(ptr::null_mut)' '$1'
mutant $region "a region is opened without an order" 'fence[^;]*;(\s+self\.next\.set\(next)' '$1'
mutant $region "the page of a region is read once" 'next <= end && self\.page\.get\(\) == page' 'next <= end'
mutant $region "where a region is is read without an order" 'fence[^;]*;(\s+start < next)' '$1'
all_noticed

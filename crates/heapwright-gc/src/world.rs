//! The world of one heap: its mutators, and how a collector stops them.
//!
//! ```text
//!                 poll, stop is set
//!        IN  ------------------------------>  PARKED    waits, and helps to mark
//!        ^ |  <------------------------------    |
//!        | |         stop is clear               |      a collector waits until nobody is IN
//!  enter | | leave                               |
//!        | v                                     |
//!        OUT   blocks in a system call, or is not attached: touches no object
//! ```
//!
//! One word, `stop`, stops the world. The thread that changes it from 0 to 1 is the collector. It
//! sets every mutator's `poll`, which the fast paths test, and waits until no mutator is `IN`. A
//! thread that enters while `stop` is set waits. The collector need not wait for a thread that left
//! before. The two sides meet as in Dekker's algorithm. A mutator writes its state and then reads
//! `stop`. The collector writes `stop` and then reads the states. Each has a fence between, so one
//! side sees the other. The same words order accesses to objects: a stopping thread releases its
//! state to the collector, and the collector releases `stop` to entering threads.
//!
//! The collector is a mutator. The mutators that it stopped mark with it (see `gang`), and so do
//! helpers, which have no handshake. Mutators that are `OUT` may join and part while the world is
//! stopped. They take the list's lock, which the collector holds while it walks the list.
//!
//! *Several worlds.* A thread may have a mutator in each world. While the thread waits in one
//! world, its mutators in all other worlds are [`ELSEWHERE`]. So no collector waits for a thread
//! that waits for another collector. The thread comes back to all worlds or to none
//! ([`come_back`]). A fork stops all worlds, and waits for a collector only while it has stopped
//! none ([`stop_all`]). So threads never wait in a circle. Loom-checked (`world/loom_tests.rs`).

use core::ptr;

use heapwright_substrate::sync::Lock;
use heapwright_substrate::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};

use super::waiting::{Then, WaitLimit, wait, wake};

const OUT: u32 = 0;
const IN: u32 = 1;
const PARKED: u32 = 2;
const ELSEWHERE: u32 = 3;

const UNTIL_IT_GOES_ON: WaitLimit = WaitLimit { looks: 200, then: Then::Sleep };
/// How long the collector waits. Mutators mostly stop within a few microseconds.
const UNTIL_ALL_STOPPED: WaitLimit = WaitLimit { looks: 1000, then: Then::SleepFor(1_000_000) };
/// How long helping threads wait, at first: a sleeping thread would wake too late for a short step.
const A_MOMENT: WaitLimit = WaitLimit { looks: 8, then: Then::Return };
const MOMENTS: u32 = 500;
const A_WHILE: WaitLimit = WaitLimit { looks: 0, then: Then::SleepFor(1_000_000) };

pub(crate) struct Handshake {
    state: AtomicU32,
    /// The next handshake of the list. Changed under the list's lock.
    next: AtomicPtr<Handshake>,
    /// The word that tells the mutator to stop.
    poll: AtomicPtr<AtomicU32>,
    owner: AtomicPtr<()>,
    /// Visits of the mutator that are under way. It does not part until they end.
    visits: AtomicU32,
}

impl Handshake {
    /// A handshake without a mutator. Zeroed memory is such a handshake.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU32::new(OUT),
            next: AtomicPtr::new(ptr::null_mut()),
            poll: AtomicPtr::new(ptr::null_mut()),
            owner: AtomicPtr::new(ptr::null_mut()),
            visits: AtomicU32::new(0),
        }
    }

    pub(crate) fn owner(&self) -> *mut () {
        self.owner.load(Ordering::Relaxed)
    }

    pub(crate) fn is_in(&self) -> bool {
        // Acquire: the caller sees all that the mutator did until it stopped.
        self.state.load(Ordering::Acquire) == IN
    }

    /// Returns whether the mutator is away from the heap.
    pub(crate) fn is_out(&self) -> bool {
        self.state.load(Ordering::Relaxed) == OUT
    }

    /// Returns whether the mutator is `IN`, or will be when its thread stops waiting.
    pub(crate) fn is_present(&self) -> bool {
        self.is_in() || self.is_elsewhere()
    }

    fn is_elsewhere(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ELSEWHERE
    }

    pub(crate) fn is_parked(&self) -> bool {
        self.state.load(Ordering::Acquire) == PARKED
    }
}

/// The head of the list of members, and how many forked children have emptied the list.
struct Members(*mut Handshake, usize);

// SAFETY: members outlive their membership, and all their fields are atomics.
unsafe impl Send for Members {}

/// A visit of a member, which does not part before the visit ends.
struct Visit<'a> {
    world: &'a World,
    to: &'a Handshake,
    forks: usize,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let members = self.world.members.lock();
        // (A forked child forgets the visits that were under way.)
        if members.1 == self.forks {
            self.to.visits.fetch_sub(1, Ordering::Relaxed);
            drop(members);
            wake(&self.to.visits);
        }
    }
}

pub(crate) struct World {
    stop: AtomicU32,
    /// Changes when a mutator stops or leaves. The collector sleeps on it.
    arrivals: AtomicU32,
    /// The thread whose fork has stopped this world, or 0. `moves_for`: the thread whose fork no
    /// longer tries to stop it, or 0.
    forker: AtomicUsize,
    moves_for: AtomicUsize,
    members: Lock<Members>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Done,
    /// Another thread was first, and may have stopped the world.
    Another,
    /// A mutator did not stop in time, so the world goes on.
    Late,
}

/// Calls the closure for each mutator of a thread.
pub(crate) type Seats<'a, 'w> = &'a dyn Fn(&mut dyn FnMut(&'w World, &'w Handshake));

/// The closure for a world and the caller's handshake in it. Returns false to end the calls.
pub(crate) type WithWorld<'a, 'w> = &'a mut dyn FnMut(&'w World, Option<&'w Handshake>) -> bool;

pub(crate) type Worlds<'a, 'w> = &'a dyn Fn(WithWorld<'_, 'w>);

/// Makes the calling thread's mutators leave, except `but`, because the thread is about to wait.
/// Returns whether any mutator was `IN` and left.
pub(crate) fn leave_all(seats: Seats<'_, '_>, but: Option<&Handshake>) -> bool {
    let mut any = false;
    seats(&mut |world, handshake| {
        if handshake.is_in() && !but.is_some_and(|but| ptr::eq(but, handshake)) {
            world.stand(handshake, ELSEWHERE);
            any = true;
        }
    });
    any
}

/// Makes the calling thread's mutators come back that [`leave_all`] made leave. If a world is
/// stopped, the thread leaves all worlds, and waits for that world.
pub(crate) fn come_back(seats: Seats<'_, '_>) {
    loop {
        let mut closed = None;
        seats(&mut |world, handshake| {
            if closed.is_none()
                && handshake.is_elsewhere()
                && !world.try_enter_or(handshake, ELSEWHERE)
            {
                closed = Some(world);
            }
        });
        let Some(world) = closed else { return };
        leave_all(seats, None);
        world.wait_until_it_goes_on();
    }
}

/// Stops all worlds for a fork of the calling thread, `forker`. `worlds` calls the closure for each
/// world, always in the same order, until the closure returns false. `wait_limit` makes a function
/// for each world. If the function returns false, this world goes on.
pub(crate) fn stop_all<'w, P: FnMut() -> bool>(
    forker: usize,
    worlds: Worlds<'_, 'w>,
    wait_limit: impl Fn() -> P,
) {
    loop {
        // A world that another thread has stopped.
        let mut closed = None;
        worlds(&mut |world, me| {
            if world.moves_for.load(Ordering::Relaxed) == forker {
                return true;
            }
            match world.stop_until(me, wait_limit()) {
                Stop::Done => world.forker.store(forker, Ordering::Relaxed),
                Stop::Late => world.moves_for.store(forker, Ordering::Relaxed),
                Stop::Another => closed = Some(world),
            }
            closed.is_none()
        });
        if closed.is_none() {
            worlds(&mut |world, me| {
                let Some(me) = me.filter(|me| me.is_elsewhere()) else { return true };
                if world.is_stopped_by(forker) {
                    World::come_in(me);
                } else if !world.try_enter_or(me, ELSEWHERE) {
                    closed = Some(world);
                }
                closed.is_none()
            });
        }
        let Some(closed) = closed else { break };
        // Other threads may wait for this thread, or for threads that it has stopped. So this
        // thread lets all worlds go on before it waits.
        worlds(&mut |world, me| {
            world.let_go(forker);
            if let Some(me) = me.filter(|me| me.is_in()) {
                world.stand(me, ELSEWHERE);
            }
            true
        });
        if !closed.goes_on_until(wait_limit()) {
            // The fork need not wait for a world if no mutator of this thread must come back to it.
            worlds(&mut |world, me| {
                if ptr::eq(world, closed) && !me.is_some_and(Handshake::is_elsewhere) {
                    world.moves_for.store(forker, Ordering::Relaxed);
                }
                true
            });
        }
    }
    worlds(&mut |world, _| {
        if world.moves_for.load(Ordering::Relaxed) == forker {
            world.moves_for.store(0, Ordering::Relaxed);
        }
        true
    });
}

impl World {
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            stop: AtomicU32::new(0),
            arrivals: AtomicU32::new(0),
            forker: AtomicUsize::new(0),
            moves_for: AtomicUsize::new(0),
            members: Lock::new(Members(ptr::null_mut(), 0)),
        }
    }

    /// Adds a handshake. Its mutator, `owner`, is then `OUT`.
    ///
    /// # Safety
    ///
    /// The handshake is in no world. The handshake and `poll` outlive its membership.
    pub(crate) unsafe fn join(&self, handshake: &Handshake, poll: &AtomicU32, owner: *mut ()) {
        let mut members = self.members.lock();
        handshake.state.store(OUT, Ordering::SeqCst);
        handshake.owner.store(owner, Ordering::Relaxed);
        handshake.poll.store(ptr::from_ref(poll).cast_mut(), Ordering::Relaxed);
        // A collector of the mutator's previous world may have set `poll` as the mutator left. A
        // collector of this world is noticed when the mutator enters.
        poll.store(0, Ordering::Relaxed);
        handshake.next.store(members.0, Ordering::Relaxed);
        members.0 = ptr::from_ref(handshake).cast_mut();
    }

    /// Removes a handshake. Its mutator must be `OUT`. Waits until visits of it have ended.
    pub(crate) fn part(&self, handshake: &Handshake) {
        let mut members = self.members.lock();
        loop {
            let visits = handshake.visits.load(Ordering::Relaxed);
            if visits == 0 {
                break;
            }
            drop(members);
            wait(&handshake.visits, visits, UNTIL_IT_GOES_ON);
            members = self.members.lock();
        }
        let next = handshake.next.load(Ordering::Relaxed);
        if ptr::eq(members.0, handshake) {
            members.0 = next;
            return;
        }
        let mut at = members.0;
        // SAFETY: the pointer is null, or leads to a handshake of the list, whose lock is held.
        while let Some(other) = unsafe { at.as_ref() } {
            at = other.next.load(Ordering::Relaxed);
            if ptr::eq(at, handshake) {
                other.next.store(next, Ordering::Relaxed);
                return;
            }
        }
    }

    /// Calls `with` for every handshake, under the list's lock, until `with` returns false. Returns
    /// false in that case.
    pub(crate) fn each(&self, mut with: impl FnMut(&Handshake) -> bool) -> bool {
        let members = self.members.lock();
        let mut at = members.0;
        // SAFETY: the pointer is null, or leads to a handshake of the list, whose lock is held.
        while let Some(handshake) = unsafe { at.as_ref() } {
            if !with(handshake) {
                return false;
            }
            at = handshake.next.load(Ordering::Relaxed);
        }
        true
    }

    /// Calls `with` for every handshake, under no lock. Each handshake stays a member during its
    /// visit. Handshakes that join meanwhile are not visited.
    pub(crate) fn visit(&self, mut with: impl FnMut(&Handshake)) {
        let mut next = self.begin_visit(None);
        while let Some(visit) = next {
            with(visit.to);
            next = self.begin_visit(Some(&visit));
        }
    }

    /// Begins to visit the first member, or the member behind that of `before`.
    fn begin_visit(&self, before: Option<&Visit<'_>>) -> Option<Visit<'_>> {
        let members = self.members.lock();
        let forks = members.1;
        let at = match before {
            Some(visit) if visit.forks == forks => visit.to.next.load(Ordering::Relaxed),
            Some(_) => return None,
            None => members.0,
        };
        // SAFETY: the pointer is null, or a handshake of the list, whose lock is held. The
        // handshake does not part while it is visited.
        let to = unsafe { at.as_ref() }?;
        to.visits.fetch_add(1, Ordering::Relaxed);
        Some(Visit { world: self, to, forks })
    }

    #[cfg(loom)]
    pub(crate) fn enter(&self, handshake: &Handshake) {
        while !self.try_enter(handshake) {
            self.wait_until_it_goes_on();
        }
    }

    fn wait_until_it_goes_on(&self) {
        while self.stop.load(Ordering::Relaxed) != 0 {
            wait(&self.stop, 1, UNTIL_IT_GOES_ON);
        }
    }

    /// Waits while `worth_waiting` returns true. Returns whether the world goes on.
    fn goes_on_until(&self, mut worth_waiting: impl FnMut() -> bool) -> bool {
        while self.stop.load(Ordering::Relaxed) != 0 {
            if !worth_waiting() {
                return false;
            }
            wait(&self.stop, 1, UNTIL_ALL_STOPPED);
        }
        true
    }

    /// Keeps collectors and forks from stopping the world, as its heap ends. If a thread has
    /// stopped the world, waits for that thread while `worth_waiting` returns true.
    #[cfg(not(loom))]
    pub(crate) fn close(&self, mut worth_waiting: impl FnMut() -> bool) {
        while self.stop.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err()
            && self.goes_on_until(&mut worth_waiting)
        {}
    }

    /// Makes the mutator enter, unless the world is stopped. Returns whether it entered.
    pub(crate) fn try_enter(&self, handshake: &Handshake) -> bool {
        self.try_enter_or(handshake, OUT)
    }

    /// As [`World::try_enter`]. If the world is stopped, the mutator gets the state `state`.
    fn try_enter_or(&self, handshake: &Handshake, state: u32) -> bool {
        Self::come_in(handshake);
        // Acquire: the mutator sees all that the last collector did.
        if self.stop.load(Ordering::Acquire) == 0 {
            return true;
        }
        self.stand(handshake, state);
        false
    }

    /// Notes that the mutator is `IN`. The caller must read `stop` next. If `stop` is set, the
    /// mutator must leave again, unless the caller has stopped the world itself.
    pub(crate) fn come_in(handshake: &Handshake) {
        // Release: a thread that sees that the mutator is `IN` also sees the mutator's thread (see
        // `Mutator::note_thread`).
        handshake.state.store(IN, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Notes that the mutator will enter when its thread need not wait: see [`come_back`].
    pub(crate) fn come_later(&self, handshake: &Handshake) {
        self.stand(handshake, ELSEWHERE);
    }

    pub(crate) fn leave(&self, handshake: &Handshake) {
        self.stand(handshake, OUT);
    }

    fn stand(&self, handshake: &Handshake, state: u32) {
        handshake.state.store(state, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.stop.load(Ordering::Relaxed) != 0 {
            // A thread that sees the arrival sees the state, because of the fence above.
            self.arrivals.fetch_add(1, Ordering::Relaxed);
            wake(&self.arrivals);
        }
    }

    /// If the world is to stop, parks the mutator until the world goes on. Meanwhile calls `help`
    /// repeatedly. `help` returns when there is no work.
    pub(crate) fn rest(&self, handshake: &Handshake, mut help: impl FnMut()) {
        // Acquire, as in `try_enter`: another collection may have run since the wait.
        while self.stop.load(Ordering::Acquire) != 0 {
            self.stand(handshake, PARKED);
            let mut moments = 0;
            while self.stop.load(Ordering::Relaxed) != 0 {
                help();
                moments += 1;
                wait(&self.stop, 1, if moments <= MOMENTS { A_MOMENT } else { A_WHILE });
            }
            Self::come_in(handshake);
        }
    }

    /// Stops all mutators but the caller's, which is `IN`. Returns false if another collector was
    /// first. Then the caller must call [`World::rest`].
    #[cfg(loom)]
    pub(crate) fn stop(&self, me: &Handshake) -> bool {
        self.stop_until(Some(me), || true) == Stop::Done
    }

    /// As [`World::stop`], but calls `worth_waiting` before each wait, and gives up if that returns
    /// false. The caller may have no handshake.
    pub(crate) fn stop_until(
        &self,
        me: Option<&Handshake>,
        mut worth_waiting: impl FnMut() -> bool,
    ) -> Stop {
        if self.stop.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return Stop::Another;
        }
        // Orders `stop` before the states are read. Also acquires what the last collector did.
        fence(Ordering::SeqCst);
        self.each(|handshake| {
            let poll = handshake.poll.load(Ordering::Relaxed);
            // SAFETY: by the contract of `join` the word lives as long as the membership.
            unsafe { &*poll }.store(1, Ordering::Relaxed);
            true
        });
        loop {
            let seen = self.arrivals.load(Ordering::Acquire);
            if self
                .each(|handshake| me.is_some_and(|me| ptr::eq(handshake, me)) || !handshake.is_in())
            {
                return Stop::Done;
            }
            if !worth_waiting() {
                self.go_on();
                return Stop::Late;
            }
            wait(&self.arrivals, seen, UNTIL_ALL_STOPPED);
        }
    }

    /// Lets the world go on. Only the thread that stopped it calls this.
    pub(crate) fn go_on(&self) {
        self.each(|handshake| {
            let poll = handshake.poll.load(Ordering::Relaxed);
            // SAFETY: by the contract of `join` the word lives as long as the handshake is listed.
            unsafe { &*poll }.store(0, Ordering::Relaxed);
            true
        });
        self.stop.store(0, Ordering::Release);
        wake(&self.stop);
    }

    pub(crate) fn is_stopped_by(&self, forker: usize) -> bool {
        self.forker.load(Ordering::Relaxed) == forker
    }

    pub(crate) fn let_go(&self, forker: usize) {
        if self.is_stopped_by(forker) {
            self.forker.store(0, Ordering::Relaxed);
            self.go_on();
        }
    }

    /// Wakes the stopped threads, because there is work to help with.
    pub(crate) fn call_for_help(&self) {
        wake(&self.stop);
    }

    /// Removes all members but those for which `stays` returns true. Calls `with` for each removed
    /// member, and lets the world go on. Called in a forked child, where only the caller's thread
    /// is left, and for a heap that ends.
    #[cfg(not(loom))]
    pub(crate) fn forget_others(
        &self,
        stays: impl Fn(&Handshake) -> bool,
        mut with: impl FnMut(&Handshake),
    ) {
        let mut members = self.members.lock();
        let mut at = members.0;
        *members = Members(ptr::null_mut(), members.1 + 1);
        // SAFETY: the pointer is null, or leads to a handshake of the list, whose lock is held.
        while let Some(handshake) = unsafe { at.as_ref() } {
            at = handshake.next.load(Ordering::Relaxed);
            handshake.visits.store(0, Ordering::Relaxed);
            if stays(handshake) {
                // Another thread, which is not in this process, may have set the mutator's `poll`.
                let poll = handshake.poll.load(Ordering::Relaxed);
                // SAFETY: the handshake stays in the list, and its mutator's word lives as long.
                unsafe { &*poll }.store(0, Ordering::Relaxed);
                handshake.next.store(members.0, Ordering::Relaxed);
                members.0 = ptr::from_ref(handshake).cast_mut();
            } else {
                handshake.state.store(OUT, Ordering::SeqCst);
                with(handshake);
            }
        }
        self.forker.store(0, Ordering::Relaxed);
        self.moves_for.store(0, Ordering::Relaxed);
        self.stop.store(0, Ordering::SeqCst);
    }

    /// Takes the list's lock, which this thread holds across a fork.
    #[cfg(not(loom))]
    pub(crate) fn before_fork(&self) {
        self.members.acquire();
    }

    /// Releases the lock, in the parent and in the child of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`World::before_fork`] in the forking thread or its copy.
    #[cfg(not(loom))]
    pub(crate) unsafe fn after_fork(&self) {
        // SAFETY: this thread, or its original in the parent, took the lock before the fork.
        unsafe { self.members.release() };
    }
}

#[cfg(all(test, loom))]
mod loom_tests;

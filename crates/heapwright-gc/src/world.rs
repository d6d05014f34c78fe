//! The world of one heap: its mutators, and how a collector makes them stand still.
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
//! *One word*, `stop`, says whether the world is to stand still; the thread that turns it from 0 to 1 is
//! the collector. It sets every mutator's `poll`, which the fast paths look at, and waits until
//! nobody is `IN`. A thread that comes in while it is set waits, and a thread that left before need not be
//! waited for. The two sides meet as in Dekker's algorithm: a mutator writes its state and
//! then reads `stop`, the collector writes `stop` and then reads the states, each with a
//! fence between, so one of them sees the other. What was done to objects goes with the
//! same words: a thread that stops releases its state to the collector, the one that lets the world go on
//! releases `stop` to those that come.
//!
//! The collector is a mutator, and those that it stopped mark with it (see `gang`), as do
//! helpers, which have no handshake: they touch objects only while the world stands still.
//!
//! Mutators that are `OUT` come and go while the world stands still: joining and parting
//! take the list's lock for a few instructions, which the collector holds only while it
//! walks the list.
//!
//! Loom-checked (`world/loom_tests.rs`).

use core::ptr;

use heapwright_substrate::sync::Lock;
use heapwright_substrate::sync::atomic::{AtomicPtr, AtomicU32, Ordering, fence};

use super::waiting::{Patience, Then, wait, wake};

/// Away: touches no object.
const OUT: u32 = 0;
/// At work.
const IN: u32 = 1;
/// Waits until the world goes on.
const PARKED: u32 = 2;

/// Of a mutator that comes in while the world stands still.
const UNTIL_IT_GOES_ON: Patience = Patience { looks: 200, then: Then::Sleep };
/// Of the collector: mutators mostly stop within a few microseconds.
const UNTIL_ALL_STOPPED: Patience = Patience { looks: 1000, then: Then::SleepFor(1_000_000) };
/// Of threads that help, which at first hardly wait: a step is short, and a sleeper comes late.
const A_MOMENT: Patience = Patience { looks: 8, then: Then::Return };
/// How many moments.
const MOMENTS: u32 = 500;
/// And afterwards.
const A_WHILE: Patience = Patience { looks: 0, then: Then::SleepFor(1_000_000) };

/// A mutator's place in the world.
pub(crate) struct Handshake {
    state: AtomicU32,
    /// The next handshake of the list. Under the list's lock.
    next: AtomicPtr<Handshake>,
    /// Where the mutator looks whether it is to stop.
    poll: AtomicPtr<AtomicU32>,
    /// The mutator.
    owner: AtomicPtr<()>,
    /// Visits of it that are under way: until they end it does not part.
    visits: AtomicU32,
}

impl Handshake {
    /// A handshake of nobody. Zeroed memory is one.
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

    /// Whose handshake it is, as `join` was given.
    pub(crate) fn owner(&self) -> *mut () {
        self.owner.load(Ordering::Relaxed)
    }

    /// Whether the mutator is at work.
    pub(crate) fn is_in(&self) -> bool {
        // Acquire: what it did until it stopped is done.
        self.state.load(Ordering::Acquire) == IN
    }

    /// Whether the mutator waits until the world goes on, and can help.
    pub(crate) fn is_parked(&self) -> bool {
        self.state.load(Ordering::Acquire) == PARKED
    }
}

/// The head of the list of members, and how often a forked child emptied the list.
struct Members(*mut Handshake, usize);

// SAFETY: leads to members that outlive their membership, all of whose fields are atomics.
unsafe impl Send for Members {}

/// A visit of a member, which parts when the visit has ended.
struct Visit<'a> {
    world: &'a World,
    to: &'a Handshake,
    forks: usize,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let members = self.world.members.lock();
        // A forked child forgets the visits that were under way.
        if members.1 == self.forks {
            self.to.visits.fetch_sub(1, Ordering::Relaxed);
            drop(members);
            wake(&self.to.visits);
        }
    }
}

/// All mutators of a heap.
pub(crate) struct World {
    stop: AtomicU32,
    /// Moves whenever a mutator stops: where the collector sleeps.
    arrivals: AtomicU32,
    members: Lock<Members>,
}

impl World {
    /// A world without mutators, which goes on. Zeroed memory is one.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            stop: AtomicU32::new(0),
            arrivals: AtomicU32::new(0),
            members: Lock::new(Members(ptr::null_mut(), 0)),
        }
    }

    /// Adds a handshake, whose mutator, `owner`, is away.
    ///
    /// # Safety
    ///
    /// The handshake is in no world, and it and `poll` outlive its membership.
    pub(crate) unsafe fn join(&self, handshake: &Handshake, poll: &AtomicU32, owner: *mut ()) {
        let mut members = self.members.lock();
        handshake.state.store(OUT, Ordering::SeqCst);
        handshake.owner.store(owner, Ordering::Relaxed);
        handshake.poll.store(ptr::from_ref(poll).cast_mut(), Ordering::Relaxed);
        // A collector of the world it was in last may have asked it to stop as it went. A mutator
        // that is asked now finds out when it enters.
        poll.store(0, Ordering::Relaxed);
        handshake.next.store(members.0, Ordering::Relaxed);
        members.0 = ptr::from_ref(handshake).cast_mut();
    }

    /// Takes a handshake out, whose mutator is away. Waits for visits of it.
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
        // SAFETY: null, or a handshake of the list, whose lock is held.
        while let Some(other) = unsafe { at.as_ref() } {
            at = other.next.load(Ordering::Relaxed);
            if ptr::eq(at, handshake) {
                other.next.store(next, Ordering::Relaxed);
                return;
            }
        }
    }

    /// Calls `with` for every handshake, under the list's lock. False: `with` said so, and the
    /// walk ended.
    pub(crate) fn each(&self, mut with: impl FnMut(&Handshake) -> bool) -> bool {
        let members = self.members.lock();
        let mut at = members.0;
        // SAFETY: null, or a handshake of the list, whose lock is held.
        while let Some(handshake) = unsafe { at.as_ref() } {
            if !with(handshake) {
                return false;
            }
            at = handshake.next.load(Ordering::Relaxed);
        }
        true
    }

    /// Calls `with` for every handshake, under no lock, so that `with` may ask anything of the world. Each stays a member
    /// while it is visited. Those that join meanwhile are not visited.
    pub(crate) fn visit(&self, mut with: impl FnMut(&Handshake)) {
        let mut next = self.begin_visit(None);
        while let Some(visit) = next {
            with(visit.to);
            next = self.begin_visit(Some(&visit));
        }
    }

    /// Begins to visit the member that follows the one that was visited before.
    fn begin_visit(&self, before: Option<&Visit<'_>>) -> Option<Visit<'_>> {
        let members = self.members.lock();
        let forks = members.1;
        let at = match before {
            Some(visit) if visit.forks == forks => visit.to.next.load(Ordering::Relaxed),
            Some(_) => return None,
            None => members.0,
        };
        // SAFETY: null, or a handshake of the list, whose lock is held, and which does not part while it is visited.
        let to = unsafe { at.as_ref() }?;
        to.visits.fetch_add(1, Ordering::Relaxed);
        Some(Visit { world: self, to, forks })
    }

    /// The mutator comes to work. Waits while the world stands still.
    pub(crate) fn enter(&self, handshake: &Handshake) {
        while !self.try_enter(handshake) {
            while self.stop.load(Ordering::Relaxed) != 0 {
                wait(&self.stop, 1, UNTIL_IT_GOES_ON);
            }
        }
    }

    /// The mutator comes to work, unless the world stands still. Whether it did.
    pub(crate) fn try_enter(&self, handshake: &Handshake) -> bool {
        Self::come_in(handshake);
        // Acquire: what the last collector did is done.
        if self.stop.load(Ordering::Acquire) == 0 {
            return true;
        }
        self.leave(handshake);
        false
    }

    /// The mutator is at work, unless `stop` is set: which is to be read next.
    fn come_in(handshake: &Handshake) {
        handshake.state.store(IN, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The mutator goes away.
    pub(crate) fn leave(&self, handshake: &Handshake) {
        self.stand(handshake, OUT);
    }

    fn stand(&self, handshake: &Handshake, state: u32) {
        handshake.state.store(state, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.stop.load(Ordering::Relaxed) != 0 {
            // A thread that sees it sees the state: the fence is before it.
            self.arrivals.fetch_add(1, Ordering::Relaxed);
            wake(&self.arrivals);
        }
    }

    /// If the world is to stand still, the mutator does, until it goes on; calls `help` again
    /// and again meanwhile, which returns when there is nothing to help with.
    pub(crate) fn rest(&self, handshake: &Handshake, mut help: impl FnMut()) {
        // Acquire, as in `enter`: between the wait and this look there may have been another
        // collection.
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

    /// Makes the world stand still, but for the caller, which is at work. False: another
    /// collector was first, and the caller is to [`World::rest`].
    pub(crate) fn stop(&self, me: &Handshake) -> bool {
        self.stop_until(Some(me), || true)
    }

    /// As [`World::stop`], as long as it is `worth_waiting`; the caller may have no handshake. False
    /// also if somebody did not stop in time: then the world goes on.
    pub(crate) fn stop_until(
        &self,
        me: Option<&Handshake>,
        worth_waiting: impl Fn() -> bool,
    ) -> bool {
        if self.stop.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        // Before the states are read. What the last collector did is done, too.
        fence(Ordering::SeqCst);
        self.each(|handshake| {
            let poll = handshake.poll.load(Ordering::Relaxed);
            // SAFETY: by the contract of `join` it lives as long as the membership.
            unsafe { &*poll }.store(1, Ordering::Relaxed);
            true
        });
        loop {
            let seen = self.arrivals.load(Ordering::Acquire);
            if self
                .each(|handshake| me.is_some_and(|me| ptr::eq(handshake, me)) || !handshake.is_in())
            {
                return true;
            }
            if !worth_waiting() {
                self.go_on();
                return false;
            }
            wait(&self.arrivals, seen, UNTIL_ALL_STOPPED);
        }
    }

    /// Lets the world go on. Only by the thread that made it stand still.
    pub(crate) fn go_on(&self) {
        self.each(|handshake| {
            let poll = handshake.poll.load(Ordering::Relaxed);
            // SAFETY: a handshake of the list has a mutator, whose word lives as long as it is listed.
            unsafe { &*poll }.store(0, Ordering::Relaxed);
            true
        });
        self.stop.store(0, Ordering::Release);
        wake(&self.stop);
    }

    /// Wakes those that stand still, because there is something to help with.
    pub(crate) fn call_for_help(&self) {
        wake(&self.stop);
    }

    /// In a forked child, where only the caller's thread is left: takes all members out but
    /// `me`, and lets the world go on. Calls `with` for those taken out. Also where a heap ends.
    #[cfg(not(loom))]
    pub(crate) fn forget_others(&self, me: Option<&Handshake>, mut with: impl FnMut(&Handshake)) {
        let mut members = self.members.lock();
        let mut at = members.0;
        *members = Members(ptr::null_mut(), members.1 + 1);
        // SAFETY: null, or a handshake of the list, whose lock is held.
        while let Some(handshake) = unsafe { at.as_ref() } {
            at = handshake.next.load(Ordering::Relaxed);
            handshake.visits.store(0, Ordering::Relaxed);
            if me.is_some_and(|me| ptr::eq(me, handshake)) {
                // Another thread may have asked it, and is not here to take that back.
                let poll = handshake.poll.load(Ordering::Relaxed);
                // SAFETY: the handshake is kept in the list, and its mutator's word lives as long as
                // it is.
                unsafe { &*poll }.store(0, Ordering::Relaxed);
                handshake.next.store(members.0, Ordering::Relaxed);
                members.0 = ptr::from_ref(handshake).cast_mut();
            } else {
                handshake.state.store(OUT, Ordering::SeqCst);
                with(handshake);
            }
        }
        self.stop.store(0, Ordering::SeqCst);
    }

    /// Holds the list's lock across a fork.
    #[cfg(not(loom))]
    pub(crate) fn before_fork(&self) {
        self.members.acquire();
    }

    /// Gives it back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`World::before_fork`] in the forking thread or its copy.
    #[cfg(not(loom))]
    pub(crate) unsafe fn after_fork(&self) {
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.members.release() };
    }
}

#[cfg(all(test, loom))]
mod loom_tests;

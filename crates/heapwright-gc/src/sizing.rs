//! Sizing: how much a heap may grow, decided after each collection: by a fixed factor, by balance,
//! or by the runtime.
//!
//! ```text
//!   fixed     live * factor                          (see `growth`)
//!   balance   live + sqrt(live * g / s * balance)    g: bytes allocated in a second of the program
//!                                                    s: bytes marked in a second of the collector
//!   policy    the runtime's answer
//! ```
//!
//! **Balance** is MemBalancer's square-root rule (Kirisame, Shenoy, Panchekha: "Optimal heap limits
//! for reducing browser memory use", OOPSLA 2022). Heaps with the same `balance` save time evenly:
//! a byte moved from one heap to another costs more time than it saves. `balance` is in bytes. A
//! heap with `balance` live bytes that allocates as fast as it is marked may double.
//!
//! Measurements go into sums that are halved at each major collection. The collector's time is the
//! marking thread's CPU time plus the time of the sweep. All other time is the program's, by the
//! clock, so an idle heap gives memory up at its next collection. After a minor collection, only a
//! policy decides anew. Called by `cycle` when marking has ended. `least` and `most` always hold.

use core::ffi::c_void;

use heapwright_substrate::os;
use heapwright_substrate::sync::Lock;

pub use super::abi::GcOutcome as Outcome;
use super::cell::{Num, clear};
use super::growth::{Rule, Target};
use super::locks::With;

/// The runtime's policy, called after a collection. Returns how many live and garbage bytes there
/// may be when the next collection ends. 0: the heap's own rule decides.
pub type Policy = unsafe extern "C" fn(outcome: *const Outcome, context: *mut c_void) -> usize;

pub(super) struct Sizing {
    policy: Lock<Asked>,
    /// The parameter of the square-root rule. 0: the factor decides.
    balance: Num,
    /// Bytes of room by the square-root rule, plus 1. 0: the factor decides.
    room: Num,
    /// The policy's last answer. 0: the heap's own rule decides.
    chosen: Num,
    /// Live bytes without garbage that may be old: the goal is a multiple of these.
    pub(super) known: Num,
    /// The number of mutators: each gets at least `least` bytes. Any thread may change it.
    pub(super) mutators: Num,
    /// The time of the last measurement. `swept`: nanoseconds of sweeping until then.
    ended: Num,
    swept: Num,
    /// CPU time of marking steps since the last measurement.
    marking: Num,
    allocated: Num,
    marked: Num,
    collector: Num,
    mutator: Num,
    factor: Num,
    least: Num,
    most: Num,
}

#[derive(Clone, Copy)]
struct Asked(Option<Policy>, *mut c_void);

// SAFETY: a context is the runtime's. The runtime promises that any thread may call its function.
unsafe impl Send for Asked {}

fn room(live: usize, balance: usize, sums: [usize; 4]) -> usize {
    let [allocated, marked, collector, mutator] = sums.map(|sum| sum.max(1) as f64);
    // g / s: bytes allocated while one byte is marked.
    let speed = allocated / mutator * collector / marked;
    ((live as f64 * balance as f64 * speed) as u128).isqrt() as usize
}

impl Sizing {
    pub(super) fn begin(&self) {
        self.ended.set(os::now_ns() as usize);
    }

    pub(super) fn target(&self, incremental: bool) -> Target {
        let (factor, least, most) = (self.factor.get(), self.least.get(), self.most.get());
        Target { factor, least, most, incremental }
    }

    /// Changes the factor and the limits. Any thread may call this.
    pub(super) fn set_target(&self, factor: usize, least: usize, most: usize) {
        self.factor.set(factor);
        self.least.set(least);
        self.most.set(most);
    }

    pub(super) fn choose(&self, policy: Option<Policy>, context: *mut c_void) {
        let mut asked = self.policy.lock();
        *asked = Asked(policy, context);
        self.chosen.set(0);
    }

    /// From now on, sizes the heap by the square-root rule, or by the factor if `bytes` is 0.
    pub(super) fn balance(&self, bytes: usize) {
        // Locked, so no thread adds to the sums.
        let _asked = self.policy.lock();
        if self.balance.replace(bytes) == 0 {
            clear!(self: allocated marked collector mutator);
        }
        self.room.set(0);
    }

    /// Returns the rule that decides how far the heap may grow.
    pub(super) fn rule(&self) -> Rule {
        match self.chosen.get() {
            0 => self.own_rule(),
            bytes => Rule::Bytes(bytes),
        }
    }

    /// Returns the rule that decides if the policy does not.
    fn own_rule(&self) -> Rule {
        self.room.get().checked_sub(1).map_or(Rule::Factor, Rule::Room)
    }

    /// Notes that a step of marking has ended, which took `cpu` nanoseconds.
    pub(super) fn end_step(&self, cpu: u64) {
        self.marking.add(cpu as usize);
    }

    pub(super) fn end(&self) {
        self.choose(None, core::ptr::null_mut());
        self.balance(0);
        clear!(self: known mutators ended swept marking);
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.policy);
    }
}

pub(super) struct Measured {
    pub(super) live: usize,
    pub(super) allocated: usize,
    pub(super) marked: usize,
    /// Nanoseconds of CPU time of the last step so far. `swept`: nanoseconds of sweeping, ever.
    pub(super) step: usize,
    pub(super) swept: usize,
    /// The collection's number. `minor`: whether it is a minor one.
    pub(super) cycle: usize,
    pub(super) minor: bool,
}

impl Sizing {
    pub(super) fn size(&self, target: &Target, measured: &Measured) {
        let Measured { live, allocated, marked, step, swept, cycle, minor } = *measured;
        // Locked during the call, so the old policy no longer runs when `choose` returns.
        let asked = self.policy.lock();
        let Asked(policy, context) = *asked;
        let now = os::now_ns() as usize;
        // The next sum begins negative, because `end_step` will add the whole step to it.
        let marking = self.marking.replace(step.wrapping_neg()).wrapping_add(step);
        let collector = marking + (swept - self.swept.replace(swept).min(swept));
        let mutator = now.saturating_sub(self.ended.replace(now)).saturating_sub(collector);
        let latest = [allocated, marked, collector, mutator];
        let sums = [&self.allocated, &self.marked, &self.collector, &self.mutator];
        let balance = self.balance.get();
        if balance != 0 {
            sums.iter().zip(latest).for_each(|(sum, more)| sum.add(more));
        }
        if balance != 0 && !minor {
            self.room.set(room(live, balance, sums.map(Num::get)).saturating_add(1));
            sums.iter().for_each(|sum| sum.set(sum.get() / 2));
        }
        let Some(policy) = policy else { return };
        // After a minor collection, old garbage gets no allowance.
        let known = if minor { self.known.get().min(live) } else { live };
        let outcome = Outcome {
            size: size_of::<Outcome>(),
            live_bytes: live,
            allocated_bytes: allocated,
            marked_bytes: marked,
            goal_bytes: target.goal(known, self.mutators.get(), self.own_rule()),
            collector_ns: collector as u64,
            mutator_ns: mutator as u64,
            cycles: cycle as u64,
            minor,
        };
        // SAFETY: the runtime promised a valid policy and context.
        self.chosen.set(unsafe { policy(&raw const outcome, context) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_outcome_tells_of_the_last_collection_alone() {
        unsafe extern "C" fn keep(outcome: *const Outcome, context: *mut c_void) -> usize {
            // SAFETY: the library passes a valid outcome.
            let outcome = unsafe { outcome.read() };
            // SAFETY: the context is the test's.
            unsafe { context.cast::<Outcome>().write(outcome) };
            0
        }
        // SAFETY: zero has no accounts.
        let sizing: Sizing = unsafe { core::mem::zeroed() };
        let target = sizing.target(false);
        let mut told = Outcome::default();
        let mut measured = Measured {
            live: 10,
            allocated: 100,
            marked: 10,
            step: 0,
            swept: 5_000_000_000,
            cycle: 1,
            minor: false,
        };
        // So far the heap has marked and swept for some seconds, since the clock began.
        sizing.end_step(3_000_000_000);
        sizing.size(&target, &measured);
        sizing.choose(Some(keep), (&raw mut told).cast());
        measured.swept += 7;
        sizing.end_step(20);
        sizing.size(&target, &measured);
        assert_eq!(told.collector_ns, 27);
        assert!(told.mutator_ns < 1_000_000_000);
        // The square-root rule begins with a collection of its own, too.
        sizing.balance(1 << 20);
        assert_eq!([&sizing.allocated, &sizing.collector].map(Num::get), [0, 0]);
        sizing.size(&target, &measured);
        assert_eq!(sizing.allocated.get(), 50);
    }

    #[test]
    fn room_is_the_root_of_what_lives_and_of_speeds() {
        const MIB: usize = 1 << 20;
        // Allocated as fast as marked: a heap of `balance` bytes doubles.
        assert_eq!(room(16 * MIB, 16 * MIB, [100, 100, 5, 5]), 16 * MIB);
        assert_eq!(room(64 * MIB, 16 * MIB, [100, 100, 5, 5]), 32 * MIB);
        // Four times as fast: twice as much room. A hundredth as fast: a tenth.
        assert_eq!(room(16 * MIB, 16 * MIB, [400, 100, 5, 5]), 32 * MIB);
        assert_eq!(room(100 * MIB, 100 * MIB, [100, 100, 5, 500]), 10 * MIB);
        assert_eq!(room(0, 16 * MIB, [0; 4]), 0);
        assert!(room(usize::MAX, usize::MAX, [usize::MAX, 1, usize::MAX, 1]) > 0);
    }
}

//! Sizing: how much a heap may grow, decided anew after each collection: by a fixed factor, by
//! balance, or by the runtime.
//!
//! ```text
//!   fixed     live * factor                          (see `growth`)
//!   balance   live + sqrt(live * g / s * balance)    g: bytes allocated in a second of the program's
//!                                                    s: bytes marked in a second of the collector's
//!   policy    what the runtime answers
//! ```
//!
//! **Balance** is MemBalancer's square-root rule (Kirisame, Shenoy, Panchekha: "Optimal heap limits
//! for reducing browser memory use", OOPSLA 2022): of several heaps, each of which has that limit
//! with the same `balance`, none could have a byte of another's and save more time with it than the
//! other loses. A fixed factor gives a large heap in which nothing happens much, and a small one
//! that is busy little. `balance` is in bytes: a heap of which so many live, and which allocates as
//! fast as it is marked, may double.
//!
//! What is measured goes into sums of which older ones count half at each collection. The
//! collector's time is the CPU time of the thread that marks and the time of the sweep; the
//! program's is all else by the clock, so that a heap that rests gives memory up at its next
//! collection. With generations minor collections decide nothing here: the room is that of the last
//! major one.
//!
//! Asked by `cycle` when marking has ended. Whatever is answered, `least` and `most` hold.

use core::ffi::c_void;

use heapwright_substrate::os;
use heapwright_substrate::sync::Lock;

pub use super::abi::GcOutcome as Outcome;
use super::cell::{Num, clear};
use super::growth::Target;
use super::locks::With;

/// What is asked after a collection: how many bytes may be live and garbage when the next one ends.
/// 0: as the heap's own rule says.
pub type Policy = unsafe extern "C" fn(outcome: *const Outcome, context: *mut c_void) -> usize;

/// How one heap is sized. Zero: by the factor.
pub(super) struct Sizing {
    policy: Lock<Asked>,
    /// The rule's only number; 0: the factor.
    balance: Num,
    /// What may be allocated until the next collection ends, and 1; 0: as the factor says.
    room: Num,
    /// When marking ended last; nanoseconds of sweeping until then.
    ended: Num,
    swept: Num,
    /// CPU time of marking in this cycle, of steps that are over.
    marking: Num,
    /// Sums, of older cycles a part.
    allocated: Num,
    marked: Num,
    collector: Num,
    mutator: Num,
    /// How much memory the heap may have in any case (see `growth::Target`).
    factor: Num,
    least: Num,
    most: Num,
}

#[derive(Clone, Copy)]
struct Asked(Option<Policy>, *mut c_void);

// SAFETY: a context is the runtime's, which promises that its function may be called by any thread.
unsafe impl Send for Asked {}

/// What may be allocated by the square-root rule.
fn room(live: usize, balance: usize, sums: [usize; 4]) -> usize {
    let [allocated, marked, collector, mutator] = sums.map(|sum| sum.max(1) as f64);
    // g / s: how many bytes are allocated while one is marked.
    let speed = allocated / mutator * collector / marked;
    ((live as f64 * balance as f64 * speed) as u128).isqrt() as usize
}

impl Sizing {
    /// A heap begins.
    pub(super) fn begin(&self) {
        self.ended.set(os::now_ns() as usize);
    }

    /// How much memory the heap may have, which marks in steps or not.
    pub(super) fn target(&self, incremental: bool) -> Target {
        let (factor, least, most) = (self.factor.get(), self.least.get(), self.most.get());
        Target { factor, least, most, incremental }
    }

    /// Changes that. By any thread.
    pub(super) fn set_target(&self, factor: usize, least: usize, most: usize) {
        self.factor.set(factor);
        self.least.set(least);
        self.most.set(most);
    }

    /// Chooses the policy; none.
    pub(super) fn choose(&self, policy: Option<Policy>, context: *mut c_void) {
        *self.policy.lock() = Asked(policy, context);
        self.room.set(0);
    }

    /// From now on the heap is sized by the square-root rule; 0: by the factor.
    pub(super) fn balance(&self, bytes: usize) {
        self.balance.set(bytes);
        self.room.set(0);
    }

    /// What may be allocated until the next collection ends. `None`: as the factor says.
    pub(super) fn room(&self) -> Option<usize> {
        self.room.get().checked_sub(1)
    }

    /// A step of marking has ended, which took so many nanoseconds of CPU time.
    pub(super) fn end_step(&self, cpu: u64) {
        self.marking.add(cpu as usize);
    }

    /// Forgets all.
    pub(super) fn end(&self) {
        self.choose(None, core::ptr::null_mut());
        clear!(self: balance room ended swept marking allocated marked collector mutator);
    }

    /// Hands its lock to `with`.
    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.policy);
    }
}

/// What was measured of a collection whose marking has ended.
pub(super) struct Measured {
    pub(super) live: usize,
    pub(super) allocated: usize,
    pub(super) marked: usize,
    /// Nanoseconds of CPU time of the last step so far, and of sweeping, ever.
    pub(super) step: usize,
    pub(super) swept: usize,
    /// Its number, and whether it is a minor one.
    pub(super) cycle: usize,
    pub(super) minor: bool,
}

impl Sizing {
    /// Marking has ended: decides how much the heap may grow.
    pub(super) fn size(&self, target: &Target, measured: &Measured) {
        let Measured { live, allocated, marked, step, swept, cycle, minor } = *measured;
        // Under the lock: who has chosen another policy knows that this one is not being asked.
        let asked = self.policy.lock();
        let Asked(policy, context) = *asked;
        if policy.is_none() && self.balance.get() == 0 {
            return;
        }
        let now = os::now_ns() as usize;
        // What the step takes from now on is the next cycle's: all of it is added when it ends.
        let marking = self.marking.replace(step.wrapping_neg()).wrapping_add(step);
        let collector = marking + (swept - self.swept.replace(swept).min(swept));
        let mutator = now.saturating_sub(self.ended.replace(now)).saturating_sub(collector);
        let latest = [allocated, marked, collector, mutator];
        let sums = [&self.allocated, &self.marked, &self.collector, &self.mutator];
        for (sum, more) in sums.iter().zip(latest) {
            sum.add(more);
        }
        if !minor && self.balance.get() != 0 {
            let values = sums.map(Num::get);
            self.room.set(room(live, self.balance.get(), values).saturating_add(1));
            sums.iter().for_each(|sum| sum.set(sum.get() / 2));
        }
        let Some(policy) = policy else { return };
        let outcome = Outcome {
            size: size_of::<Outcome>(),
            live_bytes: live,
            allocated_bytes: allocated,
            marked_bytes: marked,
            goal_bytes: target.goal(live, 1, self.room()),
            collector_ns: collector as u64,
            mutator_ns: mutator as u64,
            cycles: cycle as u64,
            minor,
        };
        // SAFETY: the runtime's duty.
        let goal = unsafe { policy(&raw const outcome, context) };
        let chosen = if goal == 0 { 0 } else { 1 + goal.saturating_sub(live) };
        if goal != 0 || self.balance.get() == 0 {
            self.room.set(chosen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_the_root_of_what_lives_and_of_speeds() {
        const MIB: usize = 1 << 20;
        // As fast allocated as marked: a heap of `balance` bytes doubles.
        assert_eq!(room(16 * MIB, 16 * MIB, [100, 100, 5, 5]), 16 * MIB);
        assert_eq!(room(64 * MIB, 16 * MIB, [100, 100, 5, 5]), 32 * MIB);
        // Four times as fast: twice as much room. A hundredth as fast: a tenth.
        assert_eq!(room(16 * MIB, 16 * MIB, [400, 100, 5, 5]), 32 * MIB);
        assert_eq!(room(100 * MIB, 100 * MIB, [100, 100, 5, 500]), 10 * MIB);
        assert_eq!(room(0, 16 * MIB, [0; 4]), 0);
        assert!(room(usize::MAX, usize::MAX, [usize::MAX, 1, usize::MAX, 1]) > 0);
    }
}

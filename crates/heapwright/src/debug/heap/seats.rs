//! Sitting down: how a call finds its thread's seat, and who sits elsewhere.
//!
//! ```text
//!   desk --> seat, free?  sit there                           two loads and a store
//!       \-> none yet      one is made
//!       \-> busy, or no desk: the common seat, under its lock
//! ```
//!
//! See `seat` for what a seat is.
//!
//! Called by the rest of the heap.

use crate::chunk::metadata;
use crate::registry::desks::{self, DESKS};
use crate::sync::atomic::Ordering;

use super::super::scope;
use super::super::seat::{Mine, Seat, system_thread};
use super::Heap;

/// The caller's seat, entered: whoever has one has what is the seat's thread's alone, and
/// there is one of a seat at a time. One word, because it is made at every call.
pub(crate) struct Seated {
    seat: &'static Seat,
}

impl Drop for Seated {
    #[inline]
    fn drop(&mut self) {
        self.seat.leave();
    }
}

impl Seated {
    /// Enters a seat. `None`: somebody is in it.
    #[inline]
    fn enter(seat: &'static Seat) -> Option<Self> {
        seat.enter().then_some(Self { seat })
    }

    /// The seat.
    #[inline]
    pub(super) fn seat(&self) -> &'static Seat {
        self.seat
    }

    /// What is the seat's thread's alone.
    #[inline]
    pub(crate) fn mine(&mut self) -> &mut Mine {
        // SAFETY: the seat is entered, so this is its only `Seated`, and borrowed for as long
        // as the reference lives.
        unsafe { self.seat.mine() }
    }
}

impl Heap {
    /// The seat of a desk, if it has one.
    #[inline]
    pub(super) fn seat_at(&self, desk: usize) -> Option<&'static Seat> {
        // SAFETY: null, or a seat, which is never freed.
        unsafe { self.seats.get(desk)?.load(Ordering::Relaxed).as_ref() }
    }

    /// The seats that there are, the common one last.
    pub(super) fn all_seats(&self) -> impl Iterator<Item = &'static Seat> {
        let used = self.desks_used.load(Ordering::Acquire);
        let seats = self.seats[..used].iter().map(|seat| seat.load(Ordering::Acquire));
        let seats = seats.chain([self.common.load(Ordering::Acquire)]);
        // SAFETY: null, or a seat, which is never freed.
        seats.filter_map(|seat| unsafe { seat.as_ref() })
    }

    /// Sits the calling thread down. `None`: there is no memory for its seat.
    #[inline]
    pub(crate) fn sit(&'static self) -> Option<Seated> {
        let desk = desks::mine();
        if let Some(seat) = self.seat_at(desk)
            && let Some(mut seated) = Seated::enter(seat)
        {
            let sitting = desks::sitting(desk);
            if seated.mine().is_new(sitting) {
                self.welcome(&mut seated, sitting);
            }
            return Some(seated);
        }
        self.sit_slow(desk)
    }

    #[cold]
    fn sit_slow(&'static self, desk: usize) -> Option<Seated> {
        let desk = if desk < DESKS { Some(desk) } else { desks::take() };
        if let Some(desk) = desk {
            let Some(seat) = self.seat_at(desk) else {
                let seat = Self::make_seat()?;
                // First: a child that another thread forks in between must not have a
                // seat that nobody counts.
                self.desks_used.fetch_max(desk + 1, Ordering::Release);
                self.seats[desk].store(seat, Ordering::Release);
                return self.sit();
            };
            if let Some(mut seated) = Seated::enter(seat) {
                self.welcome(&mut seated, desks::sitting(desk));
                return Some(seated);
            }
        }
        // Nobody's desk, or a signal handler above its own thread's call.
        let owes = self.common_order.acquire();
        if self.common.load(Ordering::Relaxed).is_null()
            && let Some(seat) = Self::make_seat()
        {
            self.common.store(seat, Ordering::Release);
        }
        // SAFETY: null, or a seat, which is never freed.
        let Some(seat) = (unsafe { self.common.load(Ordering::Relaxed).as_ref() }) else {
            if owes {
                // SAFETY: taken above.
                unsafe { self.common_order.release() };
            }
            return None;
        };
        // Entered or not: who has the order is the only one here.
        seat.enter();
        if owes {
            seat.owe(&self.common_order);
        }
        let mut seated = Seated { seat };
        // Whoever comes is another thread than the last one, or is not.
        let thread = system_thread();
        if seated.mine().is_new(thread) {
            self.welcome_again(&mut seated, thread);
        }
        Some(seated)
    }

    fn make_seat() -> Option<*mut Seat> {
        let seat = metadata::alloc(size_of::<Seat>(), align_of::<Seat>());
        // Zeroed memory is a seat that nobody sat in.
        (!seat.is_null()).then_some(seat.cast())
    }

    /// Sits a thread down that may have been here before.
    #[cold]
    fn welcome_again(&self, seated: &mut Seated, thread: u32) {
        match self.threads.known(thread) {
            Some(number) => seated.mine().sit(thread, number),
            None => self.welcome(seated, thread),
        }
    }

    #[cold]
    fn welcome(&self, seated: &mut Seated, sitting: u32) {
        let number = self.threads.number_of(system_thread(), scope::of_this_thread());
        seated.mine().sit(sitting, number);
    }

    /// The calling thread's blocks are from now on those of the check `scope`: it gets
    /// another number.
    pub(in crate::debug) fn enter_scope(&'static self, scope: u32) {
        let desk = desks::mine();
        let Some(seat) = self.seat_at(desk) else { return };
        if let Some(mut seated) = Seated::enter(seat) {
            // One who is new here is asked when it comes.
            if !seated.mine().is_new(desks::sitting(desk)) {
                seated.mine().thread = self.threads.number_of(system_thread(), scope);
            }
        }
    }
}

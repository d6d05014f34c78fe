//! Candidates: choosing the pages whose objects are to be moved.
//!
//! ```text
//!   NO_PLAN --wanted--> COUNTING: a census of page lists --> CHOOSING: which pages go --> READY
//!                       <------- some pages at a time, until the deadline ------>
//! ```
//!
//! The choice itself is arithmetic, in `plan`. A page with a pinned object is never chosen. Another
//! page with a resized object always is. Called by `cycle` before marking, by `sweep` at its end.

use heapwright_substrate::chunk::Side;
use heapwright_substrate::os;

use super::super::array::Array;
use super::super::held::{State, StickyMarks};
use super::super::layout::{self, PAGE_LISTS};
use super::super::page::{Evacuation, Page};
use super::super::plan::{self, Choice};
use super::super::space::Space;
use super::super::trace::Trace;
use super::{ALL, CHOOSING, COUNTED, COUNTING, Chosen, DUE, Moving, NO_PLAN, Plan, READY, URGENT};

/// Pages that are visited under one lock.
const AT_A_TIME: usize = 64;

impl Moving {
    /// Decides whether the next major collection compacts, when the sweep of a collection is over.
    pub(crate) fn choose(&self, space: &Space, minor: bool) {
        if self.wanted.get() == COUNTED {
            self.wanted.set(URGENT);
            space.pacing.ask();
        }
        if !space.options().compact || minor || self.wants_major() {
            return;
        }
        let pages = space.lists.lock().bytes();
        if self.swept.replace(1) == 0 {
            self.left.set(pages);
        }
        if plan::is_due(pages, space.pacing.goal(), self.left.get()) {
            self.wanted.set(DUE);
        }
    }

    /// Chooses the pages, if the heap is to compact, a few at a time, until `deadline` (0: no
    /// limit). Returns whether nothing is left to choose. No cycle may be marking.
    pub(crate) fn plan(&self, trace: &Trace, deadline: u64) -> bool {
        let (moving, space) = (self, trace.space());
        let wanted = moving.is_wanted() || moving.is_begun();
        if !wanted || moving.is_on() || trace.generations.sticky_marks() != StickyMarks::Nothing {
            return true;
        }
        let mut plan = moving.plan.lock();
        loop {
            match moving.stage.get() {
                NO_PLAN => {
                    let Some(census) = Side::take(PAGE_LISTS * size_of::<Chosen>()) else {
                        moving.wanted.set(0);
                        return true;
                    };
                    *plan = Plan { next: 1, census, ..Plan::NONE };
                    moving.stage.set(COUNTING);
                }
                COUNTING => {
                    let through = Self::survey(space, &mut plan, |page_list, page| {
                        page_list.census.count(page.live.get(), page.slots(), page.pins.get() > 0);
                        true
                    });
                    if through {
                        let all = space.is_stressed() || moving.wanted.get() == ALL;
                        for (number, page_list) in plan.page_lists().iter_mut().enumerate() {
                            let slots = layout::slots_in_page(space.slot(number).max(1));
                            page_list.choice = page_list.census.choose(slots).1;
                            if all {
                                page_list.choice = Choice::ALL;
                            }
                        }
                        moving.stage.set(CHOOSING);
                    }
                }
                CHOOSING => {
                    let mut pages = core::mem::replace(&mut plan.pages, Array::new());
                    let through = Self::survey(space, &mut plan, |page_list, page| {
                        let goes = page_list.choice.goes(page.live.get(), page.slots());
                        if page.pins.get() > 0 || !(goes || page.resized.get() != 0) {
                            return true;
                        }
                        let chosen = pages.push(page.number.get() as u32);
                        if chosen {
                            page.incoming.forget();
                            page.set_evacuation(Evacuation::Candidate);
                        }
                        chosen
                    });
                    plan.pages = pages;
                    if through {
                        plan.census.give();
                        if moving.is_wanted() {
                            moving.wanted.set(0);
                        }
                        moving.stage.set(READY);
                        trace.note_references(true);
                        return true;
                    }
                }
                _ => return true,
            }
            if deadline != 0 && os::now_ns() >= deadline {
                return false;
            }
        }
    }

    /// Calls `with` for some of the pages that may be in a plan, and their page lists, until `with`
    /// returns false. Returns whether no page is left for this round. Then the next call begins
    /// with the first page again.
    fn survey(
        space: &Space,
        plan: &mut Plan,
        mut with: impl FnMut(&mut Chosen, &Page) -> bool,
    ) -> bool {
        // Under the lock no page comes or goes. (A page that goes later is skipped.)
        let _lists = space.lists.lock();
        let end = space.pages.made() + 1;
        let to = (plan.next + AT_A_TIME).min(end);
        for page in (plan.next..to).filter_map(|number| space.pages.get(number)) {
            let large = page.is_large() && page.resized.get() == 0;
            if page.state() == State::InUse && !large {
                let page_list = &mut plan.page_lists()[page.page_list.get()];
                if !with(page_list, page) {
                    plan.next = 1;
                    return true;
                }
            }
        }
        plan.next = if to == end { 1 } else { to };
        to == end
    }
}

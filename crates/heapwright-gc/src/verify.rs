//! Verifiers: they check that every reference is valid, and that every store was reported.
//!
//! ```text
//!   path    root -> object -> object -> object         the way to the current object
//!   stack   | object, visited | sibling | object, visited | sibling | ...
//!   seen    a bitmap like a page's marks, for each page, in side memory
//! ```
//!
//! A verifier walks depth-first from the roots. Its stack keeps the path, so each error is reported
//! with the path to it. The walk changes no state of the collection.
//!
//! - *The heap*: every reference leads to an object's first byte.
//! - *Barriers*: when marking has ended, every reachable object is marked. Otherwise an unreported
//!   store has put a reference into a black object. (`settling` verifies weak handles.)
//!
//! Any build can enable them ([`super::raw::Options::verify`]). Each costs another, slower marking
//! in each collection, and bitmaps of 0.8 % of the heap's pages.

use core::ffi::CStr;

use heapwright_substrate::chunk::Side;
use heapwright_substrate::text::Line;

use super::array::Array;
use super::bits::{self, Bits};
use super::find;
use super::heap::Heap;
use super::layout;
use super::mutator::Mutator;
use super::tracer::Tracer;

const REPORTED: usize = 10;
const PATH: usize = 12;
/// The tag of an entry whose object was visited: a part of the path.
const BEEN: usize = 1;

const SOURCES: [&str; 4] =
    ["a handle", "a finalizer that is due", "the runtime's roots", "a stack"];
/// The source of paths that begin at a kept object (see `kept`).
const KEPT: &str = "a guardian, or a finalizer that is not due,";

struct Walk<'a> {
    heap: &'a Heap,
    stack: Array<*mut u8>,
    seen: Side,
    source: &'static str,
    marked: bool,
    found: usize,
    dangling: usize,
    out_of_memory: bool,
}

impl Walk<'_> {
    /// Notes that an object was reached. Returns false if the object was reached before.
    fn see(&self, number: usize, offset: usize) -> bool {
        let bits = self.seen.at().cast::<Bits>().wrapping_add(number - 1);
        // SAFETY: the side has a bitmap for each page, zeroed at first.
        bits::set(unsafe { &*bits }, offset)
    }

    fn reach(&mut self, reference: *mut u8) {
        if reference.is_null() || reference.addr() & 7 != 0 {
            return;
        }
        // The reference leads to static data, or to an object of another heap.
        if self.heap.space.head_of(reference.addr()).is_none() {
            return;
        }
        let Some((page, offset)) = self.heap.space.object_at(reference) else {
            self.dangling += 1;
            return self.report(reference, "which is no object: it was freed, or never allocated");
        };
        if !self.see(page.number.get(), offset) {
            return;
        }
        if self.marked && !page.is_marked(offset) {
            self.report(
                reference,
                "which is not marked: it was stored there without the write barrier",
            );
        }
        if layout::is_traced(page.page_list.get()) && !self.stack.push(reference) {
            self.out_of_memory = true;
        }
    }

    fn name(&self, line: Line, object: *mut u8) -> Line {
        let line = line.address(object.addr());
        let name = self.heap.runtime().type_name(object);
        if name.is_null() {
            return line;
        }
        // SAFETY: the runtime returns a string, by its duties.
        line.text(" (").bytes(unsafe { CStr::from_ptr(name) }.to_bytes()).text(")")
    }

    #[cold]
    fn report(&mut self, reference: *mut u8, why: &str) {
        self.found += 1;
        if self.found > REPORTED {
            return;
        }
        let path = || {
            let been = self.stack.iter().rev().filter(|entry| entry.addr() & BEEN != 0);
            been.map(|entry| entry.map_addr(|at| at & !BEEN))
        };
        let line =
            Line::new().text("collected heap ").number(self.heap.space.id() as usize).text(": ");
        let line = match path().next() {
            Some(parent) => self.name(line, parent),
            None => line.text(self.source),
        };
        line.text(" leads to ").address(reference.addr()).text(", ").text(why).write();
        for (n, object) in path().enumerate() {
            let line = Line::new().text("  ").text(if n == 0 { "found in " } else { "led to by " });
            if n == PATH {
                line.text("more objects").write();
                break;
            }
            self.name(line, object).write();
        }
        Line::new().text("  led to by ").text(self.source).write();
    }

    fn has_seen(&self, object: *mut u8) -> bool {
        self.heap.space.object_at(object).is_some_and(|(page, offset)| {
            let bits = self.seen.at().cast::<Bits>().wrapping_add(page.number.get() - 1);
            // SAFETY: the side has a bitmap for each page, zeroed at first.
            bits::is_set(unsafe { &*bits }, offset)
        })
    }

    /// Visits the objects that guardians and finalizers keep for reached objects, and all objects
    /// that these lead to, until nothing is new.
    fn follow_kept(&mut self, tracer: &Tracer) {
        let Some(mut kept) = self.heap.all_kept() else {
            self.out_of_memory = true;
            return;
        };
        self.source = KEPT;
        let mut again = true;
        while core::mem::take(&mut again) {
            kept.retain(|kept| {
                let lives =
                    self.has_seen(kept.by) && (kept.and.is_null() || self.has_seen(kept.and));
                if lives {
                    again = true;
                    self.reach(kept.object);
                    self.run(tracer);
                }
                !lives
            });
        }
    }

    fn run(&mut self, tracer: &Tracer) {
        while let Some(entry) = self.stack.pop() {
            if entry.addr() & BEEN != 0 {
                continue;
            }
            if !self.stack.push(entry.map_addr(|at| at | BEEN)) {
                self.out_of_memory = true;
                return;
            }
            tracer
                .looking(|tracer| tracer.trace_all(entry), &mut |reference| self.reach(reference));
        }
    }
}

impl Heap {
    /// Walks from the roots. Returns the number of errors. Ends the program if references are wrong
    /// and `stops` is set. The world must be stopped.
    fn look_over(&self, me: &Mutator, marked: bool, stops: bool) -> usize {
        me.tracer.publish();
        let pages = self.space.pages.all().count();
        let Some(seen) = Side::take((pages * size_of::<Bits>()).max(1)) else {
            Line::new().text("no memory to verify a collected heap with").write();
            return 0;
        };
        let mut walk = Walk {
            heap: self,
            stack: Array::new(),
            seen,
            source: "",
            marked,
            found: 0,
            dangling: 0,
            out_of_memory: false,
        };
        for (number, source) in SOURCES.into_iter().enumerate() {
            walk.source = source;
            let report = |tracer: &Tracer| match number {
                0 => self.trace.handles.each(|object| tracer.mark(object)),
                1 => self.trace.finalizers.lock().each_due(|object| tracer.mark(object)),
                2 => self.runtime().roots(tracer),
                _ => self.each_mutator(|mutator| mutator.stack.scan(tracer)),
            };
            me.tracer.looking(report, &mut |reference| walk.reach(reference));
            walk.run(&me.tracer);
        }
        walk.follow_kept(&me.tracer);
        if walk.out_of_memory {
            Line::new().text("no memory to verify all of a collected heap").write();
        }
        walk.stack.end();
        walk.seen.give();
        if walk.dangling > 0 && stops {
            Self::refuse("a collected heap has references that lead to no object");
        }
        walk.found
    }

    /// Ends the program if a reachable object has no mark, because the sweep would free the object.
    pub(super) fn verify_barriers(&self, me: &Mutator) {
        if self.look_over(me, true, true) > 0 {
            Self::refuse("a store of a reference was not reported (hw_gc_write)");
        }
    }

    /// Checks that all references lead to objects, and ends the program if not.
    pub(super) fn verify(&self, me: &Mutator) {
        self.look_over(me, false, true);
    }

    /// Ends the program if a reference was stored into a leaf object, which `trace` never sees.
    pub(super) fn verify_store(&self, parent: *mut u8, child: *mut u8) {
        if let Some((_, list)) = find::list_of(parent.addr(), self.space.tag())
            && !layout::is_traced(list)
            && self.space.is_object(child)
        {
            let line =
                Line::new().text("collected heap ").number(self.space.id() as usize).text(": ");
            let line = line.address(parent.addr()).text(", a leaf, leads to ");
            line.address(child.addr()).write();
            Self::refuse("a reference was stored into a leaf object, which is not traced");
        }
    }

    pub(super) fn refuse(why: &str) -> ! {
        heapwright_substrate::misuse::collected_heap(why)
    }

    /// See [`verify`](super::raw::Mutator::verify).
    pub(super) fn verify_now(&self, me: &Mutator) -> usize {
        self.stopped(me, || self.look_over(me, false, false))
    }
}

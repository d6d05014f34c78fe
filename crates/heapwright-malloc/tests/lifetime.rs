//! Before main, after main, and in signal handlers.
mod support;
use support::{EVERY_WAY, fine};

#[test]
fn constructors_and_destructors_may_allocate() {
    fine("early_and_late.c", &EVERY_WAY);
}

#[test]
fn signal_handlers_may_allocate_where_they_could() {
    fine("signals.c", &EVERY_WAY);
}

//! The empty program: the cost of the process itself.
//!
//! The peak memory of every other workload contains the program's code, the C library and the
//! allocator's memory before the first request. Tables subtract these costs.

use crate::Workload;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "empty",
    stands_for: "A program that does nothing: the time to start with the allocator and the memory \
                 it takes before anything is asked of it.",
    threads: 1,
    live_bytes: 0,
    operations: 0,
    run: |_| 0,
};

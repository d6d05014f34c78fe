//! One pool, several threads.
//!
//! `own`: each thread repeatedly makes an object, touches it and destroys it. The result is the
//! wall time of a pair in each thread. `hand-over`: half of the threads make objects and send them
//! in parcels, the others destroy them.
//!
//! Only one thread at a time may make objects in plurality's pool. So several threads share it
//! behind a `Mutex`, as its documentation shows. `plurality, each its own` gives each thread a pool
//! instead.

use std::hint::black_box;
use std::ops::DerefMut;
use std::sync::Barrier;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use crate::measure::{Object, report, warm_host};
use crate::pairs::Maker;

const PARCEL: usize = 128;

/// The work of several threads.
#[derive(Clone, Copy)]
pub struct Work {
    /// The number of threads.
    pub threads: usize,
    /// The pairs of each thread.
    pub pairs: u64,
    /// Whether another thread destroys the objects.
    pub handed_over: bool,
}

impl Work {
    /// Runs the work, with a maker for each thread.
    pub fn with<M>(self, maker: impl Fn() -> M + Sync)
    where
        M: Maker<Object>,
        M::Handle: DerefMut<Target = Object> + Send,
    {
        if self.handed_over { hand_over(self, maker) } else { measure(self, maker) }
    }
}

/// Measures the wall time from the first thread's start to the last one's end, for a pair in each
/// thread. A worker calls `maker` in its own thread.
fn measure<M>(work: Work, maker: impl Fn() -> M + Sync)
where
    M: Maker<Object>,
    M::Handle: DerefMut<Target = Object>,
{
    let barrier = Barrier::new(work.threads);
    let start = std::thread::scope(|scope| {
        let worker = || {
            let mut maker = maker();
            let mut go = |pairs| {
                for i in 0..pairs {
                    let mut handle = black_box(maker.make(Object::new(i)));
                    handle.a += 1;
                    maker.end(handle);
                }
            };
            go(work.pairs / 10);
            barrier.wait();
            let start = Instant::now();
            go(work.pairs);
            start
        };
        let workers: Vec<_> = (0..work.threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).min()
    });
    print_figures(start, work);
}

fn hand_over<M>(work: Work, maker: impl Fn() -> M + Sync)
where
    M: Maker<Object>,
    M::Handle: DerefMut<Target = Object> + Send,
{
    let couples = work.threads / 2;
    let (barrier, maker) = (&Barrier::new(couples), &maker);
    let start = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..couples)
            .map(|_| {
                let (sender, receiver) = sync_channel::<Vec<M::Handle>>(4);
                scope.spawn(move || {
                    let mut ender = maker();
                    for parcel in receiver {
                        for mut handle in parcel {
                            handle.a += 1;
                            ender.end(handle);
                        }
                    }
                });
                scope.spawn(move || {
                    let mut maker = maker();
                    barrier.wait();
                    let start = Instant::now();
                    for first in (0..work.pairs).step_by(PARCEL) {
                        let parcel = (0..PARCEL as u64).map(|i| maker.make(Object::new(first + i)));
                        if sender.send(parcel.collect()).is_err() {
                            break;
                        }
                    }
                    start
                })
            })
            .collect();
        makers.into_iter().filter_map(|maker| maker.join().ok()).min()
    });
    print_figures(start, work);
}

/// Prints the time. The scope has just ended, and with it the last of the threads.
fn print_figures(start: Option<Instant>, work: Work) {
    let spent = start.map_or(f64::NAN, |start| start.elapsed().as_nanos() as f64);
    report(spent / work.pairs as f64);
}

/// Runs `NAME own|hand-over THREADS PAIRS`.
pub fn run(words: &[&str]) -> Option<()> {
    let [name, shape, threads, pairs] = *words else { return None };
    let work = Work {
        threads: threads.parse().ok()?,
        pairs: pairs.parse().ok()?,
        handed_over: shape == "hand-over",
    };
    warm_host(8 << 20);
    crate::peers::shared(name, work).or_else(|| crate::ours::shared(name, work))
}

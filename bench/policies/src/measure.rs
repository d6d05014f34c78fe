//! Measures the costs of operations on this machine: two CPUs are enough.
//!
//! ```text
//!   try_unlock, look, clock, wake_none   loops of one thread; the lower quartile of many
//!   line                                 two threads pass a word to and fro
//!   wake_call, wake_latency              a thread wakes another that sleeps on an idle CPU
//!   switch, slice                        two threads on one CPU (this program, under taskset)
//!   op, work                             t-test1's loop over heapwright, each call timed
//! ```
//!
//! Other work on the machine only makes operations slower, so short operations count by their lower
//! quartile. Single operations longer than [`INTERRUPTED`] are left out. Thread parking and
//! condition variables of std are futexes on Linux, as the library's waiting.

use std::hint::{black_box, spin_loop};
use std::mem::MaybeUninit;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar};
use std::thread;
use std::time::{Duration, Instant};

use figures::machine::machine;
use figures::random::Random;

use crate::calibration::{Calibration, Costs};

const INTERRUPTED: u64 = 300_000;

const PARTS: usize = 32;

/// A list's head and its first block, if another CPU used the cache last. Assumed.
const COLD_LINES: u64 = 2;

/// Measures all costs, which takes seconds.
pub fn calibrate() -> Result<Calibration, String> {
    if thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Err("a cache line can only be passed between two CPUs; here is one".to_owned());
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let clock = clock();
    let wake_none = wake_none();
    let (wake_call, wake_latency) = wake();
    let (op, work) = operations(clock);
    let (handoff, slice) = one_cpu()?;
    let costs = Costs {
        try_unlock: try_unlock(),
        line: line(),
        look: look(),
        clock,
        wake_none,
        wake_call,
        wake_latency,
        // A handoff contains a call to wake and one to sleep, which are not the switch.
        switch: handoff.saturating_sub(2 * wake_none),
        slice,
        cold_lines: COLD_LINES,
        op,
        work,
    };
    Ok(Calibration {
        date: today()?,
        machine: machine(),
        load: load.split(' ').next().unwrap_or("").to_owned(),
        costs,
    })
}

fn lower_quartile(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 4).copied().unwrap_or(0)
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the nanoseconds of one of `calls` calls, rounded.
fn each(calls: u32, mut call: impl FnMut()) -> u64 {
    let blocks = (0..200).map(|_| {
        let start = Instant::now();
        for _ in 0..calls {
            call();
        }
        (ns(start.elapsed()) + u64::from(calls / 2)) / u64::from(calls)
    });
    lower_quartile(blocks.collect())
}

/// Measures the library's try and unlock: one locked instruction, a store, a look for sleepers.
fn try_unlock() -> u64 {
    let (state, sleepers) = (AtomicU32::new(0), AtomicU32::new(0));
    each(1000, || {
        let (state, sleepers) = black_box((&state, &sleepers));
        if state.fetch_or(1, Ordering::Acquire) == 0 {
            state.store(0, Ordering::Release);
        }
        black_box(sleepers.load(Ordering::Relaxed));
    })
}

fn look() -> u64 {
    let state = AtomicU32::new(1);
    each(1000, || {
        black_box(black_box(&state).load(Ordering::Relaxed));
        spin_loop();
    })
}

fn clock() -> u64 {
    each(1000, || {
        black_box(Instant::now());
    })
}

fn wake_none() -> u64 {
    let nobody = Condvar::new();
    each(1000, || nobody.notify_one())
}

/// Returns half the time that a word takes to another CPU and back.
fn line() -> u64 {
    const TURNS: u32 = 500;
    const BLOCKS: u32 = 400;
    let word = Arc::new(AtomicU32::new(0));
    let other = thread::spawn({
        let word = Arc::clone(&word);
        move || {
            for turn in 0..TURNS * BLOCKS {
                while word.load(Ordering::Acquire) != 2 * turn + 1 {
                    spin_loop();
                }
                word.store(2 * turn + 2, Ordering::Release);
            }
        }
    });
    let mut blocks = Vec::new();
    for block in 0..BLOCKS {
        let start = Instant::now();
        for turn in block * TURNS..(block + 1) * TURNS {
            word.store(2 * turn + 1, Ordering::Release);
            while word.load(Ordering::Acquire) != 2 * turn + 2 {
                spin_loop();
            }
        }
        blocks.push(ns(start.elapsed()) / u64::from(2 * TURNS));
    }
    let _ = other.join();
    lower_quartile(blocks)
}

/// Returns the cost of a wake for the caller, and the time until the sleeper runs.
fn wake() -> (u64, u64) {
    const ROUNDS: u64 = 400;
    let began = Instant::now();
    // The number of the round for which the other thread sleeps, and the time at which it ran.
    let (sleeps, ran) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (go, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let other = thread::spawn({
        let (sleeps, ran, go, over) =
            (Arc::clone(&sleeps), Arc::clone(&ran), Arc::clone(&go), Arc::clone(&over));
        move || {
            for round in 1..=ROUNDS {
                sleeps.store(round, Ordering::Release);
                while go.load(Ordering::Acquire) < round {
                    thread::park();
                }
                ran.store(ns(began.elapsed()), Ordering::Release);
            }
            over.store(true, Ordering::Release);
        }
    });
    let (mut calls, mut latencies) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        while sleeps.load(Ordering::Acquire) != round {
            spin_loop();
        }
        let until = Instant::now() + Duration::from_micros(50);
        while Instant::now() < until {
            spin_loop();
        }
        ran.store(0, Ordering::Release);
        go.store(round, Ordering::Release);
        let before = ns(began.elapsed());
        other.thread().unpark();
        let after = ns(began.elapsed());
        let at = loop {
            let at = ran.load(Ordering::Acquire);
            if at != 0 || over.load(Ordering::Acquire) {
                break at;
            }
            spin_loop();
        };
        calls.push(after - before);
        latencies.push(at.saturating_sub(before));
    }
    let _ = other.join();
    (lower_quartile(calls), lower_quartile(latencies))
}

/// Runs this program again on one CPU, for [`share_one_cpu`].
fn one_cpu() -> Result<(u64, u64), String> {
    let program = std::env::current_exe().map_err(|e| format!("who am I? {e}"))?;
    let output = Command::new("taskset")
        .args(["-c", &first_cpu()])
        .arg(program)
        .arg("calibrate-one-cpu")
        .output()
        .map_err(|e| format!("taskset (util-linux) is needed to measure on one CPU: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(handoff)), Some(Ok(slice))) => Ok((handoff, slice)),
        _ => Err(format!(
            "taskset did not run this program on one CPU: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

fn first_cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = list.unwrap_or("0").trim().split([',', '-']).next().unwrap_or("0");
    first.to_owned()
}

/// Measures two threads on one CPU. The first figure is the time of a handoff: a thread wakes the
/// other and sleeps. The second is the time that a thread runs before the other does.
pub fn share_one_cpu() -> (u64, u64) {
    (handoff(), slice())
}

fn handoff() -> u64 {
    const TURNS: u32 = 100;
    const BLOCKS: u32 = 100;
    let word = Arc::new(AtomicU32::new(0));
    let first = thread::current();
    let other = thread::spawn({
        let word = Arc::clone(&word);
        move || {
            for turn in 0..TURNS * BLOCKS {
                while word.load(Ordering::Acquire) != 2 * turn + 1 {
                    thread::park();
                }
                word.store(2 * turn + 2, Ordering::Release);
                first.unpark();
            }
        }
    });
    let mut blocks = Vec::new();
    for block in 0..BLOCKS {
        let start = Instant::now();
        for turn in block * TURNS..(block + 1) * TURNS {
            word.store(2 * turn + 1, Ordering::Release);
            other.thread().unpark();
            while word.load(Ordering::Acquire) != 2 * turn + 2 {
                thread::park();
            }
        }
        blocks.push(ns(start.elapsed()) / u64::from(2 * TURNS));
    }
    let _ = other.join();
    lower_quartile(blocks)
}

fn slice() -> u64 {
    // Shorter slices are interrupts, longer ones include other programs.
    const LEAST: u64 = 300_000;
    fn gaps(until: Instant) -> Vec<u64> {
        let mut gaps = Vec::new();
        let mut last = Instant::now();
        while last < until {
            let now = Instant::now();
            let gap = ns(now - last);
            if gap >= LEAST {
                gaps.push(gap);
            }
            last = now;
        }
        gaps
    }
    let until = Instant::now() + Duration::from_millis(800);
    let other = thread::spawn(move || gaps(until));
    let mut all = gaps(until);
    all.extend(other.join().unwrap_or_default());
    lower_quartile(all).max(LEAST)
}

/// t-test1's loop in one thread: 20 bins, at most 29 frees, then at most 29 allocations, each at a
/// random bin. Sizes go up to 100,000, and each 2047th byte is written. Of the allocations, 1.6 %
/// are zeroed and up to 7.8 % make a bin larger. The 0.4 % with an alignment are plain here.
///
/// `op` is the time in calls of the allocator, `work` all other time.
fn operations(clock: u64) -> (Vec<u64>, Vec<u64>) {
    const BINS: usize = 20;
    const MOST: usize = 30;
    const SIZES: usize = 100_000;
    const TIMED: usize = 400_000;
    let mut random = Random::new(7);
    let mut bins: Vec<Vec<u8>> = vec![Vec::new(); BINS];
    let (mut op, mut work) = (Vec::with_capacity(2 * TIMED), Vec::with_capacity(2 * TIMED));
    let mut last = Instant::now();
    let mut timed = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        call();
        let end = Instant::now();
        op.push(ns(end - start));
        work.push(ns(start - last));
        last = end;
        op.len()
    };
    let mut done = 0;
    while done < TIMED {
        for _ in 0..random.below(MOST) {
            let mut block = std::mem::take(&mut bins[random.below(BINS)]);
            if block.capacity() != 0 {
                done = timed(&mut || drop(std::mem::take(&mut block)));
            }
        }
        for _ in 0..random.below(MOST) {
            let bin = &mut bins[random.below(BINS)];
            let size = 1 + random.below(SIZES);
            let kind = random.below(1024);
            let mut block = std::mem::take(bin);
            if (20..100).contains(&kind) && size > block.capacity() {
                timed(&mut || block.reserve_exact(size));
            } else {
                if block.capacity() != 0 {
                    timed(&mut || drop(std::mem::take(&mut block)));
                }
                if (4..20).contains(&kind) {
                    timed(&mut || block = black_box(vec![0; size]));
                    block.clear();
                } else {
                    timed(&mut || block = black_box(Vec::with_capacity(size)));
                }
            }
            for byte in block.spare_capacity_mut().iter_mut().step_by(2047) {
                *black_box(byte) = MaybeUninit::new(1);
            }
            *bin = block;
        }
    }
    // The first tenth warms up.
    let begin = op.len() / 10;
    (parts(&op[begin..], clock), parts(&work[begin..], clock))
}

/// Returns the means of equal parts of the sorted times, without the clock's own time.
fn parts(times: &[u64], clock: u64) -> Vec<u64> {
    let mut times: Vec<u64> = times.iter().copied().filter(|&time| time < INTERRUPTED).collect();
    times.sort_unstable();
    let size = (times.len() / PARTS).max(1);
    times
        .chunks_exact(size)
        .take(PARTS)
        .map(|part| (part.iter().sum::<u64>() / size as u64).saturating_sub(clock).max(1))
        .collect()
}

fn today() -> Result<String, String> {
    let output = Command::new("date").args(["-u", "+%F"]).output();
    let output = output.map_err(|e| format!("cannot run date: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_equally_many_and_without_the_clock() {
        let times: Vec<u64> = (0..640).rev().map(|i| 100 + i).chain([INTERRUPTED]).collect();
        let parts = parts(&times, 50);
        assert_eq!(parts.len(), PARTS);
        assert_eq!(parts[0], 109 - 50);
        assert_eq!(parts[PARTS - 1], 729 - 50);
    }
}

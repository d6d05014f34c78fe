//! Threads, caches and CPUs, and their effects on each other.
//!
//! ```text
//!  a thread    work -> Begin: try the current cache
//!                        | held: note since when; Choose: the policy's tries, one at a time
//!                        |   none: Look, SPINS times -> TrySleep -> Doze -> (asleep)
//!                        v got
//!                      the operation -> Finish: unlock, wake a sleeper if there is one -> work
//!
//!  a cache     state, precedence and sleepers in one line; the line is one CPU's at a time
//!  a CPU       one thread runs, others queue; after a slice the next one's turn comes
//! ```
//!
//! **Lines.** A write by a CPU that does not have the line fetches it (`line` ns). A CPU that
//! requests the line meanwhile waits its turn. A look fetches only after a write, but makes the
//! next write fetch again. A try's result is fixed at its arrival, and reaches its thread with the
//! line. A failed try takes the line from the holder, who must fetch it to unlock. If another CPU
//! used a thread's cache last, the thread fetches `cold_lines` more under the lock.
//!
//! **Waiting** is the library's (registry/shared): SPINS looks with a pause, then the thread counts
//! itself in, tries, and sleeps for at most NAP_NS. An unlock that sees sleepers makes a system
//! call, even if they were woken already. No lock is handed over, so a woken thread may find it
//! taken.
//!
//! **CPUs.** A woken thread goes to its last CPU if that is idle, else to another idle CPU, else to
//! the end of its last CPU's queue. An idle CPU takes the first thread of the longest queue. While
//! another thread waits for the CPU, a thread runs at most `slice` ns, even with a lock: *a
//! preempted holder keeps its lock*.

use std::collections::VecDeque;

use figures::random::Random;

use crate::calibration::{Costs, NAP_NS, SPINS};
use crate::events::Queue;
use crate::scan::{Failed, Next, Scan};

/// The simulated machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// CPUs.
    pub cpus: usize,
    /// Threads.
    pub threads: usize,
    /// Caches.
    pub caches: usize,
    /// The length of the run, in simulated ns.
    pub ns: u64,
    /// The source of all random numbers.
    pub seed: u64,
}

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Finished operations.
    pub ops: u64,
    /// The sum of the operations' times in all threads, with waiting and lost CPUs.
    pub ns: u64,
    /// Tries that found a lock held.
    pub failed: u64,
    /// Operations that waited for a cache.
    pub waits: u64,
    /// The number of sleeps.
    pub sleeps: u64,
    /// The number of times that a thread lost its CPU.
    pub preempted: u64,
    /// The number of times that the holder of a lock lost its CPU.
    pub holders: u64,
    /// Operations on a cache that another CPU had used last.
    pub cold: u64,
    /// Caches that were used.
    pub caches: u64,
}

impl Outcome {
    /// Returns the nanoseconds of an operation in the allocator.
    pub fn ns_per_op(&self) -> f64 {
        self.ns as f64 / self.ops.max(1) as f64
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Begin,
    Choose,
    Look,
    TryWhileLooking,
    TrySleep,
    Doze,
    Finish,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Running,
    Queued,
    Asleep,
    Waking,
}

#[derive(Debug)]
struct Thread {
    state: State,
    cpu: usize,
    /// Its next step, after the current time is spent.
    step: Step,
    /// The end of this time if the thread runs. Otherwise `left` is the remaining time.
    until: u64,
    left: u64,
    /// Events with another stamp are out of date.
    stamp: u64,
    /// The cache it has, locks, tries or waits for.
    current: usize,
    holds: bool,
    began: Option<u64>,
    /// The current cache's precedence at the start of the choice.
    seed: usize,
    failed: Vec<Failed>,
    looks: u32,
    /// The line's version at its last look.
    seen: u64,
}

#[derive(Debug, Default)]
struct Cache {
    holder: Option<usize>,
    precedence: u64,
    sleepers: u32,
    asleep: VecDeque<usize>,
    last_cpu: Option<usize>,
    line: Line,
}

#[derive(Debug, Default)]
struct Line {
    owner: Option<usize>,
    /// Whether others have looked since the owner's last write.
    shared: bool,
    version: u64,
    /// The time at which all waiting CPUs have had the line.
    busy_until: u64,
}

#[derive(Debug, Default)]
struct Cpu {
    running: Option<usize>,
    queue: VecDeque<usize>,
    since: u64,
    /// Whether the slice's end is among the events, and the stamp it must have.
    timed: bool,
    stamp: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// A thread has spent the time of its step.
    Step { thread: usize, stamp: u64 },
    /// A CPU's slice is over.
    Slice { cpu: usize, stamp: u64 },
    /// A thread was woken, and runs if there is a CPU.
    Wake { thread: usize, stamp: u64 },
}

enum Then {
    After(u64, Step),
    Sleep,
}

/// The simulation.
#[derive(Debug)]
pub struct World<'a> {
    setup: Setup,
    costs: &'a Costs,
    scan: Scan,
    events: Queue<Event>,
    threads: Vec<Thread>,
    caches: Vec<Cache>,
    cpus: Vec<Cpu>,
    idle: usize,
    queued: usize,
    random: Random,
    outcome: Outcome,
}

/// Simulates a machine.
pub fn simulate(costs: &Costs, setup: Setup) -> Outcome {
    let mut world = World::new(costs, setup);
    while world.advance() {}
    world.outcome()
}

impl<'a> World<'a> {
    /// Makes the initial state: threads have their caches round-robin, and do the program's work.
    pub fn new(costs: &'a Costs, setup: Setup) -> Self {
        assert!(setup.cpus > 0 && setup.threads > 0 && setup.caches > 0, "nothing: {setup:?}");
        assert!(costs.slice > costs.switch, "nobody would ever run: {costs:?}");
        let mut random = Random::new(setup.seed);
        let threads = (0..setup.threads).map(|number| Thread {
            state: State::Queued,
            cpu: number % setup.cpus,
            step: Step::Begin,
            until: 0,
            left: random.of(&costs.work),
            stamp: 0,
            current: number % setup.caches,
            holds: false,
            began: None,
            seed: 0,
            failed: Vec::new(),
            looks: 0,
            seen: 0,
        });
        let mut world = Self {
            setup,
            costs,
            scan: Scan::new(setup.caches),
            events: Queue::default(),
            threads: threads.collect(),
            caches: (0..setup.caches).map(|_| Cache::default()).collect(),
            cpus: (0..setup.cpus).map(|_| Cpu::default()).collect(),
            idle: setup.cpus,
            queued: 0,
            random,
            outcome: Outcome::default(),
        };
        for thread in 0..setup.threads {
            world.runnable(thread);
        }
        for cpu in 0..setup.cpus {
            if world.cpus[cpu].timed {
                world.cpus[cpu].stamp += 1;
                let stamp = world.cpus[cpu].stamp;
                let slice = usize::try_from(costs.slice).unwrap_or(usize::MAX);
                let at = world.random.below(slice) as u64;
                world.events.push(at, Event::Slice { cpu, stamp });
            }
        }
        world
    }

    /// Returns the simulated time.
    pub fn now(&self) -> u64 {
        self.events.now()
    }

    /// Runs the next event. Returns false when the time is over.
    pub fn advance(&mut self) -> bool {
        if self.events.next_at().is_none_or(|at| at > self.setup.ns) {
            return false;
        }
        match self.events.pop() {
            Some(Event::Step { thread, stamp }) if self.threads[thread].stamp == stamp => {
                self.step(thread);
            }
            Some(Event::Slice { cpu, stamp }) if self.cpus[cpu].stamp == stamp => self.turn(cpu),
            Some(Event::Wake { thread, stamp }) if self.threads[thread].stamp == stamp => {
                self.wake(thread);
            }
            _ => {}
        }
        true
    }

    /// Returns the results so far. Unfinished operations count with their time so far.
    pub fn outcome(&self) -> Outcome {
        let end = self.setup.ns;
        let under_way = self.threads.iter().filter_map(|thread| thread.began);
        let caches = self.caches.iter().filter(|cache| cache.last_cpu.is_some()).count();
        Outcome {
            ns: self.outcome.ns + under_way.map(|began| end.saturating_sub(began)).sum::<u64>(),
            caches: caches as u64,
            ..self.outcome
        }
    }

    /// Lets a CPU write to a cache's line. Returns the time at which it has written.
    fn write(&mut self, cache: usize, cpu: usize) -> u64 {
        let now = self.events.now();
        let line = &mut self.caches[cache].line;
        line.version += 1;
        if line.owner == Some(cpu) && !line.shared {
            return now;
        }
        line.owner = Some(cpu);
        line.shared = false;
        line.busy_until = now.max(line.busy_until) + self.costs.line;
        line.busy_until
    }

    /// Lets a thread look at a line. Returns when the CPU has it; `None` if the thread has seen it.
    fn read(&mut self, cache: usize, thread: usize) -> Option<u64> {
        let now = self.events.now();
        let cpu = self.threads[thread].cpu;
        let line = &mut self.caches[cache].line;
        if line.version == self.threads[thread].seen {
            return None;
        }
        self.threads[thread].seen = line.version;
        if line.owner == Some(cpu) {
            return Some(now);
        }
        line.shared = true;
        line.busy_until = now.max(line.busy_until) + self.costs.line;
        Some(line.busy_until)
    }

    /// Tries to lock a cache. Returns the next action, or the time that the failed try took.
    fn try_lock(&mut self, thread: usize, cache: usize) -> Result<Then, u64> {
        let now = self.events.now();
        let cpu = self.threads[thread].cpu;
        let took = self.write(cache, cpu) - now + self.costs.try_unlock;
        let tried = &mut self.caches[cache];
        if tried.holder.is_some() {
            self.outcome.failed += 1;
            if tried.precedence == 0 {
                tried.precedence = now.max(1);
                return Err(took + self.costs.clock);
            }
            return Err(took);
        }
        tried.holder = Some(thread);
        tried.precedence = 0;
        let cold = tried.last_cpu.replace(cpu).is_some_and(|last| last != cpu);
        self.outcome.cold += u64::from(cold);
        self.threads[thread].current = cache;
        self.threads[thread].holds = true;
        let fetched = if cold { self.costs.cold_lines * self.costs.line } else { 0 };
        Ok(Then::After(took + fetched + self.random.of(&self.costs.op), Step::Finish))
    }

    /// Unlocks a thread's cache. Returns the time that this took.
    fn unlock(&mut self, thread: usize) -> u64 {
        let now = self.events.now();
        let (cpu, cache) = (self.threads[thread].cpu, self.threads[thread].current);
        let took = self.write(cache, cpu) - now;
        let unlocked = &mut self.caches[cache];
        assert_eq!(unlocked.holder.take(), Some(thread), "who unlocks is the holder");
        self.threads[thread].holds = false;
        if unlocked.sleepers == 0 {
            return took;
        }
        let Some(sleeper) = unlocked.asleep.pop_front() else { return took + self.costs.wake_none };
        let woken = &mut self.threads[sleeper];
        woken.state = State::Waking;
        woken.stamp += 1;
        let stamp = woken.stamp;
        self.events
            .push(now + took + self.costs.wake_latency, Event::Wake { thread: sleeper, stamp });
        took + self.costs.wake_call
    }

    fn step(&mut self, thread: usize) {
        let now = self.events.now();
        let current = self.threads[thread].current;
        let then = match self.threads[thread].step {
            Step::Begin => {
                self.threads[thread].began = Some(now);
                self.try_lock(thread, current).unwrap_or_else(|took| {
                    self.threads[thread].failed.clear();
                    self.threads[thread].seed = self.caches[current].precedence as usize;
                    Then::After(took, Step::Choose)
                })
            }
            Step::Choose => self.choose(thread),
            Step::Look => self.look(thread),
            Step::TryWhileLooking => self
                .try_lock(thread, current)
                .unwrap_or_else(|took| Then::After(took + self.costs.look, Step::Look)),
            Step::TrySleep => {
                let tried = self.try_lock(thread, current);
                if tried.is_ok() {
                    self.caches[current].sleepers -= 1;
                }
                // The library reads the clock, then goes into the kernel.
                tried.unwrap_or_else(|took| {
                    Then::After(took + self.costs.clock + self.costs.wake_none, Step::Doze)
                })
            }
            // The kernel checks once more before a thread sleeps.
            Step::Doze if self.caches[current].holder.is_none() => Then::After(0, Step::TrySleep),
            Step::Doze => Then::Sleep,
            Step::Finish => {
                let took = self.unlock(thread);
                if let Some(began) = self.threads[thread].began.take() {
                    self.outcome.ops += 1;
                    self.outcome.ns += now + took - began;
                }
                Then::After(took + self.random.of(&self.costs.work), Step::Begin)
            }
        };
        match then {
            Then::After(ns, step) => {
                self.threads[thread].step = step;
                self.spend(thread, ns);
            }
            Then::Sleep => {
                self.outcome.sleeps += 1;
                self.caches[current].asleep.push_back(thread);
                let sleeper = &mut self.threads[thread];
                sleeper.state = State::Asleep;
                sleeper.step = Step::TrySleep;
                sleeper.left = 0;
                sleeper.stamp += 1;
                let stamp = sleeper.stamp;
                let cpu = sleeper.cpu;
                self.events.push(now + NAP_NS, Event::Wake { thread, stamp });
                self.leave(cpu);
            }
        }
    }

    fn choose(&mut self, thread: usize) -> Then {
        let chooser = &self.threads[thread];
        // The current cache stays the thread's until it locks or waits for another.
        match self.scan.next(chooser.current, chooser.seed, &chooser.failed) {
            Next::Try(cache) => self.try_lock(thread, cache).unwrap_or_else(|took| {
                let precedence = self.caches[cache].precedence as usize;
                self.threads[thread].failed.push(Failed { cache, precedence });
                Then::After(took, Step::Choose)
            }),
            Next::Wait(cache) => {
                self.outcome.waits += 1;
                let waiter = &mut self.threads[thread];
                waiter.current = cache;
                waiter.looks = 0;
                waiter.seen = u64::MAX;
                Then::After(0, Step::Look)
            }
        }
    }

    fn look(&mut self, thread: usize) -> Then {
        let now = self.events.now();
        let current = self.threads[thread].current;
        self.threads[thread].looks += 1;
        if self.threads[thread].looks > SPINS {
            self.caches[current].sleepers += 1;
            let cpu = self.threads[thread].cpu;
            let took = self.write(current, cpu) - now;
            return Then::After(took + self.costs.clock, Step::TrySleep);
        }
        match self.read(current, thread) {
            Some(at) if self.caches[current].holder.is_none() => {
                Then::After(at - now, Step::TryWhileLooking)
            }
            Some(at) => Then::After(at - now + self.costs.look, Step::Look),
            None => Then::After(self.costs.look, Step::Look),
        }
    }

    fn spend(&mut self, thread: usize, ns: u64) {
        let until = self.events.now() + ns;
        self.threads[thread].until = until;
        let stamp = self.threads[thread].stamp;
        self.events.push(until, Event::Step { thread, stamp });
    }

    /// Wakes a sleeper: its time is over, or another thread woke it.
    fn wake(&mut self, thread: usize) {
        if self.threads[thread].state == State::Asleep {
            let cache = self.threads[thread].current;
            self.caches[cache].asleep.retain(|&sleeper| sleeper != thread);
        }
        self.threads[thread].stamp += 1;
        self.runnable(thread);
    }

    fn runnable(&mut self, thread: usize) {
        let home = self.threads[thread].cpu;
        let found = if self.idle == 0 {
            None
        } else {
            let count = self.cpus.len();
            (home..home + count)
                .map(|cpu| cpu % count)
                .find(|&cpu| self.cpus[cpu].running.is_none())
        };
        if let Some(cpu) = found {
            self.idle -= 1;
            self.run(thread, cpu, 0);
        } else {
            self.threads[thread].state = State::Queued;
            self.cpus[home].queue.push_back(thread);
            self.queued += 1;
            self.time(home);
        }
    }

    fn run(&mut self, thread: usize, cpu: usize, switch: u64) {
        let now = self.events.now();
        let on = &mut self.cpus[cpu];
        on.running = Some(thread);
        on.since = now;
        on.timed = false;
        on.stamp += 1;
        let runs = &mut self.threads[thread];
        runs.state = State::Running;
        runs.cpu = cpu;
        let left = runs.left;
        self.spend(thread, switch + left);
        self.time(cpu);
    }

    fn time(&mut self, cpu: usize) {
        let now = self.events.now();
        let on = &mut self.cpus[cpu];
        if on.timed || on.queue.is_empty() || on.running.is_none() {
            return;
        }
        on.timed = true;
        let stamp = on.stamp;
        let at = now.max(on.since + self.costs.slice);
        self.events.push(at, Event::Slice { cpu, stamp });
    }

    fn leave(&mut self, cpu: usize) {
        self.cpus[cpu].running = None;
        self.cpus[cpu].timed = false;
        self.cpus[cpu].stamp += 1;
        let from = if !self.cpus[cpu].queue.is_empty() {
            Some(cpu)
        } else if self.queued == 0 {
            None
        } else {
            (0..self.cpus.len()).rev().max_by_key(|&cpu| self.cpus[cpu].queue.len())
        };
        match from.and_then(|from| self.cpus[from].queue.pop_front()) {
            Some(thread) => {
                self.queued -= 1;
                self.run(thread, cpu, self.costs.switch);
            }
            None => self.idle += 1,
        }
    }

    fn turn(&mut self, cpu: usize) {
        let now = self.events.now();
        self.cpus[cpu].timed = false;
        // Another CPU may have taken the waiting thread.
        let Some(next) = self.cpus[cpu].queue.pop_front() else { return };
        if let Some(thread) = self.cpus[cpu].running.take() {
            let preempted = &mut self.threads[thread];
            preempted.left = preempted.until - now;
            preempted.state = State::Queued;
            preempted.stamp += 1;
            self.outcome.preempted += 1;
            self.outcome.holders += u64::from(preempted.holds);
            self.cpus[cpu].queue.push_back(thread);
        }
        self.run(next, cpu, self.costs.switch);
    }

    /// Checks the invariants. An error names the broken one.
    ///
    /// A lock has one holder, and a thread at most one lock. A thread runs on one CPU, or is
    /// in one queue, asleep, or about to wake. A CPU idles only if all queues are empty.
    pub fn check(&self) -> Result<(), String> {
        let sure = |right: bool, what: &str| {
            if right { Ok(()) } else { Err(format!("at {}: {what}: {self:?}", self.now())) }
        };
        for (number, thread) in self.threads.iter().enumerate() {
            let held = self.caches.iter().filter(|cache| cache.holder == Some(number)).count();
            sure(held == usize::from(thread.holds), "a thread holds one lock or none")?;
            if thread.holds {
                let holder = self.caches[thread.current].holder;
                sure(holder == Some(number), "a thread holds the lock of its cache")?;
                sure(thread.step == Step::Finish, "a lock is held during an operation only")?;
            }
            let running = self.cpus.iter().filter(|cpu| cpu.running == Some(number)).count();
            let queued = self.cpus.iter().flat_map(|cpu| &cpu.queue).filter(|&&t| t == number);
            let asleep =
                self.caches.iter().flat_map(|cache| &cache.asleep).filter(|&&t| t == number);
            let places = (running, queued.count(), asleep.count());
            let expected = match thread.state {
                State::Running => (1, 0, 0),
                State::Queued => (0, 1, 0),
                State::Asleep => (0, 0, 1),
                State::Waking => (0, 0, 0),
            };
            sure(places == expected, "a thread is in one place")?;
        }
        for (number, cache) in self.caches.iter().enumerate() {
            let say = self.threads.iter().filter(|thread| {
                thread.current == number
                    && !thread.holds
                    && matches!(thread.step, Step::TrySleep | Step::Doze)
            });
            sure(cache.sleepers as usize == say.count(), "sleepers are counted")?;
        }
        let idle = self.cpus.iter().filter(|cpu| cpu.running.is_none()).count();
        sure(idle == self.idle, "idle CPUs are counted")?;
        let queued: usize = self.cpus.iter().map(|cpu| cpu.queue.len()).sum();
        sure(queued == self.queued, "queued threads are counted")?;
        sure(idle == 0 || queued == 0, "no CPU idles while a thread waits for one")?;
        for cpu in &self.cpus {
            sure(cpu.queue.is_empty() || cpu.timed, "who waits for a CPU waits for a slice's end")?;
        }
        Ok(())
    }
}

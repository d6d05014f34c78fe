//! `musl-loads LOAD [SCALE]`: typical loads of Rust programs on the linked allocator, for musl.
//! Prints CPU and wall time in milliseconds, the resident peak in KiB, and a sum (the same under
//! every allocator).
//!
//! | load | operations |
//! |---|---|
//! | tree | binary trees of boxes, made and dropped |
//! | words | an index from words to lists of strings, filled, changed and emptied |
//! | vectors | four threads that each replace vectors of 16 to 1024 bytes |
//! | handover | four threads that make lists of strings for four others, which drop them |
//! | boxes | the same with lists of small boxes: making and dropping them takes all the time |
//! | buffers | two threads that hold 40 buffers each of 256 KiB to 4 MiB and write all bytes |
//! | growing | the same with vectors of unknown length, which grow as bytes are appended |
//!
//! `ends` is for the tests: threads with small stacks, which end with long lists.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::mpsc;
use std::time::Instant;

#[cfg(feature = "heapwright")]
#[global_allocator]
static ALLOCATOR: heapwright::Heapwright = heapwright::Heapwright;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }
}

struct Node {
    children: Option<(Box<Node>, Box<Node>)>,
}

impl Node {
    fn new(depth: usize) -> Box<Self> {
        let children = (depth > 0).then(|| (Self::new(depth - 1), Self::new(depth - 1)));
        Box::new(Self { children })
    }

    fn count(&self) -> usize {
        1 + self.children.as_ref().map_or(0, |(left, right)| left.count() + right.count())
    }
}

fn tree(scale: usize) -> usize {
    let long_lived = Node::new(14);
    (0..240 * scale).map(|_| black_box(Node::new(12)).count()).sum::<usize>() + long_lived.count()
}

fn words(scale: usize) -> usize {
    let mut random = Random(88_172_645_463_325_252);
    let mut index: HashMap<String, Vec<String>> = HashMap::new();
    let mut sum = 0;
    for round in 0..200_000 * scale {
        let word = format!("word-{}", random.below(20_000));
        let list = index.entry(word).or_default();
        if list.len() > 8 {
            sum += list.drain(..).map(|text| text.len()).sum::<usize>();
        }
        list.push("x".repeat(random.below(200) + round % 3));
    }
    sum + index.len()
}

/// Runs `work` in `count` threads with small stacks, and adds their results.
fn in_threads(count: usize, work: impl Fn(u64) -> usize + Sync) -> usize {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (1..=count as u64)
            .map(|seed| {
                let thread = std::thread::Builder::new().stack_size(64 << 10);
                thread.spawn_scoped(scope, move || work(seed)).expect("a thread")
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    })
}

fn vectors(scale: usize) -> usize {
    in_threads(4, |seed| {
        let mut random = Random(seed * 7919);
        let mut slots: Vec<Vec<u8>> = vec![Vec::new(); 2000];
        let mut sum = 0;
        for _ in 0..400_000 * scale {
            let mut vector = Vec::with_capacity(16 + random.below(1009));
            vector.push(random.below(256) as u8);
            let old = std::mem::replace(&mut slots[random.below(2000)], vector);
            sum += old.len();
        }
        sum
    })
}

/// Runs four threads that each send `lists` lists of `length` things to another thread, which
/// measures and drops them.
fn hand_over<T: Send>(
    lists: usize,
    length: usize,
    make: impl Fn(&mut Random) -> T + Sync,
    measure: impl Fn(&T) -> usize + Send + Sync + Copy,
) -> usize {
    in_threads(4, |seed| {
        let (sender, receiver) = mpsc::sync_channel::<Vec<T>>(64);
        std::thread::scope(|scope| {
            let consumer = scope.spawn(move || {
                receiver.into_iter().map(|list| list.iter().map(measure).sum::<usize>()).sum()
            });
            let mut random = Random(seed * 104_729);
            for _ in 0..lists {
                let list = (0..length).map(|_| make(&mut random)).collect();
                sender.send(list).expect("the consumer lives");
            }
            drop(sender);
            let sum: usize = consumer.join().expect("no panic");
            sum
        })
    })
}

fn handover(scale: usize) -> usize {
    hand_over(1000 * scale, 100, |random| "y".repeat(1 + random.below(300)), String::len)
}

fn boxes(scale: usize) -> usize {
    hand_over(1000 * scale, 200, |random| Box::new([random.below(9); 6]), |numbers| numbers[5])
}

/// Runs two threads. Each holds 40 buffers and replaces random ones by buffers from `fill`.
fn hold(scale: usize, fill: impl Fn(usize) -> Vec<u8> + Sync) -> usize {
    in_threads(2, |seed| {
        let mut random = Random(seed * 15_485_863);
        let mut held: Vec<Vec<u8>> = vec![Vec::new(); 40];
        let mut sum = 0;
        for _ in 0..200 * scale {
            let buffer = fill((256 << 10) + random.below(15 << 18));
            sum += std::mem::replace(&mut held[random.below(40)], buffer).len();
        }
        sum
    })
}

fn buffers(scale: usize) -> usize {
    hold(scale, |size| vec![7; size])
}

fn growing(scale: usize) -> usize {
    hold(scale, |size| {
        let mut buffer = Vec::new();
        while buffer.len() < size {
            // The vector gets pieces, as if read from a file, and doubles its capacity.
            buffer.resize(buffer.len() + (64 << 10), 7);
        }
        buffer
    })
}

/// Threads end with full lists, one after the other and at the same time.
fn ends(scale: usize) -> usize {
    (0..20 * scale)
        .map(|round| {
            in_threads(8, |seed| {
                let mut random = Random(seed + round as u64 * 64);
                let kept: Vec<Vec<u8>> =
                    (0..500).map(|_| vec![3; 1 + random.below(3000)]).collect();
                kept.iter().map(Vec::len).sum()
            })
        })
        .sum()
}

fn status(name: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").expect("/proc is there");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the line is there");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn cpu_ms() -> usize {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc is there");
    let after = stat.rsplit(") ").next().expect("a name in brackets");
    let ticks = |at: usize| after.split(' ').nth(at).and_then(|t| t.parse::<usize>().ok());
    (ticks(11).unwrap_or(0) + ticks(12).unwrap_or(0)) * 10
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let load = arguments.next().unwrap_or_default();
    let scale = arguments.next().map_or(10, |scale| scale.parse().expect("SCALE is a number"));
    let work = match load.as_str() {
        "tree" => tree,
        "words" => words,
        "vectors" => vectors,
        "handover" => handover,
        "boxes" => boxes,
        "buffers" => buffers,
        "growing" => growing,
        "ends" => ends,
        _ => {
            eprintln!(
                "musl-loads: LOAD is tree, words, vectors, handover, boxes, buffers, growing or ends"
            );
            std::process::exit(2);
        }
    };
    let start = Instant::now();
    let sum = work(scale);
    let wall = start.elapsed().as_millis();
    println!("{} {wall} {} {sum}", cpu_ms(), status("VmHWM:"));
}

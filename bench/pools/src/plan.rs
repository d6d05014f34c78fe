//! What is run: a line for each run of a round, as `figures::plan` has them.
//!
//! The runs of a row are compared with each other, so they stand side by side in time. Zig's
//! DebugAllocator takes ten seconds for what a pool does in a tenth of one, and differs by so much
//! that three rounds tell. The program is `pools`, `pools-mimalloc`, or one of the two builds of
//! `zig/article.zig`, `zig-safe` and `zig-fast`.

/// A section of the report, and whom its ratios are taken of.
pub const ARTICLE_UNTOUCHED: &str = "article, untouched";
/// As above, each page of an object written.
pub const ARTICLE_TOUCHED: &str = "article, touched";
/// Pairs.
pub const PAIRS: &str = "pairs";
/// Several threads.
pub const SHARED: &str = "shared";
/// Handing over.
pub const HANDED: &str = "handed over";
/// A million nodes.
pub const CHURN: &str = "churn";
/// Arenas.
pub const ARENAS: &str = "arenas";
/// Memory kept after trim.
pub const RESIDENT: &str = "resident";

/// A column: what it is called, the program, and the contender's name there.
type Contender = (&'static str, &'static str, &'static str);

/// The contenders of the pairs, by kind.
const PAIR_CONTENDERS: [Contender; 14] = [
    ("owning: heapwright Pool", "pools", "pool-owning"),
    ("owning: heapwright SharedPool", "pools", "shared-owning"),
    ("owning: plurality Alloc", "pools", "plurality-alloc"),
    ("owning: plurality Box", "pools", "plurality-box"),
    ("owning: Box on mimalloc", "pools-mimalloc", "box"),
    ("owning: Box on glibc", "pools", "box"),
    ("raw: heapwright Pool", "pools", "pool-raw"),
    ("raw: heapwright SharedPool", "pools", "shared-raw"),
    ("raw: plurality", "pools", "plurality-raw"),
    ("raw: mimalloc", "pools", "mimalloc-raw"),
    ("keyed: heapwright Pool", "pools", "pool-keyed"),
    ("keyed: slab", "pools", "slab"),
    ("keyed: slotmap", "pools", "slotmap"),
    ("keyed: sharded-slab", "pools", "sharded-slab"),
];

const SHARED_CONTENDERS: [Contender; 4] = [
    ("heapwright SharedPool", "pools", "shared"),
    ("plurality in a Mutex", "pools", "plurality"),
    ("plurality, each its own", "pools", "plurality-own"),
    ("Box on mimalloc", "pools-mimalloc", "box"),
];

const CHURN_CONTENDERS: [Contender; 7] = [
    ("heapwright Pool", "pools", "pool"),
    ("heapwright SharedPool", "pools", "shared"),
    ("plurality Alloc", "pools", "plurality-alloc"),
    ("plurality Box", "pools", "plurality-box"),
    ("plurality Box on mimalloc", "pools-mimalloc", "plurality-box"),
    ("Box on mimalloc", "pools-mimalloc", "box"),
    ("Box on glibc", "pools", "box"),
];

const ARENA_CONTENDERS: [Contender; 3] = [
    ("heapwright Arena", "pools", "arena"),
    ("bumpalo", "pools", "bumpalo"),
    ("bump-scope", "pools", "bump-scope"),
];

/// Of the article: row, bytes, rounds, bytes to warm.
pub const ARTICLE_ROWS: [(&str, usize, usize, usize); 3] = [
    ("1 B", 1, 2_500_000, 4 << 20),
    ("8 KiB", 8 << 10, 1_000_000, 4 << 20),
    ("1 MiB", 1 << 20, 25_000, 200 << 20),
];

/// Of the article: a column, and how many rounds untouched and touched.
const ARTICLE_COLUMNS: [(Contender, usize, usize); 10] = [
    (("loop", "pools", "loop"), 0, 0),
    (("Zig debug, 6 frames", "zig-safe", "debug-traces"), 3, 1),
    (("Zig debug", "zig-safe", "debug"), 1, 1),
    (("glibc", "pools", "glibc"), 0, 0),
    (("heapwright malloc", "pools", "malloc"), 0, 0),
    (("heapwright Arena", "pools", "arena"), 0, 0),
    (("heapwright Pool", "pools", "pool"), 0, 0),
    (("Pool, huge pages", "pools", "pool-huge"), 0, 0),
    (("Zig MemoryPool", "zig-fast", "pool-page"), 0, 0),
    (("Zig MemoryPool, smp", "zig-fast", "pool-smp"), 0, 0),
];

/// The folder of our programs, that of Zig's; and by what the work is divided.
struct Plan<'a> {
    ours: &'a str,
    zig: &'a str,
    part: usize,
}

impl Plan<'_> {
    fn line(&self, at: (&str, &str, &str), of_rounds: usize, program: &str, words: &str) {
        let (section, row, column) = at;
        let folder = if program.starts_with("zig") { self.zig } else { self.ours };
        let words = words.replace(' ', "\t");
        println!("{section}\t{row}\t{column}\t{of_rounds}\t-\t{folder}/{program}\t{words}");
    }

    /// A row of a section: each contender's `run PATTERN NAME MORE`.
    fn row(&self, at: (&str, &str), contenders: &[Contender], pattern: &str, more: &str) {
        for (column, program, name) in contenders {
            let words = format!("run {pattern} {name} {more}");
            self.line((at.0, at.1, column), 0, program, &words);
        }
    }

    fn article(&self) {
        for (section, touched) in [(ARTICLE_UNTOUCHED, false), (ARTICLE_TOUCHED, true)] {
            let word = if touched { "touched" } else { "untouched" };
            for (row, bytes, rounds, warm) in ARTICLE_ROWS {
                for ((column, program, store), untouched_rounds, touched_rounds) in ARTICLE_COLUMNS
                {
                    if store == "loop" && touched && bytes > 1 {
                        continue;
                    }
                    let of_rounds = if touched { touched_rounds } else { untouched_rounds };
                    let warm = if store == "arena" && touched { warm.max(320 << 20) } else { warm };
                    let run = if program == "pools" { "run article " } else { "" };
                    let words =
                        format!("{run}{store} {bytes} {} {word} {warm}", rounds / self.part);
                    self.line((section, row, column), of_rounds, program, &words);
                }
            }
        }
    }
}

/// Prints the plan; `quick`: a tenth of the work.
pub fn print(ours: &str, zig: &str, quick: bool) -> Option<()> {
    let plan = Plan { ours, zig, part: if quick { 10 } else { 1 } };
    let count = |count: usize| count / plan.part;
    plan.article();
    for (row, shape) in
        [("pair", "pair"), ("in order", "in-order"), ("random order", "random-order")]
    {
        let more = format!("{shape} {}", count(5_000_000));
        plan.row((PAIRS, row), &PAIR_CONTENDERS, "pairs", &more);
    }
    for (section, shape, threads, pairs) in
        [(SHARED, "own", &[1, 2, 8][..], 2_000_000), (HANDED, "hand-over", &[2, 8], 1_000_000)]
    {
        for threads in threads {
            let row = format!("{threads} thread{}", if *threads == 1 { "" } else { "s" });
            let more = format!("{shape} {threads} {}", count(pairs));
            plan.row((section, &row), &SHARED_CONTENDERS, "shared", &more);
        }
    }
    for (shape, nodes) in [("graph", 1_000_000), ("list", 2_000_000)] {
        let more = format!("{shape} {}", count(nodes));
        plan.row((CHURN, shape), &CHURN_CONTENDERS, "churn", &more);
    }
    for shape in ["u32", "layout"] {
        let more = format!("{shape} {}", count(20_000_000));
        plan.row((ARENAS, shape), &ARENA_CONTENDERS, "arena", &more);
    }
    for (row, bytes, objects) in
        [("32 B", 32, 1_000_000), ("200 B", 200, 1_000_000), ("8 KiB", 8192, 100_000)]
    {
        for shape in ["random", "runs"] {
            // Memory is not a matter of luck: two rounds show that.
            let words = format!("run resident {bytes} {shape} {}", count(objects));
            plan.line((RESIDENT, row, shape), 2, "pools", &words);
        }
    }
    Some(())
}

//! What is run: a line for each run of a round.
//!
//! `GROUP;SECTION;ROW;COLUMN;ROUNDS;PROGRAM ARGUMENTS`. The runs of a group are
//! compared with each other, so `ci/pools.sh` does them one after the other and
//! lets another one begin in each round. ROUNDS says how many of the rounds a run
//! is part of, 0 all of them: Zig's DebugAllocator takes ten seconds for what a
//! pool does in a tenth of one, and differs by so much that three rounds tell.
//! The program is `pools`, `pools-mimalloc`, or one of the two builds of
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

/// The contenders of the pairs: kind and name, the run's name, whether mimalloc
/// is the global allocator.
pub const PAIR_CONTENDERS: [(&str, &str, bool); 14] = [
    ("owning: heapwright Pool", "pool-owning", false),
    ("owning: heapwright SharedPool", "shared-owning", false),
    ("owning: plurality Alloc", "plurality-alloc", false),
    ("owning: plurality Box", "plurality-box", false),
    ("owning: Box on mimalloc", "box", true),
    ("owning: Box on glibc", "box", false),
    ("raw: heapwright Pool", "pool-raw", false),
    ("raw: heapwright SharedPool", "shared-raw", false),
    ("raw: plurality", "plurality-raw", false),
    ("raw: mimalloc", "mimalloc-raw", false),
    ("keyed: heapwright Pool", "pool-keyed", false),
    ("keyed: slab", "slab", false),
    ("keyed: slotmap", "slotmap", false),
    ("keyed: sharded-slab", "sharded-slab", false),
];

/// Of the article: row, bytes, rounds, bytes to warm.
pub const ARTICLE_ROWS: [(&str, usize, usize, usize); 3] = [
    ("1 B", 1, 2_500_000, 4 << 20),
    ("8 KiB", 8 << 10, 1_000_000, 4 << 20),
    ("1 MiB", 1 << 20, 25_000, 200 << 20),
];

/// Of the article: column, program, store, how many rounds untouched and touched.
const ARTICLE_COLUMNS: [(&str, &str, &str, usize, usize); 10] = [
    ("loop", "pools", "loop", 0, 0),
    ("Zig debug, 6 frames", "zig-safe", "debug-traces", 3, 1),
    ("Zig debug", "zig-safe", "debug", 1, 1),
    ("glibc", "pools", "glibc", 0, 0),
    ("heapwright malloc", "pools", "malloc", 0, 0),
    ("heapwright Arena", "pools", "arena", 0, 0),
    ("heapwright Pool", "pools", "pool", 0, 0),
    ("Pool, huge pages", "pools", "pool-huge", 0, 0),
    ("Zig MemoryPool", "zig-fast", "pool-page", 0, 0),
    ("Zig MemoryPool, smp", "zig-fast", "pool-smp", 0, 0),
];

struct Plan {
    quick: bool,
}

impl Plan {
    /// A count, a tenth of it if it must be quick.
    fn count(&self, count: usize) -> usize {
        if self.quick { count / 10 } else { count }
    }

    fn run(&self, group: &str, section: &str, row: &str, column: &str, command: String) {
        println!("{section} {group};{section};{row};{column};0;{command}");
    }

    fn article(&self) {
        for (section, touched) in [(ARTICLE_UNTOUCHED, false), (ARTICLE_TOUCHED, true)] {
            let word = if touched { "touched" } else { "untouched" };
            for (row, bytes, rounds, warm) in ARTICLE_ROWS {
                for (column, program, store, untouched_rounds, touched_rounds) in ARTICLE_COLUMNS {
                    if store == "loop" && touched && bytes > 1 {
                        continue;
                    }
                    let of_rounds = if touched { touched_rounds } else { untouched_rounds };
                    let warm = if store == "arena" && touched { warm.max(320 << 20) } else { warm };
                    let run = if program == "pools" { "run article " } else { "" };
                    let rounds = self.count(rounds);
                    println!(
                        "{section} {row};{section};{row};{column};{of_rounds};\
                         {program} {run}{store} {bytes} {rounds} {word} {warm}"
                    );
                }
            }
        }
    }

    fn pairs(&self) {
        for (column, shape) in
            [("pair", "pair"), ("in order", "in-order"), ("random order", "random-order")]
        {
            for (row, name, on_mimalloc) in PAIR_CONTENDERS {
                let program = if on_mimalloc { "pools-mimalloc" } else { "pools" };
                let count = self.count(5_000_000);
                let command = format!("{program} run pairs {name} {shape} {count}");
                self.run(column, PAIRS, row, column, command);
            }
        }
    }

    fn shared(&self) {
        let contenders = [
            ("heapwright SharedPool", "pools", "shared"),
            ("plurality in a Mutex", "pools", "plurality"),
            ("plurality, each its own", "pools", "plurality-own"),
            ("Box on mimalloc", "pools-mimalloc", "box"),
        ];
        for (section, shape) in [(SHARED, "own"), (HANDED, "hand-over")] {
            for threads in [1, 2, 8] {
                if threads == 1 && section == HANDED {
                    continue;
                }
                let row =
                    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
                let count = self.count(if section == HANDED { 1_000_000 } else { 2_000_000 });
                for (column, program, name) in contenders {
                    let command = format!("{program} run shared {name} {shape} {threads} {count}");
                    self.run(&row, section, &row, column, command);
                }
            }
        }
    }

    fn churn(&self) {
        let contenders = [
            ("heapwright Pool", "pools", "pool"),
            ("heapwright SharedPool", "pools", "shared"),
            ("plurality Alloc", "pools", "plurality-alloc"),
            ("plurality Box", "pools", "plurality-box"),
            ("plurality Box on mimalloc", "pools-mimalloc", "plurality-box"),
            ("Box on mimalloc", "pools-mimalloc", "box"),
            ("Box on glibc", "pools", "box"),
        ];
        for (shape, count) in [("graph", 1_000_000), ("list", 2_000_000)] {
            for (column, program, name) in contenders {
                let command = format!("{program} run churn {name} {shape} {}", self.count(count));
                self.run(shape, CHURN, shape, column, command);
            }
        }
    }

    fn others(&self) {
        for shape in ["u32", "layout"] {
            for (column, name) in [
                ("heapwright Arena", "arena"),
                ("bumpalo", "bumpalo"),
                ("bump-scope", "bump-scope"),
            ] {
                let count = self.count(20_000_000);
                let command = format!("pools run arena {name} {shape} {count}");
                self.run(shape, ARENAS, shape, column, command);
            }
        }
        for (row, bytes, count) in
            [("32 B", 32, 1_000_000), ("200 B", 200, 1_000_000), ("8 KiB", 8192, 100_000)]
        {
            for shape in ["random", "runs"] {
                // Memory is not a matter of luck: two rounds show that.
                println!(
                    "{RESIDENT};{RESIDENT};{row};{shape};2;\
                     pools run resident {bytes} {shape} {}",
                    self.count(count)
                );
            }
        }
    }
}

/// Prints the plan.
pub fn print(quick: bool) -> Option<()> {
    let plan = Plan { quick };
    plan.article();
    plan.pairs();
    plan.shared();
    plan.churn();
    plan.others();
    Some(())
}

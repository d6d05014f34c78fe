//! The functions of arenas, beside bumpalo's, bump-scope's and typed-arena's.
//!
//! Each call is a function of its own with a name that callgrind shows, as in [`crate::golden`].
//! `pools functions` prints the nanoseconds of a call: the contenders run in turns, 1000 calls and
//! a reset at a time, and the median counts.

use std::cell::Cell;
use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use bump_scope::traits::BumpAllocatorTypedScope as _;
use bump_scope::{BumpBox, BumpString, BumpVec};
use bumpalo::collections::CollectIn as _;
use heapwright::arena::{Arena, ArenaBox, ArenaString, ArenaVec, DropArena, SharedArena};

use crate::golden::parts;

type Bump = bumpalo::Bump;
type Scoped = bump_scope::Bump;
type Typed<T> = typed_arena::Arena<T>;

/// A value with a destructor.
pub struct Counted(u64);

std::thread_local! {
    static SUM: Cell<u64> = const { Cell::new(0) };
}

impl Drop for Counted {
    fn drop(&mut self) {
        SUM.set(SUM.get().wrapping_add(self.0));
    }
}

/// The arguments of the calls, hidden from the compiler.
pub struct Data {
    words: Vec<u64>,
    text: &'static str,
    count: usize,
}

trait Contender {
    fn new() -> Self;
    fn empty(&mut self);
}

macro_rules! contenders {
    ($([$($generic:tt)*] $type:ty: $arena:ident => $empty:expr;)+) => {$(
        impl<$($generic)*> Contender for $type {
            fn new() -> Self {
                <$type>::new()
            }

            fn empty(&mut self) {
                let $arena = self;
                $empty
            }
        }
    )+};
}
contenders! {
    [] Arena: arena => arena.reset();
    [] DropArena<'static>: arena => arena.reset();
    [] SharedArena: arena => arena.reset();
    [] Bump: arena => arena.reset();
    [] Scoped: arena => arena.reset();
    [T] Typed<T>: arena => *arena = typed_arena::Arena::new();
}

type Turn<'a> = Box<dyn FnMut() -> f64 + 'a>;

fn turn<A: Contender>(
    arena: &mut A,
    data: &Data,
    call: extern "C" fn(&mut A, &Data) -> usize,
) -> f64 {
    let start = Instant::now();
    for _ in 0..1000 {
        black_box(call(black_box(arena), black_box(data)));
    }
    arena.empty();
    start.elapsed().as_nanos() as f64 / 1000.0
}

macro_rules! functions {
    ($($row:literal { $($call:ident |$arena:ident: $type:ty, $data:ident| $body:expr;)+ })+) => {
        $($(
            #[inline(never)]
            #[unsafe(no_mangle)]
            extern "C" fn $call($arena: &mut $type, $data: &Data) -> usize {
                $body
            }
        )+)+

        /// Makes the calls whose instructions are counted.
        pub fn golden() {
            let data = data();
            $($({
                let mut arena = <$type as Contender>::new();
                parts(|| (0..8).for_each(|_| _ = black_box($call(black_box(&mut arena), &data))));
            })+)+
        }

        /// Prints a line for each function and contender: `function, call, nanoseconds`. Returns
        /// `None` if `turns` is no number.
        pub fn print(turns: &str) -> Option<()> {
            let (turns, data) = (turns.parse::<usize>().ok()?, data());
            $({
                let mut contenders: Vec<(&str, Turn<'_>, Vec<f64>)> = Vec::new();
                $({
                    let (mut arena, data) = (<$type as Contender>::new(), &data);
                    let turn = move || turn(&mut arena, data, $call);
                    contenders.push((stringify!($call), Box::new(turn), Vec::new()));
                })+
                for _ in 0..turns {
                    for (_, turn, times) in &mut contenders {
                        times.push(turn());
                    }
                }
                for (call, _, mut times) in contenders {
                    times.sort_by(f64::total_cmp);
                    println!("{}\t{call}\t{:.2}", $row, times[times.len() / 2]);
                }
            })+
            Some(())
        }
    };
}

fn data() -> Data {
    black_box(Data { words: (0..16).collect(), text: "a line of some text", count: 16 })
}

fn at<T: ?Sized>(value: &T) -> usize {
    std::ptr::from_ref(value).addr()
}

/// Keeps a value of bump-scope by leaking it. Otherwise bump-scope would drop the value.
fn kept<T: ?Sized>(value: BumpBox<'_, T>) -> usize {
    at(BumpBox::leak(value))
}

fn small(data: &Data) -> Result<u64, u32> {
    if data.count > 100 { Err(7) } else { Ok(data.words[0]) }
}

fn large(data: &Data) -> Result<[u64; 32], u32> {
    if data.count > 100 { Err(7) } else { Ok([data.words[0]; 32]) }
}

fn fails(data: &Data) -> Result<u64, u32> {
    if data.count > 100 { Ok(data.words[0]) } else { Err(7) }
}

functions! {
    "alloc" {
        call_arena_alloc |a: Arena, d| at(a.alloc(d.count));
        call_bumpalo_alloc |a: Bump, d| at(a.alloc(d.count));
        call_bump_scope_alloc |a: Scoped, d| kept(a.alloc(d.count));
        call_typed_alloc |a: Typed<usize>, d| at(a.alloc(d.count));
    }
    "alloc, dropped" {
        call_arena_dropped |a: DropArena<'static>, d| at(a.alloc(Counted(d.count as u64)));
        call_typed_dropped |a: Typed<Counted>, d| at(a.alloc(Counted(d.count as u64)));
    }
    "alloc_with, 256 bytes" {
        call_arena_with |a: Arena, d| at(a.alloc_with(|| [d.count; 32]));
        call_bumpalo_with |a: Bump, d| at(a.alloc_with(|| [d.count; 32]));
        call_bump_scope_with |a: Scoped, d| kept(a.alloc_with(|| [d.count; 32]));
        call_typed_with |a: Typed<[usize; 32]>, d| at(a.alloc([d.count; 32]));
    }
    "alloc_try_with" {
        call_arena_try_with |a: Arena, d| a.alloc_try_with(|| small(d)).map_or(0, |n| at(n));
        call_bumpalo_try_with |a: Bump, d| a.alloc_try_with(|| small(d)).map_or(0, |n| at(n));
        call_bump_scope_try_with |a: Scoped, d| a.alloc_try_with(|| small(d)).map_or(0, kept);
    }
    "alloc_try_with, 256 bytes" {
        call_arena_try_with_large |a: Arena, d| a.alloc_try_with(|| large(d)).map_or(0, |n| at(n));
        call_bumpalo_try_with_large |a: Bump, d| a.alloc_try_with(|| large(d)).map_or(0, |n| at(n));
        call_bump_scope_try_with_large |a: Scoped, d| a.alloc_try_with(|| large(d)).map_or(0, kept);
    }
    "alloc_try_with, an error" {
        call_arena_try_with_error |a: Arena, d| a.alloc_try_with(|| fails(d)).map_or(0, |n| at(n));
        call_bumpalo_try_with_error |a: Bump, d| a.alloc_try_with(|| fails(d)).map_or(0, |n| at(n));
        call_bump_scope_try_with_error |a: Scoped, d| a.alloc_try_with(|| fails(d)).map_or(0, kept);
    }
    "alloc_uninit" {
        call_arena_uninit |a: Arena, _d| at(a.alloc_uninit::<[u64; 9]>());
        call_bumpalo_uninit |a: Bump, _d| {
            a.alloc_layout(std::alloc::Layout::new::<[u64; 9]>()).addr().get()
        };
        call_bump_scope_uninit |a: Scoped, _d| kept(a.alloc_uninit::<[u64; 9]>());
    }
    "alloc_slice_copy" {
        call_arena_copy |a: Arena, d| at(a.alloc_slice_copy(&d.words));
        call_bumpalo_copy |a: Bump, d| at(a.alloc_slice_copy(&d.words));
        call_bump_scope_copy |a: Scoped, d| kept(a.alloc_slice_copy(&d.words));
        call_typed_copy |a: Typed<u64>, d| at(a.alloc_extend(d.words.iter().copied()));
    }
    "alloc_slice_clone" {
        call_arena_clone |a: Arena, d| at(a.alloc_slice_clone(&d.words));
        call_bumpalo_clone |a: Bump, d| at(a.alloc_slice_clone(&d.words));
        call_bump_scope_clone |a: Scoped, d| kept(a.alloc_slice_clone(&d.words));
    }
    "alloc_slice_fill_copy" {
        call_arena_fill_copy |a: Arena, d| at(a.alloc_slice_fill_copy(d.count, 7u64));
        call_bumpalo_fill_copy |a: Bump, d| at(a.alloc_slice_fill_copy(d.count, 7u64));
        call_bump_scope_fill_copy |a: Scoped, d| kept(a.alloc_slice_fill(d.count, 7u64));
    }
    "alloc_slice_fill_default" {
        call_arena_fill_default |a: Arena, d| at(a.alloc_slice_fill_default::<u64>(d.count));
        call_bumpalo_fill_default |a: Bump, d| at(a.alloc_slice_fill_default::<u64>(d.count));
        call_bump_scope_fill_default |a: Scoped, d| {
            kept(a.alloc_slice_fill_with(d.count, u64::default))
        };
    }
    "alloc_slice_fill_with" {
        call_arena_fill_with |a: Arena, d| at(a.alloc_slice_fill_with(d.count, |n| d.count ^ n));
        call_bumpalo_fill_with |a: Bump, d| at(a.alloc_slice_fill_with(d.count, |n| d.count ^ n));
        call_bump_scope_fill_with |a: Scoped, d| {
            let mut n = 0;
            kept(a.alloc_slice_fill_with(d.count, || {
                n += 1;
                d.count ^ n
            }))
        };
    }
    "alloc_slice_fill_iter" {
        call_arena_fill_iter |a: Arena, d| {
            at(a.alloc_slice_fill_iter(d.words.iter().map(|n| n ^ 5)))
        };
        call_bumpalo_fill_iter |a: Bump, d| {
            at(a.alloc_slice_fill_iter(d.words.iter().map(|n| n ^ 5)))
        };
        call_bump_scope_fill_iter |a: Scoped, d| {
            kept(a.alloc_iter_exact(d.words.iter().map(|n| n ^ 5)))
        };
        call_typed_fill_iter |a: Typed<u64>, d| at(a.alloc_extend(d.words.iter().map(|n| n ^ 5)));
    }
    "alloc_iter" {
        call_arena_iter |a: Arena, d| {
            at(a.alloc_iter(d.words.iter().filter(|n| *n % 4 > 0).copied()))
        };
        call_bumpalo_iter |a: Bump, d| {
            let found = d.words.iter().filter(|n| *n % 4 > 0).copied();
            at(found.collect_in::<bumpalo::collections::Vec<u64>>(a).into_bump_slice())
        };
        call_bump_scope_iter |a: Scoped, d| {
            kept(a.alloc_iter(d.words.iter().filter(|n| *n % 4 > 0).copied()))
        };
        call_typed_iter |a: Typed<u64>, d| {
            at(a.alloc_extend(d.words.iter().filter(|n| *n % 4 > 0).copied()))
        };
    }
    "alloc_str" {
        call_arena_str |a: Arena, d| at(a.alloc_str(d.text));
        call_bumpalo_str |a: Bump, d| at(a.alloc_str(d.text));
        call_bump_scope_str |a: Scoped, d| kept(a.alloc_str(d.text));
        call_typed_str |a: Typed<u8>, d| at(a.alloc_str(d.text));
    }
    "alloc_fmt" {
        call_arena_fmt |a: Arena, d| at(a.alloc_fmt(format_args!("{} of {}", d.count, d.text)));
        call_bumpalo_fmt |a: Bump, d| {
            at(bumpalo::format!(in a, "{} of {}", d.count, d.text).into_bump_str())
        };
        call_bump_scope_fmt |a: Scoped, d| {
            kept(a.alloc_fmt(format_args!("{} of {}", d.count, d.text)))
        };
    }
    "a box, made and dropped" {
        call_arena_box |a: Arena, d| ArenaBox::new_in(Counted(d.count as u64), &*a).0 as usize;
        call_bumpalo_box |a: Bump, d| {
            (*bumpalo::boxed::Box::new_in(Counted(d.count as u64), a)).0 as usize
        };
        call_bump_scope_box |a: Scoped, d| a.alloc(Counted(d.count as u64)).0 as usize;
    }
    "a vector, 100 pushes" {
        call_arena_push |a: Arena, d| {
            let mut vec = ArenaVec::new_in(&*a);
            (0..100).for_each(|n| vec.push(d.count ^ n));
            at(vec.into_slice())
        };
        call_bumpalo_push |a: Bump, d| {
            let mut vec = bumpalo::collections::Vec::new_in(a);
            (0..100).for_each(|n| vec.push(d.count ^ n));
            at(vec.into_bump_slice())
        };
        call_bump_scope_push |a: Scoped, d| {
            let mut vec = BumpVec::new_in(&*a);
            (0..100).for_each(|n| vec.push(d.count ^ n));
            kept(vec.into_boxed_slice())
        };
    }
    "a vector, extended by 16" {
        call_arena_extend |a: Arena, d| {
            at(ArenaVec::from_iter_in(d.words.iter().copied(), &*a).into_slice())
        };
        call_bumpalo_extend |a: Bump, d| {
            let words = d.words.iter().copied();
            at(bumpalo::collections::Vec::from_iter_in(words, a).into_bump_slice())
        };
        call_bump_scope_extend |a: Scoped, d| {
            kept(BumpVec::from_iter_in(d.words.iter().copied(), &*a).into_boxed_slice())
        };
    }
    "a string, three pieces" {
        call_arena_string |a: Arena, d| {
            let mut text = ArenaString::from_str_in(d.text, &*a);
            text.push(':');
            text.push_str(d.text);
            at(text.into_str())
        };
        call_bumpalo_string |a: Bump, d| {
            let mut text = bumpalo::collections::String::from_str_in(d.text, a);
            text.push(':');
            text.push_str(d.text);
            at(text.into_bump_str())
        };
        call_bump_scope_string |a: Scoped, d| {
            let mut text = BumpString::from_str_in(d.text, &*a);
            text.push(':');
            text.push_str(d.text);
            kept(text.into_boxed_str())
        };
    }
    "a string, write!" {
        call_arena_write |a: Arena, d| {
            let mut text = ArenaString::new_in(&*a);
            write!(text, "{}/{}", d.text, d.count).unwrap();
            at(text.into_str())
        };
        call_bumpalo_write |a: Bump, d| {
            let mut text = bumpalo::collections::String::new_in(a);
            write!(text, "{}/{}", d.text, d.count).unwrap();
            at(text.into_bump_str())
        };
        call_bump_scope_write |a: Scoped, d| {
            let mut text = BumpString::new_in(&*a);
            write!(text, "{}/{}", d.text, d.count).unwrap();
            kept(text.into_boxed_str())
        };
    }
    "a scope with a value" {
        call_arena_scope |a: Arena, d| a.scope(|scope| at(scope.alloc(d.count)));
        call_bump_scope_scope |a: Scoped, d| a.scoped(|scope| kept(scope.alloc(d.count)));
    }
    "shared by threads: alloc" {
        call_arena_shared |a: SharedArena, d| at(a.alloc(d.count));
    }
}

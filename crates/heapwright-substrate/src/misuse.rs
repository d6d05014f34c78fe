//! Misuse of the heap: describes the pointer in one line, and ends the process, because intact data
//! could become corrupt otherwise. Lines about a pointer have this shape:
//!
//! ```text
//! heapwright: free(0x7f..): <kind of pointer>; <advice>
//! ```

use crate::address_map::{Kind, MAP};
use crate::describe::{BlockState, Description, Kind as Place, describe};
use crate::names::Name;
use crate::os::{self, Contents};
use crate::sync;
use crate::text::Line;

/// The function that got the pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// `free` and its variants without a size.
    Free,
    /// A free with a size.
    FreeSized,
    /// `realloc`.
    Realloc,
    /// `malloc_usable_size`.
    UsableSize,
    /// The free of a first-class heap.
    HeapFree,
    /// The free of a pool.
    PoolFree,
}

impl Call {
    const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::FreeSized => "sized free",
            Self::Realloc => "realloc",
            Self::UsableSize => "malloc_usable_size",
            Self::HeapFree => "hw_heap_free",
            Self::PoolFree => "free to a pool",
        }
    }
}

fn begin(call: Call, address: usize) -> Line {
    Line::new().text(call.name()).text("(").address(address).text("): ")
}

/// Writes a line about misuse, and ends the process.
pub fn end(line: Line) -> ! {
    line.write();
    // This thread may hold locks, and a handler of SIGABRT may allocate.
    sync::hold_all();
    os::abort()
}

/// Reports a block that was freed twice.
#[cold]
pub fn double_free(call: Call, address: usize, size: usize) -> ! {
    let line = begin(call, address).text("this ").number(size);
    end(line.text("-byte block was freed before; free each block once"))
}

/// Reports a pointer into the heap that is not the start of a block in use.
#[cold]
pub fn not_a_block(call: Call, address: usize) -> ! {
    let found = describe(core::ptr::without_provenance(address));
    let line = begin(call, address);
    let (unit, entry) = MAP.lookup(address);
    end(match MAP.kind_of(unit, entry) {
        Kind::Slab(_) | Kind::LargeHead | Kind::LargeRest(_) if found.block != 0 => {
            if found.state == BlockState::Free && found.offset == 0 {
                line.text("this ")
                    .number(found.size)
                    .text("-byte block is not in use: it was freed before, or never allocated")
            } else {
                line.text("the pointer is ")
                    .number(found.offset)
                    .text(" bytes into a ")
                    .number(found.size)
                    .text("-byte block at ")
                    .address(found.block)
                    .text("; pass the address malloc returned")
            }
        }
        Kind::Free | Kind::Kept => {
            line.text("the block that was here was freed before; free each block once")
        }
        Kind::Metadata => line.text("the pointer leads to heapwright's own records"),
        Kind::PoolHead | Kind::PoolRest(_) => {
            in_pool(line, &found).text("; give it back to that pool")
        }
        Kind::Arena => {
            line.text("the pointer is in an arena, whose memory goes back with the arena")
        }
        Kind::Collected(_) | Kind::CollectedRest(_) => line
            .text("the pointer is in collected heap ")
            .number(found.owner as usize)
            .text(", which frees its objects itself"),
        Kind::LargeHead | Kind::LargeRest(_) => {
            line.text("the pointer is past the end of a block; malloc did not return it")
        }
        _ => line.text("the pointer is between the blocks of a slab; malloc did not return it"),
    })
}

/// The access of a function of the C library to a range of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// It fills the range.
    Write,
    /// It reads the range.
    Read,
    /// It reads or writes the range.
    Unknown,
    /// The range is the function's limit. The function has filled less.
    Limit,
}

/// Begins a line about an access of `bytes` bytes at `address`, where the block has `left` more
/// bytes.
#[cold]
pub fn out_of_bounds(
    function: &str,
    access: Access,
    address: usize,
    bytes: usize,
    left: usize,
) -> Line {
    let (verb, place) = match access {
        Access::Write => (" writes ", " to "),
        Access::Read => (" reads ", " from "),
        Access::Unknown => (" accesses ", " at "),
        Access::Limit => (" may write ", " to "),
    };
    let line = Line::new().text(function).text(verb).number(bytes);
    let line = line.text(if bytes == 1 { " byte" } else { " bytes" }).text(place).address(address);
    let found = describe(core::ptr::without_provenance(address));
    let line = if left > 0 {
        let line = line.text(", where the block has ").number(left).text(" left (block of ");
        line.number(found.size).text(" bytes at ").address(found.block).text(")")
    } else {
        match found.kind {
            Place::Metadata => line.text(", in heapwright's own records"),
            Place::Small | Place::Large | Place::Debug | Place::Free
                if found.block != 0 && found.state == BlockState::Free =>
            {
                let line = line.text(", in a block of ").number(found.size);
                line.text(" bytes at ").address(found.block).text(" that was freed")
            }
            Place::Free => line.text(", where the block was freed"),
            _ if found.block != 0 => {
                let line = line.text(", past the end of the block of ").number(found.size);
                line.text(" bytes at ").address(found.block)
            }
            _ => line.text(", between blocks of the heap"),
        }
    };
    line.text("; detect=-bounds silences this")
}

/// Reports that a block of a first-class heap was passed to another heap's free.
#[cold]
pub fn wrong_heap(call: Call, address: usize, size: usize) -> ! {
    let line = begin(call, address).text("this ").number(size);
    end(line.text("-byte block belongs to another heap; free it with the heap that made it"))
}

fn in_pool(line: Line, found: &Description) -> Line {
    let line = match (found.block, found.offset) {
        (0, _) => line.text("the pointer lies between the objects of"),
        (_, 0) => line.text("this ").number(found.size).text("-byte object belongs to"),
        (object, offset) => line
            .text("the pointer is ")
            .number(offset)
            .text(" bytes into the ")
            .number(found.size)
            .text("-byte object at ")
            .address(object)
            .text(" of"),
    };
    Name::of(found.owner, |name| line.text(" pool `").bytes(name).text("`"))
}

/// Reports a pointer that is not one of the pool's objects.
#[cold]
pub fn not_of_pool(pool: &str, address: usize) -> ! {
    let line = begin(Call::PoolFree, address).text("it was given to pool `");
    let line = line.bytes(pool.as_bytes()).text("`, but ");
    let found = describe(core::ptr::without_provenance(address));
    let (unit, entry) = MAP.lookup(address);
    end(match MAP.kind_of(unit, entry) {
        Kind::PoolHead | Kind::PoolRest(_) => in_pool(line, &found),
        Kind::Foreign => line.text("the pointer is not heapwright's"),
        Kind::Arena => line.text("the pointer is in an arena"),
        Kind::Collected(_) | Kind::CollectedRest(_) => {
            line.text("the pointer is in a collected heap")
        }
        Kind::Free | Kind::Kept => line.text("nothing is at this address now"),
        Kind::Metadata => line.text("the pointer leads to heapwright's own records"),
        Kind::Slab(_) | Kind::LargeHead | Kind::LargeRest(_)
            if found.block != 0 && found.offset == 0 =>
        {
            line.text("this ").number(found.size).text("-byte block is malloc's; free it with free")
        }
        _ => line.text("the pointer is in a block of malloc"),
    })
}

/// Reports an object of a pool that was freed twice.
#[cold]
pub fn freed_twice_in_pool(pool: &str, address: usize) -> ! {
    let line = begin(Call::PoolFree, address).text("this object of pool `").bytes(pool.as_bytes());
    end(line.text("` was given back before; destroy each object once"))
}

/// In checked builds, reports a write to byte `offset` of a free object of a pool.
#[cold]
pub fn written_when_free(pool: &str, object: usize, offset: usize) -> ! {
    let line = begin(Call::PoolFree, object).text("this object of pool `").bytes(pool.as_bytes());
    let line = line.text("` was written to after it was given back, ").number(offset);
    end(line.text(" bytes into it; do not use an object once it is destroyed"))
}

/// In checked builds, reports objects that live when their pool ends. The process continues.
#[cold]
pub fn live_at_end(pool: &str, objects: usize, size: usize) {
    let line =
        Line::new().text("pool `").bytes(pool.as_bytes()).text("` ended with ").number(objects);
    line.text(if objects == 1 { " object of " } else { " objects of " })
        .number(size)
        .text(" bytes that were created and not destroyed")
        .write();
}

/// Reports a verifier's finding in a collected heap.
#[cold]
pub fn collected_heap(why: &str) -> ! {
    end(Line::new().text(why))
}

/// Reports that a pool or an arena has no memory, although its caller needs the memory.
#[cold]
pub fn no_room(what: &str, name: &str) -> ! {
    end(Line::new()
        .text(what)
        .text(name)
        .text(": no memory, or the limit is reached; the functions that begin with try_ report it"))
}

/// Reports a pointer that leads neither into the heap nor to a block of a known allocator.
#[cold]
pub fn foreign(call: Call, address: usize) -> ! {
    let line = begin(call, address);
    let line = match os::what_is_at(address) {
        Err(_) => line.text("the pointer is not the heap's"),
        Ok(None) => line.text("nothing is mapped at this address"),
        Ok(Some((contents, mapping))) => match contents {
            Contents::Stack => line.text("the pointer is on the stack"),
            Contents::MainStack => line.text("the pointer is on the main thread's stack"),
            Contents::Break => {
                line.text("the pointer is in the C library's heap, but not a block of it")
            }
            Contents::Data => line.text("the pointer is in the data of ").bytes(mapping.name()),
            Contents::Code => {
                line.text("the pointer is in the code or constants of ").bytes(mapping.name())
            }
            Contents::Special => line.text("the pointer is in ").bytes(mapping.name()),
            Contents::Anonymous | Contents::Other => {
                line.text("the pointer is in memory mapped by the program or another allocator")
            }
        },
    };
    end(line.text("; malloc did not return it"))
}

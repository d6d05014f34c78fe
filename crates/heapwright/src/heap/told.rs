//! What the door was told, in the words of findings.

use heapwright_record::debug as record;

use super::origin::{Origin, Request, Return};
use crate::debug;
use crate::misuse::Call;

#[inline(always)]
const fn origin(origin: Origin) -> record::Origin {
    match origin {
        Origin::Malloc => record::Origin::Malloc,
        Origin::Aligned => record::Origin::Aligned,
        Origin::New => record::Origin::New,
        Origin::NewArray => record::Origin::NewArray,
        Origin::Rust => record::Origin::Rust,
    }
}

/// A block is asked for.
#[inline(always)]
pub(super) const fn request(asked: Request) -> debug::Request {
    debug::Request {
        size: asked.size,
        align: asked.align,
        zero: asked.zero,
        origin: origin(asked.origin),
        call: match asked.origin {
            _ if asked.zero => record::Call::Calloc,
            Origin::New => record::Call::New,
            Origin::NewArray => record::Call::NewArray,
            _ => record::Call::Malloc,
        },
    }
}

/// A block comes back, or is to be resized.
#[inline(always)]
pub(super) const fn given(what: Return) -> debug::Return {
    debug::Return {
        call: match (what.call, what.origin) {
            (Call::Realloc, Origin::Rust) => record::Call::RustRealloc,
            (Call::Realloc, _) => record::Call::Realloc,
            (Call::UsableSize, _) => record::Call::UsableSize,
            (Call::HeapFree, _) => record::Call::HeapFree,
            (_, Origin::New) => record::Call::Delete,
            (_, Origin::NewArray) => record::Call::DeleteArray,
            (_, Origin::Rust) => record::Call::RustDealloc,
            (Call::FreeSized, _) => record::Call::FreeSized,
            _ => record::Call::Free,
        },
        origin: origin(what.origin),
        size: what.size,
        align: what.align,
    }
}

/// The new block that `realloc` is to make.
#[inline(always)]
pub(super) fn resized(what: Return, size: usize) -> debug::Request {
    debug::Request {
        size,
        align: what.align.unwrap_or(1),
        zero: false,
        origin: origin(what.origin),
        call: record::Call::Realloc,
    }
}

/// `malloc_usable_size` is asked.
pub(super) const fn question() -> debug::Return {
    debug::Return {
        call: record::Call::UsableSize,
        origin: record::Origin::Malloc,
        size: None,
        align: None,
    }
}

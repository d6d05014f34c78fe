//! Mirrors: structs that are defined twice, for two readers of the same bytes.
//!
//! This crate defines the structs of `include/heapwright.h`, because programs compiled long ago
//! rely on them. The library has structs of its own, and code reads one as the other. So [`mirror`]
//! compares each field of both, because sizes alone would not show two exchanged fields.
//!
//! ```text
//!   mirror!(Ours, Theirs; a b c)              all fields of both
//!   mirror!(Ours, Theirs; a b; c; d e)        a and b of both; the caller compares c with d and e
//! ```

pub(crate) const fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

macro_rules! field {
    ($of:ty, $field:ident) => {
        (core::mem::offset_of!($of, $field), $crate::mirror::size_of_field(|of: &$of| &of.$field))
    };
}

macro_rules! mirror {
    ($ours:ident, $theirs:ident; $($field:ident)*) => {
        $crate::mirror::mirror!($ours, $theirs; $($field)*; ; );
    };
    ($ours:ident, $theirs:ident; $($field:ident)*; $($our:ident)*; $($their:ident)*) => {
        const _: () = {
            $( assert!($crate::mirror::same(
                $crate::mirror::field!($ours, $field),
                $crate::mirror::field!($theirs, $field),
            )); )*
            assert!(size_of::<$ours>() == size_of::<$theirs>());
            assert!(align_of::<$ours>() == align_of::<$theirs>());
            // A field that was left out above does not compile here.
            _ = |$ours { $($field: _,)* $($our: _,)* }: $ours| ();
            _ = |$theirs { $($field: _,)* $($their: _,)* }: $theirs| ();
        };
    };
}

pub(crate) const fn same(one: (usize, usize), other: (usize, usize)) -> bool {
    one.0 == other.0 && one.1 == other.1
}

pub(crate) use field;
pub(crate) use mirror;

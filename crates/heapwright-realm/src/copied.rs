//! References that are `Copy`, for any type of value.

/// `Clone` and `Copy` for a reference with type parameters that need be neither.
macro_rules! copied {
    ($of:ty $(: $($parameter:ident),+)?) => {
        impl$(<$($parameter),+>)? Clone for $of {
            #[inline]
            fn clone(&self) -> Self {
                *self
            }
        }

        impl$(<$($parameter),+>)? Copy for $of {}
    };
}

pub(crate) use copied;

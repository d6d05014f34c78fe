//! References that are `Copy`, for any type of value.

/// Implements `Clone` and `Copy` for a reference, whether or not its type parameters are `Copy`.
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

//! Records to one picture.

pub(crate) mod model;

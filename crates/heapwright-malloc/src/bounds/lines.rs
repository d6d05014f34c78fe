//! Macros that turn the lines of the tables (`table`, `readers`, `calls`) into functions.
//!
//! ```text
//!   memcpy(to, from, n) { .. }  -->  mod memcpy { real()      the C library's function
//!                                                 checked()   a glance, then the real function
//!                                                 looked_at() if the glance says no: the checks
//!                                                 in_spite()  if these find a mistake: `kernel` }
//!                                    a line of the table { the real name, the slot,
//!                                                 the forms: checked writes, checked both }
//! ```
//!
//! A line uses the `SLOTS` that its table's file imports: the slots of that table's names.

macro_rules! functions {
    ($TABLE:ident: $($name:ident $(as $real:ident)? ($($argument:ident: $type:ty),*) -> $result:ty { $($rule:tt)* })*) => {
        $( function!($TABLE $name, ($($argument: $type),*) -> $result, $($rule)*); )*

        pub(super) static $TABLE: &[Function] = &[$(
            Function {
                real: name!($name $($real)?),
                slot: &SLOTS.$name,
                writes: writes!($TABLE $name),
                both: $name::checked::<true> as *const c_void,
            },
        )*];
    };
}

/// A function: a replacement of its own (`instead`), or checks and then the real function.
macro_rules! function {
    ($TABLE:ident $name:ident, ($($argument:ident: $type:ty),*) -> $result:ty, instead $function:path) => {
        #[allow(non_snake_case, reason = "the name is the C library's")]
        mod $name {
            use super::*;

            real!($name, ($($argument: $type),*) -> $result);

            pub(super) unsafe extern "C" fn checked<const READS: bool>(
                $($argument: $type),*
            ) -> $result {
                let is_wrong = Cell::new(false);
                let check = Check::<READS> {
                    function: stringify!($name),
                    stage: Stage::Look(&is_wrong),
                };
                // SAFETY: the arguments are the program's, as the C library's function takes them.
                unsafe { $function(check, real(), $($argument),*) }
            }
        }
    };
    ($TABLE:ident $name:ident, ($($argument:ident: $type:ty),*) -> $result:ty, $($method:ident($($what:expr),*)),*) => {
        #[allow(non_snake_case, reason = "the name is the C library's")]
        mod $name {
            use super::*;

            real!($name, ($($argument: $type),*) -> $result);

            /// Calls the real function if the glance finds no mistake. Arguments stay in registers.
            pub(super) unsafe extern "C" fn checked<const READS: bool>(
                $($argument: $type),*
            ) -> $result {
                if $(Glance::<READS>.$method($($what),*))&&* {
                    // SAFETY: the arguments are the program's, passed on as they are.
                    unsafe { real()($($argument),*) }
                } else {
                    // SAFETY: the arguments are the program's, passed on as they are.
                    unsafe { looked_at::<READS>($($argument),*) }
                }
            }

            #[inline(never)]
            unsafe extern "C" fn looked_at<const READS: bool>($($argument: $type),*) -> $result {
                let is_wrong = Cell::new(false);
                let check = Check::<READS> {
                    function: stringify!($name),
                    stage: Stage::Look(&is_wrong),
                };
                $( check.$method($($what),*); )*
                if READS && calls_the_kernel!($TABLE) && is_wrong.get() {
                    // SAFETY: the arguments are the program's, passed on as they are.
                    return unsafe { in_spite::<READS>($($argument),*) };
                }
                // SAFETY: the arguments are the program's, passed on as they are.
                unsafe { real()($($argument),*) }
            }

            #[cold]
            #[inline(never)]
            unsafe extern "C" fn in_spite<const READS: bool>($($argument: $type),*) -> $result {
                let room = Room::new();
                let check = Check::<READS> {
                    function: stringify!($name),
                    stage: Stage::GoThrough(&room),
                };
                $( check.$method($($what),*); )*
                // SAFETY: the arguments are the program's, or copies for the kernel.
                let result = unsafe { real()($(room.pass($argument)),*) };
                room.judge(stringify!($name), &result);
                room.put_back();
                result
            }
        }
    };
}

macro_rules! real {
    ($name:ident, ($($argument:ident: $type:ty),*) -> $result:ty) => {
        #[inline(always)]
        fn real() -> unsafe extern "C" fn($($type),*) -> $result {
            let real = SLOTS.$name.real.load(Ordering::Relaxed);
            // SAFETY: the C library's function of that name has this type. `fill_slots` looked it
            // up before the slot led to a function that uses it.
            unsafe { transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>(real) }
        }
    };
}

/// The form of a function that checks writes. Only the functions of the first table have one.
macro_rules! writes {
    (READERS $name:ident) => {
        core::ptr::null()
    };
    (CALLS $name:ident) => {
        core::ptr::null()
    };
    (TABLE $name:ident) => {
        $name::checked::<false> as *const c_void
    };
}

/// Whether a table has functions that pass memory to the kernel. The `READERS` do not: they fault
/// at a guard page, and continue after the fault (`fault_handler`).
macro_rules! calls_the_kernel {
    (READERS) => {
        false
    };
    ($_:ident) => {
        true
    };
}

/// The name of the real function, or `None` if this library does all the work.
macro_rules! name {
    ($name:ident) => {
        Some($crate::bounds::string(concat!(stringify!($name), "\0")))
    };
    ($name:ident nothing) => {
        None
    };
    ($name:ident $real:ident) => {
        Some($crate::bounds::string(concat!(stringify!($real), "\0")))
    };
}

//! Symbols that need not exist.

/// The address of a symbol: null where the process has none of that name.
///
/// The dynamic linker binds it when it loads the library; in a static program
/// the linker does.
macro_rules! weak {
    ($name:literal) => {
        $crate::weak::bound!(concat!(".weak ", $name), $name)
    };
}

/// The address that a symbol was bound to: what the global offset table says,
/// and not what this library would call by the name. The first argument is a
/// directive of the assembler about it, or nothing.
macro_rules! bound {
    ($directive:expr, $name:literal) => {{
        let address: *mut ::libc::c_void;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: reads one entry of the global offset table.
        unsafe {
            ::core::arch::asm!(
                $directive,
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: reads one entry of the global offset table.
        unsafe {
            ::core::arch::asm!(
                $directive,
                concat!("adrp {0}, :got:", $name),
                concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}

pub(crate) use {bound, weak};

//! Inner loops of Tidemill as plain C functions. Python calls them through `ctypes` (`tidemill/native/`).
//!
//! Each function does what a NumPy or Arrow implementation in the package does, bit by bit. A function that
//! cannot be sure of that gives its input back (`UNSURE`), and the caller takes the other implementation.

//! It needs nothing but the C library's memory functions, so that it loads on old systems.

#![no_std]

mod columns;
mod csv;
mod hashing;
mod json;

/// Counts up with every change to a function's arguments or meaning; the package asks for its own number.
const VERSION: u32 = 2;

#[no_mangle]
pub extern "C" fn tidemill_core_version() -> u32 {
    VERSION
}

extern "C" {
    fn abort() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    unsafe { abort() }
}

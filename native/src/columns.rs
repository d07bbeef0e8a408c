//! Where the values of the columns go, and how numbers are read that mean the same to every reader.

use core::str;

pub const UNSURE: i64 = -1;
/// A whole number of so many digits fits 64 bits; a float of so many characters is parsed exactly.
const WHOLE_DIGITS: usize = 18;
const FLOAT_LENGTH: usize = 24;

/// What becomes of a field. The numbers are those of `tidemill/native/columns.py`.
pub const SKIP: u32 = 0;
pub const TEXT: u32 = 1;
pub const INT8: u32 = 2;
pub const INT16: u32 = 3;
pub const INT32: u32 = 4;
pub const INT64: u32 = 5;
pub const FLOAT32: u32 = 6;
pub const FLOAT64: u32 = 7;

/// Where a column goes. `values`: room for all records, of TEXT for all bytes of the block. `offsets`: of TEXT,
/// room for one more than the records. `valid`: a byte for each record, where there may be
/// NULLs.
#[repr(C)]
pub struct Column {
    pub kind: u64,
    pub values: *mut u8,
    pub offsets: *mut i32,
    pub valid: *mut u8,
}

pub unsafe fn put<T>(column: &Column, row: usize, value: T) {
    column.values.cast::<T>().add(row).write_unaligned(value);
}

/// `-12`; nothing else is sure to mean the same everywhere.
pub fn whole(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > WHOLE_DIGITS {
        return None;
    }
    let mut value = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

/// `-1.5` or `2`: digits, at most one point between them. Both parsers round to the nearest.
pub fn float<T: str::FromStr>(text: &[u8]) -> Option<T> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let points = digits.iter().filter(|&&c| c == b'.').count();
    let plain = digits.iter().all(|c| c.is_ascii_digit() || *c == b'.');
    let bordered = digits.first()?.is_ascii_digit() && digits.last()?.is_ascii_digit();
    if !plain || !bordered || points > 1 || text.len() > FLOAT_LENGTH {
        return None;
    }
    str::from_utf8(text).ok()?.parse().ok()
}

//! Records of plain CSV to Arrow's buffers, in one pass.
//!
//! Plain: no quotes, no carriage returns, valid UTF-8, every record with all its fields, numbers as digits.
//! Anything else is `UNSURE`: the caller asks Arrow's reader, which knows more spellings.

use core::{ptr, slice, str};

use crate::columns::{
    float, put, whole, Column, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8, SKIP, TEXT, UNSURE,
};

const BLOCK: usize = 64;

/// How many bytes of `data` are `byte`.
///
/// # Safety
/// `data` has `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn tidemill_count(data: *const u8, size: usize, byte: u8) -> usize {
    let data = slice::from_raw_parts(data, size);
    data.chunks(255)
        .map(|part| part.iter().map(|&b| u8::from(b == byte)).sum::<u8>() as usize)
        .sum()
}

struct Dialect<'a> {
    delimiter: u8,
    /// `\n` where there is no quote.
    quote: u8,
    null: Option<&'a [u8]>,
}

/// The number of records in `data`, written to `columns`; or `UNSURE`, and what was written is worth nothing.
///
/// # Safety
/// The columns have the room that `Column` says, for `room` records. `null` may be a null pointer: no null
/// literal; then no `valid` is written.
#[no_mangle]
pub unsafe extern "C" fn tidemill_csv(
    data: *const u8,
    size: usize,
    delimiter: u8,
    quote: u8,
    null: *const u8,
    null_size: usize,
    columns: *const Column,
    column_count: usize,
    room: usize,
) -> i64 {
    let data = slice::from_raw_parts(data, size);
    let columns = slice::from_raw_parts(columns, column_count);
    let null = if null.is_null() {
        None
    } else {
        Some(slice::from_raw_parts(null, null_size))
    };
    let dialect = Dialect {
        delimiter,
        quote,
        null,
    };
    records(data, &dialect, columns, room).map_or(UNSURE, |rows| rows as i64)
}

unsafe fn records(
    data: &[u8],
    dialect: &Dialect,
    columns: &[Column],
    room: usize,
) -> Option<usize> {
    let marks = [dialect.delimiter, b'\n', b'\r', dialect.quote];
    let (mut row, mut column, mut start) = (0, 0, 0);
    let mut seen = 0;
    let mut field = |end: usize, ends_record: bool| -> Option<()> {
        let text = data.get(start..end)?;
        let target = columns.get(column)?;
        if row >= room || (ends_record && column + 1 != columns.len()) {
            return None;
        }
        if ends_record && columns.len() == 1 && text.is_empty() {
            return None; // an empty line
        }
        write(text, dialect.null, target, row)?;
        start = end + 1;
        if ends_record {
            (row, column) = (row + 1, 0);
        } else {
            column += 1;
        }
        Some(())
    };
    let mut at = 0;
    while at < data.len() {
        let mut found = if let Some(block) = data.get(at..at + BLOCK) {
            find(block.try_into().ok()?, &marks, &mut seen)
        } else {
            let size = data.len() - at;
            let mut last = [0; BLOCK];
            last[..size].copy_from_slice(&data[at..]);
            find(&last, &marks, &mut seen) & ((1 << size) - 1)
        };
        while found != 0 {
            let place = at + found.trailing_zeros() as usize;
            found &= found - 1;
            match data[place] {
                b'\n' => field(place, true)?,
                mark if mark == dialect.delimiter => field(place, false)?,
                _ => return None,
            }
        }
        at += BLOCK;
    }
    if data.last() != Some(&b'\n') {
        field(data.len(), true)?;
    }
    if seen >= 0x80 && str::from_utf8(data).is_err() {
        return None;
    }
    Some(row)
}

/// A bit for every byte that is one of `marks`; `seen` gathers the bits of all bytes.
#[cfg(target_arch = "x86_64")]
fn find(block: &[u8; BLOCK], marks: &[u8; 4], seen: &mut u8) -> u64 {
    use core::arch::x86_64::*;
    let mut found = 0;
    // SSE2 is part of every x86-64.
    unsafe {
        let wanted = marks.map(|mark| _mm_set1_epi8(mark as i8));
        for part in 0..BLOCK / 16 {
            let bytes = _mm_loadu_si128(block.as_ptr().add(16 * part).cast());
            let equal = _mm_or_si128(
                _mm_or_si128(
                    _mm_cmpeq_epi8(bytes, wanted[0]),
                    _mm_cmpeq_epi8(bytes, wanted[1]),
                ),
                _mm_or_si128(
                    _mm_cmpeq_epi8(bytes, wanted[2]),
                    _mm_cmpeq_epi8(bytes, wanted[3]),
                ),
            );
            found |= (_mm_movemask_epi8(equal) as u32 as u64) << (16 * part);
            if _mm_movemask_epi8(bytes) != 0 {
                *seen |= 0x80;
            }
        }
    }
    found
}

#[cfg(not(target_arch = "x86_64"))]
fn find(block: &[u8; BLOCK], marks: &[u8; 4], seen: &mut u8) -> u64 {
    let mut found = 0;
    for (place, byte) in block.iter().enumerate() {
        *seen |= byte;
        found |= u64::from(marks.contains(byte)) << place;
    }
    found
}

unsafe fn write(text: &[u8], null: Option<&[u8]>, column: &Column, row: usize) -> Option<()> {
    let kind = column.kind as u32;
    if kind == SKIP {
        return Some(());
    }
    let is_null = null == Some(text);
    if null.is_some() {
        *column.valid.add(row) = u8::from(!is_null);
    }
    if kind == TEXT {
        let start = *column.offsets.add(row) as usize;
        let size = if is_null { 0 } else { text.len() };
        ptr::copy_nonoverlapping(text.as_ptr(), column.values.add(start), size);
        *column.offsets.add(row + 1) = (start + size) as i32;
        return Some(());
    }
    if is_null {
        return Some(());
    }
    match kind {
        INT8 => put(column, row, i8::try_from(whole(text)?).ok()?),
        INT16 => put(column, row, i16::try_from(whole(text)?).ok()?),
        INT32 => put(column, row, i32::try_from(whole(text)?).ok()?),
        INT64 => put(column, row, whole(text)?),
        FLOAT32 => put(column, row, float::<f32>(text)?),
        FLOAT64 => put(column, row, float::<f64>(text)?),
        _ => return None,
    }
    Some(())
}

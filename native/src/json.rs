//! Lines of flat JSON objects to Arrow's buffers, in one pass.
//!
//! Plain: one object a line, scalars in the wanted columns, each wanted key at most once, keys without escapes,
//! texts without `\u`, valid UTF-8. Anything else is `UNSURE`. All reads of the block are checked slices.

use core::{ptr, slice, str};

use crate::columns::{
    float, put, whole, Column, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8, TEXT, UNSURE,
};

/// A bit for each column says whether the object had its key.
const MOST_COLUMNS: usize = 64;
/// Of brackets in a value that is skipped.
const MOST_LEVELS: usize = 32;

/// The number of objects in `data`, written to `columns`; or `UNSURE`, and what was written is worth nothing.
///
/// # Safety
/// The columns have the room that `Column` says, for `room` records, and all have `valid`. `names` are their
/// keys in Arrow's layout: `name_ends` has `column_count + 1` places in it, which go up from 0.
#[no_mangle]
pub unsafe extern "C" fn tidemill_json(
    data: *const u8,
    size: usize,
    names: *const u8,
    name_ends: *const i32,
    columns: *const Column,
    column_count: usize,
    room: usize,
) -> i64 {
    if column_count == 0 || column_count > MOST_COLUMNS {
        return UNSURE;
    }
    let ends = slice::from_raw_parts(name_ends, column_count + 1);
    let mut objects = Objects {
        text: slice::from_raw_parts(data, size),
        at: 0,
        names: slice::from_raw_parts(names, ends[column_count] as usize),
        ends,
        columns: slice::from_raw_parts(columns, column_count),
        next: 0,
    };
    objects.read(room).map_or(UNSURE, |rows| rows as i64)
}

enum Value<'a> {
    Null,
    /// `true`, `false`, or a text without escapes.
    Text(&'a [u8]),
    Escaped(&'a [u8]),
    Number(&'a [u8]),
    Nested,
}

struct Objects<'a> {
    text: &'a [u8],
    at: usize,
    names: &'a [u8],
    ends: &'a [i32],
    columns: &'a [Column],
    /// The column after the last one found: keys mostly come in one order.
    next: usize,
}

impl<'a> Objects<'a> {
    unsafe fn read(&mut self, room: usize) -> Option<usize> {
        if !self.text.is_ascii() {
            str::from_utf8(self.text).ok()?;
        }
        let mut row = 0;
        while self.at < self.text.len() {
            if row >= room {
                return None;
            }
            self.object(row)?;
            row += 1;
            self.blanks();
            if self.at < self.text.len() {
                self.expect(b'\n')?;
            }
        }
        Some(row)
    }

    unsafe fn object(&mut self, row: usize) -> Option<()> {
        for column in self.columns {
            *column.valid.add(row) = 0;
            if column.kind as u32 == TEXT {
                *column.offsets.add(row + 1) = *column.offsets.add(row);
            }
        }
        let mut seen = 0_u64;
        self.blanks();
        self.expect(b'{')?;
        self.blanks();
        if self.peek() == Some(b'}') {
            return self.expect(b'}');
        }
        loop {
            let (key, escaped) = self.key()?;
            if escaped {
                return None;
            }
            let value = self.value(MOST_LEVELS)?;
            if let Some(place) = self.column(key) {
                if seen & (1 << place) != 0 {
                    return None;
                }
                seen |= 1 << place;
                write(self.columns.get(place)?, row, value)?;
            }
            self.blanks();
            match self.peek()? {
                b',' => self.at += 1,
                _ => return self.expect(b'}'),
            }
        }
    }

    fn column(&mut self, key: &[u8]) -> Option<usize> {
        let count = self.columns.len();
        for step in 0..count {
            let place = (self.next + step) % count;
            let (start, end) = (*self.ends.get(place)?, *self.ends.get(place + 1)?);
            if self.names.get(start as usize..end as usize) == Some(key) {
                self.next = place + 1;
                return Some(place);
            }
        }
        None
    }

    fn key(&mut self) -> Option<(&'a [u8], bool)> {
        self.blanks();
        self.expect(b'"')?;
        let key = self.string()?;
        self.blanks();
        self.expect(b':')?;
        self.blanks();
        Some(key)
    }

    fn value(&mut self, levels: usize) -> Option<Value<'a>> {
        match self.peek()? {
            b'"' => {
                self.at += 1;
                let (text, escaped) = self.string()?;
                Some(if escaped {
                    Value::Escaped(text)
                } else {
                    Value::Text(text)
                })
            }
            b'n' => self.literal(b"null").map(|_| Value::Null),
            b't' => self.literal(b"true").map(Value::Text),
            b'f' => self.literal(b"false").map(Value::Text),
            b'{' => self.nested(levels, b'}').map(|_| Value::Nested),
            b'[' => self.nested(levels, b']').map(|_| Value::Nested),
            _ => self.number().map(Value::Number),
        }
    }

    /// What comes up to the bracket `end` is checked only.
    fn nested(&mut self, levels: usize, end: u8) -> Option<()> {
        let levels = levels.checked_sub(1)?;
        self.at += 1;
        self.blanks();
        if self.peek()? == end {
            return self.expect(end);
        }
        loop {
            self.blanks();
            if end == b'}' {
                self.key()?;
            }
            self.value(levels)?;
            self.blanks();
            match self.peek()? {
                b',' => self.at += 1,
                _ => return self.expect(end),
            }
        }
    }

    /// What is within the quotes, of which the first was read, and whether it has escapes.
    fn string(&mut self) -> Option<(&'a [u8], bool)> {
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += plain_length(self.text.get(self.at..)?);
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some((self.text.get(start..self.at - 1)?, escaped));
                }
                b'\\' => {
                    unescape(*self.text.get(self.at + 1)?)?;
                    escaped = true;
                    self.at += 2;
                }
                _ => return None, // a control character
            }
        }
    }

    /// By JSON's grammar.
    fn number(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        self.skip(b"-");
        let leading_zero = self.peek()? == b'0';
        if self.digits()? > 1 && leading_zero {
            return None;
        }
        if self.skip(b".") {
            self.digits()?;
        }
        if self.skip(b"eE") {
            self.skip(b"+-");
            self.digits()?;
        }
        self.text.get(start..self.at)
    }

    fn digits(&mut self) -> Option<usize> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(self.at - start)
    }

    fn literal(&mut self, word: &'static [u8]) -> Option<&'static [u8]> {
        let found = self.text.get(self.at..)?.starts_with(word);
        self.at += word.len();
        found.then_some(word)
    }

    fn skip(&mut self, any: &[u8]) -> bool {
        let found = self.peek().is_some_and(|byte| any.contains(&byte));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }
}

/// How many bytes come before a quote, a backslash or a control character.
fn plain_length(text: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zero = |x: u64| x.wrapping_sub(ONES) & !x & HIGH;
    let mut length = 0;
    for word in text.chunks_exact(8) {
        let x = u64::from_le_bytes(word.try_into().unwrap_or_default());
        let control = x.wrapping_sub(ONES * 0x20) & !x & HIGH;
        let marks = zero(x ^ (ONES * 0x22)) | zero(x ^ (ONES * 0x5C)) | control;
        if marks != 0 {
            break; // a borrow may set bits above the first mark only
        }
        length += 8;
    }
    let rest = text.get(length..).unwrap_or_default();
    let special = |&byte: &u8| byte == b'"' || byte == b'\\' || byte < 0x20;
    length + rest.iter().position(special).unwrap_or(rest.len())
}

fn unescape(mark: u8) -> Option<u8> {
    Some(match mark {
        b'"' | b'\\' | b'/' => mark,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    })
}

unsafe fn write(column: &Column, row: usize, value: Value) -> Option<()> {
    match (column.kind as u32, value) {
        (_, Value::Null) => return Some(()),
        (TEXT, Value::Text(text) | Value::Number(text)) => append(column, row, text),
        (TEXT, Value::Escaped(text)) => append_escaped(column, row, text)?,
        (INT8, Value::Number(text)) => put(column, row, i8::try_from(whole(text)?).ok()?),
        (INT16, Value::Number(text)) => put(column, row, i16::try_from(whole(text)?).ok()?),
        (INT32, Value::Number(text)) => put(column, row, i32::try_from(whole(text)?).ok()?),
        (INT64, Value::Number(text)) => put(column, row, whole(text)?),
        (FLOAT32, Value::Number(text)) => put(column, row, float::<f32>(text)?),
        (FLOAT64, Value::Number(text)) => put(column, row, float::<f64>(text)?),
        _ => return None,
    }
    *column.valid.add(row) = 1;
    Some(())
}

/// A text column has room for the whole block: each wanted key comes once, so no byte is written twice.
unsafe fn append(column: &Column, row: usize, text: &[u8]) {
    let end = column.offsets.add(row + 1);
    ptr::copy_nonoverlapping(text.as_ptr(), column.values.add(*end as usize), text.len());
    *end += text.len() as i32;
}

unsafe fn append_escaped(column: &Column, row: usize, mut text: &[u8]) -> Option<()> {
    while let Some(place) = text.iter().position(|&byte| byte == b'\\') {
        append(column, row, text.get(..place)?);
        append(column, row, &[unescape(*text.get(place + 1)?)?]);
        text = text.get(place + 2..)?;
    }
    append(column, row, text);
    Some(())
}

//! 64-bit hashes of texts. State is ordered by them: they equal those of `tidemill/changelog/hashing.py`.

const STEP: u64 = 0xD6E8_FEB8_6659_FD93;

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Of the length, then of eight bytes at a time as little-endian words; the last word is filled with zeros.
fn hash(text: &[u8]) -> u64 {
    let mut total = mix((text.len() as u64).wrapping_add(STEP));
    let mut words = text.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
        total = mix(total.wrapping_mul(STEP).wrapping_add(word));
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        total = mix(total
            .wrapping_mul(STEP)
            .wrapping_add(u64::from_le_bytes(last)));
    }
    total
}

/// Hashes of `rows` texts in Arrow's layout: `offsets` has `rows + 1` places in `data`.
///
/// # Safety
/// The offsets go up and lie within `data`; `hashes` has room for `rows`.
#[no_mangle]
pub unsafe extern "C" fn tidemill_hash_texts(
    data: *const u8,
    offsets: *const i32,
    rows: usize,
    hashes: *mut u64,
) {
    for row in 0..rows {
        let start = *offsets.add(row) as usize;
        let end = *offsets.add(row + 1) as usize;
        let text = if end > start {
            core::slice::from_raw_parts(data.add(start), end - start)
        } else {
            &[]
        };
        *hashes.add(row) = hash(text);
    }
}

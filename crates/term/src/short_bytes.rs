//! Short bytes as words, to write and compare them without a call.

/// One to seven bytes as a word, the first byte least significant and the missing ones 0. Bytes
/// written and read as a word need no call, and a processor forwards one store of all of them to
/// the load that follows.
#[inline]
pub fn word_of(bytes: &[u8]) -> Option<u64> {
    let n = bytes.len();
    let four = |at: usize| -> Option<u64> {
        let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u64::from(u32::from_le_bytes(four)) << (8 * at))
    };
    match n {
        // Bytes in both halves are the same in both.
        4..=7 => Some(four(0)? | four(n - 4)?),
        1..=3 => {
            let one = |at: usize| u64::from(bytes[at]) << (8 * at);
            Some(one(0) | one(n / 2) | one(n - 1))
        }
        _ => None,
    }
}

/// Whether these bytes are equal.
#[inline]
pub fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (word_of(a), word_of(b)) {
        (Some(x), Some(y)) => x == y,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_bytes_are_words() {
        let all: Vec<u8> = (1..=20).map(|i| i * 11).collect();
        for n in 0..all.len() {
            let bytes = &all[..n];
            let mut eight = [0; 8];
            let expected = (1..=7).contains(&n).then(|| {
                eight[..n].copy_from_slice(bytes);
                u64::from_le_bytes(eight)
            });
            assert_eq!(word_of(bytes), expected);
            let mut other = bytes.to_vec();
            assert!(same_bytes(bytes, &other));
            for i in 0..n {
                other[i] ^= 0x80;
                assert!(!same_bytes(bytes, &other));
                other[i] ^= 0x80;
            }
            other.push(0);
            assert!(!same_bytes(bytes, &other));
        }
    }
}

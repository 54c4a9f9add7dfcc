//! Reading memory as fast as a core can: the bound of everything that has to
//! look at its bytes.
//!
//! # Safety
//! The wide version is safe code compiled for processors with AVX2, and called
//! only where the processor says that it has it.

#![expect(unsafe_code, reason = "see the safety note above")]

/// Lanes that are added side by side: enough for two loads in each cycle to
/// find an addition that waits for no earlier one.
const LANES: usize = 32;
const WORD_BYTES: usize = size_of::<u64>();

/// Reads every byte and returns the wrapping sum of all 64-bit words; bytes
/// behind the last whole word count one by one. No reading can be left out,
/// because the sum needs it and the compiler cannot know who looks at it.
#[must_use]
pub fn scan(bytes: &[u8]) -> u64 {
    std::hint::black_box(widest(std::hint::black_box(bytes)))
}

#[cfg(target_arch = "x86_64")]
fn widest(bytes: &[u8]) -> u64 {
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just said that it has AVX2, which is all
        // that the function asks for.
        return unsafe { sum_avx2(bytes) };
    }
    sum(bytes)
}

#[cfg(not(target_arch = "x86_64"))]
fn widest(bytes: &[u8]) -> u64 {
    sum(bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_avx2(bytes: &[u8]) -> u64 {
    sum(bytes)
}

/// Compiled into its callers, for what their processors have.
#[inline(always)]
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<WORD_BYTES>();
    let (rows, more) = words.as_chunks::<LANES>();
    let mut lanes = [0u64; LANES];
    for row in rows {
        for (lane, word) in lanes.iter_mut().zip(row) {
            *lane = lane.wrapping_add(u64::from_ne_bytes(*word));
        }
    }
    let words = more.iter().map(|word| u64::from_ne_bytes(*word));
    let rest = rest.iter().map(|&byte| u64::from(byte));
    lanes.into_iter().chain(words).chain(rest).fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_byte_is_in_the_sum(
            bytes in prop::collection::vec(any::<u8>(), 1..2000),
            at in any::<prop::sample::Index>(),
        ) {
            let before = scan(&bytes);
            prop_assert_eq!(before, sum(&bytes), "both versions agree");
            let mut changed = bytes.clone();
            let at = at.index(bytes.len());
            changed[at] = changed[at].wrapping_add(1);
            prop_assert_ne!(scan(&changed), before, "byte {} was read", at);
        }
    }

    #[test]
    fn words_are_summed() {
        let bytes: Vec<u8> = [1u64, 2, u64::MAX].iter().flat_map(|w| w.to_ne_bytes()).collect();
        assert_eq!(scan(&bytes), 2);
        assert_eq!(scan(&[7, 8]), 15);
        assert_eq!(scan(&[]), 0);
    }
}

//! Reading memory as fast as a core can: the bound of everything that has to
//! look at its bytes.
//!
//! # Safety
//! The wide version is the same code compiled for processors with AVX2, and called
//! only where the processor says that it has it. Memory is read through raw
//! pointers, because that of a mapped file may change meanwhile, into values that
//! decide nothing.

#![expect(unsafe_code, reason = "see the safety note above")]

/// Places that are read side by side, a quarter of the memory apart. Processors fetch
/// ahead within a page and begin anew in the next one: one place at a time leaves
/// memory idle meanwhile (docs/journal, one-scan-in-four-places).
const PLACES: usize = 4;

/// Words of a place in a row: a cache line. Lanes are added side by side, with four
/// places enough for two loads in each cycle to find an addition that waits for no
/// earlier one.
const LINE: usize = 8;
const WORD_BYTES: usize = size_of::<u64>();

/// Reads every byte and returns the wrapping sum of all 64-bit words; bytes
/// behind the last whole word count one by one. No reading can be left out,
/// because the sum needs it and the compiler cannot know who looks at it.
#[inline]
pub fn scan(bytes: &[u8]) -> u64 {
    // SAFETY: the memory is that of a live slice.
    unsafe { scan_memory(bytes.as_ptr(), bytes.len()) }
}

/// The same of memory that others may change meanwhile.
///
/// # Safety
/// All of it can be read for the length of the call.
pub(crate) unsafe fn scan_memory(start: *const u8, bytes: usize) -> u64 {
    let (start, bytes) = std::hint::black_box((start, bytes));
    // SAFETY: passed on from the caller.
    std::hint::black_box(unsafe { widest(start, bytes) })
}

#[cfg(target_arch = "x86_64")]
unsafe fn widest(start: *const u8, bytes: usize) -> u64 {
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just said that it has AVX2; the memory is the
        // caller's to promise.
        return unsafe { sum_avx2(start, bytes) };
    }
    // SAFETY: passed on from the caller.
    unsafe { sum(start, bytes) }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn widest(start: *const u8, bytes: usize) -> u64 {
    // SAFETY: passed on from the caller.
    unsafe { sum(start, bytes) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn sum_avx2(start: *const u8, bytes: usize) -> u64 {
    // SAFETY: passed on from the caller.
    unsafe { sum(start, bytes) }
}

/// Compiled into its callers, for what their processors have.
#[inline(always)]
unsafe fn sum(start: *const u8, bytes: usize) -> u64 {
    const LINE_BYTES: usize = LINE * WORD_BYTES;
    let mut lanes = [[0u64; LINE]; PLACES];
    let rows = bytes / (LINE_BYTES * PLACES);
    for row in 0..rows {
        for (place, lanes) in lanes.iter_mut().enumerate() {
            let at = (place * rows + row) * LINE_BYTES;
            // SAFETY: the line ends within the memory, which has `rows` for each
            // place; no alignment is asked for.
            let line = unsafe { start.add(at).cast::<[u64; LINE]>().read_unaligned() };
            for (lane, word) in lanes.iter_mut().zip(line) {
                *lane = lane.wrapping_add(word);
            }
        }
    }
    let mut sum = lanes.into_iter().flatten().fold(0, u64::wrapping_add);
    for word in rows * LINE * PLACES..bytes / WORD_BYTES {
        // SAFETY: the word ends within the memory; no alignment is asked for.
        sum = sum.wrapping_add(unsafe { start.cast::<u64>().add(word).read_unaligned() });
    }
    for at in bytes / WORD_BYTES * WORD_BYTES..bytes {
        // SAFETY: the byte is within the memory.
        sum = sum.wrapping_add(u64::from(unsafe { start.add(at).read() }));
    }
    sum
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
            // SAFETY: the memory is that of a live vector.
            let plain = unsafe { sum(bytes.as_ptr(), bytes.len()) };
            prop_assert_eq!(before, plain, "both versions agree");
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

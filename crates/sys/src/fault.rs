//! Touching memory so that no page of it is missing when a clock runs.

/// Reads one byte of every cache line of `bytes`: brings them into the cache
/// and faults in their pages. The sum is returned so that no compiler drops
/// the reads.
#[must_use]
pub fn touch(bytes: &[u8]) -> u64 {
    const CACHE_LINE_BYTES: usize = 64;
    let sum = bytes.iter().step_by(CACHE_LINE_BYTES).map(|&b| u64::from(b)).sum();
    std::hint::black_box(sum)
}

//! Whether a file was in the page cache or not, as its cell says, and whether
//! what reads around the page cache did.

use iolens_model::arm::Role;
use iolens_model::file::{CacheState, Destination, FileCounts, WritingFacts};
use iolens_model::outcome::SliceOutcome;
use iolens_model::trial::SliceKind;
use iolens_model::units::Bytes;

use super::case::{Case, Ruling, invalid, once};
use crate::remark::Circumstance;

/// Share of the file that may be there and still count as evicted, or not be there and
/// still as warm: pages that somebody held for a moment.
const REMAINDER_MAX: f64 = 0.001;

/// The file was in the state that the cell says when each slice began, and its bytes
/// came from where that means.
pub(super) fn state(case: &Case<'_>) -> Option<Ruling> {
    let (cache, whole) = (case.trial.cell.cache()?, bytes(case)?);
    if moves_nothing(case) {
        return None;
    }
    let is_direct = is_direct(case);
    let slices = slices(case);
    let residents: Vec<f64> = slices
        .iter()
        .filter_map(|slice| slice.found.resident_before_bytes)
        .map(|resident| resident as f64 / whole.0.max(1) as f64)
        .collect();
    let knows = residents.len() == slices.len();
    let is_cold = cache.is_cold();
    let found = match cache {
        CacheState::Cold | CacheState::Dropped => cold(&residents),
        // Around the page cache all comes from the device, whatever is cached.
        CacheState::Warm if is_direct => None,
        CacheState::Warm => warm(&residents),
    };
    let came = if is_cold || is_direct { delivered(&slices) } else { kept(&slices) };
    match (found, came) {
        (invalid @ Some(Ruling::Invalid(_)), _) | (_, invalid @ Some(Ruling::Invalid(_))) => {
            invalid
        }
        _ if !knows => once(Circumstance::CacheUnknown),
        (_, came) => came,
    }
}

/// Nothing was there.
fn cold(residents: &[f64]) -> Option<Ruling> {
    let most = residents.iter().copied().fold(0.0, f64::max);
    if most <= REMAINDER_MAX {
        return None;
    }
    invalid(format!(
        "{:.1}% of the file was in the page cache at the start of a cold slice",
        most * 100.0
    ))
}

/// All was there.
fn warm(residents: &[f64]) -> Option<Ruling> {
    let least = residents.iter().copied().fold(1.0, f64::min);
    if least >= 1.0 - REMAINDER_MAX {
        return None;
    }
    invalid(format!(
        "only {:.1}% of the file was in the page cache at the start of a warm slice",
        least * 100.0
    ))
}

/// Storage delivered nothing, in any slice: what one waited for is not made up by others.
fn kept(slices: &[Found<'_>]) -> Option<Ruling> {
    let (bytes, slice) = slices.iter().find_map(|slice| {
        let bytes = slice.found.device_bytes?;
        (bytes as f64 > slice.read_bytes as f64 * REMAINDER_MAX).then_some((bytes, slice))
    })?;
    invalid(format!(
        "storage delivered {} to a slice whose {} should come from the page cache",
        Bytes(bytes),
        Bytes(slice.read_bytes)
    ))
}

/// Bytes of the file that is read.
fn bytes(case: &Case<'_>) -> Option<Bytes> {
    match case.trial.cell.copy() {
        Some(_) => Some(case.trial.cell.size),
        None => case.header.file.as_ref().map(|file| file.bytes),
    }
}

/// Whether the arm copies without reading or writing a byte: by sharing blocks.
pub(super) fn moves_nothing(case: &Case<'_>) -> bool {
    case.trial.cell.copy().is_some() && case.outcome.arm.role == Role::Control
}

/// Every byte has to have come from storage, in each slice: what one had read ahead
/// does for no other.
fn delivered(slices: &[Found<'_>]) -> Option<Ruling> {
    for slice in slices {
        match slice.found.device_bytes {
            None => return once(Circumstance::DeviceUnknown),
            Some(bytes) if bytes < slice.read_bytes => {
                return invalid(format!(
                    "storage delivered {} of the {} that a slice read: the rest came from no device of \
                     this machine",
                    Bytes(bytes),
                    Bytes(slice.read_bytes)
                ));
            }
            Some(_) => {}
        }
    }
    None
}

/// The page cache did not grow where an engine reads around it: a file system may do
/// without O_DIRECT and not say so.
pub(super) fn direct(case: &Case<'_>) -> Option<Ruling> {
    if !is_direct(case) {
        return None;
    }
    if case.trial.cell.write().is_some() {
        return left_cached(case);
    }
    let grown = slices(case).into_iter().filter_map(|Found { found, .. }| {
        let (before, after) = found.resident_before_bytes.zip(found.resident_after_bytes)?;
        Some(after.saturating_sub(before))
    });
    let most = grown.max().unwrap_or(0);
    // The end of a file may be read through the page cache: one block of one page.
    if most <= DIRECT_GROWTH_MAX {
        return None;
    }
    invalid(format!(
        "the page cache grew by {} in a slice that should bypass it: the file system read through \
         it despite O_DIRECT",
        Bytes(most)
    ))
}

/// The same of what is written: nothing of the region was in the page cache, and
/// nothing is.
fn left_cached(case: &Case<'_>) -> Option<Ruling> {
    let after = slices(case).into_iter().filter_map(|slice| slice.found.resident_after_bytes);
    let most = after.max().unwrap_or(0);
    if most <= DIRECT_GROWTH_MAX {
        return None;
    }
    invalid(format!(
        "{} were in the page cache after a slice that should bypass it: the file system wrote \
         through it despite O_DIRECT",
        Bytes(most)
    ))
}

/// Writing began where nothing was left to be brought to the device, to a file as the
/// cell says, and made it as long as it should be.
pub(super) fn written(case: &Case<'_>) -> Option<Ruling> {
    let writing = case.header.file.as_ref().and_then(|file| file.writing.as_ref());
    let (setting, writing) = (case.trial.cell.write()?, writing?);
    let slices = slices(case);
    if let Some(off) = slices.iter().filter_map(|c| c.found.size_error_bytes).find(|&off| off > 0) {
        return invalid(format!(
            "the size of the file was wrong by {} after a slice that wrote to it",
            Bytes(off)
        ));
    }
    if slices.iter().any(|slice| slice.found.dirty_before_bytes.is_none()) {
        return once(Circumstance::DirtyUnknown);
    }
    let dirty = slices.iter().filter_map(|slice| slice.found.dirty_before_bytes).max().unwrap_or(0);
    if dirty > 0 {
        return invalid(format!(
            "{} of the file were not on the device yet when a slice began",
            Bytes(dirty)
        ));
    }
    let region = writing.region.0.max(1) as f64;
    let shares = slices
        .iter()
        .filter_map(|slice| slice.found.resident_before_bytes)
        .map(|bytes| bytes as f64 / region);
    let is_as_said = match (setting.destination, is_direct(case)) {
        (Destination::Existing, false) => shares.fold(1.0, f64::min) >= 1.0 - REMAINDER_MAX,
        _ => shares.fold(0.0, f64::max) <= REMAINDER_MAX,
    };
    if !is_as_said {
        return invalid(
            "the page cache did not hold the part of the file that it should when a slice began"
                .to_owned(),
        );
    }
    throttled(case, writing)
}

/// A slice that leaves more dirty memory than the kernel keeps without writing it back
/// shares its time with that.
fn throttled(case: &Case<'_>, writing: &WritingFacts) -> Option<Ruling> {
    let background_bytes = writing.dirty_background?.0;
    let left_bytes =
        case.sums.tx.file?.dirty_after_bytes.filter(|&bytes| bytes > background_bytes)?;
    once(Circumstance::Dirty { left_bytes, background_bytes })
}

/// What a direct slice may leave in the page cache, in bytes.
const DIRECT_GROWTH_MAX: u64 = 64 << 10;

fn is_direct(case: &Case<'_>) -> bool {
    let engines = &case.header.engines;
    engines.iter().any(|engine| engine.id == case.outcome.arm.primitive && engine.is_direct)
}

/// A measured slice of an arm, with what was found around it.
struct Found<'a> {
    found: &'a FileCounts,
    read_bytes: u64,
}

/// The arm's measured slices.
fn slices<'a>(case: &Case<'a>) -> Vec<Found<'a>> {
    let index = case.trial.arms.iter().position(|arm| arm.arm == case.outcome.arm);
    let own = case
        .trial
        .slices
        .iter()
        .filter(|slice| Some(slice.arm) == index && slice.kind == SliceKind::Measured);
    let found = |slice: &'a SliceOutcome| {
        Some(Found { found: slice.tx.file.as_ref()?, read_bytes: slice.tx.bytes })
    };
    own.filter_map(found).collect()
}

#[cfg(test)]
mod tests {
    use iolens_model::cell::Setting;
    use iolens_model::file::{Consumer, EngineFacts, FileFacts, FileSetting, Pattern};
    use iolens_model::run::Run;

    use super::*;
    use crate::fixture::{check_gate, one_arm_trial};

    const FILE_BYTES: u64 = 1 << 30;

    /// Four slices that found this, of an engine that reads through the page cache.
    fn run(cache: CacheState, is_direct: bool, found: FileCounts) -> Run {
        let mut run = one_arm_trial(|slice| slice.tx.file = Some(found));
        let engine = run.trials[0].arms[0].arm.primitive.clone();
        run.header.engines = vec![EngineFacts {
            id: engine,
            summary: String::new(),
            path: String::new(),
            is_direct,
            has_depth: false,
            is_durable: false,
            program: None,
        }];
        run.header.file = Some(FileFacts {
            place: "/tmp".to_owned(),
            is_ours: true,
            bytes: Bytes(FILE_BYTES),
            size_reason: String::new(),
            file_system: "ext4".to_owned(),
            first_pass: None,
            warnings: Vec::new(),
            writing: None,
            dropped: Vec::new(),
            destination: None,
        });
        let setting =
            FileSetting { cache, pattern: Pattern::Sequential, consumer: Consumer::None, depth: 1 };
        run.trials[0].cell.setting = Setting::File(setting);
        run
    }

    fn found(before: u64, after: u64, device: u64) -> FileCounts {
        FileCounts {
            resident_before_bytes: Some(before),
            resident_after_bytes: Some(after),
            device_bytes: Some(device),
            ..FileCounts::default()
        }
    }

    /// Bytes of one slice of the fixture.
    fn slice_bytes() -> u64 {
        one_arm_trial(|_| {}).trials[0].slices.iter().map(|slice| slice.tx.bytes).max().unwrap()
    }

    #[test]
    fn a_cold_slice_begins_with_nothing_and_gets_all_from_storage() {
        let check = |found, expect| check_gate(state, &run(CacheState::Cold, false, found), expect);
        let bytes = slice_bytes();
        check(found(0, bytes, bytes), None);
        check(found(FILE_BYTES / 2000, bytes, bytes), None);
        let kept = found(FILE_BYTES / 500, bytes, bytes);
        check(kept, Some("0.2% of the file was in the page cache"));
        check(found(0, bytes, bytes - 1), Some("the rest came from no device"));
        // What one slice had too much does for no other.
        let mut uneven = run(CacheState::Cold, false, found(0, bytes, 4 * bytes));
        let last = uneven.trials[0].slices.last_mut().unwrap();
        last.tx.file = Some(found(0, bytes, bytes - 1));
        check_gate(state, &uneven, Some("that a slice read: the rest came from no device"));
        check(FileCounts { device_bytes: None, ..found(0, 0, 0) }, Some("flag"));
        let unknown = |device| FileCounts { resident_before_bytes: None, ..found(0, 0, device) };
        check(unknown(bytes), Some("flag"));
        check(unknown(bytes - 1), Some("came from no device"));
    }

    #[test]
    fn a_warm_slice_begins_with_all_and_gets_nothing_from_storage() {
        let check = |found, expect| check_gate(state, &run(CacheState::Warm, false, found), expect);
        check(found(FILE_BYTES, FILE_BYTES, 0), None);
        let half = found(FILE_BYTES / 2, FILE_BYTES, 0);
        check(half, Some("only 50.0% of the file was in the page cache"));
        let bytes = slice_bytes();
        check(found(FILE_BYTES, FILE_BYTES, bytes / 2), Some("should come from the page cache"));
        // The other slices do not make up for one.
        let mut uneven = run(CacheState::Warm, false, found(FILE_BYTES, FILE_BYTES, 0));
        let last = uneven.trials[0].slices.last_mut().unwrap();
        last.tx.file = Some(found(FILE_BYTES, FILE_BYTES, bytes / 500));
        check_gate(state, &uneven, Some("to a slice whose"));
    }

    #[test]
    fn what_is_direct_leaves_the_page_cache_alone_and_reads_the_device() {
        let bytes = slice_bytes();
        let warm = run(CacheState::Warm, true, found(FILE_BYTES, FILE_BYTES, bytes));
        check_gate(state, &warm, None);
        check_gate(direct, &warm, None);
        let cached = run(CacheState::Warm, true, found(FILE_BYTES, FILE_BYTES, 0));
        check_gate(state, &cached, Some("the rest came from no device"));
        let grown = found(0, 1 << 20, bytes);
        let through = run(CacheState::Cold, true, grown);
        check_gate(direct, &through, Some("the page cache grew by 1 MiB"));
        check_gate(direct, &run(CacheState::Cold, false, grown), None);
    }
}

//! Gate 8: whether a file was in the page cache or not, as its cell says, and whether
//! what reads around the page cache did.

use iolens_model::arm::Role;
use iolens_model::file::{CacheState, FileCounts};
use iolens_model::trial::SliceKind;
use iolens_model::units::Bytes;

use super::{Case, Check, Flag};

/// Share of the file that may be there and still count as evicted, or not be there and
/// still as warm: pages that somebody held for a moment.
const REMAINDER_MAX: f64 = 0.001;

/// The file was in the state that the cell says when each slice began, and its bytes
/// came from where that means.
pub(super) fn state(case: &Case<'_>) -> Check {
    let Some((cache, whole)) = case.trial.cell.cache().zip(bytes(case)) else {
        return Check::Pass;
    };
    if moves_nothing(case) {
        return Check::Pass;
    }
    let is_direct = is_direct(case);
    let slices = slices(case);
    if slices.iter().any(|counts| counts.resident_before_bytes.is_none()) {
        return Check::Flag(Flag::Once(UNKNOWN.to_owned()));
    }
    let whole = whole.0.max(1) as f64;
    let shares = slices
        .iter()
        .filter_map(|counts| counts.resident_before_bytes.map(|resident| resident as f64 / whole));
    let sums = case.sums.tx.file.and_then(|counts| counts.device_bytes);
    let read = case.sums.tx.bytes;
    match cache {
        CacheState::Cold => {
            let most = shares.fold(0.0, f64::max);
            if most > REMAINDER_MAX {
                return Check::Invalid(format!(
                    "{:.1} % of the file was in the page cache when a slice began that was to be \
                     cold",
                    most * 100.0
                ));
            }
            delivered(sums, read)
        }
        // Around the page cache all comes from the device, whatever is cached.
        CacheState::Warm if is_direct => delivered(sums, read),
        CacheState::Warm => {
            let least = shares.fold(1.0, f64::min);
            if least < 1.0 - REMAINDER_MAX {
                return Check::Invalid(format!(
                    "only {:.1} % of the file was in the page cache when a slice began that was to \
                     be warm",
                    least * 100.0
                ));
            }
            match sums {
                Some(bytes) if bytes as f64 > read as f64 * REMAINDER_MAX => {
                    Check::Invalid(format!(
                        "storage delivered {} of the {} that were to come from the page cache",
                        Bytes(bytes),
                        Bytes(read)
                    ))
                }
                _ => Check::Pass,
            }
        }
    }
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

/// What is said where nobody knows.
const UNKNOWN: &str = "what of the file was in the page cache is unknown: cachestat(2) (Linux 6.5) \
    tells only who owns a file or may write to it";

/// Every byte has to have come from storage.
fn delivered(device_bytes: Option<u64>, read_bytes: u64) -> Check {
    match device_bytes {
        None => Check::Flag(Flag::Once(
            "whether bytes came from a device is unknown: /proc/self/io cannot be read".to_owned(),
        )),
        Some(bytes) if bytes < read_bytes => Check::Invalid(format!(
            "storage delivered {} of the {} that were read: the rest came from memory",
            Bytes(bytes),
            Bytes(read_bytes)
        )),
        Some(_) => Check::Pass,
    }
}

/// The page cache did not grow where an engine reads around it: a file system may do
/// without O_DIRECT and not say so.
pub(super) fn direct(case: &Case<'_>) -> Check {
    if !is_direct(case) {
        return Check::Pass;
    }
    let grown = slices(case).into_iter().filter_map(|counts| {
        let (before, after) = counts.resident_before_bytes.zip(counts.resident_after_bytes)?;
        Some(after.saturating_sub(before))
    });
    let most = grown.max().unwrap_or(0);
    // The end of a file may be read through the page cache: one block of one page.
    if most <= DIRECT_GROWTH_MAX {
        return Check::Pass;
    }
    Check::Invalid(format!(
        "the page cache grew by {} in a slice that was to read around it: the file system read \
         through it although O_DIRECT was asked for",
        Bytes(most)
    ))
}

/// What a direct slice may leave in the page cache, in bytes.
const DIRECT_GROWTH_MAX: u64 = 64 << 10;

fn is_direct(case: &Case<'_>) -> bool {
    let engines = &case.header.engines;
    engines.iter().any(|engine| engine.id == case.outcome.arm.primitive && engine.is_direct)
}

/// The arm's measured slices with what was found around each.
fn slices<'a>(case: &Case<'a>) -> Vec<&'a FileCounts> {
    let index = case.trial.arms.iter().position(|arm| arm.arm == case.outcome.arm);
    let own = case
        .trial
        .slices
        .iter()
        .filter(|slice| Some(slice.arm) == index && slice.kind == SliceKind::Measured);
    own.filter_map(|slice| slice.tx.file.as_ref()).collect()
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
        check(kept, Some("0.2 % of the file was in the page cache"));
        check(found(0, bytes, bytes - 1), Some("the rest came from memory"));
        check(FileCounts { device_bytes: None, ..found(0, 0, 0) }, Some("flag"));
        check(FileCounts { resident_before_bytes: None, ..found(0, 0, 0) }, Some("flag"));
    }

    #[test]
    fn a_warm_slice_begins_with_all_and_gets_nothing_from_storage() {
        let check = |found, expect| check_gate(state, &run(CacheState::Warm, false, found), expect);
        check(found(FILE_BYTES, FILE_BYTES, 0), None);
        let half = found(FILE_BYTES / 2, FILE_BYTES, 0);
        check(half, Some("only 50.0 % of the file was in the page cache"));
        let bytes = slice_bytes();
        check(found(FILE_BYTES, FILE_BYTES, bytes / 2), Some("to come from the page cache"));
    }

    #[test]
    fn what_is_direct_leaves_the_page_cache_alone_and_reads_the_device() {
        let bytes = slice_bytes();
        let warm = run(CacheState::Warm, true, found(FILE_BYTES, FILE_BYTES, bytes));
        check_gate(state, &warm, None);
        check_gate(direct, &warm, None);
        let cached = run(CacheState::Warm, true, found(FILE_BYTES, FILE_BYTES, 0));
        check_gate(state, &cached, Some("the rest came from memory"));
        let grown = found(0, 1 << 20, bytes);
        let through = run(CacheState::Cold, true, grown);
        check_gate(direct, &through, Some("the page cache grew by 1 MiB"));
        check_gate(direct, &run(CacheState::Cold, false, grown), None);
    }
}

//! Memory of our own, read or copied by some threads: what bounds everybody who has
//! to read or copy as much. Huge pages where the kernel has them, so that it is the
//! memory that bounds and not its tables; nothing but the one pass is timed.

use iolens_model::tune::LimitKind;
use iolens_model::units::{Bytes, Nanos};
use iolens_sys::clock;
use iolens_sys::pages::{HUGE_PAGE_BYTES, PageKind, Pages};
use iolens_sys::proc::Root;
use iolens_sys::scan::scan;
use iolens_sys::usage::process_cpu;
use serde::{Deserialize, Serialize};

use crate::part::Part;
use crate::read::by_hand::spent;
use crate::together::{duration, together};
use iolens_harness::host;
use iolens_harness::op::Span;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// Read, or copied.
    pub kind: LimitKind,
    /// Threads, each with a part of it; at least 1.
    pub threads: u32,
    /// Bytes that are read, or copied, once.
    pub bytes: u64,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// From the first thread's beginning to the last one's end.
    pub time: Nanos,
    /// CPU time, user and kernel, with that of filling the memory; `None` where it cannot
    /// be read.
    pub cpu: Option<(Nanos, Nanos)>,
}

/// Reads or copies memory.
///
/// Errors: there is not so much, or the kind is no memory.
pub fn measure(wish: &Wish) -> Result<Done, String> {
    let copies = match wish.kind {
        LimitKind::Scan => false,
        LimitKind::Copy => true,
        other => return Err(format!("`{other}` is no limit of memory")),
    };
    let needed = wish.bytes.saturating_mul(if copies { 2 } else { 1 });
    let room = host::memory_room(&Root::real());
    if let Some((room, words)) = room.iter().find(|(room, _)| needed > room.0 / 2) {
        return Err(format!(
            "reading {} of memory needs more than half of the {room} that is {words}",
            Bytes(needed)
        ));
    }
    let parts = Part::split(wish.bytes, HUGE_PAGE_BYTES as u64, wish.threads);
    let open = |part: Part| {
        let bytes = usize::try_from(part.bytes()).unwrap_or(usize::MAX);
        let pages = || {
            let made = Pages::new(bytes, PageKind::Huge);
            made.map_err(|errno| format!("cannot have {} of memory: {errno}", Bytes(part.bytes())))
        };
        Ok((pages()?, if copies { Some(pages()?) } else { None }, bytes))
    };
    let before = process_cpu().ok();
    let spans = together(&parts, open, |(source, target, bytes), _| {
        let first_call_ns = clock::monotonic_ns();
        match target {
            Some(mut target) => {
                target[..bytes].copy_from_slice(std::hint::black_box(&source[..bytes]));
                std::hint::black_box(&mut target);
            }
            None => {
                std::hint::black_box(scan(&source[..bytes]));
            }
        }
        Span { first_call_ns, last_call_ns: clock::monotonic_ns() }
    })?;
    let cpu = before.zip(process_cpu().ok()).map(|(before, after)| spent(before, after));
    Ok(Done { time: duration(spans.into_iter()), cpu })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_and_copied_by_one_and_more() {
        for kind in [LimitKind::Scan, LimitKind::Copy] {
            for threads in [1, 2] {
                let wish = Wish { kind, threads, bytes: 5 << 20 };
                let done = measure(&wish).expect("a few megabytes");
                assert!(done.time.0 > 0, "{done:?}");
            }
        }
    }

    #[test]
    fn too_much_and_no_memory_are_refused() {
        let wish = Wish { kind: LimitKind::Scan, threads: 1, bytes: u64::MAX / 4 };
        let why = measure(&wish).unwrap_err();
        assert!(why.contains("more than half"), "{why}");
        let wish = Wish { kind: LimitKind::Device, threads: 1, bytes: 1 };
        assert!(measure(&wish).unwrap_err().contains("`device` is no limit of memory"));
    }
}

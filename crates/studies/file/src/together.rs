//! Threads that share a file, a part each, and begin together.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use iolens_model::units::Nanos;
use iolens_sys::clock;

use crate::part::Part;
use iolens_harness::op::Span;

/// Has each part worked on by a thread of its own, which opens what it needs there,
/// waits until all have, and then works; one alone is worked on by this thread. What
/// came of each, in order.
///
/// Errors: why a thread could not open; then none has begun.
pub(crate) fn together<O, T: Send>(
    parts: &[Part],
    open: impl Fn(Part) -> Result<O, String> + Sync,
    work: impl Fn(O, Part) -> T + Sync,
) -> Result<Vec<T>, String> {
    let (start, is_refused) = (Barrier::new(parts.len()), AtomicBool::new(false));
    let take_part = |part: Part| {
        let opened = open(part);
        if opened.is_err() {
            // The barrier orders this before the reading below.
            is_refused.store(true, Ordering::Relaxed);
        }
        start.wait();
        let opened = opened?;
        Ok((!is_refused.load(Ordering::Relaxed)).then(|| work(opened, part)))
    };
    let done: Vec<Result<Option<T>, String>> = match parts {
        [] => Vec::new(),
        [part] => vec![take_part(*part)],
        parts => std::thread::scope(|scope| {
            let take_part = &take_part;
            let threads: Vec<_> =
                parts.iter().map(|&part| scope.spawn(move || take_part(part))).collect();
            let died = |_| Err("a thread has panicked".to_owned());
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(died)).collect()
        }),
    };
    let done: Result<Vec<Option<T>>, String> = done.into_iter().collect();
    Ok(done?.into_iter().flatten().collect())
}

/// Runs what takes its own time; where it breaks off, from its beginning to then.
pub(crate) fn timed<E>(run: impl FnOnce() -> Result<Span, E>) -> (Span, Option<E>) {
    let first_call_ns = clock::monotonic_ns();
    match run() {
        Ok(span) => (span, None),
        Err(why) => (Span { first_call_ns, last_call_ns: clock::monotonic_ns() }, Some(why)),
    }
}

/// From the first call of the first thread to the last one of the last.
pub(crate) fn duration(spans: impl Iterator<Item = Span> + Clone) -> Nanos {
    let first_ns = spans.clone().map(|span| span.first_call_ns).min().unwrap_or(0);
    let last_ns = spans.map(|span| span.last_call_ns).max().unwrap_or(0);
    Nanos(last_ns.saturating_sub(first_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_begin_or_none() {
        let parts = Part::split(100, 10, 4);
        let worked = together(&parts, |part| Ok(part.start), |start, part| (start, part.end));
        assert_eq!(worked, Ok(vec![(0, 30), (30, 60), (60, 80), (80, 100)]));
        let begun = AtomicBool::new(false);
        let open = |part: Part| if part.start == 60 { Err("no".to_owned()) } else { Ok(()) };
        let refused = together(&parts, open, |(), _| begun.store(true, Ordering::Relaxed));
        assert_eq!(refused, Err("no".to_owned()));
        assert!(!begun.load(Ordering::Relaxed));
        assert_eq!(together(&[], |_| Ok(()), |(), _| ()), Ok(Vec::new()));
    }

    #[test]
    fn what_broke_off_took_its_time_too() {
        let span = Span { first_call_ns: 5, last_call_ns: 9 };
        assert_eq!(timed(|| Ok::<_, ()>(span)), (span, None));
        let (cut_short, why) = timed(|| Err("why"));
        assert!(cut_short.last_call_ns >= cut_short.first_call_ns && why == Some("why"));
        let other = Span { first_call_ns: 3, last_call_ns: 8 };
        assert_eq!(duration([span, other].into_iter()), Nanos(6));
        assert_eq!(duration([].into_iter()), Nanos(0));
    }
}

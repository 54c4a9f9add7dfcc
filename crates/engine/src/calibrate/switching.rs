//! What it costs to change the thread that runs: to start one, and to hand a
//! CPU from one to the other and fill its caches again.

use std::io::{self, PipeReader, PipeWriter, Read, Write};

use iolens_model::host::SwitchCost;
use iolens_model::plan::Probes;
use iolens_model::units::Bytes;
use iolens_sys::scan::scan;
use iolens_sys::{affinity, clock};

use super::PARTS;
use crate::worker::bracket::Bracket;

/// Working sets besides none and the last-level cache: as large as a usual
/// first-level cache, and a share of a second-level one.
const SETS: [usize; 2] = [32 << 10, 256 << 10];
/// The set that fills the last-level cache is no larger: beyond that a
/// hand-over takes tens of milliseconds.
const LARGEST_BYTES: usize = (64 << 20) / PARTS;
/// Time for one working set, and round trips at least and at most.
const TIME_NS: u64 = 25_000_000 / PARTS as u64;
const LEAST: usize = 5;
const MOST: usize = 2000;
/// Threads that are started.
const STARTS: usize = 100;

/// The set of the last-level cache's size, if two of it have room.
fn largest(llc_bytes: Option<usize>, memory_bytes: usize) -> Option<usize> {
    let most = LARGEST_BYTES.min(memory_bytes / 2);
    llc_bytes.map(|bytes| bytes.min(most)).filter(|&bytes| bytes > SETS[1])
}

/// Memory that two sets take at most.
pub(super) fn most_bytes(llc_bytes: Option<usize>, memory_bytes: usize) -> usize {
    2 * largest(llc_bytes, memory_bytes).unwrap_or(SETS[1])
}

/// Hand-overs on `cpu` by working set. Two sets of the last-level cache's size
/// keep within `memory_bytes`. Sets that could not be measured are left out.
pub(super) fn costs(cpu: u32, llc_bytes: Option<usize>, memory_bytes: usize) -> Vec<SwitchCost> {
    let sets = [0].into_iter().chain(SETS).chain(largest(llc_bytes, memory_bytes));
    let cost = |bytes: usize| {
        Some(SwitchCost {
            working_set: Bytes(bytes as u64),
            handover_ns: handover_ns(cpu, bytes, |_| ()).ok()??,
            alone_ns: alone_ns(cpu, bytes).ok()?,
        })
    };
    sets.filter_map(cost).collect()
}

/// A bare hand-over between threads that have the counters of a slice open;
/// `None` where there are none.
pub(super) fn counted_handover_ns(cpu: u32, probes: Probes) -> Option<f64> {
    let open = |thread: usize| Bracket::open(thread, &[cpu], 0, probes);
    if std::thread::scope(|scope| scope.spawn(|| open(0).groups()).join()).ok()? == 0 {
        return None;
    }
    handover_ns(cpu, 0, open).ok()?
}

/// Median time of starting a thread that does nothing, and joining it; `None`
/// where none could be started.
pub(super) fn thread_start_ns() -> Option<f64> {
    let once = || {
        let begin = clock::monotonic_ns();
        let started = std::thread::Builder::new().spawn(|| ()).ok()?;
        started.join().ok()?;
        Some(clock::monotonic_ns() - begin)
    };
    (0..STARTS).map(|_| once()).collect::<Option<Vec<u64>>>().map(median)
}

fn median(mut times: Vec<u64>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2] as f64
}

/// Does something until it is known well enough; the median of its times. The
/// first time only fills caches.
fn timed(mut work: impl FnMut() -> io::Result<()>) -> io::Result<f64> {
    work()?;
    let begin = clock::monotonic_ns();
    let mut times = Vec::with_capacity(MOST);
    let mut now = begin;
    while times.len() < LEAST || (times.len() < MOST && now - begin < TIME_NS) {
        work()?;
        let then = std::mem::replace(&mut now, clock::monotonic_ns());
        times.push(now - then);
    }
    Ok(median(times))
}

/// Threads that are not on one CPU hand nothing over.
fn pin(cpu: u32) -> io::Result<()> {
    affinity::pin_thread(cpu).map_err(|errno| io::Error::from_raw_os_error(errno.raw()))
}

fn pass_on(writer: &mut PipeWriter) -> io::Result<()> {
    writer.write_all(&[1])
}

fn take(reader: &mut PipeReader) -> io::Result<()> {
    reader.read_exact(&mut [0])
}

fn read_all(memory: &[u8]) {
    std::hint::black_box(scan(memory));
}

/// A hand-over: half of the way there and back; `None` where the other thread
/// panicked. Each thread holds what `equip` gives it, by its number.
fn handover_ns<T>(
    cpu: u32,
    bytes: usize,
    equip: impl Fn(usize) -> T + Copy + Send,
) -> io::Result<Option<f64>> {
    let (mut near_in, mut far_out) = io::pipe()?;
    let (mut far_in, mut near_out) = io::pipe()?;
    let answer = move || {
        pin(cpu).ok()?;
        let _held = equip(1);
        let memory = vec![1u8; bytes];
        // Until the other thread closes its end.
        while take(&mut far_in).is_ok() {
            read_all(&memory);
            pass_on(&mut far_out).ok()?;
        }
        Some(())
    };
    let ask = move || {
        pin(cpu)?;
        let _held = equip(0);
        let memory = vec![1u8; bytes];
        timed(|| {
            pass_on(&mut near_out)?;
            take(&mut near_in)?;
            read_all(&memory);
            Ok(())
        })
    };
    std::thread::scope(|scope| {
        scope.spawn(answer);
        scope.spawn(ask).join().map_or(Ok(None), |both| both.map(|ns| Some(ns / 2.0)))
    })
}

/// The same calls and the same reading by one thread, which nobody interrupts.
fn alone_ns(cpu: u32, bytes: usize) -> io::Result<f64> {
    pin(cpu)?;
    let (mut reader, mut writer) = io::pipe()?;
    let memory = vec![1u8; bytes];
    timed(|| {
        pass_on(&mut writer)?;
        take(&mut reader)?;
        read_all(&memory);
        Ok(())
    })
}

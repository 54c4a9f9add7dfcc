//! A loop whose counts are known from below: what reads less of it, or more
//! than any core can count, does not count. A guest may show counters that
//! always read zero, and a full group reads zero as a whole.

use std::hint::black_box;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use iolens_sys::perf_event::Times;
use iolens_sys::{calls, memory, poll};

use super::table::{CALLS, Counter, MEMORY_BYTES, RECEIPTS, STEPS, WAITS};

/// Fresh pages that it touches.
const PAGES: usize = 16;
/// No core counts more of anything in a nanosecond: 10 GHz and six of it.
const COUNTS_PER_NS_MAX: u64 = 60;

/// Runs the loop once; about a millisecond.
pub(super) fn run() {
    let mut state = 1u64;
    for _ in 0..STEPS {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    black_box(state);
    for _ in 0..CALLS {
        let _ = black_box(calls::parent_id());
    }
    let memory = vec![1u8; MEMORY_BYTES];
    black_box(memory::touch(&memory));
    // What fails here counts nothing, and the counter that misses it says so.
    let _ = memory::touch_fresh_pages(PAGES);
    let _ = receive_and_wait();
}

fn receive_and_wait() -> std::io::Result<()> {
    let (mut near, mut far) = UnixStream::pair()?;
    for _ in 0..RECEIPTS {
        near.write_all(&[1])?;
        far.read_exact(&mut [0])?;
    }
    for _ in 0..WAITS {
        let _ = poll::readable(&[far.as_fd()], 1);
    }
    Ok(())
}

/// Whether a counter can be believed that read this over the loop, with the
/// times of its group.
///
/// Errors: why not, one clause.
pub(super) fn judge(counter: &Counter, value: u64, times: Times) -> Result<(), String> {
    let most = times.running_ns.saturating_mul(COUNTS_PER_NS_MAX);
    if value < counter.least {
        return Err(format!(
            "read {value} in its self-test over a loop that makes at least {}: not counted here",
            counter.least
        ));
    }
    if value > most {
        return Err(format!(
            "read {value} in its self-test of {} ns: more than any core can count",
            times.running_ns
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use iolens_sys::perf_event::{Kind, Mode};

    use super::*;

    #[test]
    fn too_little_and_too_much_are_not_believed() {
        let counter = Counter {
            metric: "instructions_user",
            kind: Kind::Instructions,
            mode: Mode::User,
            least: STEPS,
        };
        let times = Times { enabled_ns: 100_000, running_ns: 100_000 };
        assert_eq!(judge(&counter, STEPS, times), Ok(()));
        assert!(judge(&counter, 0, times).unwrap_err().starts_with("read 0 in its self-test"));
        assert!(judge(&counter, STEPS - 1, times).is_err());
        assert!(judge(&counter, 6_000_001, times).unwrap_err().contains("more than any core"));
    }
}

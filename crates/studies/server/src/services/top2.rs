//! `top2`: the two processes that have used most CPU time, user and kernel, by an
//! open(2), read(2) and close(2) of /proc/PID/stat for each process there is. What
//! a service costs that asks the kernel for much.
//!
//! `top2:interval` compares with an earlier look, and tells a process from a later
//! one with its id by when it began. `top2:cached:T` looks no more often than
//! every T; each thread or process of a server has a cache of its own, and what
//! `fork` makes begins with the parent's, which is empty.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use iolens_model::parse;
use iolens_sys::errno::Errno;
use iolens_sys::proc_stat::ProcDirectory;
use iolens_sys::{clock, process};

use super::{Entry, Service};
use crate::request::Request;

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
    id: "top2",
    form: "top2[:interval|:cached:TIME]",
    summary: "the two processes with most CPU time: pid, name, user, kernel and total",
    parse: |rest| {
        let look = parse(rest)?;
        Ok(Arc::new(move |_| Ok(Box::new(Top2::open(Path::new("/proc"), look)?))))
    },
};

/// What is looked at.
#[derive(Debug, Clone, Copy)]
enum Look {
    /// All ticks of a process, each time.
    Total,
    /// The same, at most this often, ns.
    Cached(u64),
    /// Ticks since an earlier look.
    Interval,
}

fn parse(rest: Option<&str>) -> Result<Look, String> {
    let Some(rest) = rest else { return Ok(Look::Total) };
    if rest == "interval" {
        return Ok(Look::Interval);
    }
    let time = rest.strip_prefix("cached:").and_then(|time| parse::span(time).ok());
    let time = time.ok_or(
        "there is top2, top2:interval and top2:cached:TIME, as in \
                           top2:cached:100ms",
    )?;
    Ok(Look::Cached(time.0))
}

/// After this long a look is the one that later ones are compared with, ns.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Below this a share of the time is no more than one tick more or less, ns.
const SHARE_MIN_NS: u64 = 100_000_000;

/// A process at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: u32,
    user_ticks: u64,
    kernel_ticks: u64,
    /// Ticks since boot when it began.
    start_ticks: u64,
    name: Name,
}

impl Process {
    fn ticks(&self) -> u64 {
        self.user_ticks + self.kernel_ticks
    }

    /// Whether it comes before another one: more ticks, or as many and a smaller
    /// id.
    fn is_before(&self, other: &Process) -> bool {
        (other.ticks(), self.pid) < (self.ticks(), other.pid)
    }
}

/// Bytes that the kernel keeps of a name, `TASK_COMM_LEN` less one; those of a
/// worker of the kernel's are longer in /proc.
const NAME_BYTES_MAX: usize = 63;

/// A name, any bytes but 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name {
    bytes: [u8; NAME_BYTES_MAX],
    length: usize,
}

struct Top2 {
    look: Look,
    proc: ProcDirectory,
    pids: Vec<u32>,
    /// The text of the last look, and when it was.
    cached: Option<(u64, Vec<u8>)>,
    /// What an interval is compared with, and when that was.
    base: HashMap<u32, Process>,
    base_ns: u64,
    ticks_per_second: u64,
}

impl Top2 {
    fn open(root: &Path, look: Look) -> Result<Top2, String> {
        let proc = ProcDirectory::open(root);
        let proc = proc.map_err(|e| format!("cannot open {}: {e}", root.display()))?;
        let mut top2 = Top2 {
            look,
            proc,
            pids: Vec::new(),
            cached: None,
            base: HashMap::new(),
            base_ns: 0,
            ticks_per_second: process::ticks_per_second(),
        };
        if let Look::Interval = look {
            top2.rebase().map_err(cannot)?;
        }
        Ok(top2)
    }

    /// Looks at every process there is.
    fn each(
        &mut self,
        mut see: impl FnMut(&mut Process, &HashMap<u32, Process>),
    ) -> Result<(), Errno> {
        self.proc.processes(&mut self.pids)?;
        for &pid in &self.pids {
            let stat = self.proc.stat(pid)?;
            if let Some(mut process) = stat.and_then(|stat| read(pid, stat)) {
                see(&mut process, &self.base);
            }
        }
        Ok(())
    }

    fn rebase(&mut self) -> Result<(), Errno> {
        let now_ns = clock::monotonic_ns();
        let mut base = HashMap::new();
        self.each(|process, _| {
            base.insert(process.pid, *process);
        })?;
        (self.base, self.base_ns) = (base, now_ns);
        Ok(())
    }

    /// The first two, with all their ticks or with those since the base.
    fn first_two(&mut self) -> Result<[Option<Process>; 2], Errno> {
        let since_base = matches!(self.look, Look::Interval);
        let mut found: [Option<Process>; 2] = [None, None];
        self.each(|process, base| {
            if since_base {
                subtract(process, base.get(&process.pid));
            }
            let is_before = |other: &Option<Process>| other.is_none_or(|o| process.is_before(&o));
            if is_before(&found[0]) {
                found = [Some(*process), found[0]];
            } else if is_before(&found[1]) {
                found[1] = Some(*process);
            }
        })?;
        Ok(found)
    }

    fn look(&mut self, reply: &mut Vec<u8>) -> Result<(), Errno> {
        let now_ns = clock::monotonic_ns();
        let found = self.first_two()?;
        let elapsed_ns = now_ns - self.base_ns;
        for (index, process) in found.iter().flatten().enumerate() {
            reply.extend_from_slice(if index > 0 { b"; " } else { b"" });
            self.write(process, reply);
            if let Look::Interval = self.look {
                self.share(process, elapsed_ns, reply);
            }
        }
        if matches!(self.look, Look::Interval) && elapsed_ns >= INTERVAL_NS {
            self.rebase()?;
        }
        Ok(())
    }

    /// `12 name: user 1.50 s, kernel 0.02 s, total 1.52 s`, behind `pid`.
    fn write(&self, process: &Process, reply: &mut Vec<u8>) {
        let seconds = |ticks: u64| ticks as f64 / self.ticks_per_second as f64;
        // Writing to a vector cannot fail.
        let _ = write!(reply, "pid {} ", process.pid);
        process.name.write(reply);
        let _ = write!(
            reply,
            ": user {:.2} s, kernel {:.2} s, total {:.2} s",
            seconds(process.user_ticks),
            seconds(process.kernel_ticks),
            seconds(process.ticks())
        );
    }

    /// Its ticks as a share of one processor's time.
    fn share(&self, process: &Process, elapsed_ns: u64, reply: &mut Vec<u8>) {
        if elapsed_ns < SHARE_MIN_NS {
            reply.extend_from_slice(b", too soon for a share");
            return;
        }
        let seconds = process.ticks() as f64 / self.ticks_per_second as f64;
        let percent = seconds * 1e9 / elapsed_ns as f64 * 100.0;
        // Writing to a vector cannot fail.
        let _ = write!(reply, ", {percent:.1}% of a CPU");
    }
}

impl Service for Top2 {
    fn answer(&mut self, _request: Request<'_>, reply: &mut Vec<u8>) -> Result<(), String> {
        let Look::Cached(age_ns) = self.look else {
            return self.look(reply).map_err(cannot);
        };
        let now_ns = clock::monotonic_ns();
        let is_fresh = |looked_ns: u64| now_ns.saturating_sub(looked_ns) < age_ns;
        if let Some((_, text)) = self.cached.as_ref().filter(|(ns, _)| is_fresh(*ns)) {
            reply.extend_from_slice(text);
            return Ok(());
        }
        let from = reply.len();
        self.look(reply).map_err(cannot)?;
        self.cached = Some((now_ns, reply[from..].to_vec()));
        Ok(())
    }

    fn takes_time(&self) -> bool {
        true
    }
}

fn cannot(errno: Errno) -> String {
    format!("cannot look at the processes: {errno}")
}

/// Leaves what a process did since it was looked at before, if it is the same.
fn subtract(process: &mut Process, before: Option<&Process>) {
    if let Some(before) = before.filter(|before| before.start_ticks == process.start_ticks) {
        process.user_ticks = process.user_ticks.saturating_sub(before.user_ticks);
        process.kernel_ticks = process.kernel_ticks.saturating_sub(before.kernel_ticks);
    }
}

/// Reads /proc/PID/stat: the name stands between the first `(` and the last `)`,
/// whatever is in it; see proc_pid_stat(5).
fn read(pid: u32, stat: &[u8]) -> Option<Process> {
    let begin = stat.iter().position(|&byte| byte == b'(')? + 1;
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    // Fields from the third one on, the state.
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace().skip(14 - 3);
    let mut number = || fields.next()?.parse::<u64>().ok();
    let (user_ticks, kernel_ticks) = (number()?, number()?);
    // The 22nd is six behind that.
    let start_ticks = fields.nth(22 - 16)?.parse().ok()?;
    let name = Name::of(stat.get(begin..end)?);
    Some(Process { pid, user_ticks, kernel_ticks, start_ticks, name })
}

impl Name {
    fn of(name: &[u8]) -> Name {
        let length = name.len().min(NAME_BYTES_MAX);
        let mut bytes = [0; NAME_BYTES_MAX];
        bytes[..length].copy_from_slice(&name[..length]);
        Name { bytes, length }
    }

    /// As one word without `;`: a byte that is no printable character of ASCII, a
    /// space, `;` and `\` are written as `\x` and two hexadecimal digits. No
    /// name at all is `\x00`, a byte that no name has.
    fn write(&self, reply: &mut Vec<u8>) {
        let bytes = if self.length == 0 { &[0][..] } else { &self.bytes[..self.length] };
        for &byte in bytes {
            if byte.is_ascii_graphic() && byte != b';' && byte != b'\\' {
                reply.push(byte);
            } else {
                // Writing to a vector cannot fail.
                let _ = write!(reply, "\\x{byte:02x}");
            }
        }
    }
}

#[cfg(test)]
mod tests;

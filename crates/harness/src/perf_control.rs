//! Telling perf(1) when slices that count begin and end, so that it counts or
//! samples exactly these: the other end of `perf stat -D -1 --control
//! fifo:CTL,ACK` and of `perf record` with the same; see perf-stat(1). Each
//! command is a line, each is acknowledged, and until that comes nothing is
//! measured.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use iolens_sys::errno::Errno;
use iolens_sys::{clock, pipe, poll};

/// Two named pipes that perf has open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfControl {
    /// Takes `enable` and `disable`.
    ctl: PathBuf,
    /// Gives `ack`.
    ack: PathBuf,
}

impl FromStr for PerfControl {
    type Err = String;

    fn from_str(text: &str) -> Result<PerfControl, String> {
        let paths = text.strip_prefix("fifo:").and_then(|paths| paths.split_once(','));
        match paths.filter(|(ctl, ack)| !ctl.is_empty() && !ack.is_empty()) {
            Some((ctl, ack)) => Ok(PerfControl { ctl: ctl.into(), ack: ack.into() }),
            None => Err("expected fifo:CTL,ACK with the paths of two named pipes, as in perf's \
                         --control; without ACK nobody knows when perf has begun"
                .to_owned()),
        }
    }
}

impl fmt::Display for PerfControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fifo:{},{}", self.ctl.display(), self.ack.display())
    }
}

impl PerfControl {
    /// Opens both pipes; `limit` is how long perf may take to answer.
    ///
    /// # Errors
    /// What was tried, on which path, what the system said, what to do.
    pub fn open(&self, limit: Duration) -> Result<Listener, String> {
        let ctl = pipe(&self.ctl, pipe::writer)?;
        let ack = pipe(&self.ack, pipe::reader)?;
        Ok(Listener { ctl, ack, limit })
    }
}

/// Opens one without waiting for somebody at its other end.
fn pipe(path: &Path, open: fn(&Path) -> Result<File, Errno>) -> Result<File, String> {
    let failed = |said: &dyn fmt::Display, advice: &str| {
        format!("cannot open perf's control pipe {}: {said}\n  {advice}", path.display())
    };
    let file = open(path).map_err(|errno| match errno {
        Errno::ENXIO => failed(&errno, "nobody reads it: start perf with --control first"),
        _ => failed(&errno, MAKE),
    })?;
    match file.metadata() {
        Ok(metadata) if metadata.file_type().is_fifo() => Ok(file),
        Ok(_) => Err(failed(&"it is not a named pipe", MAKE)),
        Err(error) => Err(failed(&error, MAKE)),
    }
}

const MAKE: &str = "make it with mkfifo(1), and start perf with --control on it";

/// perf, listening.
#[derive(Debug)]
pub struct Listener {
    ctl: File,
    ack: File,
    limit: Duration,
}

impl Listener {
    /// perf counts from when this returns on.
    ///
    /// # Errors
    /// The pipe's, or no acknowledgement within the limit.
    pub fn enable(&self) -> Result<Counting<'_>, String> {
        self.command("enable")?;
        Ok(Counting { listener: Some(self) })
    }

    fn command(&self, command: &str) -> Result<(), String> {
        (&self.ctl)
            .write_all(format!("{command}\n").as_bytes())
            .map_err(|e| format!("cannot tell perf to {command}: {e}"))?;
        self.acknowledged().map_err(|why| format!("perf did not {command}: {why}"))
    }

    /// Waits for one acknowledgement; perf ends each with a line break and a
    /// zero (tools/perf/util/evlist.c, evlist__ctlfd_ack).
    fn acknowledged(&self) -> Result<(), String> {
        let end_ns = clock::monotonic_ns().saturating_add(saturated_ns(self.limit));
        let mut answer = Vec::new();
        while !answer.contains(&b'\n') {
            let left_ns = end_ns.saturating_sub(clock::monotonic_ns());
            match poll::readable(&[self.ack.as_fd()], left_ns) {
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(errno.to_string()),
                Ok(ready) if ready == [false] => {
                    return Err(format!("no answer within {} s", self.limit.as_secs()));
                }
                Ok(_) => {}
            }
            let mut piece = [0; 16];
            match (&self.ack).read(&mut piece) {
                Ok(0) => return Err("it has gone".to_owned()),
                Ok(n) => answer.extend_from_slice(&piece[..n]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(e) => return Err(e.to_string()),
            }
        }
        let answer = String::from_utf8_lossy(&answer);
        match answer.trim_matches(['\0', '\n']) {
            "ack" => Ok(()),
            other => Err(format!("its answer was `{other}`")),
        }
    }
}

fn saturated_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// perf is counting; dropped, it is told to stop and not waited for.
#[derive(Debug)]
pub struct Counting<'a> {
    listener: Option<&'a Listener>,
}

impl Counting<'_> {
    /// perf has stopped when this returns.
    ///
    /// # Errors
    /// As [`Listener::enable`].
    pub fn stop(mut self) -> Result<(), String> {
        self.listener.take().map_or(Ok(()), |listener| listener.command("disable"))
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        if let Some(listener) = self.listener {
            // The slice has failed: that is what will be told.
            let _ = (&listener.ctl).write_all(b"disable\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place with both pipes, and perf's ends of them: it has both open to
    /// read and to write.
    fn perf() -> (tempfile::TempDir, PerfControl, File, File) {
        let dir = tempfile::tempdir().unwrap();
        let (ctl, ack) = (dir.path().join("ctl"), dir.path().join("ack"));
        let both = |path: &Path| {
            pipe::make_fifo(path).unwrap();
            File::options().read(true).write(true).open(path).unwrap()
        };
        let (ctl_end, ack_end) = (both(&ctl), both(&ack));
        (dir, PerfControl { ctl, ack }, ctl_end, ack_end)
    }

    const LONG: Duration = Duration::from_secs(20);

    fn line(ctl: &mut File) -> String {
        let mut bytes = Vec::new();
        while bytes.last() != Some(&b'\n') {
            let mut byte = [0];
            ctl.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
        }
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_slice_is_between_two_acknowledged_commands() {
        let (_dir, control, mut ctl, mut ack) = perf();
        let listener = control.open(LONG).unwrap();
        std::thread::scope(|scope| {
            let perf = scope.spawn(move || {
                let mut heard = Vec::new();
                for _ in 0..4 {
                    heard.push(line(&mut ctl));
                    ack.write_all(b"ack\n\0").unwrap();
                }
                heard
            });
            listener.enable().unwrap().stop().unwrap();
            listener.enable().unwrap().stop().unwrap();
            let heard = perf.join().unwrap();
            assert_eq!(heard, ["enable\n", "disable\n", "enable\n", "disable\n"]);
        });
    }

    #[test]
    fn a_slice_that_fails_is_told_to_end() {
        let (_dir, control, mut ctl, mut ack) = perf();
        let listener = control.open(LONG).unwrap();
        ack.write_all(b"ack\n\0").unwrap();
        drop(listener.enable().unwrap());
        assert_eq!([line(&mut ctl), line(&mut ctl)], ["enable\n", "disable\n"]);
    }

    #[test]
    fn what_does_not_answer_is_not_perf() {
        let (_dir, control, _ctl, mut ack) = perf();
        let listener = control.open(Duration::from_millis(5)).unwrap();
        let why = listener.enable().unwrap_err();
        assert!(why.starts_with("perf did not enable: no answer"), "{why}");
        ack.write_all(b"nack\n").unwrap();
        let why = listener.enable().unwrap_err();
        assert!(why.ends_with("its answer was `nack`"), "{why}");
    }

    #[test]
    fn pipes_that_are_none_are_named() {
        let (dir, control, ctl, ack) = perf();
        drop((ctl, ack));
        let why = control.open(LONG).unwrap_err();
        assert!(why.contains("ctl: ENXIO") && why.contains("start perf"), "{why}");
        let file = dir.path().join("file");
        File::create(&file).unwrap();
        let why = PerfControl { ctl: file, ..control.clone() }.open(LONG).unwrap_err();
        assert!(why.contains("not a named pipe"), "{why}");
        let missing = PerfControl { ctl: dir.path().join("x"), ..control };
        assert!(missing.open(LONG).unwrap_err().contains("mkfifo"));
    }

    #[test]
    fn it_is_written_as_perf_has_it() {
        let text = "fifo:/tmp/ctl,/tmp/ack";
        assert_eq!(text.parse::<PerfControl>().unwrap().to_string(), text);
        for wrong in ["", "fd:1,2", "fifo:a", "fifo:,b", "fifo:a,", "a,b"] {
            assert!(wrong.parse::<PerfControl>().is_err(), "{wrong}");
        }
    }
}

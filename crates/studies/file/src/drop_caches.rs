//! Dropping caches of the whole system (`/proc/sys/vm/drop_caches`, Documentation/
//! admin-guide/sysctl/vm.rst), with consent alone: everybody on the machine pays for
//! it. What each mode is worth is measured once per run: after the drop, the first
//! read of a page and of a MiB of the file, and open(2), fstat(2) and close(2) of ten
//! thousand files of ours.
//!
//! Only what is clean is dropped, so all is synced before. A mode that drops dentries
//! and inodes leaves those that somebody has open; what it drops of an inode's pages
//! goes with it. The kernel logs each drop with the name of who asked for it.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use iolens_model::file::{AfterDrop, DropMode};
use iolens_model::units::Nanos;
use iolens_sys::errno::Errno;
use iolens_sys::file::at::pread;
use iolens_sys::file::cache;
use iolens_sys::file::open::Caching;
use iolens_sys::file::syncfs;
use iolens_sys::pages::{PageKind, Pages, page_bytes};
use iolens_sys::proc::Root;
use iolens_sys::{clock, sysctl};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use super::leftover::{Leftovers, OwnFolder};
use super::residency::is_stacked;
use super::subject::Subject;

const SYSCTL: &str = "vm.drop_caches";

/// Times that each mode is tried.
const REPETITIONS: usize = 12;

/// Files that are opened.
pub const NAMES: usize = 10_000;

/// Bytes of the file that are read at once.
const MIB_BYTES: usize = 1 << 20;
const MIB: u64 = MIB_BYTES as u64;

/// Whether this process may drop caches here. Drops none.
///
/// Errors: what was tried, what the system said, what to do.
pub fn check(root: &Root) -> Result<(), String> {
    sysctl::try_write(root, SYSCTL).map_err(refusal)
}

fn refusal(errno: Errno) -> String {
    let why = match errno {
        Errno::EROFS => {
            "/proc/sys is mounted read-only, as in containers\n  run outside the container, or \
             leave --drop-caches out: --cache cold evicts the one file"
        }
        Errno::EACCES | Errno::EPERM => {
            "only the machine's root may\n  run iolens as root, or leave --drop-caches out: \
             --cache cold evicts the one file"
        }
        _ => "leave --drop-caches out: --cache cold evicts the one file",
    };
    format!("cannot write /proc/sys/vm/drop_caches, which --drop-caches asks for: {errno}: {why}")
}

/// Drops caches of the whole system.
///
/// Errors: as [`check`].
pub fn drop_caches(mode: DropMode) -> Result<(), String> {
    sysctl::write(&Root::real(), SYSCTL, mode.word()).map_err(refusal)
}

/// What drops caches.
type Dropper<'a> = dyn Fn(DropMode) -> Result<(), String> + 'a;

/// Finds out what these modes are worth, in random order and each compared with
/// dropping nothing; `folder` is where files of ours are made. `stop` is asked before
/// each drop.
///
/// Errors: what was tried and what the system said, or that it was stopped.
pub(crate) fn measure(
    modes: &[DropMode],
    subject: &Subject,
    folder: &Path,
    seed: u64,
    stop: impl Fn() -> bool,
) -> Result<Vec<AfterDrop>, String> {
    if modes.is_empty() {
        return Ok(Vec::new());
    }
    let names = Names::make(&Leftovers::here(), folder, NAMES, &stop)?;
    rounds(modes, subject, &names, seed, &stop, &drop_caches)
}

/// Every mode and nothing, in rounds of random order.
fn rounds(
    modes: &[DropMode],
    subject: &Subject,
    names: &Names,
    seed: u64,
    stop: &impl Fn() -> bool,
    drop: &Dropper<'_>,
) -> Result<Vec<AfterDrop>, String> {
    let mut order: Vec<Option<DropMode>> = modes.iter().copied().map(Some).collect();
    order.dedup();
    order.push(None);
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut found = Vec::with_capacity(order.len() * REPETITIONS);
    for _ in 0..REPETITIONS {
        order.shuffle(&mut rng);
        for &mode in &order {
            if stop() {
                return Err("stopped before caches were dropped".to_owned());
            }
            found.push(once(mode, subject, names, drop)?);
        }
    }
    Ok(found)
}

/// Where the page and the MiB are that are read: the page at the end, where nothing is
/// read ahead of it.
fn places(subject: &Subject) -> (u64, u64) {
    let page = page_bytes() as u64;
    let last = (subject.bytes().saturating_sub(1)) / page * page;
    (last, MIB.min(last))
}

fn once(
    mode: Option<DropMode>,
    subject: &Subject,
    names: &Names,
    drop: &Dropper<'_>,
) -> Result<AfterDrop, String> {
    let (last, mib) = places(subject);
    let file = subject.reopen(Caching::Buffered)?;
    let mut buffer = Pages::new(MIB_BYTES, PageKind::Plain)
        .map_err(|errno| format!("cannot allocate a buffer of 1 MiB: {errno}"))?;
    // Everything is there, and clean, before something is dropped.
    subject.read_range(0, mib)?;
    subject.read_range(last, subject.bytes())?;
    names.open_all()?;
    syncfs(names.held.as_fd()).map_err(|errno| format!("cannot sync the file system: {errno}"))?;
    syncfs(subject.fd()).map_err(|errno| format!("cannot sync the file system: {errno}"))?;
    let before = State::read();
    mode.map_or(Ok(()), drop)?;
    let after = State::read();
    let resident = resident(subject, 0, mib)
        .zip(resident(subject, last, subject.bytes() - last))
        .map(|(a, b)| a + b);
    let read = |buffer: &mut [u8], offset| timed(|| read_whole(file.as_fd(), buffer, offset));
    let within = |bytes: u64| usize::try_from(bytes).unwrap_or(MIB_BYTES).min(MIB_BYTES);
    let page = read(&mut buffer[..within(subject.bytes() - last)], last)?;
    let first = read(&mut buffer[..within(mib)], 0)?;
    let names = timed(|| names.open_all())?;
    Ok(AfterDrop {
        mode,
        page,
        mib: first,
        names,
        resident_bytes: resident,
        cached_permille: permille(before.cached, after.cached),
        unused_dentries_permille: permille(before.unused_dentries, after.unused_dentries),
    })
}

fn permille(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    let (before, after) = before.zip(after)?;
    (before > 0).then(|| after.saturating_mul(1000) / before)
}

fn resident(subject: &Subject, offset: u64, bytes: u64) -> Option<u64> {
    if is_stacked(subject.file_system()) {
        return None;
    }
    let cached = cache::cached(subject.fd(), offset, bytes).ok()?;
    Some(cached.pages * page_bytes() as u64)
}

fn timed(work: impl FnOnce() -> Result<(), String>) -> Result<Nanos, String> {
    let begin_ns = clock::monotonic_ns();
    work()?;
    Ok(Nanos(clock::monotonic_ns() - begin_ns))
}

fn read_whole(
    fd: std::os::fd::BorrowedFd<'_>,
    buffer: &mut [u8],
    offset: u64,
) -> Result<(), String> {
    let mut done = 0;
    while done < buffer.len() {
        match pread(fd, &mut buffer[done..], offset + done as u64) {
            Ok(0) => return Err("the file has become shorter".to_owned()),
            Ok(n) => done += n,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(format!("cannot read the file: {errno}")),
        }
    }
    Ok(())
}

/// What of the system's caches the kernel tells.
#[derive(Debug, Clone, Copy)]
struct State {
    /// `Cached` of /proc/meminfo, kB.
    cached: Option<u64>,
    /// Dentries that nobody uses.
    unused_dentries: Option<u64>,
}

impl State {
    fn read() -> State {
        let root = Root::real();
        let meminfo = root.read("proc/meminfo").unwrap_or_default();
        let cached = meminfo.lines().find_map(|line| line.strip_prefix("Cached:"));
        let dentries = root.read("proc/sys/fs/dentry-state").unwrap_or_default();
        let number = |text: &str, at: usize| text.split_whitespace().nth(at)?.parse().ok();
        State {
            cached: cached.and_then(|rest| number(rest, 0)),
            unused_dentries: number(&dentries, 1),
        }
    }
}

/// Empty files in a folder of ours, which goes when this does, or with the next start.
struct Names {
    /// It goes when this does.
    _folder: OwnFolder,
    /// The same, to be synced.
    held: File,
    paths: Vec<PathBuf>,
}

impl Names {
    fn make(
        leftovers: &Leftovers,
        folder: &Path,
        count: usize,
        stop: &impl Fn() -> bool,
    ) -> Result<Names, String> {
        const ASKED_EVERY: usize = 256;
        let folder = leftovers.make_folder(folder)?;
        let held = File::open(folder.path())
            .map_err(|e| format!("cannot open {}: {}", folder.path().display(), Errno::from(e)))?;
        let mut paths = Vec::with_capacity(count);
        for number in 0..count {
            if number % ASKED_EVERY == 0 && stop() {
                return Err("stopped before files were made".to_owned());
            }
            let path = folder.path().join(format!("{number:05}"));
            File::create_new(&path)
                .map_err(|e| format!("cannot create {}: {}", path.display(), Errno::from(e)))?;
            paths.push(path);
        }
        Ok(Names { _folder: folder, held, paths })
    }

    fn open_all(&self) -> Result<(), String> {
        for path in &self.paths {
            let opened = File::open(path).and_then(|file| file.metadata());
            opened.map_err(|e| format!("cannot open {}: {}", path.display(), Errno::from(e)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::residency;
    use crate::scripted::Machine;
    use crate::test_file::TestFile;

    #[test]
    fn who_may_not_drop_caches_is_told_before() {
        let machine = Machine::with(&[("proc/sys/vm/drop_caches", "")]);
        assert_eq!(check(&machine.root()), Ok(()));
        machine.remove("proc/sys/vm/drop_caches");
        let why = check(&machine.root()).unwrap_err();
        assert!(why.starts_with("cannot write /proc/sys/vm/drop_caches, which --drop"), "{why}");
        assert!(refusal(Errno::EROFS).contains("mounted read-only, as in containers"));
        assert!(refusal(Errno::EACCES).contains("run iolens as root"));
    }

    #[test]
    fn each_mode_is_tried_in_every_round_and_nothing_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = TestFile::make(folder.path(), 1).unwrap();
        file.resize((2 << 20) + 5, || false).unwrap();
        let subject = file.subject().unwrap();
        let count = || std::fs::read_dir(folder.path()).unwrap().count();
        let before = count();
        let leftovers = Leftovers::in_folder(&folder.path().join("records"));
        let names = Names::make(&leftovers, folder.path(), 20, &|| false).unwrap();
        let asked = RefCell::new(Vec::new());
        // The pages of one file stand for everybody's: other tests have theirs cached.
        let drop_one = |mode: DropMode| {
            asked.borrow_mut().push(mode);
            match mode {
                DropMode::Slab => Ok(()),
                _ => residency::evict(&subject).map(drop),
            }
        };
        let modes = [DropMode::Pages, DropMode::Slab];
        let found = rounds(&modes, &subject, &names, 9, &|| false, &drop_one).unwrap();
        assert_eq!(found.len(), 3 * REPETITIONS);
        for round in found.chunks(3) {
            let mut tried: Vec<_> = round.iter().map(|one| one.mode).collect();
            tried.sort();
            assert_eq!(tried, [None, Some(DropMode::Pages), Some(DropMode::Slab)]);
        }
        assert_eq!(asked.borrow().len(), 2 * REPETITIONS);
        let whole = MIB + page_bytes() as u64;
        for one in &found {
            assert!(one.page.0 > 0 && one.mib.0 > 0 && one.names.0 > 0, "{one:?}");
            let is_memory = subject.file_system() == "tmpfs";
            // `None` where the kernel does not say.
            if let Some(resident) = one.resident_bytes.filter(|_| !is_memory) {
                let expect = if one.mode == Some(DropMode::Pages) { 0 } else { whole };
                assert_eq!(resident, expect, "{one:?}");
            }
        }
        drop(names);
        assert_eq!(count(), before);
        let names = Names::make(&leftovers, folder.path(), 1, &|| true).err();
        assert!(names.is_some_and(|why| why.contains("stopped")));
        assert_eq!(count(), before);
    }
}

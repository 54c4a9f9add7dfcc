//! A program that copies, as an arm of a trial: started and waited for, once for each
//! copy, and timed as a whole. What starting it takes is measured before the trial, with
//! an empty file, and stands beside its numbers.

use std::fs::File;
use std::io::Seek;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use iolens_model::copy::{CopySync, ProgramStart};
use iolens_model::external::External;
use iolens_model::file::FileCounts;
use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::launch::{Ended, Program};

use super::site::{Site, fsync, remove};
use crate::file_path::FilePath;
use iolens_harness::op::{Budget, Children, Fact, Sender, Span, Tally, Trouble};
use iolens_programs::spawn;

/// Copies of an empty file from which the time of a start is known.
const STARTS: usize = 21;

/// An arm that is a program.
pub(crate) struct Process<'a> {
    site: &'a Site<'a>,
    external: &'a External,
    /// One for each copy of a slice: their arguments differ.
    programs: Vec<Program>,
    /// What they say of their errors.
    errors: File,
    copies: usize,
    trouble: Option<Trouble>,
    is_compared: bool,
    start: ProgramStart,
    tally: Tally,
}

impl<'a> Process<'a> {
    /// Gets a program ready and measures what starting it takes.
    ///
    /// Errors: it cannot be started, or cannot copy an empty file.
    pub(crate) fn new(site: &'a Site<'a>, external: &'a External) -> Result<Self, Trouble> {
        let errors = iolens_sys::file::in_folder(&std::env::temp_dir()).map_err(|errno| {
            Trouble::failed(format!("cannot create a file for errors: {errno}"))
        })?;
        let mut process = Process {
            site,
            external,
            programs: Vec::new(),
            errors,
            copies: 0,
            trouble: None,
            is_compared: false,
            start: ProgramStart { arm: 0, runs: 0, median_ns: 0, min_ns: 0, max_ns: 0 },
            tally: Tally { children: Some(Children::default()), ..Tally::default() },
        };
        process.start = process.measure_start()?;
        Ok(process)
    }

    fn program(&self, source: &Path, destination: &Path) -> Result<Program, Trouble> {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let block = self.site.setting.block_bytes;
        let argv = self.external.with(&bytes(source), &bytes(destination), block);
        let errors = self.errors.try_clone().map_err(|e| {
            Trouble::failed(format!("cannot duplicate a descriptor: {}", Errno::from(e)))
        })?;
        spawn::program(&argv, errors).map_err(Trouble::refused)
    }

    /// Copies an empty file again and again, outside of every clock of the trial.
    fn measure_start(&self) -> Result<ProgramStart, Trouble> {
        let place = self.site.place(0);
        let mut program = self.program(&self.site.empty, &place)?;
        let mut times = Vec::with_capacity(STARTS);
        for _ in 0..STARTS {
            let begin_ns = clock::monotonic_ns();
            let ended = program.run();
            times.push(clock::monotonic_ns() - begin_ns);
            let ended = ended.map_err(|errno| self.not_started(errno))?;
            self.judge(&ended).map_err(|trouble| Trouble {
                what: format!("an empty file, to see what a start takes: {}", trouble.what),
                ..trouble
            })?;
            remove(&place)?;
        }
        times.sort_unstable();
        Ok(ProgramStart {
            arm: 0,
            runs: u32::try_from(STARTS).unwrap_or(u32::MAX),
            median_ns: times[STARTS / 2],
            min_ns: times[0],
            max_ns: times[STARTS - 1],
        })
    }

    fn not_started(&self, errno: Errno) -> Trouble {
        let name = self.external.argv.first().map_or("", String::as_str);
        Trouble::failed(format!("cannot start {name}: {errno}"))
    }

    /// Whether it ended well.
    fn judge(&self, ended: &Ended) -> Result<(), Trouble> {
        let status = ExitStatus::from_raw(ended.status);
        if status.success() {
            return Ok(());
        }
        let how = spawn::obituary(status, &self.errors);
        Err(Trouble::failed(format!("`{}` {how}", self.external.name)))
    }

    /// One copy, from the start of the program to what its end has to bring.
    fn copy(&mut self, number: usize) -> Result<(), Trouble> {
        let ended = self.programs[number].run();
        let ended = ended.map_err(|errno| self.not_started(errno))?;
        self.judge(&ended)?;
        if self.site.setting.sync == CopySync::Fsync {
            let place = self.site.place(number);
            let synced = File::open(&place).map_err(Errno::from).and_then(|file| fsync(&file));
            synced.map_err(|errno| {
                Trouble::failed(format!("cannot sync {}: {errno}", place.display()))
            })?;
        }
        self.tally.children.get_or_insert_default().add(&Children {
            cpu_ns: u64::try_from(ended.cpu.as_nanos()).ok(),
            voluntary_switches: Some(ended.voluntary_switches),
            involuntary_switches: Some(ended.involuntary_switches),
            minor_faults: Some(ended.minor_faults),
            major_faults: Some(ended.major_faults),
        });
        Ok(())
    }
}

impl Sender for Process<'_> {
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        let first_call_ns = clock::monotonic_ns();
        budget.begin(first_call_ns);
        let done = (0..self.copies).try_for_each(|number| self.copy(number));
        let last_call_ns = clock::monotonic_ns();
        done.map_err(|trouble| {
            self.trouble = Some(trouble);
            Errno::EIO
        })?;
        Ok(Span { first_call_ns, last_call_ns })
    }

    fn prepare(&mut self, messages: u64) -> Result<(), Trouble> {
        self.copies = usize::try_from(messages).unwrap_or(usize::MAX);
        // What it said of earlier copies is not what it will say of these.
        let emptied = self.errors.set_len(0).and_then(|()| (&self.errors).rewind());
        emptied.map_err(|e| {
            Trouble::failed(format!("cannot empty the file for errors: {}", Errno::from(e)))
        })?;
        let source = FilePath::from_bytes(self.site.ground.path().to_vec()).path();
        for number in self.programs.len()..self.copies {
            self.programs.push(self.program(&source, &self.site.place(number))?);
        }
        Ok(())
    }

    fn conclude(&mut self) -> Result<(), Trouble> {
        let name = &self.external.name;
        let by_it = |trouble: Trouble| Trouble {
            what: format!("what `{name}` left is no copy: {}", trouble.what),
            ..trouble
        };
        self.site.find(self.copies).map_err(by_it)?;
        let bytes = self.site.measure().map_err(by_it)?;
        if !std::mem::replace(&mut self.is_compared, true) {
            let shared = self.site.compare().map_err(by_it)?.filter(|&bytes| bytes > 0);
            if let Some(bytes) = shared {
                return Err(Trouble::refused(format!(
                    "reflinked: {bytes} bytes of what `{name}` made are blocks of the source, and \
                     did not move; `reflink` is the arm for that"
                )));
            }
        }
        self.tally.messages += self.copies as u64;
        self.tally.bytes += bytes;
        self.site.clear(self.copies)
    }

    fn explain(&mut self) -> Option<Trouble> {
        self.trouble.take()
    }

    fn tally(&self) -> Tally {
        // Of its source, what was found around the slice; of its calls, nothing.
        Tally { file: Some(FileCounts::default()), ..self.tally }
    }

    fn facts(&self) -> Vec<Fact> {
        let ProgramStart { median_ns, min_ns, max_ns, runs, .. } = self.start;
        let ms = |ns: u64| ns as f64 / 1e6;
        let value = format!(
            "{:.2} ms, {:.2} to {:.2} ms in {runs} starts, with an empty file",
            ms(median_ns),
            ms(min_ns),
            ms(max_ns)
        );
        vec![("start-up", value)]
    }

    fn start(&self) -> Option<ProgramStart> {
        Some(self.start)
    }
}

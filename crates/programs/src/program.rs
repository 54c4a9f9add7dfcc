//! A process of an arm: how it is started, and how it ends.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use iolens_sys::errno::Errno;
use iolens_sys::launch::{Begun, Program, StackPlace};
use iolens_sys::poll::is_readable;
use iolens_sys::{clock, file, signal};

use crate::fault::ProgramFault;
use crate::files::describe_end;
use crate::files::{Executable, ProgramFile};
use crate::files::{ProgramPlace, UserProgram};

/// What is kept of what a program writes to stderr.
const ERRORS_BYTES_MAX: u64 = 64 << 10;

/// Lines of it that are shown.
const ERRORS_LINES_SHOWN: usize = 20;

/// Time after which a wait looks whether the user, or the budget, wants an end.
pub(crate) const LOOK_NS: u64 = 100_000_000;

/// A program that can be started, from its fresh copy or in place.
#[derive(Debug)]
pub struct Prepared {
    program: Program,
    errors: File,
    is_copy: bool,
    /// Keeps the copy until it is executed.
    _executable: Executable,
}

/// A process.
#[derive(Debug)]
pub struct Process {
    begun: Begun,
    watch: OwnedFd,
    errors: File,
    is_copy: bool,
}

impl Prepared {
    /// Gets ready to start an arm's program, with a seed of its own and these files: its input,
    /// its output, and in loops the numbers 3 and 4.
    ///
    /// Errors: why it cannot be started.
    pub fn new(
        program: &UserProgram,
        place: ProgramPlace,
        seed: Seed,
        files: &[BorrowedFd<'_>],
    ) -> Result<Prepared, ProgramFault> {
        let executable = match place {
            ProgramPlace::FreshCopy => Executable::fresh(&program.file),
            ProgramPlace::InPlace => Ok(Executable::in_place(&program.file)),
        };
        let executable = executable.map_err(|why| ProgramFault::NotStarted(why.to_string()))?;
        let cannot = |errno| not_started(&program.file, errno);
        let errors = file::in_memory("iolens-errors").map_err(cannot)?;
        let argv: Vec<Vec<u8>> = program.argv.iter().map(|word| word.clone().into()).collect();
        let seed = seed.to_string();
        let environment = environment(&seed, files.len() > 2);
        let mut all = files.to_vec();
        all.insert(2, errors.as_fd());
        let program = Program::with_files(executable.path(), &argv, &environment, &all);
        let is_copy = executable.is_copy();
        Ok(Prepared { program: program.map_err(cannot)?, errors, is_copy, _executable: executable })
    }

    /// Starts it as one that stays, with its stack at this place of a page if one is stated. A file
    /// in place may have rights that it loses when it is traced: its stack begins anywhere.
    ///
    /// Errors: why it cannot be started.
    pub fn begin(
        mut self,
        file: &ProgramFile,
        stack: Option<StackPlace>,
    ) -> Result<Process, ProgramFault> {
        let cannot = |errno| not_started(file, errno);
        let begun = match stack.filter(|_| self.is_copy) {
            Some(place) => self.program.begin_at(place),
            None => self.program.begin(),
        };
        let begun = begun.map_err(cannot)?;
        self.process(begun).map_err(cannot)
    }

    /// Starts it as one whose whole life is timed, without a pid namespace.
    ///
    /// Errors: why it cannot be started.
    pub fn begin_timed(&mut self, file: &ProgramFile) -> Result<Process, ProgramFault> {
        let cannot = |errno| not_started(file, errno);
        let begun = self.program.begin_in_group().map_err(cannot)?;
        self.process(begun).map_err(cannot)
    }

    /// The process that was begun.
    ///
    /// Errors: of pidfd_open(2) and dup(2); it has been killed then.
    fn process(&self, begun: Begun) -> Result<Process, Errno> {
        let errors = self.errors.try_clone().map_err(Errno::from);
        match errors.and_then(|errors| Ok((errors, begun.watch()?))) {
            Ok((errors, watch)) => Ok(Process { begun, watch, errors, is_copy: self.is_copy }),
            Err(errno) => {
                begun.kill();
                let _ = begun.wait();
                Err(errno)
            }
        }
    }
}

/// The variables of a program, and those of one that speaks the loop protocol besides. Of one width
/// in every arm: the environment lies on the stack and moves it.
pub fn environment(seed: &str, speaks: bool) -> Vec<(&str, &str)> {
    let protocol = [("IOLENS_LOOP", "1"), ("IOLENS_IN", "/dev/fd/3"), ("IOLENS_OUT", "/dev/fd/4")];
    let protocol = protocol.into_iter().filter(|_| speaks);
    std::iter::once(("IOLENS_SEED", seed)).chain(protocol).collect()
}

fn not_started(file: &ProgramFile, errno: Errno) -> ProgramFault {
    let hint = match errno {
        Errno::ENOENT if !file.is_elf => ": the interpreter in its first line is not there",
        Errno::EACCES if file.is_elf => {
            ": where copies may not be executed, --in-place runs the file itself"
        }
        Errno::EACCES => ": its file system, or that of its interpreter, may be mounted noexec",
        errno if errno == Errno::from_raw(ENOEXEC) => {
            ": it is neither a program of this machine nor a script that begins with #!"
        }
        _ => "",
    };
    ProgramFault::NotStarted(format!("cannot start {}: {errno}{hint}", file.path))
}

/// asm-generic/errno-base.h.
const ENOEXEC: i32 = 8;

/// A number for a process to draw its own from, which differs in each: copies that walk the same
/// random way warm the caches for each other. It has 18 digits and fits into 63 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// From a random number.
    pub fn of(random: u64) -> Seed {
        const SMALLEST: u64 = 100_000_000_000_000_000;
        Seed(SMALLEST + random % (9 * SMALLEST))
    }
}

impl std::fmt::Display for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Process {
    /// Its id.
    pub fn id(&self) -> u32 {
        self.begun.id()
    }

    /// Readable from its end.
    pub fn watch(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }

    /// Whether it ends by then, or the user wants an end.
    pub fn ends_by(&self, deadline_ns: u64, interrupted: &dyn Fn() -> bool) -> bool {
        loop {
            let left_ns = deadline_ns.saturating_sub(clock::monotonic_ns());
            match is_readable(self.watch(), left_ns.min(LOOK_NS)) {
                Ok(true) => return true,
                Ok(false) if left_ns == 0 => return false,
                Ok(false) | Err(Errno::EINTR) if interrupted() => return false,
                Ok(false) | Err(Errno::EINTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Waits for its end and says how it was.
    ///
    /// Errors: what the system said.
    pub fn wait(&self) -> Result<iolens_sys::launch::Ended, Errno> {
        self.begun.wait()
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        self.begun.terminate();
    }

    /// Ends it, unless it has ended.
    pub fn kill(&self) {
        self.begun.kill();
    }

    /// How it ended, which it has, with what it said.
    pub fn obituary(&self) -> String {
        self.obituary_with("")
    }

    /// The same with something about it behind the status.
    pub fn obituary_with(&self, more: &str) -> String {
        let end = match self.begun.wait() {
            Ok(ended) => self.end_in_words(ended.status),
            Err(errno) => format!("ended, and cannot be waited for: {errno}"),
        };
        format!("{end}{more}{}", self.last_words())
    }

    fn end_in_words(&self, status: i32) -> String {
        let status = ExitStatus::from_raw(status);
        let words = describe_end(status);
        // Process 1 of a namespace gets no signal from itself: abort(3) ends it with an instruction
        // that nobody may execute.
        if status.signal() == Some(signal::SEGV) {
            return format!("{words} (SIGSEGV, which abort(3) leads to here, too)");
        }
        // What ld.so(8) exits with where a library is missing, and a shell where a program is.
        match self.is_copy && status.code() == Some(127) {
            true => format!(
                "{words} (it ran from a copy without a name: if it looks for files or libraries \
                 beside its own, measure it with --in-place)"
            ),
            false => words,
        }
    }

    /// What it last wrote to stderr, as the end of a sentence.
    pub fn last_words(&self) -> String {
        match last_lines(&self.errors) {
            Some(lines) => format!("; it wrote to stderr:\n{lines}"),
            None => "; it wrote nothing to stderr".to_owned(),
        }
    }

    /// Bytes that it has written to stderr, with those that are forgotten.
    pub fn stderr_bytes(&self) -> u64 {
        self.errors.metadata().map_or(0, |about| about.len())
    }

    /// Forgets what it wrote to stderr but for the end, if that is much.
    pub fn trim_errors(&self) {
        let bytes = self.stderr_bytes();
        if bytes > 16 * ERRORS_BYTES_MAX {
            // The program writes on behind, where it was; what lies before takes no memory.
            let kept = end_of(&self.errors).unwrap_or_default();
            let from = bytes.saturating_sub(kept.len() as u64);
            let _ = self.errors.set_len(0);
            let _ = self.errors.write_all_at(&kept, from);
        }
    }
}

/// A process that nobody has waited for does not outlive its value.
impl Drop for Process {
    fn drop(&mut self) {
        if self.begun.ended().is_none() {
            self.begun.kill();
            let _ = self.begun.wait();
        }
    }
}

fn end_of(file: &File) -> Option<Vec<u8>> {
    let bytes = file.metadata().ok()?.len();
    let length = bytes.min(ERRORS_BYTES_MAX);
    let mut end = vec![0; usize::try_from(length).ok()?];
    let read = file.read_at(&mut end, bytes - length).ok()?;
    end.truncate(read);
    Some(end)
}

/// The last lines of what was written to a file, without what was not meant to be read.
fn last_lines(file: &File) -> Option<String> {
    let end = end_of(file)?;
    let text = String::from_utf8_lossy(&end);
    let clean = |line: &str| -> String {
        line.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    };
    let lines: Vec<String> = text.trim_matches(['\0', '\n']).lines().map(clean).collect();
    let shown = &lines[lines.len().saturating_sub(ERRORS_LINES_SHOWN)..];
    Some(shown.join("\n")).filter(|lines| !lines.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn shell(script: &str) -> UserProgram {
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        UserProgram { name: "sh".to_owned(), file: ProgramFile::of(&argv).unwrap(), argv }
    }

    fn started(script: &str, place: ProgramPlace) -> Process {
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let (program, files) = (shell(script), [null.as_fd(), null.as_fd()]);
        let prepared = Prepared::new(&program, place, Seed::of(1), &files).unwrap();
        prepared.begin(&program.file, None).unwrap()
    }

    #[test]
    fn each_process_runs_a_file_of_its_own_unless_in_place() {
        let file = |path: &str| {
            let about = std::fs::metadata(path).unwrap();
            (about.dev(), about.ino())
        };
        let run_by = |place| {
            let process = started("tail -f /dev/null; exit", place);
            file(&format!("/proc/{}/exe", process.id()))
        };
        let original = file(&shell("").file.path);
        let [one, two] = [ProgramPlace::FreshCopy; 2].map(|place| {
            let process = started("tail -f /dev/null; exit", place);
            (file(&format!("/proc/{}/exe", process.id())), process)
        });
        assert!(one.0 != two.0 && one.0 != original && two.0 != original);
        assert_eq!(run_by(ProgramPlace::InPlace), original);
    }

    #[test]
    fn the_end_of_what_it_wrote_to_stderr_is_kept() {
        let script = "i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo line $i >&2; done; exit 3";
        let process = started(script, ProgramPlace::FreshCopy);
        let said = process.obituary();
        assert!(said.starts_with("exited with status 3; it wrote to stderr:\nline 11\n"), "{said}");
        assert!(said.ends_with("line 29\nline 30"), "{said}");
        let silent = started("exit 127", ProgramPlace::FreshCopy).obituary();
        assert!(silent.contains("--in-place") && silent.ends_with("wrote nothing to stderr"));
        assert!(!started("exit 127", ProgramPlace::InPlace).obituary().contains("--in-place"));
    }

    #[test]
    fn much_on_stderr_takes_little_room() {
        let script = "head -c 3000000 /dev/zero | tr '\\0' a >&2; echo the end >&2";
        let process = started(script, ProgramPlace::FreshCopy);
        process.wait().unwrap();
        process.trim_errors();
        assert_eq!(process.stderr_bytes(), 3_000_008);
        assert!(process.errors.metadata().unwrap().blocks() * 512 <= 2 * ERRORS_BYTES_MAX);
        assert!(process.last_words().ends_with("the end"));
    }

    #[test]
    fn what_cannot_be_started_says_why() {
        let mut program = shell("");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        program.file.path = path.to_str().unwrap().to_owned();
        program.file.is_elf = false;
        let null = File::open("/dev/null").unwrap();
        let files = [null.as_fd(), null.as_fd()];
        let check = |text: &str, expect: &str| {
            use std::os::unix::fs::PermissionsExt;
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
            let refused = || {
                let prepared =
                    Prepared::new(&program, ProgramPlace::FreshCopy, Seed::of(1), &files);
                prepared.unwrap().begin(&program.file, None).unwrap_err().to_string()
            };
            // A child of another test may still have the file open for writing.
            let why = std::iter::repeat_with(refused).find(|why| !why.contains("ETXTBSY")).unwrap();
            assert!(why.contains(&program.file.path) && why.contains(expect), "{why}");
        };
        check("#!/no/such/interpreter\n", "the interpreter in its first line is not there");
        check("neither\n", "begins with #!");
    }

    #[test]
    fn seeds_have_one_width() {
        for random in [0, 1, u64::MAX, 1 << 60] {
            let seed = Seed::of(random).to_string();
            assert!(seed.len() == 18 && seed.parse::<i64>().is_ok(), "{seed}");
        }
    }
}

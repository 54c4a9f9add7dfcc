//! A build whose workers are measured, and its run. There is one, that of this program,
//! unless two are to be compared.

use std::fs;
use std::path::{Path, PathBuf};

use iolens_engine::Interrupts;
use iolens_engine::far::Far;
use iolens_engine::trial;
use iolens_file::leftover::{Leftovers, OwnFolder};
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::run::RunHeader;
use iolens_model::trial::Trial;
use iolens_programs::may_start;
use iolens_programs::spawn::Launch;
use iolens_stats::analysis::Analysis;
use iolens_stats::{Decision, Fold, PassSummary};

use crate::failure::Failure;

/// A build in a run in progress.
pub(super) struct Build {
    /// Of its run.
    pub(super) header: RunHeader,
    pub(super) launch: Launch,
    /// Where each trial has a fresh copy of the program from; null where the program itself
    /// is run.
    copies: Option<Copies>,
    /// Its trials so far.
    pub(super) fold: Fold,
    pub(super) history: Vec<PassSummary>,
}

impl Build {
    pub(super) fn new(header: RunHeader, launch: Launch) -> Build {
        Build { header, launch, copies: None, fold: Fold::default(), history: Vec::new() }
    }

    /// The same, each trial of a fresh copy of the program.
    pub(super) fn copied(self, copies: Copies) -> Build {
        Build { copies: Some(copies), ..self }
    }

    /// Runs a trial, with an end on the other machine if that is its topology.
    pub(super) fn conduct(
        &mut self,
        trial: &Trial,
        far: Option<&mut Far>,
        interrupts: &Interrupts,
    ) -> Result<TrialOutcome, Failure> {
        let copy = self.copies.as_mut().map(|copies| copies.of(&self.launch)).transpose();
        let copy = copy.map_err(Failure::unusable)?;
        let launch = copy.as_ref().map_or(&self.launch, |copy| &copy.launch);
        interrupts.was_stopped();
        let mut outcome = match far.filter(|_| trial.hosts.is_some()) {
            Some(far) => trial::run_with(trial, launch, far, Some(interrupts)),
            None => trial::run(trial, launch, Some(interrupts)),
        };
        if interrupts.was_stopped() {
            refuse_stopped(&mut outcome);
        }
        Ok(outcome)
    }

    /// The same, judged by the gates.
    pub(super) fn run(
        &mut self,
        trial: &Trial,
        far: Option<&mut Far>,
        interrupts: &Interrupts,
    ) -> Result<TrialOutcome, Failure> {
        let mut outcome = self.conduct(trial, far, interrupts)?;
        if outcome.status == Status::Ok {
            for (arm, reason) in iolens_stats::invalid_arms(&self.header, &outcome) {
                outcome.arms[arm].status = Status::Invalid;
                outcome.arms[arm].reason = Some(reason);
            }
        }
        Ok(outcome)
    }

    /// What its trials say so far.
    pub(super) fn analysis(&self) -> Analysis {
        self.fold.analysis(&self.header)
    }

    /// Whether its run has enough, after a pass with this analysis.
    pub(super) fn decide(&mut self, analysis: &Analysis) -> Decision {
        self.history.push(PassSummary::of(analysis));
        iolens_stats::decide(&self.history, &self.header.plan)
    }
}

/// Marks a trial during which clocks ran on and processes stood still. No arm is to blame.
pub(super) fn refuse_stopped(outcome: &mut TrialOutcome) {
    const WHY: &str = "iolens was stopped (SIGTSTP or SIGSTOP) while it ran";
    if outcome.status == Status::Failed {
        (outcome.status, outcome.reason) = (Status::Invalid, Some(WHY.to_owned()));
    }
    for arm in &mut outcome.arms {
        if matches!(arm.status, Status::Ok | Status::Failed) {
            (arm.status, arm.reason) = (Status::Invalid, Some(WHY.to_owned()));
        }
    }
}

/// Where copies of a program are made.
#[derive(Debug)]
pub(super) struct Copies {
    /// This run's alone; what a killed run leaves of it is removed by the next.
    folder: OwnFolder,
    made: u32,
}

/// One copy. Dropped, it is removed.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) launch: Launch,
}

impl Copies {
    /// In a folder of its own below the first of these in which there is room for a copy, which
    /// may be started there.
    ///
    /// Errors: what each of them was refused for.
    pub(super) fn below_one_of(
        parents: &[PathBuf],
        launch: &Launch,
        leftovers: &Leftovers,
    ) -> Result<Copies, String> {
        let mut refused = Vec::new();
        for parent in parents {
            match Copies::below(parent, launch, leftovers) {
                Ok(copies) => return Ok(copies),
                Err(why) => refused.push(why),
            }
        }
        Err(refused.join("\n  "))
    }

    fn below(parent: &Path, launch: &Launch, leftovers: &Leftovers) -> Result<Copies, String> {
        let mut copies = Copies { folder: leftovers.make_folder(parent)?, made: 0 };
        let copy = copies.of(launch)?;
        may_start(&copy.launch.program).map_err(|errno| {
            let (of, folder) = (launch.program.display(), parent.display());
            format!("cannot start a copy of {of} in {folder}: {errno}")
        })?;
        Ok(copies)
    }

    /// A copy of what this would start.
    ///
    /// Errors: what was tried and what the system said.
    pub(super) fn of(&mut self, launch: &Launch) -> Result<Copy, String> {
        self.made += 1;
        // Its processes have the name of the program.
        let folder = self.folder.path().join(self.made.to_string());
        let program = folder.join(launch.program.file_name().unwrap_or("iolens".as_ref()));
        let copied = fs::create_dir(&folder).and_then(|()| fs::copy(&launch.program, &program));
        let cannot =
            |e| format!("cannot copy {} to {}: {e}", launch.program.display(), program.display());
        copied.map_err(cannot)?;
        Ok(Copy { launch: Launch { program, ..launch.clone() } })
    }
}

impl Copy {
    fn folder(&self) -> Option<PathBuf> {
        self.launch.program.parent().map(Path::to_owned)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // What cannot be removed goes with the folder of all.
        if let Some(folder) = self.folder() {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn names(folder: &Path) -> Vec<std::ffi::OsString> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    /// A program below a place, and its bytes, which nobody starts here.
    fn program_in(place: &Path) -> Launch {
        let program = place.join("program");
        fs::write(&program, "the bytes of a build").unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        Launch { program, arguments: vec!["worker".to_owned()] }
    }

    #[test]
    fn every_trial_has_a_copy_of_its_own_which_goes_with_it() {
        let place = tempfile::tempdir().unwrap();
        let launch = program_in(place.path());
        let leftovers = Leftovers::in_folder(&place.path().join("records"));
        let mut copies = Copies::below(place.path(), &launch, &leftovers).unwrap();
        let (one, other) = (copies.of(&launch).unwrap(), copies.of(&launch).unwrap());
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        let files = [&launch.program, &one.launch.program, &other.launch.program];
        let mut inodes = files.map(|path| inode(path));
        inodes.sort_unstable();
        assert!(inodes.windows(2).all(|two| two[0] != two[1]), "{inodes:?}");
        for copy in [&one, &other] {
            assert_eq!(copy.launch.arguments, launch.arguments);
            assert_eq!(copy.launch.program.file_name(), launch.program.file_name());
            assert_eq!(fs::read(&copy.launch.program).unwrap(), b"the bytes of a build");
        }
        let [one_was, other_was] = [&one, &other].map(|copy| copy.launch.program.clone());
        drop(one);
        assert!(!one_was.exists() && other_was.exists());
        drop(other);
        drop(copies);
        assert!(!other_was.exists() && launch.program.exists());
        assert_eq!(names(place.path()), ["program"]);
    }

    #[test]
    fn copies_are_made_in_the_first_folder_that_takes_them() {
        let place = tempfile::tempdir().unwrap();
        let launch = program_in(place.path());
        let leftovers = Leftovers::in_folder(&place.path().join("records"));
        let folders = ["none", "one", "other"].map(|name| place.path().join(name));
        fs::create_dir(&folders[1]).unwrap();
        fs::create_dir(&folders[2]).unwrap();
        let mut copies = Copies::below_one_of(&folders, &launch, &leftovers).unwrap();
        let copy = copies.of(&launch).unwrap();
        assert!(copy.launch.program.starts_with(&folders[1]), "{copy:?}");
        assert!(names(&folders[2]).is_empty());
        drop(copy);
        drop(copies);
        assert!(names(&folders[1]).is_empty());
        // What may not be started as it is may not be started as a copy.
        fs::set_permissions(&launch.program, Permissions::from_mode(0o644)).unwrap();
        let why = Copies::below_one_of(&folders, &launch, &leftovers).unwrap_err();
        let lines: Vec<&str> = why.lines().collect();
        assert_eq!(lines.len(), 3, "{why}");
        assert!(
            lines[0].contains("cannot create a folder in ") && lines[0].contains("none"),
            "{why}"
        );
        assert!(lines[1].contains("one: EACCES") && lines[2].contains("other: EACCES"), "{why}");
        assert!(folders[1..].iter().all(|folder| names(folder).is_empty()));
    }

    #[test]
    fn a_program_that_is_gone_is_named() {
        let place = tempfile::tempdir().unwrap();
        let leftovers = Leftovers::in_folder(&place.path().join("records"));
        let launch = Launch { program: "/nowhere/iolens".into(), arguments: Vec::new() };
        let why = Copies::below(place.path(), &launch, &leftovers).unwrap_err();
        assert!(why.contains("cannot copy /nowhere/iolens to "), "{why}");
    }
}

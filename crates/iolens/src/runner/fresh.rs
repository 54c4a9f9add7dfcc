//! Fresh copies of a program, one for each trial. How the pages of a file lie in the page
//! cache decides a part of a program's speed, and stays as it is for as long as they are there:
//! byte-identical copies of one build differed by 2.5 %. Of a copy for each trial that is
//! chance, which the interval holds.

use std::fs;
use std::path::{Path, PathBuf};

use iolens_engine::files::leftover::{Leftovers, OwnFolder};
use iolens_engine::trial::Launch;

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
    /// In a folder of its own below `parent`.
    ///
    /// Errors: what was tried and what the system said.
    pub(super) fn below(parent: &Path, leftovers: &Leftovers) -> Result<Copies, String> {
        Ok(Copies { folder: leftovers.make_folder(parent)?, made: 0 })
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
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn every_trial_has_a_copy_of_its_own_which_goes_with_it() {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("program");
        fs::write(&program, "the bytes of a build").unwrap();
        let launch = Launch { program: program.clone(), arguments: vec!["worker".to_owned()] };
        let leftovers = Leftovers::in_folder(&place.path().join("records"));
        let mut copies = Copies::below(place.path(), &leftovers).unwrap();
        let (one, other) = (copies.of(&launch).unwrap(), copies.of(&launch).unwrap());
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        let files = [&program, &one.launch.program, &other.launch.program];
        let mut inodes = files.map(|path| inode(path));
        inodes.sort_unstable();
        assert!(inodes.windows(2).all(|two| two[0] != two[1]), "{inodes:?}");
        for copy in [&one, &other] {
            assert_eq!(copy.launch.arguments, launch.arguments);
            assert_eq!(copy.launch.program.file_name(), program.file_name());
            assert_eq!(fs::read(&copy.launch.program).unwrap(), b"the bytes of a build");
        }
        let [one_was, other_was] = [&one, &other].map(|copy| copy.launch.program.clone());
        drop(one);
        assert!(!one_was.exists() && other_was.exists());
        drop(other);
        drop(copies);
        assert!(!other_was.exists() && program.exists());
        let mut left: Vec<_> =
            fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["program"]);
    }

    #[test]
    fn a_program_that_is_gone_is_named() {
        let place = tempfile::tempdir().unwrap();
        let leftovers = Leftovers::in_folder(&place.path().join("records"));
        let mut copies = Copies::below(place.path(), &leftovers).unwrap();
        let launch = Launch { program: "/nowhere/iolens".into(), arguments: Vec::new() };
        assert!(copies.of(&launch).unwrap_err().contains("cannot copy /nowhere/iolens to "));
    }
}

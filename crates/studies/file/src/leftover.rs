//! Files that are written under another name than their own, where the file system
//! has none without a name, and folders of ours: each is written down before it is
//! made, and whoever starts next removes what a killed process left.
//!
//! A record is a file of its own in a folder that only its user may enter, so that
//! records of several processes do not meet; nobody removes a file because of a
//! record that another user could have written.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use iolens_sys::errno::Errno;
use iolens_sys::file::about::{Kind, about};
use iolens_sys::file::create::{self, Found, Identity};
use iolens_sys::proc::Root;
use iolens_sys::{clock, durable, process};
use serde::{Deserialize, Serialize};

use iolens_harness::journal::{Fate, Owner};

/// Where records are kept.
#[derive(Debug, Clone)]
pub struct Leftovers {
    root: Root,
    /// The first of these that is this user's alone, or can be made so; records of earlier
    /// processes may be in any of them.
    folders: Vec<PathBuf>,
}

/// What is written down of one file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    owner: Owner,
    /// The name that it has while it is written; absolute.
    path: PathBuf,
}

/// What a folder of records is called.
const FOLDER: &str = "iolens-partial";

/// Root's alone, and does not outlive a boot.
const RUN: &str = "/run";

/// How often a record is written where its folder goes meanwhile.
const TRIES: u32 = 100;

/// In every name that is only for the time of writing.
const MARK: &str = ".iolens-partial-";

/// A file under its passing name. Dropped, it is removed.
#[derive(Debug)]
pub struct Leftover {
    path: PathBuf,
    identity: Identity,
    record: PathBuf,
}

impl Leftovers {
    /// Those of this user: in `XDG_RUNTIME_DIR`, which does not outlive a boot, for root in
    /// /run, or in a folder of the user's below /tmp. Tests bring a folder of their own.
    pub fn here() -> Leftovers {
        let variable = |name: &str| {
            std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        if let Some(folder) = iolens_harness::lock::stated_folder() {
            return Leftovers::in_folder(&folder.join(FOLDER));
        }
        let user = process::effective_uid();
        let mut folders: Vec<PathBuf> =
            variable("XDG_RUNTIME_DIR").iter().map(|folder| folder.join(FOLDER)).collect();
        if user == 0 && is_only_of(0, Path::new(RUN)).is_ok() {
            folders.push(Path::new(RUN).join(FOLDER));
        }
        // Others may make a folder of any name in /tmp before we do.
        folders.extend(numbered(&Path::new("/tmp").join(format!("{FOLDER}-{user}"))));
        Leftovers { root: Root::real(), folders }
    }

    /// Those that are kept in a folder, which need not be there yet, or beside it where it is
    /// somebody else's.
    pub fn in_folder(folder: &Path) -> Leftovers {
        Leftovers { root: Root::real(), folders: numbered(folder).collect() }
    }

    /// Makes a file beside `path`, written down before.
    ///
    /// Errors: what was tried and what the system said.
    pub(crate) fn make_beside(&self, path: &Path) -> Result<(File, Leftover), String> {
        let (record, passing) = self.write_down(path)?;
        let made = create::exclusive(&passing).and_then(|file| {
            let identity = Identity::of(&about(file.as_fd())?);
            Ok((file, identity))
        });
        match made {
            Ok((file, identity)) => Ok((file, Leftover { path: passing, identity, record })),
            Err(errno) => {
                strike_out(&record);
                Err(format!("cannot create a file beside {}: {errno}", path.display()))
            }
        }
    }

    /// Makes a folder in `parent`, written down before, which goes with all that is in
    /// it.
    ///
    /// Errors: what was tried and what the system said.
    pub fn make_folder(&self, parent: &Path) -> Result<OwnFolder, String> {
        let (record, path) = self.write_down(&parent.join("folder"))?;
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(OwnFolder { path, record }),
            Err(e) => {
                strike_out(&record);
                Err(format!("cannot create a folder in {}: {}", parent.display(), Errno::from(e)))
            }
        }
    }

    /// Writes down the passing name of a file; where, and the name.
    fn write_down(&self, path: &Path) -> Result<(PathBuf, PathBuf), String> {
        let cannot = |what: &dyn std::fmt::Display| {
            let folder = self.folders[0].display();
            format!("cannot write down in {folder} that a file is being made: {what}")
        };
        let absolute = std::path::absolute(path).map_err(|e| cannot(&Errno::from(e)))?;
        let number = format!("{}-{}", process::id(), clock::unix_ns());
        // Short, whatever the file's own name: that may be as long as names can be.
        let passing = absolute.with_file_name(format!("{MARK}{number}"));
        let owner = Owner::own(&self.root).map_err(|why| cannot(&why))?;
        let record = Record { owner, path: passing.clone() };
        let text = serde_json::to_string(&record).map_err(|e| cannot(&e))?;
        for _ in 0..TRIES {
            let folder = self.open_folder().map_err(|why| cannot(&why))?;
            let place = folder.join(&number);
            match durable::write(&place, &text) {
                Ok(()) => return Ok((place, passing)),
                // Whoever had the last record in it has just removed the folder.
                Err(Errno::ENOENT) => {}
                Err(errno) => return Err(cannot(&errno)),
            }
        }
        Err(cannot(&Errno::ENOENT))
    }

    /// The folder, made if need be, which must be this user's alone. Where somebody else has all
    /// of them, it is one beside the last whose name nobody could know.
    ///
    /// Errors: why the first of them is not.
    fn open_folder(&self) -> Result<PathBuf, String> {
        let mut opened = self.folders.iter().map(|folder| made(folder).map(|()| folder.clone()));
        let first = opened.next().unwrap_or_else(|| Err("no folder is named".to_owned()));
        first.or_else(|why| opened.find_map(Result::ok).ok_or(why)).or_else(|why| {
            let known = self.unforeseen().into_iter().next();
            let folder = known.or_else(|| self.last_resort()).ok_or_else(|| why.clone())?;
            made(&folder).map(|()| folder).map_err(|_| why)
        })
    }

    /// A folder with a random name.
    fn last_resort(&self) -> Option<PathBuf> {
        let random = RandomState::new().build_hasher().finish();
        let mut name = self.folders.first()?.file_name()?.to_owned();
        name.push(format!(".{random:016x}"));
        Some(self.folders.last()?.with_file_name(name))
    }

    /// This user's own folders with such names.
    fn unforeseen(&self) -> Vec<PathBuf> {
        const DIGITS: usize = 16;
        let user = process::effective_uid();
        let (Some(last), Some(first)) = (self.last_resort(), self.folders.first()) else {
            return Vec::new();
        };
        let parent = last.parent().unwrap_or(first);
        let name = last.file_name().map(OsStr::as_bytes).unwrap_or_default();
        let prefix = &name[..name.len() - DIGITS];
        let is_ours = |entry: &std::fs::DirEntry| {
            let name = entry.file_name();
            let digits = name.as_bytes().strip_prefix(prefix).unwrap_or_default();
            digits.len() == DIGITS
                && digits.iter().all(u8::is_ascii_hexdigit)
                && is_only_of(user, &entry.path()).is_ok()
        };
        let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
        entries.filter(is_ours).map(|entry| entry.path()).collect()
    }

    /// Removes what killed processes of this user left, and says so, a sentence for
    /// each file.
    #[must_use]
    pub fn sweep(&self) -> Vec<String> {
        let user = process::effective_uid();
        let foreseen = self.folders.iter().filter(|folder| is_only_of(user, folder).is_ok());
        let ours = foreseen.cloned().chain(self.unforeseen());
        ours.flat_map(|folder| {
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let said: Vec<String> =
                entries.filter_map(|entry| self.sweep_one(&entry.path())).collect();
            // One that is empty was left by one that was killed here.
            let _ = std::fs::remove_dir(folder);
            said
        })
        .collect()
    }

    fn sweep_one(&self, place: &Path) -> Option<String> {
        let text = std::fs::read_to_string(place).ok()?;
        // What is torn was written by one who made nothing yet.
        let record = serde_json::from_str::<Record>(&text).ok()?;
        if record.owner.fate(&self.root) == Fate::Alive {
            return None;
        }
        let name = record.path.file_name()?.to_str()?;
        let mut said = None;
        let kind = Found::at(&record.path).map(|found| found.about().kind);
        if let (true, Ok(kind @ (Kind::Regular | Kind::Directory))) = (name.starts_with(MARK), kind)
        {
            let removed = match kind {
                // Follows no links.
                Kind::Directory => std::fs::remove_dir_all(&record.path),
                _ => std::fs::remove_file(&record.path),
            };
            let path = record.path.display();
            said = Some(match removed {
                Ok(()) => format!("removed {path}, which a killed iolens left unfinished"),
                Err(e) => {
                    format!("cannot remove {path}, which a killed iolens left: {}", Errno::from(e))
                }
            });
        }
        strike_out(place);
        said
    }
}

/// A folder and those beside it that are used where it is somebody else's.
fn numbered(folder: &Path) -> impl Iterator<Item = PathBuf> {
    const BESIDE: u32 = 32;
    let beside = |number: u32| {
        let mut name = folder.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    std::iter::once(folder.to_owned()).chain((1..=BESIDE).map(beside).collect::<Vec<_>>())
}

/// Makes a folder for this user alone, if it is not there.
///
/// Errors: what the system said, or whose it is.
fn made(folder: &Path) -> Result<(), String> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => Err(Errno::from(e).to_string()),
        _ => is_only_of(process::effective_uid(), folder),
    }
}

/// Whether what stands there is a folder of this user's, in which nobody else may write.
fn is_only_of(user: u32, folder: &Path) -> Result<(), String> {
    let about = std::fs::symlink_metadata(folder).map_err(|e| Errno::from(e).to_string())?;
    let is_ours = about.is_dir() && about.uid() == user && about.mode() & 0o022 == 0;
    if is_ours { Ok(()) } else { Err("it is not this user's alone".to_owned()) }
}

/// Removes a record, and the folder with its last one: what is empty need not stay.
fn strike_out(record: &Path) {
    let _ = durable::remove(record);
    if let Some(folder) = record.parent() {
        // Fails where there are other records, as it should.
        let _ = std::fs::remove_dir(folder);
    }
}

/// A folder of ours. Dropped, it is removed with all that is in it.
#[derive(Debug)]
pub struct OwnFolder {
    path: PathBuf,
    record: PathBuf,
}

impl OwnFolder {
    /// Where it is; absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // What cannot be removed stays written down, for who starts next.
        if std::fs::remove_dir_all(&self.path).is_ok() {
            strike_out(&self.record);
        }
    }
}

impl Leftover {
    /// Gives the file its own name, which nobody may have.
    ///
    /// Errors: see [`create::rename`]; the file is removed then.
    pub(crate) fn move_to(self, path: &Path) -> Result<(), Errno> {
        create::rename(&self.path, path)
    }

    /// Whether the file is still there under this name.
    fn is_there(&self) -> bool {
        Found::at(&self.path).is_ok_and(|found| found.identity() == self.identity)
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        if self.is_there() {
            let _ = std::fs::remove_file(&self.path);
        }
        strike_out(&self.record);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn leftovers(folder: &Path) -> Leftovers {
        Leftovers::in_folder(&folder.join("records"))
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_beside_its_place_gets_its_name_or_goes() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, path) = (leftovers(folder.path()), folder.path().join("wanted"));
        let (mut file, leftover) = ours.make_beside(&path).unwrap();
        file.write_all(b"abc").unwrap();
        assert_eq!(names(&ours.folders[0]).len(), 1);
        assert!(ours.sweep().is_empty(), "its owner lives");
        leftover.move_to(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "abc");
        assert_eq!(names(folder.path()), ["wanted"], "nor is the folder of records left");
        let (_, given_up) = ours.make_beside(&path).unwrap();
        let (_, other) = ours.make_beside(&path).unwrap();
        assert_eq!(names(folder.path()).len(), 4);
        drop(given_up);
        assert_eq!(names(&ours.folders[0]).len(), 1, "the other one's record stays");
        drop(other);
        let (_, taken) = ours.make_beside(&path).unwrap();
        assert_eq!(taken.move_to(&path), Err(Errno::EEXIST));
        assert_eq!(names(folder.path()), ["wanted"]);
        std::fs::create_dir(&ours.folders[0]).unwrap();
        assert!(ours.sweep().is_empty());
        assert_eq!(names(folder.path()), ["wanted"], "an empty one is swept");
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, path) = (leftovers(folder.path()), folder.path().join("wanted"));
        let (_, leftover) = ours.make_beside(&path).unwrap();
        let (passing, place) = (leftover.path.clone(), leftover.record.clone());
        // As if the process had been killed: nothing of it is run, and none has its id.
        std::mem::forget(leftover);
        let text = std::fs::read_to_string(&place).unwrap();
        let dead = text.replace(&format!("\"pid\":{}", process::id()), "\"pid\":4194305");
        assert_ne!(dead, text);
        std::fs::write(&place, &dead).unwrap();
        // One that names a file which is none of ours.
        let precious = folder.path().join("precious");
        std::fs::write(&precious, "theirs").unwrap();
        let forged = dead.replace(passing.to_str().unwrap(), precious.to_str().unwrap());
        std::fs::write(ours.folders[0].join("forged"), forged).unwrap();
        std::fs::write(ours.folders[0].join("torn"), "{\"owner").unwrap();
        let said = ours.sweep();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("removed ") && said[0].contains(MARK), "{said:?}");
        assert_eq!(names(folder.path()), ["precious", "records"]);
        assert_eq!(names(&ours.folders[0]), ["torn"]);
    }

    #[test]
    fn a_folder_goes_with_all_that_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let ours = leftovers(folder.path());
        let made = ours.make_folder(folder.path()).unwrap();
        std::fs::write(made.path().join("file"), "ours").unwrap();
        let theirs = folder.path().join("theirs");
        std::fs::write(&theirs, "theirs").unwrap();
        std::os::unix::fs::symlink(&theirs, made.path().join("link")).unwrap();
        assert!(ours.sweep().is_empty(), "its owner lives");
        let place = made.record.clone();
        // As if the process had been killed.
        std::mem::forget(made);
        let text = std::fs::read_to_string(&place).unwrap();
        let dead = text.replace(&format!("\"pid\":{}", process::id()), "\"pid\":4194305");
        std::fs::write(&place, &dead).unwrap();
        assert_eq!(ours.sweep().len(), 1);
        assert_eq!(names(folder.path()), ["theirs"]);
        drop(ours.make_folder(folder.path()).unwrap());
        assert_eq!(names(folder.path()), ["theirs"]);
        let why = ours.make_folder(&folder.path().join("none")).unwrap_err();
        assert!(why.starts_with("cannot create a folder in ") && why.contains("ENOENT"), "{why}");
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_passed_over_and_not_believed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (ours, path) = (leftovers(folder.path()), folder.path().join("wanted"));
        let planted = folder.path().join("records");
        std::fs::create_dir(&planted).unwrap();
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&planted, open).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), folder.path().join("records.1")).unwrap();
        let (_, leftover) = ours.make_beside(&path).unwrap();
        let place = leftover.record.clone();
        assert_eq!(place.parent(), Some(&*folder.path().join("records.2")));
        // As if the process had been killed.
        std::mem::forget(leftover);
        let text = std::fs::read_to_string(&place).unwrap();
        let dead = text.replace(&format!("\"pid\":{}", process::id()), "\"pid\":4194305");
        std::fs::write(&place, &dead).unwrap();
        std::fs::write(planted.join("forged"), &dead).unwrap();
        assert_eq!(ours.sweep().len(), 1);
        assert_eq!(names(folder.path()), ["records", "records.1"]);
        assert_eq!((names(&planted), names(elsewhere.path())), (vec!["forged".into()], vec![]));
        // Nor does it help to have all names that can be foreseen.
        for planted in &ours.folders {
            let _ = std::fs::create_dir(planted);
            // What a link leads to is no folder of ours either.
            std::fs::set_permissions(planted, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        let taken = names(folder.path());
        let (_, first) = ours.make_beside(&path).unwrap();
        let (_, second) = ours.make_beside(&path).unwrap();
        let place = first.record.clone();
        assert_eq!(second.record.parent(), place.parent(), "it is found again");
        drop(second);
        std::mem::forget(first);
        let text = std::fs::read_to_string(&place).unwrap();
        let dead = text.replace(&format!("\"pid\":{}", process::id()), "\"pid\":4194305");
        std::fs::write(&place, &dead).unwrap();
        assert_eq!(ours.sweep().len(), 1);
        assert_eq!(names(folder.path()), taken);
        let why = leftovers(&folder.path().join("none")).make_beside(&path).unwrap_err();
        assert!(why.contains("none/records that a file is being made: ENOENT"), "{why}");
    }
}

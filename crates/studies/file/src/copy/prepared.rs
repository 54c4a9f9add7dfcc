//! The files of a run that copies: the user's, which is only read, or ours, one of each
//! size; and a private folder for the copies, which is written down before it is made.

use std::path::{Path, PathBuf};

use iolens_model::copy::CopyAxes;
use iolens_model::external::External;
use iolens_model::file::{DestinationFacts, FileFacts};
use iolens_model::plan::Plan;
use iolens_model::trial::{Trial, TrialCopies, TrialFile};
use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;

use super::COPIES_BYTES;
use super::by_hand::checksum;
use super::copiers;
use crate::examine::examine;
use crate::file_path::FilePath;
use crate::leftover::{Leftovers, OwnFolder};
use crate::subject::Subject;
use crate::test_file::{Room, TestFile};

/// Files that are ready to be copied.
#[derive(Debug)]
pub struct Prepared {
    folder: OwnFolder,
    facts: FileFacts,
    /// One of each size; the user's alone.
    sources: Vec<Source>,
    empty: PathBuf,
    programs: Vec<External>,
}

#[derive(Debug)]
struct Source {
    bytes: Bytes,
    path: PathBuf,
    checksum: u64,
}

impl Prepared {
    /// Makes the folder and what is to be in it. `stop` is asked while files are written.
    ///
    /// Errors: what was tried and what the system said, such as how much room is missing;
    /// or that it was stopped.
    pub fn of(axes: &CopyAxes, plan: &Plan, stop: impl Fn() -> bool) -> Result<Prepared, String> {
        let parent = axes.dir.as_deref().map_or_else(std::env::temp_dir, PathBuf::from);
        check_room(&parent, axes, &plan.sizes)?;
        let folder = Leftovers::here().make_folder(&parent)?;
        let empty = folder.path().join("empty");
        std::fs::write(&empty, [])
            .map_err(|e| format!("cannot create {}: {}", empty.display(), Errno::from(e)))?;
        let mut warnings = Vec::new();
        let sources = match &axes.file {
            Some(file) => vec![theirs(Path::new(file), &plan.sizes, &mut warnings)?],
            None => {
                let make = |&bytes| ours(folder.path(), bytes, plan.seed, &stop);
                plan.sizes.iter().map(make).collect::<Result<_, String>>()?
            }
        };
        let first = sources.first().ok_or("a plan without a size has nothing to copy")?;
        let source = Subject::open(&first.path)?;
        let written = Subject::open(&empty)?;
        let facts = FileFacts {
            place: axes.file.clone().unwrap_or_else(|| parent.display().to_string()),
            is_ours: axes.file.is_none(),
            bytes: Bytes(sources.iter().map(|source| source.bytes.0).sum()),
            size_reason: match &axes.file {
                Some(_) => "the file is the user's".to_owned(),
                None => "one file of each size of the plan".to_owned(),
            },
            file_system: source.file_system().to_owned(),
            first_pass: None,
            warnings,
            destination: Some(DestinationFacts {
                place: parent.display().to_string(),
                file_system: written.file_system().to_owned(),
            }),
            writing: None,
            dropped: Vec::new(),
        };
        let programs = plan.primitives.iter().filter_map(|id| copiers::program(id, axes)).collect();
        Ok(Prepared { folder, facts, sources, empty, programs })
    }

    /// What a run keeps of them.
    pub fn facts(&self) -> &FileFacts {
        &self.facts
    }

    /// A trial with the source of its cell's size and the folder.
    pub fn given_to(&self, trial: Trial, seed: u64) -> Trial {
        let size = trial.cell.size;
        let Some(source) = self.sources.iter().find(|source| source.bytes == size) else {
            return trial;
        };
        let bytes = |path: &Path| FilePath::new(path).into_bytes();
        let path = bytes(&source.path);
        Trial {
            file: Some(TrialFile { path, bytes: Some(size.0), seed, regions: None }),
            copies: Some(TrialCopies {
                checksum: source.checksum,
                empty: bytes(&self.empty),
                folder: bytes(self.folder.path()),
                programs: self.programs.clone(),
            }),
            ..trial
        }
    }
}

/// Refuses a folder in which sources of ours and the copies of a slice do not fit.
fn check_room(parent: &Path, axes: &CopyAxes, sizes: &[Bytes]) -> Result<(), String> {
    let room = Room::of(parent)?;
    let copies = sizes.iter().map(|size| size.0.max(COPIES_BYTES)).max().unwrap_or(0);
    let sources: u64 = match axes.file {
        Some(_) => 0,
        None => sizes.iter().map(|size| size.0).sum(),
    };
    let needed = Bytes(sources.saturating_add(copies));
    if needed <= room.usable() {
        return Ok(());
    }
    Err(format!(
        "{needed} are needed in {} ({} for sources, {} for a copy): {room}\n  --dir names \
         another folder, --file-sizes smaller files",
        parent.display(),
        Bytes(sources),
        Bytes(copies)
    ))
}

fn theirs(path: &Path, sizes: &[Bytes], warnings: &mut Vec<String>) -> Result<Source, String> {
    let whole = path
        .canonicalize()
        .map_err(|e| format!("cannot find {}: {}", path.display(), Errno::from(e)))?;
    let subject = Subject::open(&whole)?;
    let bytes = Bytes(subject.bytes());
    if !sizes.contains(&bytes) {
        let planned = sizes.first().copied().unwrap_or_default();
        return Err(format!(
            "{} has {} bytes now and had {} when it was planned to copy it",
            path.display(),
            bytes.0,
            planned.0
        ));
    }
    warnings.extend(examine(&subject)?.warnings());
    Ok(Source { bytes, checksum: checksum(&subject, u64::MAX)?, path: whole })
}

fn ours(
    folder: &Path,
    bytes: Bytes,
    seed: u64,
    stop: &impl Fn() -> bool,
) -> Result<Source, String> {
    let name = format!("source-{}", bytes.0);
    let mut made = TestFile::named(folder, &name, seed)?;
    made.resize(bytes.0, stop).map_err(|stopped| stopped.to_string())?;
    let checksum = checksum(&made.subject()?, u64::MAX)?;
    Ok(Source { bytes, path: folder.join(name), checksum })
}

//! What copies a file in the study `copy`: the engines, the programs that everybody
//! has, and those that a user names.

use iolens_model::arm::Role;
use iolens_model::copy::CopyAxes;
use iolens_model::external::External;
use iolens_model::file::EngineFacts;

use super::engine::Class;
use crate::engines::COPYING;

/// A program that is an arm without being asked for by its command.
#[derive(Debug)]
pub struct Program {
    /// Its id, and its name in `PATH`.
    pub id: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What becomes of the bytes.
    pub path: &'static str,
    argv: &'static [&'static str],
}

/// Programs whose work is that of the engines: the whole file, through the page cache,
/// and nothing said about it.
pub const PROGRAMS: [Program; 2] = [
    Program {
        id: "cp",
        summary: "cp that neither shares blocks nor skips holes, in blocks of its own choice",
        path: "a separate process, whose system calls are unknown",
        // The engines write holes as zeros, which cp does not do unasked.
        argv: &["cp", "--reflink=never", "--sparse=never", "--", "{src}", "{dst}"],
    },
    Program {
        id: "dd",
        summary: "dd with bs= of the block: read(2) and write(2) of each",
        path: "a process of its own: page cache → buffer → page cache",
        argv: &["dd", "if={src}", "of={dst}", "bs={block}", "status=none"],
    },
];

impl Program {
    /// As if a user had given it.
    pub fn external(&self) -> External {
        let argv = self.argv.iter().map(|&word| word.to_owned()).collect();
        External { name: self.id.to_owned(), argv }
    }

    /// Whether there is such a program.
    ///
    /// Errors: where it was looked for.
    pub fn try_here(&self) -> Result<(), String> {
        iolens_programs::find_program(self.id).map(drop)
    }
}

/// Ids of the engines and of the programs that everybody has.
pub fn built_in_ids() -> impl Iterator<Item = &'static str> {
    COPYING.iter().map(|entry| entry.id).chain(PROGRAMS.iter().map(|program| program.id))
}

/// Whether an arm of this id needs no command.
pub fn is_built_in(id: &str) -> bool {
    built_in_ids().any(|known| known == id)
}

/// Whether an arm moves no bytes, and is therefore compared with none.
pub fn is_control(id: &str) -> bool {
    crate::engines::that_copies(id).is_some_and(|entry| entry.own.class == Class::Shares)
}

/// The part of an arm; `None` where a plan has no such thing.
pub fn role(id: &str, baseline: &str, axes: &CopyAxes) -> Option<Role> {
    let is_known = is_built_in(id) || program(id, axes).is_some();
    is_known.then(|| Role::against(id == baseline, is_control(id)))
}

/// The program of an id; `None` for engines.
pub fn program(id: &str, axes: &CopyAxes) -> Option<External> {
    let given = axes.external.iter().find(|external| external.name == id).cloned();
    given.or_else(|| PROGRAMS.iter().find(|known| known.id == id).map(Program::external))
}

/// What a run keeps of an arm.
pub fn facts(id: &str, axes: &CopyAxes) -> Option<EngineFacts> {
    if let Some(entry) = crate::engines::that_copies(id) {
        return Some(entry.facts());
    }
    let known = PROGRAMS.iter().find(|program| program.id == id);
    let summary = known.map_or("a program that was given with --external", |known| known.summary);
    let path = known.map_or("a separate process, whose system calls are unknown", |k| k.path);
    Some(EngineFacts {
        id: id.to_owned(),
        summary: summary.to_owned(),
        path: path.to_owned(),
        is_direct: false,
        has_depth: false,
        is_durable: false,
        program: Some(program(id, axes)?.argv),
    })
}

/// Why an arm cannot take part in a cell with so many threads; the rest it is asked in
/// the worker.
///
/// Errors: the reason.
pub fn allow(id: &str, threads: u32) -> Result<(), String> {
    if threads < 2 {
        return Ok(());
    }
    match crate::engines::that_copies(id) {
        Some(entry) => match entry.one_thread {
            Some(why) => Err(format!("{threads} threads cannot share it: {why}")),
            None => Ok(()),
        },
        None => Err(format!("a program is one process: {threads} threads cannot share its copy")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;
    use std::process::Command;

    use iolens_sys::file::extents::hole_bytes;

    use super::*;
    use crate::skip;

    #[test]
    fn cp_copies_holes_as_the_engines_do() {
        const NAME: &str = "copy::copiers::tests::cp_copies_holes_as_the_engines_do";
        const HOLE: u64 = 1 << 20;
        let cp = PROGRAMS.iter().find(|program| program.id == "cp").unwrap();
        assert_eq!(cp.argv[1..], ["--reflink=never", "--sparse=never", "--", "{src}", "{dst}"]);
        if let Err(why) = cp.try_here() {
            return skip::note(NAME, &why);
        }
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().join("source"), folder.path().join("copy")];
        let source = File::create_new(&paths[0]).unwrap();
        source.write_all_at(&[1; 4096], HOLE).unwrap();
        if hole_bytes(source.as_fd(), HOLE + 4096) != Ok(HOLE) {
            return skip::note(NAME, "the file system has no holes");
        }
        let status = Command::new(cp.argv[0])
            .args(&cp.argv[1..cp.argv.len() - 2])
            .args(&paths)
            .status()
            .unwrap();
        assert!(status.success(), "{status}");
        let copy = File::open(&paths[1]).unwrap();
        assert_eq!(copy.metadata().unwrap().len(), HOLE + 4096);
        assert_eq!(hole_bytes(copy.as_fd(), HOLE + 4096), Ok(0), "skipped");
    }
}

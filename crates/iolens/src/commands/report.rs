//! `iolens report`: the page or the figures of a stored run, or one page of several.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use iolens_engine::Errno;
use iolens_engine::durable::{self, Folder};
use iolens_model::axes::Study;
use iolens_model::run::{Run, RunHeader};
use iolens_report::figure::Paper;
use iolens_stats::analysis::Analysis;
use iolens_store::Store;

use crate::args::{self, FigureFormat, FigurePaper};
use crate::commands::ab;
use crate::commands::stored::{header, load, summed, summed_in};
use crate::failure::{Failure, unusable, usage};
use crate::{output, places};

/// Writes the page, or with `--figures` the figures; of several runs one page.
pub(crate) fn report(args: &args::Report) -> Result<ExitCode, Failure> {
    let [wanted] = &args.runs[..] else { return merged(args) };
    if header(args.db.as_deref(), wanted)?.plan.study() == Study::Ab {
        return of_programs(wanted, args);
    }
    let (run, analysis, database) = summed(args.db.as_deref(), wanted)?;
    if let Some(folder) = &args.figures {
        write_figures(&run, &analysis, folder, args)?;
        return Ok(ExitCode::SUCCESS);
    }
    let html = iolens_report::html::page(&run, &analysis);
    let ours = || places::page(&database, &run.header.id);
    let page = written(args, &html, ours)?;
    output::result(&format!("{}", page.display()));
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a run of `ab`.
fn of_programs(wanted: &str, args: &args::Report) -> Result<ExitCode, Failure> {
    if args.figures.is_some() {
        return Err(Failure::usage("--figures: a run of `ab` has none\n  leave it out for a page"));
    }
    let (run, database) = load(args.db.as_deref(), wanted)?;
    let html = iolens_report::ab::page(&run, &ab::analysed(&run)?);
    let page = written(args, &html, || places::page(&database, &run.header.id))?;
    output::result(&format!("{}", page.display()));
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of several runs.
fn merged(args: &args::Report) -> Result<ExitCode, Failure> {
    /// Runs whose ids have room in the name of a file.
    const NAMED: usize = 16;
    if args.figures.is_some() {
        return Err(Failure::usage(
            "--figures: a figure is of one run\n  name one run, or leave --figures out for a page \
             of all",
        ));
    }
    let database = places::existing_database(args.db.as_deref())?;
    let store = Store::open_read_only(&database)?;
    let mut ids: Vec<String> = Vec::new();
    for wanted in &args.runs {
        let id = store.find(wanted).map_err(Failure::usage)?;
        if ids.contains(&id) {
            return Err(usage!("run {id} is named twice"));
        }
        ids.push(id);
    }
    if args.output.is_none() && ids.len() > NAMED {
        return Err(Failure::usage("a page of so many runs needs a name: --output FILE.html"));
    }
    let mut runs = Vec::new();
    for id in &ids {
        runs.push(summed_in(&store, id)?);
    }
    same_study(runs.iter().map(|(run, _)| &run.header))?;
    let html = iolens_report::html::merged(&runs);
    let page = written(args, &html, || places::page(&database, &ids.join("-")))?;
    output::result(&format!("{}", page.display()));
    Ok(ExitCode::SUCCESS)
}

/// Refuses runs of different studies, whose rows have other columns.
pub(crate) fn same_study<'a>(
    headers: impl Iterator<Item = &'a RunHeader> + Clone,
) -> Result<(), Failure> {
    let first = headers.clone().next().map(|header| header.plan.study());
    if headers.clone().all(|header| Some(header.plan.study()) == first) {
        return Ok(());
    }
    let all: Vec<String> =
        headers.map(|header| format!("{} is of {}", header.id, header.plan.study())).collect();
    Err(usage!(
        "cannot put runs of different studies together: {}\n  name runs of one study",
        all.join(", ")
    ))
}

/// Writes a page where the user wants it, or to the place that is ours; where that is.
fn written(
    args: &args::Report,
    html: &str,
    ours: impl FnOnce() -> PathBuf,
) -> Result<PathBuf, Failure> {
    match &args.output {
        Some(path) => {
            write_new(path, html.as_bytes(), args.overwrite)?;
            Ok(path.clone())
        }
        None => {
            let path = ours();
            replace(&path, html)?;
            Ok(path)
        }
    }
}

/// Writes the page to the place that is ours, replacing an older one.
pub(crate) fn write_page(run: &Run, analysis: &Analysis, path: &Path) -> Result<(), Failure> {
    replace(path, &iolens_report::html::page(run, analysis))
}

/// In the folder of pages, which is ours: neither it nor the page may be a link, which whoever
/// may write beside the database could point at any file.
pub(crate) fn replace(path: &Path, html: &str) -> Result<(), Failure> {
    let cannot = |errno: Errno| cannot_write(path, &errno);
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(cannot_write(path, &"it names no file"));
    };
    let beside = Folder::open(durable::folder_of(folder)).map_err(cannot)?;
    let folder = beside.made_inside(folder.file_name().unwrap_or_default()).map_err(cannot)?;
    folder.replace(name, html.as_bytes(), MODE).map_err(cannot)
}

/// Removes the page of a run; whether there was one.
///
/// Errors: of the system, where there is one that stays.
pub(crate) fn remove_page(path: &Path) -> Result<bool, Errno> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(false) };
    let beside = Folder::open(durable::folder_of(folder))?;
    match beside.inside(folder.file_name().unwrap_or_default()) {
        Err(Errno::ENOENT) => Ok(false),
        opened => opened?.remove(name),
    }
}

/// Mode of what is written for the user, before the umask.
const MODE: u32 = 0o666;

fn write_figures(
    run: &Run,
    analysis: &Analysis,
    folder: &Path,
    args: &args::Report,
) -> Result<(), Failure> {
    let dpi = match (args.format, args.dpi) {
        (FigureFormat::Svg, Some(_)) => return Err(Failure::usage(DPI_OF_SVG)),
        (_, dpi) => dpi.unwrap_or(DPI),
    };
    std::fs::create_dir_all(folder).map_err(|e| cannot_write(folder, &e))?;
    for figure in iolens_report::figure::all_on(paper(args.paper), run, analysis) {
        let (extension, bytes) = match args.format {
            FigureFormat::Svg => ("svg", figure.svg.into_bytes()),
            FigureFormat::Png => {
                let png = iolens_report::png::render(&figure.svg, dpi);
                ("png", png.map_err(Failure::unusable)?)
            }
        };
        let path = folder.join(format!("{}.{extension}", figure.file_stem));
        write_new(&path, &bytes, args.overwrite)?;
        output::result(&format!("{}", path.display()));
    }
    Ok(())
}

/// Pixels per inch of a PNG where none are asked for: what publishers want at least.
const DPI: u32 = 300;

const DPI_OF_SVG: &str = "--dpi: an SVG has no pixels\n  add --format png, or leave --dpi out";

fn paper(asked: FigurePaper) -> Paper {
    match asked {
        FigurePaper::Column => Paper::Column,
        FigurePaper::Page => Paper::Page,
        FigurePaper::Slide => Paper::Slide,
    }
}

/// Writes a file that the user named; an existing one only when told to.
pub(crate) fn write_new(path: &Path, bytes: &[u8], overwrite: bool) -> Result<(), Failure> {
    if path.is_dir() || (!overwrite && path.symlink_metadata().is_ok()) {
        return Err(exists(path));
    }
    match path.metadata() {
        // A terminal, a pipe, /dev/null: nothing to replace.
        Ok(found) if !found.is_file() => {
            let opened = OpenOptions::new().write(true).open(path);
            opened.and_then(|mut file| file.write_all(bytes)).map_err(|e| cannot_write(path, &e))
        }
        Ok(found) => {
            // What a link of the user's leads to is what is replaced.
            let path = path.canonicalize().map_err(|e| cannot_write(path, &e))?;
            let (folder, name) = place(&path)?;
            let replaced = folder.replace(&name, bytes, found.mode() & 0o777);
            replaced.map_err(|errno| cannot_write(&path, &errno))
        }
        Err(_) => {
            let (folder, name) = place(path)?;
            // One that comes meanwhile was not there when the user asked.
            let written = match overwrite {
                true => folder.replace(&name, bytes, MODE),
                false => folder.create(&name, bytes, MODE),
            };
            written.map_err(|errno| match errno {
                Errno::EEXIST => exists(path),
                errno => cannot_write(path, &errno),
            })
        }
    }
}

/// The opened folder that a path is in, and its name there.
fn place(path: &Path) -> Result<(Folder, OsString), Failure> {
    let name = path.file_name().ok_or_else(|| cannot_write(path, &"it names no file"))?;
    let folder = Folder::open(durable::folder_of(path)).map_err(|e| cannot_write(path, &e))?;
    Ok((folder, name.to_owned()))
}

/// That a file is not written where something is already.
pub(crate) fn exists(path: &Path) -> Failure {
    let [what, advice] = match path.is_dir() {
        true => ["it is a directory", "name a file in it"],
        false => ["it exists", "replace it with --overwrite"],
    };
    usage!("cannot write {}: {what}\n  {advice}", path.display())
}

pub(crate) fn cannot_write(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    unusable!("cannot write {}: {error}", path.display())
}

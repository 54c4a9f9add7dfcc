//! `iolens report`: the page or the figures of a stored run, or one page of several.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use iolens_model::axes::Study;
use iolens_model::run::{Run, RunHeader};
use iolens_report::figure::Paper;
use iolens_stats::analysis::Analysis;
use iolens_store::Store;

use crate::args::{self, FigureFormat, FigurePaper};
use crate::commands::ab;
use crate::failure::{Failure, usage};
use crate::stored::{header, load, summed, summed_in};
use crate::writing::{cannot_write, replace, write_new};
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
        return Err(Failure::usage(
            "--figures is not for runs of `ab`\n  leave it out: the page has the figure",
        ));
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
    for figure in iolens_report::figures_on(paper(args.paper), run, analysis) {
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

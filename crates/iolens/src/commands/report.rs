//! `iolens report`: the page or the figures of a stored run.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use iolens_model::run::Run;
use iolens_report::figure::Paper;
use iolens_report::text::Style;
use iolens_stats::analysis::Analysis;

use crate::args::{self, FigureFormat, FigurePaper};
use crate::commands::stored::summed;
use crate::failure::Failure;
use crate::{output, places};

/// Writes the page, or with `--figures` the figures.
pub(crate) fn report(args: &args::Report) -> Result<ExitCode, Failure> {
    let (run, analysis, database) = summed(args.db.as_deref(), &args.run)?;
    if let Some(folder) = &args.figures {
        write_figures(&run, &analysis, folder, args)?;
        return Ok(ExitCode::SUCCESS);
    }
    let page = match &args.output {
        Some(path) => {
            let html = iolens_report::html::page(&run, &analysis);
            write_new(path, html.as_bytes(), args.overwrite)?;
            path.clone()
        }
        None => {
            let path = places::page(&database, &run.header.id);
            write_page(&run, &analysis, &path)?;
            path
        }
    };
    output::result(&format!("{}", page.display()));
    Ok(ExitCode::SUCCESS)
}

/// Writes the page to the place that is ours, replacing an older one.
pub(crate) fn write_page(run: &Run, analysis: &Analysis, path: &Path) -> Result<(), Failure> {
    let html = iolens_report::html::page(run, analysis);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| cannot_write(folder, &e))?;
    }
    std::fs::write(path, html).map_err(|e| cannot_write(path, &e))
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
    let mut options = OpenOptions::new();
    options.write(true);
    if overwrite {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    match options.open(path).and_then(|mut file| file.write_all(bytes)) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Err(Failure::usage(format!(
            "cannot write {}: it exists\n  replace it with --overwrite",
            path.display()
        ))),
        Err(e) => Err(cannot_write(path, &e)),
    }
}

pub(crate) fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::unusable(format!("cannot write {}: {error}", path.display()))
}

/// How text goes to stdout here.
pub(crate) fn style() -> Style {
    Style { colour: output::stdout_takes_colour(), width: output::stdout_columns() }
}

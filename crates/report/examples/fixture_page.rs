//! Writes the page and the figures of the made-up run to a directory, to be
//! looked at: `cargo run -p iolens-report --example fixture_page -- DIR`.

use std::path::PathBuf;

use iolens_model::run::Run;
use iolens_report::text::Style;
use iolens_report::{figure, html, png, text};
use iolens_stats::analysis::Analysis;

#[allow(dead_code, unreachable_pub, reason = "shared with the unit tests, which use all of it")]
#[path = "../src/fixture.rs"]
mod fixture;

#[allow(dead_code, unreachable_pub, reason = "shared with the unit tests, which use all of it")]
#[path = "../src/fixture_findings.rs"]
mod fixture_findings;

/// The smallest run there is: one size, one thread count.
fn one_cell() -> (Run, Analysis) {
    let (run, mut analysis) = fixture::run();
    analysis.cells.truncate(1);
    (run, analysis)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("usage: fixture_page DIR")?);
    std::fs::create_dir_all(&directory)?;
    for (name, (run, analysis)) in [
        ("page", fixture::large()),
        ("small", fixture::run()),
        ("findings", fixture_findings::findings()),
        ("quick", fixture::quick()),
        ("classic", fixture::classic()),
        ("one", one_cell()),
        ("whole", fixture::whole()),
        ("without_pmu", fixture::without_pmu()),
    ] {
        std::fs::write(directory.join(format!("{name}.html")), html::page(&run, &analysis))?;
        for paper in figure::Paper::ALL {
            let folder = directory.join(format!("{paper:?}").to_lowercase());
            std::fs::create_dir_all(&folder)?;
            for figure in iolens_report::figures_on(paper, &run, &analysis) {
                let stem = folder.join(format!("{name}-{}", figure.file_stem));
                std::fs::write(stem.with_extension("svg"), &figure.svg)?;
                std::fs::write(stem.with_extension("png"), png::render(&figure.svg, 150)?)?;
            }
        }
        let style = Style { colour: true, ..Style::plain(100) };
        std::fs::write(directory.join(format!("{name}.txt")), text::run(&run, &analysis, &style))?;
    }
    Ok(())
}

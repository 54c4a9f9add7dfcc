//! Use of the processors in a cell of servers: a bar for those of the server and one for
//! those of the client, before the servers were there, when they stood, and in the slices
//! of each.

use iolens_model::run::Run;
use iolens_stats::analysis::{CellAnalysis, CpuOf, CpuShares};

use super::attribution::part;
use super::paper::Medium;
use super::sheet::{Drawing, Sheet};
use super::{Figure, Group, Paper};
use crate::number::percent;
use crate::servers::{self, CPU_KINDS, Watched};
use crate::words;

/// The figure of a cell; null where nothing could be read.
pub(super) fn figure(paper: Paper, run: &Run, cell: &CellAnalysis) -> Option<Figure> {
    let watched = servers::watched(cell);
    let subject = words::subject(&run.header, &cell.cell);
    let title = format!("Use of the processors (% of their time): {subject}");
    let table = servers::use_of_cpus(cell, &title)?;
    let draw = |medium| draw(run, cell, &watched, medium, &title);
    let narrow = Some(draw(Medium::Narrow).inline());
    let figure = Figure::new(paper, Group::Processors, stem(run, cell), draw, table);
    Some(Figure { narrow, ..figure })
}

fn stem(run: &Run, cell: &CellAnalysis) -> String {
    let stem = super::stem(&run.header.plan, &cell.cell, "processors");
    let Some(server) = cell.cell.server() else { return stem };
    let load = server.load.to_string().replace('%', "-percent");
    format!("{stem}-{load}-{}", server.connections)
}

const RIGHT: f64 = 64.0;
const HEIGHT: f64 = 18.0;
const GAP: f64 = 8.0;

fn draw(
    run: &Run,
    cell: &CellAnalysis,
    watched: &[Watched<'_>],
    medium: Medium,
    title: &str,
) -> Drawing {
    let how = "length: the share of the time in which they were not idle, with the number; of \
               everybody on the machine, by /proc/stat; softirq moves the packets of both ends";
    let mut sheet = Sheet::new(medium, medium.width(), title, how);
    let tiles: Vec<_> = CPU_KINDS.iter().map(|(word, hue, _)| (part(hue), *word)).collect();
    sheet.tiles(&tiles);
    // Where it is narrow a model's name has a line of its own.
    let is_narrow = medium.is_narrow();
    let left = if is_narrow { 56.0 } else { 215.0 };
    let room = sheet.width - left - RIGHT;
    for time in watched {
        sheet.y += GAP;
        sheet.svg.text(0.0, sheet.y + 12.0, "tl", &time.when);
        sheet.y += if is_narrow { HEIGHT } else { 0.0 };
        for (of, cpus) in servers::by_end(time.cpus) {
            bar(&mut sheet, (left, room), &time.when, of, &cpus);
        }
    }
    sheet.finish(&words::footer(&run.header, &cell.cell))
}

/// The processors of one end at one time.
fn bar(sheet: &mut Sheet, (left, room): (f64, f64), when: &str, of: CpuOf, cpus: &CpuShares) {
    let y = sheet.y;
    let kinds = CPU_KINDS.iter().map(|(word, hue, share)| (word, hue, share(cpus)));
    let seen: Vec<_> = kinds.filter(|(.., share)| share * room >= 0.2).collect();
    let words: Vec<String> =
        seen.iter().map(|(word, _, share)| format!("{word} {}", percent(*share))).collect();
    let hover = format!("{when}, {}: {}", whose(of), words.join(", "));
    let stretches: Vec<(f64, &str)> =
        seen.iter().map(|(_, hue, share)| (share * room, **hue)).collect();
    sheet.svg.bar((left, y), HEIGHT - 3.0, &stretches, &hover);
    let x = left + stretches.iter().map(|(width, _)| width).sum::<f64>();
    let end_y = y + 12.0;
    sheet.svg.text(left - 6.0, end_y, "td ae", whose(of));
    sheet.svg.text(x + 6.0, end_y, "td", &percent(1.0 - cpus.idle));
    sheet.y += HEIGHT;
}

fn whose(of: CpuOf) -> &'static str {
    match of {
        CpuOf::Server => "server’s",
        CpuOf::Client => "client’s",
        CpuOf::Both => "both’s",
        CpuOf::Neither => "others",
    }
}

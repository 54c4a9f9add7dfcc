//! What several links of one source show.

use iolens_document::Joined;
use iolens_document::table::{Filled, Table, left, right};
use iolens_model::ab::{AbLink, AbQuantity};
use iolens_model::run::Run;
use iolens_stats::ab::{AbCell, AbContrast, AbLinkSide};
use serde_json::{Value, json};

use super::words::{Said, contrasts, place, quantity, signed};
use crate::number::{InWords, count, percent};

/// By program what its links show of a quantity; the baseline by the first contrast.
fn sides(cell: &AbCell, of: AbQuantity) -> Vec<(usize, &AbLinkSide)> {
    let linked = contrasts(cell, of).filter_map(|one| Some((one.arm, one.links.as_ref()?)));
    let arms: Vec<_> = linked.collect();
    let baseline = arms.first().map(|(_, links)| (0, &links.baseline));
    baseline.into_iter().chain(arms.iter().map(|(arm, links)| (*arm, &links.arm))).collect()
}

/// How many links each program has, and how far they lie apart.
pub(super) fn told(said: &Said<'_>, cell: &AbCell, of: AbQuantity) -> Option<String> {
    let sides = sides(cell, of).into_iter();
    let apart: Vec<_> = sides.filter_map(|(arm, side)| Some((arm, side, side.apart()?))).collect();
    let told = apart.iter().enumerate().map(|(nth, (arm, side, apart))| {
        let (n, name, apart) = (side.links.len(), said.name(*arm), percent(*apart));
        match nth {
            0 => format!(
                "{} of {name} differ in {} by up to {apart}",
                count(n, "link"),
                quantity(of)
            ),
            _ => format!("{n} of {name} by up to {apart}"),
        }
    });
    (!apart.is_empty()).then(|| told.joined(", "))
}

/// Each link against the mean of those of its program.
pub(super) fn table(run: &Run, said: &Said<'_>, cell: &AbCell) -> Option<Table> {
    let file = |arm: usize, link: u32| -> Option<&AbLink> {
        run.header.programs.get(arm)?.links.get(usize::try_from(link).ok()?)
    };
    let all = AbQuantity::ALL.iter().map(|of| (*of, sides(cell, *of)));
    let all: Vec<_> = all.filter(|(_, sides)| !sides.is_empty()).collect();
    let (_, first) = all.first()?;
    let each = first.iter().flat_map(|(arm, side)| side.links.iter().map(|own| (*arm, own.link)));
    let row = |(arm, link): (usize, u32)| -> Vec<Filled> {
        let change = |sides: &[(usize, &AbLinkSide)]| {
            let (_, side) = sides.iter().find(|(own, _)| *own == arm)?;
            Some(signed(side.links.iter().find(|own| own.link == link)?.change))
        };
        let path = file(arm, link).map_or_else(|| link.to_string(), |file| file.path.clone());
        let digits = file(arm, link).or_empty(|file| file.sha256.chars().take(16).collect());
        let mut row = vec![
            left("links of", "", said.name(arm)),
            left("file", "", path),
            left("SHA-256", "", digits),
        ];
        row.extend(all.iter().map(|(of, sides)| {
            let name = format!("{} to their mean", quantity(*of));
            right(&name, "", change(sides).unwrap_or_default())
        }));
        row
    };
    Table::of(place(cell), each.map(row)).with_rows()
}

/// The links of a contrast, for programs.
pub(super) fn json(contrast: &AbContrast) -> Option<Value> {
    let side =
        |side: &AbLinkSide| json!({ "sd": side.sd, "apart": side.apart(), "each": side.links });
    let links = contrast.links.as_ref()?;
    Some(json!({ "baseline": side(&links.baseline), "arm": side(&links.arm) }))
}

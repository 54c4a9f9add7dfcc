//! Whether a run of all families is still readable: what its page and its text
//! show, counted.

use serde_json::Value;

use super::{Bench, Judged, Outcome};

const RUN: &str = "run net --quick --network loopback --threads 1,2 --sizes \
                   64,1KiB,16KiB,256KiB,1MiB --receivers recv --methods";

/// Lines that a reader can tell apart in a figure.
const LINES_MAX: usize = 7;
const PAGE_BYTES_MAX: usize = 3 << 19;
const TEXT_LINES_MAX: usize = 120;

/// What a run of every available primitive looks like.
pub(super) fn check(bench: &Bench) -> Judged {
    let listed = bench.iolens_json("families", &["list", "methods", "--json"], 1)?.json;
    let shown = |item: &&Value| item["available"] == true && item["hidden"] != true;
    let items: Vec<&Value> =
        listed["methods"].as_array().into_iter().flatten().filter(shown).collect();
    let words = |key: &str| -> Vec<&str> {
        let mut words: Vec<&str> = items.iter().filter_map(|item| item[key].as_str()).collect();
        words.sort_unstable();
        words.dedup();
        words
    };
    let (ids, families) = (words("name"), words("family"));
    let list = ids.join(",");
    let mut args: Vec<&str> = RUN.split_whitespace().collect();
    args.push(&list);
    let text = bench.iolens("families", &args)?.limit_minutes(5).run()?.success()?.stdout();
    let place = text.lines().find_map(|line| line.strip_prefix("Report").map(str::trim));
    let place = place.ok_or("the run names no page")?;
    let page = std::fs::read_to_string(place).map_err(|e| format!("cannot read {place}: {e}"))?;
    Ok(judge(&page, &text, &ids, &families))
}

fn judge(page: &str, text: &str, ids: &[&str], families: &[&str]) -> Outcome {
    let headed = |family: &&&str| page.contains(&format!("data-family=\"{family}\""));
    let unheaded: Vec<_> = families.iter().filter(|family| !headed(family)).collect();
    let on_page =
        |id: &str| page.contains(&format!(">{id}<")) || page.contains(&format!(">{id} ("));
    let in_text = |id: &str| text.split_whitespace().any(|word| word == id);
    let missing: Vec<_> = ids.iter().filter(|id| !on_page(id) || !in_text(id)).collect();
    let figures: Vec<usize> = lines_of_figures(page);
    let most = figures.iter().copied().max().unwrap_or(0);
    let (bytes, lines) = (page.len(), text.lines().count());
    let evidence = format!(
        "{} arms of {} families; without a heading on the page: {unheaded:?}; arms that the page or \
         the text lacks: {missing:?}; {} figures of curves, at most {most} lines in one; page {} \
         KiB; text {lines} lines",
        ids.len(),
        families.len(),
        figures.len(),
        bytes >> 10,
    );
    let passes = unheaded.is_empty()
        && missing.is_empty()
        && figures.len() >= families.len()
        && most <= LINES_MAX
        && bytes < PAGE_BYTES_MAX
        && lines < TEXT_LINES_MAX;
    if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) }
}

/// The lines of each figure of curves on a page: the most that its table has
/// columns for or its drawing has looks, or what it says itself.
fn lines_of_figures(page: &str) -> Vec<usize> {
    let figures = page.split("<figure id=\"net-").skip(1);
    let one = |figure: &str| {
        let figure = figure.split("</figure>").next().unwrap_or_default();
        let said = figure.split("data-lines=\"").nth(1)?.split('"').next()?.parse().ok()?;
        // Two columns tell panel and place; every other one is an arm's.
        let head = figure.split("<thead>").nth(1)?.split("</thead>").next()?;
        let columns = head.matches("<th").count().saturating_sub(2);
        (said > 0).then_some(columns.max(said))
    };
    figures.filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(lines: usize, columns: usize) -> String {
        let columns = "<th class=\"l\">x".repeat(columns + 2);
        format!("<figure id=\"net-x\" data-lines=\"{lines}\"><thead><tr>{columns}</thead></figure>")
    }

    #[test]
    fn a_page_is_judged_by_what_it_shows() {
        let page = |lines| {
            let (strip, chart) = (figure(0, 30), figure(lines, lines - 1));
            format!("<h3 data-family=\"plain\">plain</h3><b>send</b>{strip}{chart}")
        };
        let passes = |page: &str, text: &str| {
            matches!(judge(page, text, &["send"], &["plain"]), Outcome::Pass(_))
        };
        assert_eq!(lines_of_figures(&page(7)), [7]);
        assert!(passes(&page(7), " send 1.0"));
        assert!(!passes(&page(8), " send 1.0"));
        assert!(!passes(&page(7), " sendfile 1.0"));
        assert!(!passes(&page(7).replace("data-family", "id"), " send 1.0"));
        assert!(!passes(&page(7), &"send\n".repeat(TEXT_LINES_MAX)));
        assert!(!passes(&(page(7) + &" ".repeat(PAGE_BYTES_MAX)), "send"));
    }
}

//! What must hold for every figure of every made-up run.

use iolens_document::Joined;
use std::sync::LazyLock;

use resvg::usvg;

use iolens_document::table::Column;
use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Interval};

use super::{Figure, Paper, chart};
use crate::studies::{figures as all, figures_on as all_on};
use crate::{fixture, parts};

/// Corners of a box: left, top, right, bottom.
type Rectangle = [f32; 4];

/// Every text of an SVG with the box it is drawn in.
fn texts(svg: &str) -> (Vec<(String, Rectangle)>, usvg::Size) {
    static OPTIONS: LazyLock<usvg::Options> = LazyLock::new(crate::png::options);
    let tree = usvg::Tree::from_str(svg, &OPTIONS).expect("an SVG");
    let mut found = Vec::new();
    collect(tree.root(), &mut found);
    (found, tree.size())
}

fn collect(group: &usvg::Group, found: &mut Vec<(String, Rectangle)>) {
    for node in group.children() {
        match node {
            usvg::Node::Group(group) => collect(group, found),
            usvg::Node::Text(text) => {
                let b = text.abs_bounding_box();
                let words = text.chunks().iter().map(|chunk| chunk.text()).collect();
                found.push((words, [b.left(), b.top(), b.right(), b.bottom()]));
            }
            _ => {}
        }
    }
}

/// The figures of the runs that differ in what they draw, drawn once.
fn figures() -> &'static [Figure] {
    static FIGURES: LazyLock<Vec<Figure>> = LazyLock::new(|| {
        let [run, one] = [fixture::run(), fixture::one_size()];
        let runs = [run, fixture::quick(), fixture::classic(), fixture::whole(), one];
        let mut found: Vec<Figure> =
            runs.iter().flat_map(|(run, analysis)| all(run, analysis)).collect();
        // Only these differ from those of the whole run.
        let (run, analysis) = fixture::without_pmu();
        let own = ["-cpu-by-size-", "-summary-"];
        let differs = |figure: &Figure| own.iter().any(|part| figure.file_stem.contains(part));
        found.extend(all(&run, &analysis).into_iter().filter(differs));
        found
    });
    &FIGURES
}

#[test]
fn titles_have_units_and_files_have_footers_and_no_references() {
    for Figure { title, svg, inline, file_stem, .. } in figures() {
        assert!(title.contains('(') && title.contains(')'), "{title} has no unit");
        let footer = ["Example Server Processor", "L1d", "memory", "Debian", "6.12.43", "iolens"];
        for part in footer.iter().chain(&["run 4f1c09ab"]) {
            assert!(svg.contains(part), "{file_stem} has no {part}");
        }
        for text in [svg, inline] {
            assert!(!text.contains("NaN") && !text.contains("inf,") && !text.contains("\"inf"));
            let text = text.replace(r#"xmlns="http://www.w3.org/2000/svg""#, "");
            let outside = ["http", "href", "url(", "@import"];
            assert!(outside.iter().all(|word| !text.contains(word)), "{file_stem}");
        }
        assert!(!inline.contains("<style"));
    }
}

/// An interval of two trials that says nothing is drawn to the edges, and presses no other
/// value into a line: every word of a figure, its ticks among them, stands where it stood.
#[test]
fn an_interval_that_says_nothing_leaves_the_scale_alone() {
    let drawn = |analysis: &Analysis| {
        let (run, _) = fixture::run();
        let by_size = ["-ratio-by-size", "-goodput-by-size"];
        let mut figures = all(&run, analysis);
        figures.retain(|figure| by_size.iter().any(|kind| figure.file_stem.contains(kind)));
        figures
    };
    let (_, mut analysis) = fixture::run();
    let usual = drawn(&analysis);
    let contrast = analysis.cells[1].arms[1].contrast.as_mut().expect("compared");
    contrast.pointwise = Some(Interval { low: 1e-20, high: 1e21 });
    let wide = drawn(&analysis);
    assert!(usual.len() >= 2 && usual.len() == wide.len());
    for (usual, wide) in usual.iter().zip(&wide) {
        assert!(wide.table.text(300).contains("no usable interval"), "{}", wide.file_stem);
        assert_eq!(texts(&usual.svg).0, texts(&wide.svg).0, "{}", wide.file_stem);
        let digits = |word: &&str| word.chars().filter(char::is_ascii_digit).count() > 8;
        let far = wide.svg.split(|c: char| !c.is_ascii_digit()).find(digits);
        assert_eq!(far, None, "{}: a line to far beyond the frame", wide.file_stem);
    }
}

/// The figures of a run that has all kinds, on every paper.
fn printed() -> &'static [(Paper, Vec<Figure>)] {
    static PRINTED: LazyLock<Vec<(Paper, Vec<Figure>)>> = LazyLock::new(|| {
        let runs = [fixture::whole(), fixture::one_size()];
        let on = |paper| runs.iter().flat_map(move |(run, analysis)| all_on(paper, run, analysis));
        Paper::ALL.map(|paper| (paper, on(paper).collect())).into()
    });
    &PRINTED
}

/// An attribute of the root of an SVG.
fn attribute<'a>(svg: &'a str, name: &str) -> &'a str {
    let root = svg.split('>').next().unwrap_or_default();
    let value = root.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
    value.unwrap_or_else(|| panic!("no {name} in {root}"))
}

fn millimetres(svg: &str, side: &str) -> f64 {
    attribute(svg, side).strip_suffix("mm").and_then(|n| n.parse().ok()).expect("millimetres")
}

/// Width and height of the canvas, in user units.
fn canvas(svg: &str) -> [f32; 2] {
    let numbers: Vec<f32> =
        attribute(svg, "viewBox").split(' ').filter_map(|n| n.parse().ok()).collect();
    [numbers[2], numbers[3]]
}

#[test]
fn every_text_is_inside_and_none_covers_another() {
    let others = printed().iter().filter(|(paper, _)| *paper != Paper::Page);
    for figure in figures().iter().chain(others.flat_map(|(_, figures)| figures)) {
        let (found, size) = texts(&figure.svg);
        // Boxes hold room at the letters' sides, and more above and below.
        let unit = size.width() / canvas(&figure.svg)[0];
        for (i, (text, a)) in found.iter().enumerate() {
            let inside =
                a[0] >= 0.0 && a[1] >= 0.0 && a[2] <= size.width() && a[3] <= size.height();
            assert!(inside, "{}: {text:?} at {a:?} leaves {size:?}", figure.file_stem);
            for (other, b) in &found[i + 1..] {
                let apart = a[2] <= b[0] + unit
                    || b[2] <= a[0] + unit
                    || a[3] <= b[1] + 4.0 * unit
                    || b[3] <= a[1] + 4.0 * unit;
                assert!(apart, "{}: {text:?} covers {other:?}", figure.file_stem);
            }
        }
    }
}

#[test]
fn files_have_the_size_of_their_paper_and_letters_that_can_be_read_there() {
    for (paper, figures) in printed() {
        for Figure { svg, file_stem, .. } in figures {
            let [width, height] = canvas(svg).map(f64::from);
            let [width_mm, height_mm] = ["width", "height"].map(|side| millimetres(svg, side));
            assert!((width_mm - paper.width_mm()).abs() < 0.01, "{file_stem}: {width_mm} mm");
            let aspect = width_mm / height_mm;
            assert!((aspect * height / width - 1.0).abs() < 1e-3, "{file_stem} is stretched");
            let is_wide = (aspect - 16.0 / 9.0).abs() < 1e-3;
            assert!(*paper != Paper::Slide || is_wide, "{file_stem}: {aspect}");
            let sizes = svg.split("font-size:").skip(1).filter_map(|rest| {
                rest.split("px").next().and_then(|number| number.parse::<f64>().ok())
            });
            let points = width_mm / width / 25.4 * 72.0;
            let least = sizes.map(|units| units * points).fold(f64::MAX, f64::min);
            assert!(least >= 6.4, "{file_stem}: text of {least} pt on {paper:?}");
        }
    }
}

#[test]
fn a_twin_has_as_many_values_as_the_figure_has_points() {
    // Whose marks are parts of a whole, not points.
    let parts = ["-attribution-", "-stacks-"];
    let has_points = |f: &&Figure| !parts.iter().any(|part| f.file_stem.contains(part));
    for figure in figures().iter().filter(has_points) {
        let keys = match figure.file_stem.as_str() {
            stem if stem.contains("crossovers") => 4,
            stem if stem.contains("cheapest") => 1,
            _ => 2,
        };
        let entries = figure.table.rows.iter().flat_map(|row| &row.entries);
        let values = entries.filter(|entry| entry.text != crate::number::NONE).count();
        let values = values - keys * figure.table.rows.len();
        for svg in [&figure.svg, &figure.inline].into_iter().chain(&figure.narrow) {
            assert_eq!(svg.matches("class=\"pt\"").count(), values, "{}", figure.file_stem);
        }
        assert!(values > 0, "{} is empty", figure.file_stem);
    }
}

#[test]
fn a_run_of_all_families_has_seven_lines_at_most_in_a_figure_and_every_arm_in_one() {
    let (run, analysis) = fixture::families();
    let figures = all(&run, &analysis);
    let charts = || figures.iter().filter(|figure| figure.lines > 0);
    for figure in charts() {
        assert!(figure.lines <= parts::LINES_MAX, "{}: {}", figure.file_stem, figure.lines);
        assert!(figure.family.is_some(), "{}", figure.file_stem);
        // The legend has each of its lines once, where they are not named at their ends.
        let panels = figure.table.columns.len() - 2;
        assert!(panels <= parts::LINES_MAX, "{}: {panels} columns", figure.file_stem);
    }
    let compared = analysis.cells[0].arms.iter();
    for arm in compared.filter(|arm| arm.arm.role == Role::Compared) {
        for metric in ["ratio-by-size", "goodput-by-size", "goodput-by-threads", "summary"] {
            let own = charts().filter(|figure| {
                let has = |column: &Column| column.name == arm.shown_label();
                figure.file_stem.contains(metric)
                    && figure.file_stem.contains("-stream-")
                    && figure.table.columns.iter().any(has)
            });
            assert_eq!(own.count(), 1, "{} in {metric}", arm.arm.label);
        }
    }
    let looks = |figure: &Figure| figure.inline.matches("stroke-dasharray=\"5 3\"").count();
    assert!(charts().any(|figure| looks(figure) > 0), "dashes are kept");
}

#[test]
fn file_names_are_unique_and_plain() {
    let (run, analysis) = fixture::whole();
    let figures = all(&run, &analysis);
    for (i, Figure { file_stem, .. }) in figures.iter().enumerate() {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        assert!(file_stem.bytes().all(plain), "{file_stem}");
        assert!(figures[..i].iter().all(|other| other.file_stem != *file_stem));
    }
    let names = figures.iter().map(|figure| figure.file_stem.as_str());
    insta::assert_snapshot!(names.joined("\n"), @"
    net-veth-crossovers-stream-hot
    net-veth-cheapest-stream-hot
    net-veth-crossovers-rr-hot
    net-veth-cheapest-rr-hot
    net-veth-ratio-by-size-stream-hot
    net-veth-goodput-by-size-stream-hot
    net-veth-ns-per-message-by-size-stream-hot
    net-veth-ratio-by-size-rr-hot
    net-veth-goodput-by-size-rr-hot
    net-veth-ns-per-message-by-size-rr-hot
    net-veth-cycles-by-size-stream-hot
    net-veth-cache-misses-by-size-stream-hot
    net-veth-context-switches-by-size-stream-hot
    net-veth-cycles-by-size-rr-hot
    net-veth-cache-misses-by-size-rr-hot
    net-veth-context-switches-by-size-rr-hot
    net-veth-attribution-stream-hot-1kib-1-threads
    net-veth-stacks-stream-hot-1kib-1-threads
    net-veth-latency-by-size-rr-hot
    net-veth-goodput-by-threads-stream-hot
    net-veth-ns-per-message-by-threads-stream-hot
    net-veth-context-switches-by-threads-stream-hot
    net-veth-goodput-by-threads-rr-hot
    net-veth-latency-p50-by-threads-rr-hot
    net-veth-latency-p99-by-threads-rr-hot
    net-veth-context-switches-by-threads-rr-hot
    net-veth-summary-16kib-stream-hot
    net-veth-summary-16kib-rr-hot
    ");
}

#[test]
fn without_a_pmu_time_takes_the_place_of_cycles() {
    let names = |(run, analysis): (Run, Analysis)| -> Vec<String> {
        all(&run, &analysis).into_iter().map(|figure| figure.file_stem).collect()
    };
    let has = |names: &[String], part: &str| names.iter().any(|name| name.contains(part));
    let with = names(fixture::whole());
    assert!(has(&with, "cycles-by-size") && has(&with, "cache-misses") && !has(&with, "-cpu-"));
    let without = names(fixture::without_pmu());
    assert!(has(&without, "-cpu-by-size") && !has(&without, "cycles") && !has(&without, "cache"));
}

/// The figure of a run whose name has this in it.
fn one((run, analysis): &(Run, Analysis), part: &str) -> Figure {
    let mut figures = all(run, analysis).into_iter();
    figures.find(|figure| figure.file_stem.contains(part)).expect("drawn")
}

#[test]
fn of_several_metrics_one_that_was_measured_keeps_its_name() {
    let mut run = fixture::whole();
    let arms = run.1.cells.iter_mut().flat_map(|cell| &mut cell.arms);
    arms.filter_map(|arm| arm.latency.as_mut()).for_each(|latency| latency.p99_ns = None);
    let figure = one(&run, "latency-by-size");
    assert_eq!(figure.table.rows[0].entries[0].text, "Round trip, median, 1 thread");
}

#[test]
fn one_size_one_trial_and_no_numbers_are_drawn_too() {
    let (run, mut analysis) = fixture::classic();
    analysis.cells.truncate(1);
    assert!(all(&run, &analysis).len() >= 3);
    for arm in &mut analysis.cells[0].arms {
        (arm.figures, arm.contrast) = (None, None);
    }
    let figures = all(&run, &analysis);
    assert!(figures.iter().all(|figure| !figure.svg.contains("NaN")));
}

#[test]
fn zero_stands_at_the_edge_of_a_logarithmic_plot() {
    let mut run = fixture::run();
    let arm = run.1.cells[0].arms[1].figures.as_mut().expect("has figures");
    let switches = arm.context_switches_per_message.as_mut().expect("was measured");
    switches.value = 0.0;
    switches.interval = Some(Interval { low: -0.1, high: 0.1 });
    let figure = one(&run, "switches-by-size");
    assert!(figure.svg.contains(">0</text>") && !figure.svg.contains("NaN"));
}

#[test]
fn a_curve_breaks_where_its_arm_failed_and_says_so() {
    let (run, analysis) = fixture::large();
    for figure in all(&run, &analysis).iter().filter(|f| f.file_stem.contains("by-size")) {
        assert!(figure.svg.contains(">failed</text>"), "{}", figure.file_stem);
    }
    let (_, cells) = crate::arms::curves(&analysis).swap_remove(1);
    let arm = chart::arms(&cells).into_iter().find(|arm| arm.label == "send_per_field");
    let point = |_: &CellAnalysis, arm: &ArmAnalysis| {
        (arm.status == Status::Ok).then(chart::Point::default)
    };
    let (arm, along) = (arm.expect("failed once"), chart::MESSAGES);
    let series = chart::Series::of(arm, chart::Kind::Curve, along, &cells, point);
    assert_eq!(series.stretches().count(), 2);
}

#[test]
fn numbers_of_one_size_have_a_row_for_each_arm() {
    let ratio = one(&fixture::one_size(), "-ratio-");
    for drawn in [Some(&ratio.svg), ratio.narrow.as_ref()] {
        let drawn = drawn.expect("also for a telephone");
        assert!(drawn.contains("; size 4 KiB</text>"), "{drawn}");
        for arm in ["sendmsg_iov", "sendmsg_zerocopy (copied)", "send"] {
            assert!(drawn.contains(&format!("<title>{arm}, 4 KiB, 1 thread")), "{arm}: {drawn}");
        }
    }
}

#[test]
fn a_point_tells_its_interval_n_and_verdict() {
    let ratio = one(&fixture::run(), "-ratio-");
    let title = "<title>send, 64 B, 1 thread: 1.06 [1.05, 1.07], n = 12, FASTER</title>";
    assert!(ratio.svg.contains(title));
}

#[test]
fn an_arm_that_the_kernel_copied_is_never_named_without_saying_so() {
    let (run, analysis) = fixture::whole();
    for figure in all(&run, &analysis) {
        let named = figure.svg.matches(">sendmsg_zerocopy").count();
        let said = figure.svg.matches(">sendmsg_zerocopy (copied)").count();
        assert!(named == said && named > 0, "{}: {named}, {said}", figure.file_stem);
    }
}

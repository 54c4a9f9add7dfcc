//! The way of the bytes through each primitive, drawn side by side from its
//! declared hops: lanes for user space, kernel and device, time downwards.

use iolens_document::{Figure, Joined, Node, Text};
use iolens_model::data_path::{
    CallsPerMessage, DataPath, End, Hop, Movement, Mover, PrimitiveFacts, ReceiverFacts,
};
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use maud::{Markup, html};

use crate::arms::{self, CLASSIC, Shares};

/// Width of a diagram and heights of its parts, in CSS pixels: three fit side
/// by side into 1280, one into 390.
const WIDTH: usize = 352;
const TOP: usize = 30;
const BOX: usize = 30;
const STEP: usize = 88;

/// The classic three in the open, other methods behind a fold; then what each receiver does,
/// where there are several.
pub(crate) fn diagrams(run: &Run, analysis: &Analysis) -> Vec<Node> {
    let known = &run.header.primitives;
    let receiver = arms::receiver(run);
    let is_classic = |id: &str| CLASSIC.contains(&id);
    let drawn = |facts: &&PrimitiveFacts| {
        let shares = Shares::of(arms::received_with(analysis, receiver), &facts.id);
        let path = arms::path(run, &facts.id, receiver);
        let path = path.as_ref().unwrap_or(&facts.data_path);
        diagram(&facts.id, &facts.summary, path, shares)
    };
    let any_classic = known.iter().any(|facts| is_classic(&facts.id));
    let (shown, folded): (Vec<_>, Vec<_>) =
        known.iter().partition(|facts| !any_classic || is_classic(&facts.id));
    let mut nodes = vec![Node::Row(shown.iter().map(drawn).collect())];
    if !folded.is_empty() {
        nodes.push(Node::fold(
            "The other methods",
            vec![Node::Row(folded.iter().map(drawn).collect())],
        ));
    }
    if run.header.receivers.len() > 1 {
        let said = format!("Above, bytes are received with {receiver}; each receiver by itself:");
        nodes.push(Node::aside(said));
        let all = run.header.receivers.iter().map(|facts| receiving(analysis, facts));
        nodes.push(Node::Row(all.collect()));
    }
    nodes
}

/// The receiving end alone.
fn receiving(analysis: &Analysis, facts: &ReceiverFacts) -> Figure {
    let shares = Shares::received(arms::received_with(analysis, &facts.id));
    // The calls are the sender's, of which nothing is drawn here.
    let path = DataPath { hops: facts.hops.clone(), calls: CallsPerMessage::Fixed(0) };
    diagram(&facts.id, &facts.summary, &path, shares)
}

/// Where bytes can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    User,
    Kernel,
    Device,
}

impl Lane {
    const NAMES: [&'static str; 3] = ["user space", "kernel", "device"];
}

/// The lane in which a hop leaves the bytes.
fn lane_after(hop: &Hop) -> Lane {
    let stays = matches!(hop.movement, Movement::Reference | Movement::Discarded);
    match (hop.mover, hop.end) {
        (Mover::Kernel, End::Receiver) if stays => Lane::Kernel,
        (Mover::User, _) | (Mover::Kernel, End::Receiver) => Lane::User,
        (Mover::Kernel, End::Sender) => Lane::Kernel,
        (Mover::Device, _) => Lane::Device,
    }
}

/// The lane in which the bytes are before the first hop.
fn first_lane(path: &DataPath) -> Lane {
    match path.hops.first().map(|hop| hop.end) {
        Some(End::Receiver) => Lane::Kernel,
        Some(End::Sender) | None => Lane::User,
    }
}

fn diagram(id: &str, summary: &str, path: &DataPath, shares: Shares) -> Figure {
    let frame = Frame::of(path);
    let height = TOP + path.hops.len() * STEP + BOX + 12;
    let what = format!("Data path of {id}: {}", in_words(path, shares));
    let drawn = html! {
        svg viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(what) {
            (frame.lanes(height))
            @if let Some(first) = path.hops.first() {
                (frame.station(0, first_lane(path), &first.from))
            }
            @for (i, hop) in path.hops.iter().enumerate() {
                @let before = match i {
                    0 => first_lane(path),
                    i => lane_after(&path.hops[i - 1]),
                };
                @if hop.movement == Movement::LateCopy && before != Lane::User {
                    // The queue held references: the bytes come from where they have been all
                    // along, into pages of its own.
                    (frame.station(i, Lane::User, &hop.from))
                    (frame.hop(i, Lane::User, hop, shares))
                    (frame.station(i + 1, lane_after(hop), "queue’s own pages"))
                } @else {
                    (frame.hop(i, before, hop, shares))
                    (frame.station(i + 1, lane_after(hop), &hop.to))
                }
            }
        }
    };
    Figure {
        id: format!("path-{id}"),
        caption: Text::code(id).and(format!(" {summary}")),
        wide: drawn.into_string(),
        narrow: None,
        lines: 0,
        twin: None,
        sum: counts(path, shares),
    }
}

/// The diagram for those who do not see it.
fn in_words(path: &DataPath, shares: Shares) -> String {
    let word = |hop: &Hop| {
        format!("{} to {} by {}, {}", hop.from, hop.to, hop.function, movement(hop, shares))
    };
    path.hops.iter().map(word).joined("; ")
}

fn movement(hop: &Hop, shares: Shares) -> String {
    match (hop.movement, shares.late, shares.mapped) {
        (Movement::Copy, _, _) => "COPY".to_owned(),
        (Movement::Reference, _, _) => "reference".to_owned(),
        (Movement::Discarded, _, _) => "dropped unread".to_owned(),
        (Movement::LateCopy, Some(share), _) => format!("LATE COPY of {}", arms::share(share)),
        (Movement::LateCopy, None, _) => "LATE COPY, share not known".to_owned(),
        (Movement::Mapped, _, Some((_, 0.0))) => "COPY, nothing mapped".to_owned(),
        (Movement::Mapped, _, Some(share)) => format!("{} mapped", arms::share(share)),
        (Movement::Mapped, _, None) => "mapped or COPY, not known".to_owned(),
    }
}

/// The sum under a diagram.
fn counts(path: &DataPath, shares: Shares) -> String {
    let Some([sender, all]) = shares.copies(path) else {
        return "Copies of each byte: not measured.".to_owned();
    };
    let (sender, all) = (arms::copies_range(sender), arms::copies_range(all));
    if first_lane(path) == Lane::Kernel {
        return format!("Copies of each byte: {all} at the receiver.");
    }
    format!("Copies of each byte: {sender} at the sender, {all} end to end.")
}

/// How many lanes a diagram has.
#[derive(Clone, Copy)]
struct Frame {
    lanes: usize,
}

impl Frame {
    /// The device gets a lane only where the path touches one.
    fn of(path: &DataPath) -> Frame {
        let has_device = path.hops.iter().any(|hop| hop.mover == Mover::Device);
        Frame { lanes: if has_device { 3 } else { 2 } }
    }

    fn lane_width(self) -> usize {
        WIDTH / self.lanes
    }

    /// Middle of a lane.
    fn x(self, lane: Lane) -> usize {
        self.lane_width() * lane as usize + self.lane_width() / 2
    }

    fn lanes(self, height: usize) -> Markup {
        let width = self.lane_width();
        html! {
            @for (i, name) in Lane::NAMES.iter().enumerate().take(self.lanes) {
                rect class={ "lane l" (i) } x=(i * width) y="0" width=(width) height=(height) {}
                text.lane x=(width * i + width / 2) y="18" { (name) }
            }
        }
    }

    fn station(self, index: usize, lane: Lane, name: &str) -> Markup {
        let (x, y) = (self.x(lane), TOP + index * STEP);
        let width = (self.lane_width() - 16).min(140);
        html! {
            rect.station x=(x - width / 2) y=(y) width=(width) height=(BOX) rx="3" {}
            text.station x=(x) y=(y + 20) { (name) }
        }
    }

    /// The arrow from one station to the next, with what happens on it.
    fn hop(self, index: usize, before: Lane, hop: &Hop, shares: Shares) -> Markup {
        let (from, to) = (self.x(before), self.x(lane_after(hop)));
        let top = TOP + index * STEP + BOX;
        let (middle, bottom) = (top + (STEP - BOX) / 2, top + STEP - BOX);
        let kind = match hop.movement {
            Movement::Copy => "copy",
            Movement::Reference => "ref",
            Movement::LateCopy => "late",
            Movement::Mapped => match shares.mapped {
                Some((_, 0.0)) | None => "copy",
                Some(_) => "late",
            },
            Movement::Discarded => "ref",
        };
        let by = match (hop.mover, hop.end) {
            // Always the kernel, and there is no room for more words.
            _ if hop.movement == Movement::LateCopy => "",
            (Mover::User, _) => "by user code",
            (Mover::Kernel, End::Sender) => "by the kernel",
            // The share takes the room.
            (Mover::Kernel, End::Receiver) if hop.movement == Movement::Mapped => "by the kernel",
            (Mover::Kernel, End::Receiver) => "by the kernel, receiving",
            (Mover::Device, _) => "by the device",
        };
        let (anchor, x) = match from == to {
            true if from * 2 < WIDTH => ("start", from + 10),
            true => ("end", from - 10),
            false => ("middle", usize::midpoint(from, to)),
        };
        // Beside a straight arrow both lines stand together; on a bent one
        // the line between them is the arrow.
        let gap = if from == to { (middle - 4, middle + 11) } else { (middle - 6, middle + 15) };
        html! {
            g class={ "hop " (kind) } {
                path.way d={ "M" (from) " " (top) "V" (middle) "H" (to) "V" (bottom - 7) } {}
                path.head d={ "M" (to - 5) " " (bottom - 8) "h10l-5 8z" } {}
                text.kind x=(x) y=(gap.0) text-anchor=(anchor) { (movement(hop, shares)) " " tspan.by { (by) } }
                text.call x=(x) y=(gap.1) text-anchor=(anchor) { (hop.function) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use iolens_document::Section;

    use super::*;
    use crate::fixture_findings::findings;

    #[test]
    fn every_hop_is_drawn_with_its_function_and_movement() {
        let (run, analysis) = findings();
        let section = Section::new("path", "", diagrams(&run, &analysis));
        let drawn = iolens_document::html::section(&section).into_string();
        for hop in run.header.primitives.iter().flat_map(|facts| facts.data_path.hops.iter()) {
            assert!(drawn.contains(hop.function.as_ref()), "{}", hop.function);
        }
        assert!(drawn.contains("LATE COPY of 100%"));
        assert_eq!(drawn.matches("<figure").count(), run.header.primitives.len());
    }

    #[test]
    fn a_device_gets_a_lane_only_where_it_takes_part() {
        let (run, _) = findings();
        let path = &run.header.primitives[0].data_path;
        assert_eq!(Frame::of(path).lanes, 2);
        let dma = Hop { mover: Mover::Device, ..path.hops[0].clone() };
        let path = DataPath { hops: vec![dma].into(), calls: path.calls };
        assert_eq!(Frame::of(&path).lanes, 3);
    }
}

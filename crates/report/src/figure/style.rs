//! The look of a primitive, the same in every figure and table: a hue of the
//! Okabe–Ito palette, a marker and a dash, so that neither colour vision nor
//! colour print is needed to tell two curves apart.

use Marker::{Circle, Diamond, Down, Square, Up};
use iolens_document::table::{Entry, Tone};

/// The shape of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marker {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Up,
    /// ▼
    Down,
    /// ◆
    Diamond,
}

/// How a primitive is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// Name of the hue; a class `c-HUE` carries the colour.
    pub(crate) hue: &'static str,
    /// Shape of its points.
    pub(crate) marker: Marker,
    /// SVG dash pattern; empty for a solid line.
    pub(crate) dash: &'static str,
}

impl Look {
    /// The class of a line of such a weight.
    pub(crate) fn stroke(self, weight: &str) -> String {
        format!("s c-{} {weight}", self.hue)
    }
}

/// Hues with their colours on paper, and on a dark screen.
///
/// Those of Okabe & Ito, "Color Universal Design" (2008), without yellow, which is not
/// legible on white, and moved by a few steps: as published, vermilion and the orange that is
/// dark enough for white paper are 4.6 apart (CIEDE2000) without green cones, purple and grey
/// 1.0. Of these no two are nearer than 10 to any eye, and each stands out from its ground by
/// 3 : 1 or more; `lint` computes both.
pub(crate) const HUES: [(&str, &str, &str); 8] = [
    ("ink", "#1b1f24", "#e8eaed"),
    ("blue", "#006fc2", "#3fa1dd"),
    ("vermilion", "#bb4d00", "#ea823e"),
    ("green", "#0c9464", "#00cd9a"),
    ("purple", "#a34b8b", "#d3a7c8"),
    ("sky", "#2a98de", "#a2dafb"),
    ("orange", "#c58400", "#fab830"),
    ("grey", "#7d7e82", "#91969c"),
];

/// Primitives with hue and marker.
type Looks = &'static [(&'static str, &'static str, Marker)];

/// The looks of the primitives that are compared most, by the pattern of their dashes; their
/// neighbours in a default plan differ in hue and in marker.
const LOOKS: [(&str, Looks); 3] = [
    (
        "",
        &[
            ("send_staged", "ink", Square),
            ("send", "blue", Circle),
            ("sendmsg_iov", "vermilion", Up),
            ("sendmsg_zerocopy", "green", Diamond),
            ("uring_send", "sky", Square),
            ("uring_sendmsg", "orange", Square),
            ("uring_send_zc", "green", Square),
            ("uring_send_zc_fixed", "purple", Square),
            ("uring_sendmsg_zc", "vermilion", Square),
            ("getppid", "ink", Circle),
            ("read_zero", "blue", Square),
            ("read_file", "sky", Up),
            ("stat", "vermilion", Circle),
            ("open_close", "orange", Diamond),
            ("mmap_munmap", "purple", Up),
            ("io_uring_nop", "green", Circle),
            ("read", "ink", Diamond),
            ("mmap", "vermilion", Down),
            ("direct", "blue", Up),
            ("uring", "green", Down),
            ("pread", "sky", Diamond),
            ("readv", "purple", Diamond),
            ("preadv2_nowait", "grey", Down),
            ("preadv2_dontcache", "orange", Circle),
            ("read_write", "ink", Up),
            ("copy_file_range", "blue", Diamond),
            ("sendfile", "orange", Down),
            ("mmap_write", "vermilion", Diamond),
            ("uring_copy", "green", Up),
            ("reflink", "grey", Circle),
            ("cp", "grey", Up),
            ("pwrite", "sky", Down),
            ("epoll_lt", "ink", Down),
        ],
    ),
    (
        "5 3",
        &[
            ("send_per_field", "purple", Down),
            ("write", "sky", Circle),
            ("writev", "orange", Up),
            ("mmap_populate", "vermilion", Down),
            ("uring_fixed", "green", Down),
            ("uring_direct", "sky", Up),
            ("uring_sqpoll", "purple", Circle),
            ("splice", "purple", Square),
            ("dd", "sky", Square),
            ("write_fsync", "vermilion", Circle),
            ("write_fdatasync", "orange", Square),
            ("write_dsync", "purple", Up),
            ("epoll_et", "blue", Square),
            ("select", "orange", Down),
            ("poll", "vermilion", Square),
            ("iterative", "grey", Square),
            ("thread_pool", "purple", Diamond),
            ("thread_per_connection", "green", Up),
        ],
    ),
    (
        "2 3",
        &[
            ("memcpy", "grey", Diamond),
            ("pipe", "grey", Square),
            ("unix_stream", "grey", Circle),
            ("epoll_reuseport", "sky", Up),
            ("select_large", "orange", Diamond),
            ("tokio", "green", Diamond),
            ("fork", "vermilion", Down),
            ("prefork", "blue", Down),
        ],
    ),
];

/// How the name of a primitive stands in a table.
pub(crate) fn tone(primitive: &str) -> Tone {
    Tone::Hue(of(primitive).hue)
}

/// Words in the colour of a primitive.
pub(crate) fn toned(words: impl Into<String>, primitive: &str) -> Entry {
    Entry::toned(words, tone(primitive))
}

/// The look of a primitive, always the same for the same id.
pub(crate) fn of(primitive: &str) -> Look {
    let mut known = known().filter(|(id, _)| *id == primitive);
    known.next().map_or_else(|| mixed(primitive), |(_, look)| look)
}

fn known() -> impl Iterator<Item = (&'static str, Look)> {
    LOOKS.iter().flat_map(|&(dash, looks)| {
        looks.iter().map(move |&(id, hue, marker)| (id, Look { hue, marker, dash }))
    })
}

/// The look of one that is not known.
fn mixed(primitive: &str) -> Look {
    // FNV-1a: any mixing will do, it only has to stay the same for ever.
    let hash = primitive
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let pick = |shift: u32, n: u32| ((hash >> shift) % n) as usize;
    const MARKERS: [Marker; 5] = [Circle, Square, Up, Down, Diamond];
    const DASHES: [&str; 3] = ["7 3", "2 2", "7 2 2 2"];
    Look { hue: HUES[1 + pick(0, 6)].0, marker: MARKERS[pick(8, 5)], dash: DASHES[pick(16, 3)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_differ_and_name_known_hues() {
        for (i, (id, look)) in known().enumerate() {
            assert!(known().take(i).all(|(_, other)| other != look), "{id}");
            assert!(HUES.iter().any(|(hue, _, _)| *hue == look.hue));
        }
        assert_eq!(of("brand_new"), of("brand_new"));
    }
}

//! The look of a primitive, the same in every figure and table: a hue of the
//! Okabe–Ito palette, a marker and a dash, so that neither colour vision nor
//! colour print is needed to tell two curves apart.

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

/// The looks of the primitives that are compared most; their neighbours in a
/// default plan differ in hue and in marker.
const LOOKS: [(&str, Look); 59] = [
    ("send_staged", look("ink", Marker::Square, "")),
    ("send", look("blue", Marker::Circle, "")),
    ("sendmsg_iov", look("vermilion", Marker::Up, "")),
    ("sendmsg_zerocopy", look("green", Marker::Diamond, "")),
    ("send_per_field", look("purple", Marker::Down, "5 3")),
    ("write", look("sky", Marker::Circle, "5 3")),
    ("writev", look("orange", Marker::Up, "5 3")),
    ("memcpy", look("grey", Marker::Diamond, "2 3")),
    ("pipe", look("grey", Marker::Square, "2 3")),
    ("unix_stream", look("grey", Marker::Circle, "2 3")),
    ("uring_send", look("sky", Marker::Square, "")),
    ("uring_sendmsg", look("orange", Marker::Square, "")),
    ("uring_send_zc", look("green", Marker::Square, "")),
    ("uring_send_zc_fixed", look("purple", Marker::Square, "")),
    ("uring_sendmsg_zc", look("vermilion", Marker::Square, "")),
    ("getppid", look("ink", Marker::Circle, "")),
    ("read_zero", look("blue", Marker::Square, "")),
    ("read_file", look("sky", Marker::Up, "")),
    ("stat", look("vermilion", Marker::Circle, "")),
    ("open_close", look("orange", Marker::Diamond, "")),
    ("mmap_munmap", look("purple", Marker::Up, "")),
    ("io_uring_nop", look("green", Marker::Circle, "")),
    ("read", look("ink", Marker::Diamond, "")),
    ("mmap", look("vermilion", Marker::Down, "")),
    ("direct", look("blue", Marker::Up, "")),
    ("uring", look("green", Marker::Down, "")),
    ("pread", look("sky", Marker::Diamond, "")),
    ("readv", look("purple", Marker::Diamond, "")),
    ("preadv2_nowait", look("grey", Marker::Down, "")),
    ("preadv2_dontcache", look("orange", Marker::Circle, "")),
    ("mmap_populate", look("vermilion", Marker::Down, "5 3")),
    ("uring_fixed", look("green", Marker::Down, "5 3")),
    ("uring_direct", look("sky", Marker::Up, "5 3")),
    ("uring_sqpoll", look("purple", Marker::Circle, "5 3")),
    ("read_write", look("ink", Marker::Up, "")),
    ("copy_file_range", look("blue", Marker::Diamond, "")),
    ("sendfile", look("orange", Marker::Down, "")),
    ("splice", look("purple", Marker::Square, "5 3")),
    ("mmap_write", look("vermilion", Marker::Diamond, "")),
    ("uring_copy", look("green", Marker::Up, "")),
    ("reflink", look("grey", Marker::Circle, "")),
    ("dd", look("sky", Marker::Square, "5 3")),
    ("cp", look("grey", Marker::Up, "")),
    ("pwrite", look("sky", Marker::Down, "")),
    ("write_fsync", look("vermilion", Marker::Circle, "5 3")),
    ("write_fdatasync", look("orange", Marker::Square, "5 3")),
    ("write_dsync", look("purple", Marker::Up, "5 3")),
    ("epoll_lt", look("ink", Marker::Down, "")),
    ("epoll_et", look("blue", Marker::Square, "5 3")),
    ("epoll_reuseport", look("sky", Marker::Up, "2 3")),
    ("select", look("orange", Marker::Down, "5 3")),
    ("select_large", look("orange", Marker::Diamond, "2 3")),
    ("poll", look("vermilion", Marker::Square, "5 3")),
    ("iterative", look("grey", Marker::Square, "5 3")),
    ("thread_pool", look("purple", Marker::Diamond, "5 3")),
    ("tokio", look("green", Marker::Diamond, "2 3")),
    ("fork", look("vermilion", Marker::Down, "2 3")),
    ("prefork", look("blue", Marker::Down, "2 3")),
    ("thread_per_connection", look("green", Marker::Up, "5 3")),
];

/// How the name of a primitive stands in a table.
pub(crate) fn tone(primitive: &str) -> iolens_document::table::Tone {
    iolens_document::table::Tone::Hue(of(primitive).hue)
}

const fn look(hue: &'static str, marker: Marker, dash: &'static str) -> Look {
    Look { hue, marker, dash }
}

/// The look of a primitive, always the same for the same id.
pub(crate) fn of(primitive: &str) -> Look {
    if let Some((_, look)) = LOOKS.iter().find(|(id, _)| *id == primitive) {
        return *look;
    }
    // FNV-1a: any mixing will do, it only has to stay the same for ever.
    let hash = primitive
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let pick = |shift: u32, n: u32| ((hash >> shift) % n) as usize;
    const MARKERS: [Marker; 5] =
        [Marker::Circle, Marker::Square, Marker::Up, Marker::Down, Marker::Diamond];
    const DASHES: [&str; 3] = ["7 3", "2 2", "7 2 2 2"];
    Look { hue: HUES[1 + pick(0, 6)].0, marker: MARKERS[pick(8, 5)], dash: DASHES[pick(16, 3)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_differ_and_name_known_hues() {
        for (i, (id, look)) in LOOKS.iter().enumerate() {
            assert!(LOOKS[..i].iter().all(|(_, other)| other != look), "{id}");
            assert!(HUES.iter().any(|(hue, _, _)| *hue == look.hue));
        }
        assert_eq!(of("brand_new"), of("brand_new"));
    }
}

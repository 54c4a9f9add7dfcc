//! Whether the colours of a page can be told apart and seen: by everybody, on light and on
//! dark, and on paper.

use super::markup::between;

/// Difference of two curves' colours at least, in CIEDE2000: 1 is just seen side by side,
/// and curves are not side by side.
const DIFFERENCE_MIN: f64 = 10.0;
/// Contrast of a line with its ground at least: WCAG 2.2, 1.4.11 Non-text Contrast.
const LINE_CONTRAST_MIN: f64 = 3.0;
/// Contrast of text at least: WCAG 2.2, 1.4.3 Contrast (Minimum).
const TEXT_CONTRAST_MIN: f64 = 4.5;
/// Colours of text, by their name in the style.
const TEXTS: [&str; 6] = ["text", "faint", "good", "bad", "open", "accent"];

type Vector = [f64; 3];

/// How linear RGB is seen without cones for red, green and blue light, severity 1.0: Machado,
/// Oliveira & Fernandes, "A Physiologically-based Model for Simulation of Color Vision
/// Deficiency", IEEE TVCG 15(6), 2009, table 1. The first is to see all.
const EYES: [(&str, [Vector; 3]); 4] = [
    ("all cones", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "protanopia",
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
    ),
    (
        "deuteranopia",
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
    ),
    (
        "tritanopia",
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ),
];

/// What is wrong with the styles of a page.
pub(super) fn faults(page: &str) -> Vec<String> {
    let style = between(page, "<style>", "</style>").unwrap_or_default();
    let plain: String = style.chars().filter(|c| !c.is_whitespace()).collect();
    let mut faults = Vec::new();
    for at_rule in ["prefers-color-scheme:dark", "@mediaprint"] {
        if !plain.contains(at_rule) {
            faults.push(format!("modes: no {at_rule} in the style"));
        }
    }
    let dark: String = plain.split("prefers-color-scheme:dark").skip(1).map(block).collect();
    let print = plain.split("@mediaprint").nth(1).map(block).unwrap_or_default();
    if !print.contains("--paper:#fff;") {
        faults.push("modes: print has no white paper".to_owned());
    }
    for name in plain.split("var(--").skip(1).filter_map(|rest| rest.split(')').next()) {
        // The width of a figure is its own.
        if !plain.contains(&format!("--{name}:")) && !page.contains(&format!("\"--{name}:")) {
            faults.push(format!("modes: --{name} is used and never given"));
        }
    }
    faults.extend(of_mode("light", &plain, None));
    faults.extend(of_mode("dark", &dark, Some(&plain)));
    faults
}

/// What stands in the braces that follow.
fn block(rest: &str) -> &str {
    let mut depth = 0_i32;
    let end = rest.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '{') - i32::from(*c == '}');
        *c == '}' && depth == 0
    });
    end.map_or(rest, |(at, _)| &rest[..at])
}

/// The colours of a mode against each other and its ground; all of the base must be there.
fn of_mode(mode: &str, style: &str, base: Option<&str>) -> Vec<String> {
    let mut faults = Vec::new();
    let (hues, known) = (hues(style), hues(base.unwrap_or(style)));
    let lacks = known.iter().filter(|(name, _)| hues.iter().all(|(own, _)| own != name));
    faults.extend(lacks.map(|(name, _)| format!("modes: {name} has no colour in {mode}")));
    let Some(ground) = between(style, "--paper:", ";").and_then(linear) else {
        faults.push(format!("modes: no paper in {mode}"));
        return faults;
    };
    for (name, colour) in &hues {
        let contrast = contrast(*colour, ground);
        if contrast < LINE_CONTRAST_MIN {
            faults.push(format!("palette: {name} in {mode} has a contrast of {contrast:.2}"));
        }
    }
    for name in TEXTS {
        let colour = between(style, &format!("--{name}:"), ";").and_then(linear);
        let contrast = colour.map_or(0.0, |colour| contrast(colour, ground));
        if contrast < TEXT_CONTRAST_MIN {
            faults.push(format!("palette: text {name} in {mode} has a contrast of {contrast:.2}"));
        }
    }
    for (eye, matrix) in EYES {
        for (i, (a, first)) in hues.iter().enumerate() {
            for (b, second) in &hues[..i] {
                let apart = difference(lab(seen(&matrix, *first)), lab(seen(&matrix, *second)));
                if apart < DIFFERENCE_MIN {
                    faults.push(format!("palette: {a} and {b} in {mode}, {eye}: ΔE {apart:.1}"));
                }
            }
        }
    }
    faults
}

/// The hues of curves with their colours, each once, in linear RGB.
fn hues(style: &str) -> Vec<(String, Vector)> {
    let mut hues: Vec<(String, Vector)> = Vec::new();
    for rest in style.split(".c-").skip(1) {
        let Some((name, rule)) = rest.split_once("{--c:") else { continue };
        let colour = rule.split('}').next().and_then(linear);
        if let Some(colour) = colour.filter(|_| hues.iter().all(|(known, _)| known != name)) {
            hues.push((name.to_owned(), colour));
        }
    }
    hues
}

/// `#fff` or `#1b1f24` as linear RGB (IEC 61966-2-1).
fn linear(hex: &str) -> Option<Vector> {
    let digits = hex.strip_prefix('#')?;
    let of = |i: usize| {
        let digits = match digits.len() {
            3 => digits.get(i..=i)?.repeat(2),
            _ => digits.get(2 * i..2 * i + 2)?.to_owned(),
        };
        let value = f64::from(u8::from_str_radix(&digits, 16).ok()?) / 255.0;
        let is_dark = value <= 0.040_45;
        Some(if is_dark { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) })
    };
    Some([of(0)?, of(1)?, of(2)?])
}

fn dot(a: &Vector, b: &Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn seen(eye: &[Vector; 3], colour: Vector) -> Vector {
    eye.map(|row| dot(&row, &colour).clamp(0.0, 1.0))
}

/// Contrast ratio of two colours, 1 to 21 (WCAG 2.2).
fn contrast(a: Vector, b: Vector) -> f64 {
    let luminance = |colour: Vector| dot(&[0.2126, 0.7152, 0.0722], &colour) + 0.05;
    let (a, b) = (luminance(a), luminance(b));
    a.max(b) / a.min(b)
}

/// CIE L*a*b* of linear RGB, with the white of D65.
fn lab(colour: Vector) -> Vector {
    const XYZ: [Vector; 3] = [
        [0.412_456_4, 0.357_576_1, 0.180_437_5],
        [0.212_672_9, 0.715_152_2, 0.072_175_0],
        [0.019_333_9, 0.119_192_0, 0.950_304_1],
    ];
    const WHITE: Vector = [0.950_47, 1.0, 1.088_83];
    let f = |t: f64| match t > 216.0 / 24_389.0 {
        true => t.cbrt(),
        false => (24_389.0 / 27.0 * t + 16.0) / 116.0,
    };
    let [x, y, z] = [0, 1, 2].map(|i| f(dot(&XYZ[i], &colour) / WHITE[i]));
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// CIEDE2000 of two colours in L*a*b*: Sharma, Wu & Dalal, "The CIEDE2000 Color-Difference
/// Formula", Color Research and Application 30(1), 2005.
pub(super) fn difference(first: Vector, second: Vector) -> f64 {
    let chroma = |a: f64, b: f64| a.hypot(b);
    let mean = f64::midpoint(chroma(first[1], first[2]), chroma(second[1], second[2]));
    let steep = |c: f64| (c.powi(7) / (c.powi(7) + 25_f64.powi(7))).sqrt();
    let stretch = 1.0 + 0.5 * (1.0 - steep(mean));
    let polar = |[_, a, b]: Vector| {
        let a = a * stretch;
        (chroma(a, b), b.atan2(a).to_degrees().rem_euclid(360.0))
    };
    let ((c1, h1), (c2, h2)) = (polar(first), polar(second));
    // A grey has no hue to differ in.
    let turn = if c1 * c2 == 0.0 { 0.0 } else { (h2 - h1 + 540.0).rem_euclid(360.0) - 180.0 };
    let hue = if c1 * c2 == 0.0 { h1 + h2 } else { (h1 + turn / 2.0).rem_euclid(360.0) };
    let (light, chroma) = (f64::midpoint(first[0], second[0]), f64::midpoint(c1, c2));
    let cos = |factor: f64, shift: f64| (factor * hue + shift).to_radians().cos();
    let t = 1.0 - 0.17 * cos(1.0, -30.0) + 0.24 * cos(2.0, 0.0) + 0.32 * cos(3.0, 6.0)
        - 0.2 * cos(4.0, -63.0);
    let off = (light - 50.0).powi(2);
    let dl = (second[0] - first[0]) / (1.0 + 0.015 * off / (20.0 + off).sqrt());
    let dc = (c2 - c1) / (1.0 + 0.045 * chroma);
    let dh = 2.0 * (c1 * c2).sqrt() * (turn / 2.0).to_radians().sin() / (1.0 + 0.015 * chroma * t);
    let bend = 60.0 * (-((hue - 275.0) / 25.0).powi(2)).exp();
    let rotation = -2.0 * steep(chroma) * bend.to_radians().sin();
    (dl * dl + dc * dc + dh * dh + rotation * dc * dh).sqrt()
}

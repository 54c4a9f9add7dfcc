//! A figure as PNG that knows how large it is on paper. The only fonts are the ones that come
//! with the program: a machine without any still gets text, and every machine the same picture.

use std::sync::Arc;

use epaint_default_fonts::{HACK_REGULAR, UBUNTU_LIGHT};
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{self, fontdb};

/// CSS pixels per inch, the unit of sizes of an SVG.
const CSS_DPI: f32 = 96.0;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The text is no SVG that can be drawn.
    #[error("cannot read the figure as SVG: {0}")]
    Svg(#[from] usvg::Error),
    /// The figure has no area, or more than memory has room for.
    #[error("cannot draw a figure of {width} × {height} pixels")]
    Size {
        /// Pixels.
        width: u32,
        /// Pixels.
        height: u32,
    },
    /// The encoder gave up.
    #[error("cannot encode the figure as PNG: {0}")]
    Encode(#[from] png::EncodingError),
}

/// Draws a standalone SVG at so many pixels per inch of its size, and notes them in the file
/// (chunk `pHYs`). Without transparency, which some publishers refuse.
///
/// # Errors
///
/// See [`PngError`]; figures of this crate give none.
pub fn render(svg: &str, dpi: u32) -> Result<Vec<u8>, PngError> {
    let tree = usvg::Tree::from_str(svg, &options())?;
    let size = tree.size();
    let [width, height] = [size.width(), size.height()].map(|side| pixels(side, dpi));
    let mut pixmap = Pixmap::new(width, height).ok_or(PngError::Size { width, height })?;
    // Paper is white, whatever a figure leaves free.
    pixmap.fill(Color::WHITE);
    let scale = (width as f32 / size.width(), height as f32 / size.height());
    resvg::render(&tree, Transform::from_scale(scale.0, scale.1), &mut pixmap.as_mut());
    encode(&pixmap, dpi)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn pixels(side: f32, dpi: u32) -> u32 {
    (side * dpi as f32 / CSS_DPI).round() as u32
}

fn encode(pixmap: &Pixmap, dpi: u32) -> Result<Vec<u8>, PngError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, pixmap.width(), pixmap.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 47 244")]
    let per_metre = (f64::from(dpi) / 0.0254).round() as u32;
    let unit = png::Unit::Meter;
    let size = png::PixelDimensions { xppu: per_metre, yppu: per_metre, unit };
    encoder.set_pixel_dims(Some(size));
    // Nothing is transparent on a white ground, so no colour was multiplied.
    let rgb = pixmap.data().chunks_exact(4).flat_map(|rgba| [rgba[0], rgba[1], rgba[2]]);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&rgb.collect::<Vec<u8>>())?;
    writer.finish()?;
    Ok(file)
}

/// The embedded fonts.
pub(crate) fn options() -> usvg::Options<'static> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(UBUNTU_LIGHT.to_vec());
    fonts.load_font_data(HACK_REGULAR.to_vec());
    fonts.set_sans_serif_family(SANS);
    fonts.set_monospace_family("Hack");
    usvg::Options { font_family: SANS.to_owned(), fontdb: Arc::new(fonts), ..Default::default() }
}

/// The family of the embedded sans serif, as its name table has it.
const SANS: &str = "Ubuntu";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Paper;
    use crate::{fixture, studies};

    #[test]
    fn every_figure_of_the_fixture_becomes_a_png() {
        let (run, analysis) = fixture::run();
        for figure in studies::figures(&run, &analysis) {
            let png = render(&figure.svg, 72).expect("a figure is an SVG");
            assert!(png.starts_with(b"\x89PNG") && png.len() > 10_000);
            usvg::Tree::from_str(&figure.inline, &options()).expect("well-formed too");
        }
    }

    #[test]
    fn a_png_has_the_pixels_of_its_size_and_says_how_many_make_a_metre() {
        let check = |paper, dpi, width: u32, per_metre: u32| {
            let (run, analysis) = fixture::run();
            let figures = studies::figures_on(paper, &run, &analysis);
            let file = render(&figures[2].svg, dpi).expect("a figure is an SVG");
            let decoder = png::Decoder::new(std::io::Cursor::new(file));
            let reader = decoder.read_info().expect("a PNG");
            let info = reader.info();
            assert_eq!((info.width, info.color_type), (width, png::ColorType::Rgb));
            let size = info.pixel_dims.expect("has the chunk pHYs");
            assert_eq!((size.xppu, size.yppu), (per_metre, per_metre));
            assert_eq!(size.unit, png::Unit::Meter);
            info.height
        };
        check(Paper::Column, 300, 1051, 11_811);
        check(Paper::Column, 600, 2102, 23_622);
        check(Paper::Page, 300, 2161, 11_811);
        assert_eq!(check(Paper::Slide, 150, 2000, 5906), 1125);
    }

    #[test]
    fn the_embedded_family_resolves_and_has_the_glyphs_we_use() {
        let options = options();
        let query = fontdb::Query { families: &[fontdb::Family::SansSerif], ..Default::default() };
        assert!(options.fontdb.query(&query).is_some(), "no face is called {SANS}");
        for glyph in ["×", "µ", "±", "≥", "δ", "·", "–", "²"] {
            let svg = |text: &str| {
                format!(
                    r#"<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><text x="5" y="30" font-size="24" font-family="sans-serif">{text}</text></svg>"#
                )
            };
            let blank = render(&svg(" "), 192).expect("an SVG");
            // U+E0FF is in no font: what stands for a missing glyph.
            let missing = render(&svg("\u{e0ff}"), 192).expect("an SVG");
            let drawn = render(&svg(glyph), 192).expect("an SVG");
            assert!(drawn != blank && drawn != missing, "{glyph} is not in {SANS}");
        }
    }

    #[test]
    fn what_is_no_svg_is_an_error() {
        assert!(matches!(render("<html>", 192), Err(PngError::Svg(_))));
    }
}

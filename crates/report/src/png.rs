//! A figure as PNG. The only fonts are the ones that come with the program:
//! a machine without any still gets text, and every machine the same picture.

use std::sync::Arc;

use epaint_default_fonts::{HACK_REGULAR, UBUNTU_LIGHT};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, fontdb};

/// Pixels per user unit: sharp on paper and on dense screens.
const SCALE: f32 = 2.0;

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
    Encode(String),
}

/// Draws a standalone SVG.
///
/// # Errors
///
/// See [`PngError`]; figures of this crate give none.
pub fn render(svg: &str) -> Result<Vec<u8>, PngError> {
    let tree = usvg::Tree::from_str(svg, &options())?;
    let size = tree.size().to_int_size().scale_by(SCALE);
    let size = size.ok_or(PngError::Size { width: 0, height: 0 })?;
    let (width, height) = (size.width(), size.height());
    let mut pixmap = Pixmap::new(width, height).ok_or(PngError::Size { width, height })?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|error| PngError::Encode(error.to_string()))
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
    use crate::{figure, fixture};

    #[test]
    fn every_figure_of_the_fixture_becomes_a_png() {
        let (run, analysis) = fixture::run();
        for figure in figure::all(&run, &analysis) {
            let png = render(&figure.svg).expect("a figure is an SVG");
            assert!(png.starts_with(b"\x89PNG") && png.len() > 10_000);
            usvg::Tree::from_str(&figure.inline, &options()).expect("well-formed too");
        }
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
            let blank = render(&svg(" ")).expect("an SVG");
            // U+E0FF is in no font: what stands for a missing glyph.
            let missing = render(&svg("\u{e0ff}")).expect("an SVG");
            let drawn = render(&svg(glyph)).expect("an SVG");
            assert!(drawn != blank && drawn != missing, "{glyph} is not in {SANS}");
        }
    }

    #[test]
    fn what_is_no_svg_is_an_error() {
        assert!(matches!(render("<html>"), Err(PngError::Svg(_))));
    }
}

//! What tells series apart: colours, markers, dashes.
//!
//! Colours follow Okabe and Ito's set for all kinds of colour vision, darker on white and lighter on black, so that each
//! has a contrast of 3 to 1 with its paper. A marker's shape says the same as its colour.

use crate::model::{Role, Series};

/// A colour on light and on dark paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour {
    /// On light paper, as `#rrggbb`.
    pub light: &'static str,
    /// On dark paper.
    pub dark: &'static str,
}

const fn colour(light: &'static str, dark: &'static str) -> Colour {
    Colour { light, dark }
}

/// The colours of series, by slot.
pub const COLOURS: [Colour; 8] = [
    colour("#0072b2", "#58b4f0"),
    colour("#d55e00", "#ff9a52"),
    colour("#00805c", "#35c99b"),
    colour("#b0468a", "#ee92c8"),
    colour("#8a6d00", "#e8cf4a"),
    colour("#2d8fb8", "#9ae3f2"),
    colour("#5c6370", "#bcc3cd"),
    colour("#6b4fbf", "#b8a2ff"),
];
/// The background.
pub const PAPER: Colour = colour("#ffffff", "#0f1318");
/// Titles and values.
pub const TEXT: Colour = colour("#1d232b", "#e8ebef");
/// Labels of axes.
pub const MUTED: Colour = colour("#4d5661", "#a9b2bd");
/// Lines of the grid.
pub const GRID: Colour = colour("#e3e7eb", "#272e36");
/// Axes.
pub const AXIS: Colour = colour("#848d97", "#6b747e");

/// Half the size of a marker, in pixels.
const HALF: f64 = 4.2;

/// Returns a marker's path around a point, in pixels.
#[must_use]
pub fn marker(slot: usize, x: f64, y: f64) -> String {
    let r = HALF;
    let polygon = |corners: &[(f64, f64)]| {
        let corner = |(place, (dx, dy)): (usize, &(f64, f64))| {
            let letter = if place == 0 { 'M' } else { 'L' };
            format!("{letter}{} {}", short(x + dx * r), short(y + dy * r))
        };
        corners.iter().enumerate().map(corner).collect::<String>() + "Z"
    };
    // Areas are about the same.
    match slot % 8 {
        0 => {
            let r = 3.9;
            let (left, d) = (short(x - r), short(2.0 * r));
            format!(
                "M{left} {}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z",
                short(y)
            )
        }
        1 => polygon(&[(-0.86, -0.86), (0.86, -0.86), (0.86, 0.86), (-0.86, 0.86)]),
        2 => polygon(&[(0.0, -1.15), (1.1, 0.8), (-1.1, 0.8)]),
        3 => polygon(&[(0.0, -1.25), (1.1, 0.0), (0.0, 1.25), (-1.1, 0.0)]),
        4 => polygon(&[(0.0, 1.15), (1.1, -0.8), (-1.1, -0.8)]),
        5 => polygon(&plus(0.0)),
        6 => polygon(&[
            (0.0, -1.1),
            (1.05, -0.34),
            (0.65, 0.9),
            (-0.65, 0.9),
            (-1.05, -0.34),
        ]),
        _ => polygon(&plus(std::f64::consts::FRAC_PI_4)),
    }
}

/// A cross with thick arms, turned.
fn plus(angle: f64) -> [(f64, f64); 12] {
    let (a, b) = (0.38, 1.15);
    let corners = [
        (-a, -b),
        (a, -b),
        (a, -a),
        (b, -a),
        (b, a),
        (a, a),
        (a, b),
        (-a, b),
        (-a, a),
        (-b, a),
        (-b, -a),
        (-a, -a),
    ];
    corners.map(|(x, y)| {
        (
            x * angle.cos() - y * angle.sin(),
            x * angle.sin() + y * angle.cos(),
        )
    })
}

/// Returns the colour of a series, and the class that has it.
#[must_use]
pub fn colour_of(series: &Series) -> (Colour, String) {
    match series.role {
        Role::Published => (MUTED, "published".to_owned()),
        Role::Measured | Role::Base => {
            let slot = series.slot % COLOURS.len();
            (COLOURS[slot], format!("c{slot}"))
        }
    }
}

/// Returns the dashes of a series' line; empty for a whole one.
#[must_use]
pub const fn dashes(series: &Series) -> &'static str {
    match (series.role, series.slot / COLOURS.len()) {
        (Role::Base | Role::Published, _) => "5 4",
        (Role::Measured, 0) => "",
        (Role::Measured, 1) => "9 3 2 3",
        (Role::Measured, _) => "2 3",
    }
}

/// A length in pixels, to a tenth.
#[must_use]
pub fn short(length: f64) -> String {
    let text = format!("{length:.1}");
    text.strip_suffix(".0")
        .map_or_else(|| text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contrast of two colours (WCAG 2.1, relative luminance).
    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |colour: &str| {
            let part = |at: usize| {
                let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
                if value <= 0.040_45 {
                    value / 12.92
                } else {
                    ((value + 0.055) / 1.055).powf(2.4)
                }
            };
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        (a / b).max(b / a)
    }

    #[test]
    fn all_colours_stand_out_from_their_paper() {
        for colour in COLOURS {
            assert!(contrast(colour.light, PAPER.light) >= 3.0, "{colour:?}");
            assert!(contrast(colour.dark, PAPER.dark) >= 3.0, "{colour:?}");
        }
        for colour in [TEXT, MUTED] {
            assert!(contrast(colour.light, PAPER.light) >= 4.5, "{colour:?}");
            assert!(contrast(colour.dark, PAPER.dark) >= 4.5, "{colour:?}");
        }
    }

    #[test]
    fn markers_differ() {
        let all: std::collections::BTreeSet<_> =
            (0..8).map(|slot| marker(slot, 10.0, 10.0)).collect();
        assert_eq!(all.len(), 8);
    }
}

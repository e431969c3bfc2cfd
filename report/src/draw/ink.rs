//! SVG as text, and the back end by which plotters writes it.
//!
//! plotters' own SVG back end writes shapes without classes or groups. This one writes into a text that the chart adds
//! groups to, so that a stylesheet and a script find each part. Colours belong to groups: shapes have none of their own.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt::Write;
use std::rc::Rc;

use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

use super::style::short;
use crate::escape::xml;

/// How many of plotters' pixels are one of ours: its coordinates are whole numbers.
pub const FINE: f64 = 10.0;

/// Text that grows while a chart is drawn.
#[derive(Debug, Clone, Default)]
pub struct Ink(Rc<RefCell<String>>);

impl Ink {
    /// Opens an element.
    pub fn open(&self, name: &str, attributes: &[(&str, &str)]) {
        self.start(name, attributes);
        self.0.borrow_mut().push('>');
    }

    /// Closes it.
    pub fn close(&self, name: &str) {
        let _ = write!(self.0.borrow_mut(), "</{name}>");
    }

    /// Adds an element without content.
    pub fn element(&self, name: &str, attributes: &[(&str, &str)]) {
        self.start(name, attributes);
        self.0.borrow_mut().push_str("/>");
    }

    /// Adds an element with a text.
    pub fn text(&self, name: &str, attributes: &[(&str, &str)], text: &str) {
        self.open(name, attributes);
        self.0.borrow_mut().push_str(&xml(text));
        self.close(name);
    }

    /// Returns what was written.
    #[must_use]
    pub fn take(&self) -> String {
        self.0.take()
    }

    fn start(&self, name: &str, attributes: &[(&str, &str)]) {
        let mut text = self.0.borrow_mut();
        let _ = write!(text, "<{name}");
        for (key, value) in attributes {
            let _ = write!(text, " {key}=\"{}\"", xml(value));
        }
    }
}

/// Writes what plotters draws into an [`Ink`].
#[derive(Debug)]
pub struct Backend {
    ink: Ink,
    size: (u32, u32),
}

impl Backend {
    /// Writes a drawing of `width` and `height` pixels.
    #[must_use]
    pub fn new(ink: Ink, width: f64, height: f64) -> Self {
        Self {
            ink,
            size: (fine(width), fine(height)),
        }
    }

    fn path(&self, points: impl IntoIterator<Item = BackendCoord>, is_closed: bool) {
        let mut d = String::new();
        for (place, (x, y)) in points.into_iter().enumerate() {
            let letter = if place == 0 { 'M' } else { 'L' };
            let _ = write!(d, "{letter}{} {}", coarse(x), coarse(y));
        }
        if is_closed {
            d.push('Z');
        }
        self.ink.element("path", &[("d", &d)]);
    }
}

/// Our pixels as plotters'.
#[must_use]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "lengths of drawings"
)]
pub fn fine(length: f64) -> u32 {
    (length * FINE).round().max(0.0) as u32
}

fn coarse(length: i32) -> String {
    short(f64::from(length) / FINE)
}

/// Returns about how wide a text is, in pixels: letters of common fonts without serifs.
#[must_use]
pub fn width_of(text: &str, size: f64) -> f64 {
    let width = |letter: char| match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '!' => 0.29,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' => 0.38,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.9,
        'A'..='Z' | '&' | '#' => 0.68,
        letter if letter as u32 > 0x2e80 => 1.0,
        _ => 0.57,
    };
    size * text.chars().map(width).sum::<f64>()
}

impl DrawingBackend for Backend {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Result<(), DrawingErrorKind<Infallible>> {
        Ok(())
    }

    fn present(&mut self) -> Result<(), DrawingErrorKind<Infallible>> {
        Ok(())
    }

    fn draw_pixel(
        &mut self,
        _: BackendCoord,
        _: BackendColor,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        debug_assert!(false, "charts are made of lines and texts");
        Ok(())
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        _: &S,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        self.path([from, to], false);
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        _: &S,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        self.path(path, false);
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        _: &S,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        self.path(corners, true);
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        (x, y): BackendCoord,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        if text.is_empty() {
            return Ok(());
        }
        let anchor = style.anchor();
        let horizontal = match anchor.h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        // Few programs know of other baselines.
        let down = match anchor.v_pos {
            VPos::Top => 0.76,
            VPos::Center => 0.35,
            VPos::Bottom => -0.22,
        };
        let y = f64::from(y) / FINE + down * style.size() / FINE;
        let attributes = [
            ("x", &*coarse(x)),
            ("y", &*short(y)),
            ("text-anchor", horizontal),
            ("stroke", "none"),
        ];
        self.ink.text("text", &attributes, text);
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let size = style.size() / FINE;
        Ok((fine(width_of(text, size)), fine(size)))
    }
}

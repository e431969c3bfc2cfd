//! How large drawings and their letters are.

/// How large a plot is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// In pixels.
    pub width: f64,
    /// In pixels.
    pub height: f64,
    /// The room beside titles, in pixels.
    pub inset: f64,
    /// What its ids end in: a page has a plot in several sizes.
    pub suffix: &'static str,
}

/// For a window of a desktop, a sheet of paper, a page of documentation.
pub const WIDE: Size = Size {
    width: 920.0,
    height: 420.0,
    inset: 0.0,
    suffix: "wide",
};
/// For a telephone.
pub const NARROW: Size = Size {
    width: 358.0,
    height: 330.0,
    inset: 0.0,
    suffix: "narrow",
};
/// For one column of a paper, with title and legend.
pub const FILE: Size = Size {
    width: 760.0,
    height: 420.0,
    inset: 14.0,
    suffix: "file",
};

/// The fonts of all text.
pub const FONTS: &str = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";
/// The size of labels, in pixels.
pub const LABEL: f64 = 12.0;

//! A file for each plot.

use crate::draw;
use crate::error::Result;
use crate::judge::ratios;
use crate::report::Report;

/// Returns each plot with its id; beside it that of its ratios to the base.
pub(super) fn write(report: &Report) -> Result<Vec<(String, String)>> {
    let mut written = Vec::new();
    for plot in &report.model.plots {
        written.push((plot.id.clone(), draw::file(plot)?));
        if let Some(ratios) = ratios(plot) {
            written.push((ratios.id.clone(), draw::file(&ratios)?));
        }
    }
    Ok(written)
}

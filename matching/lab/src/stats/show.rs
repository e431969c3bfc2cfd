//! The figures of groups as text, JSON (schema `tagwire.match/1`) and CSV.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use super::distribution::Quantiles;
use super::group::{QueueSummary, Summary};
use super::{ContextNumber, Part};
use crate::depth::Format;
use crate::error::Result;
use crate::output::{Circumstances, Table, deliver};

/// A group with its figures.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    /// `None`: the sum over all traces.
    pub(super) rank: Option<u32>,
    pub(super) context: Option<ContextNumber>,
    pub(super) part: Part,
    #[serde(flatten)]
    pub(super) summary: Summary,
}

pub(super) fn print_rows(
    rows: &[Row],
    notes: &[String],
    to: (Format, Option<&Path>),
    from: &Circumstances,
) -> Result<()> {
    let mut text = String::from("# tagwire match stats\n");
    for note in notes {
        let _ = writeln!(text, "# {note}");
    }
    for row in rows {
        text.push_str(&block(row));
    }
    let table = Table::new("stats", rows);
    deliver(&text, &table, to, from)
}

fn block(row: &Row) -> String {
    let Row {
        rank,
        context,
        part,
        summary,
    } = row;
    let whose = match part {
        Part::All => "program and library",
        Part::Program => "program",
        Part::Internal => "library",
    };
    let rank = rank.map_or_else(|| "all ranks".to_owned(), |rank| format!("rank {rank}"));
    let context = context.map_or_else(String::new, |one| format!(", context {}", one.0));
    let mut text = format!("\n{rank}{context}, {whose}:\n");
    let share = |share: f64| format!("{:.1} %", 100.0 * share);
    let wild = match summary.posts {
        0 => String::new(),
        _ => format!(
            " ({} wildcards: {} any source, {} any tag, {} both)",
            share(summary.wildcard_share),
            summary.any_source,
            summary.any_tag,
            summary.any_both
        ),
    };
    let _ = writeln!(text, "  {} receives{wild}", summary.posts);
    let _ = writeln!(
        text,
        "  {} messages, {} unexpected, of {} bytes (median), {} sources, {} tags, {} pairs",
        summary.arrivals,
        share(summary.unexpected_share),
        summary.bytes.p50,
        summary.sources,
        summary.tags,
        summary.pairs
    );
    let _ = writeln!(
        text,
        "  {} probes, {} of which found a message, {} receives cancelled, {} messages discarded, {:.3} ms",
        summary.probes,
        summary.probes_found,
        summary.cancels,
        summary.discards,
        summary.span_ns as f64 / 1e6
    );
    let _ = writeln!(
        text,
        "  {:<32}{:>12}{:>12}{:>12}{:>12}",
        "", "mean", "median", "p99", "greatest"
    );
    let mut line = |name: &str, values: Quantiles| {
        if values.count > 0 {
            let Quantiles {
                mean,
                p50,
                p99,
                max,
                ..
            } = values;
            let _ = writeln!(text, "  {name:<32}{mean:>12.2}{p50:>12}{p99:>12}{max:>12}");
        }
    };
    for (name, queue) in [
        ("receives", &summary.receives),
        ("messages", &summary.messages),
    ] {
        let QueueSummary {
            length,
            length_over_time,
            hit_depth,
            miss_depth,
            residence_ns,
            ..
        } = queue;
        line(&format!("{name}: length when searched"), *length);
        line(&format!("{name}: length over time"), *length_over_time);
        line(&format!("{name}: depth of hits"), *hit_depth);
        line(&format!("{name}: depth of misses"), *miss_depth);
        line(&format!("{name}: residence, ns"), *residence_ns);
    }
    line("drains: receives", summary.drain_entries);
    line("drains: ns", summary.drain_ns);
    let _ = writeln!(
        text,
        "  first entry in {} of the hits; matches in the order of posting: {}, tau {:.3}; at most {} receives and {} messages",
        share(summary.receives.head_hit_share),
        share(summary.in_order_share),
        summary.tau,
        summary.receives.high_water,
        summary.messages.high_water
    );
    text
}

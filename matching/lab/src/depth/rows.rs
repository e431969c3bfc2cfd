//! The rows of `tagwire match depth`, as text, JSON (schema `tagwire.match/1`) and CSV.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::axes::{Cache, Format, Keys, Layout, Queue, WildAt, WildKind};
use crate::checked::Checked;
use crate::error::{Error, Result};
use crate::output::{Circumstances, beside, document, is_csv, print};

/// One case of one engine.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub engine: String,
    pub queue: Queue,
    pub layout: Layout,
    /// Of an aged one.
    pub age: Option<u32>,
    pub keys: Keys,
    pub cache: Cache,
    pub wild: u32,
    pub wild_kind: WildKind,
    pub wild_at: WildAt,
    pub ahead: u32,
    pub behind: u32,
    pub ns: f64,
    pub ns_min: f64,
    pub ns_max: f64,
    pub attempts: f64,
    pub false_hits: f64,
    pub lines: Option<f64>,
    pub l1_misses: Option<f64>,
    pub l2_misses: Option<f64>,
    pub instructions: Option<f64>,
    /// What the processor counted, where that was asked for: instructions, reads that missed the first level, accesses that missed the
    /// caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hw_instructions: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hw_l1_misses: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hw_misses: Option<f64>,
    /// How the engine was checked before; `None` where it was not.
    pub checked: Option<Checked>,
}

/// Prints rows as they come, and keeps them.
#[derive(Debug)]
pub(super) struct Report {
    format: Format,
    seed: u64,
    /// Bytes of the model's levels.
    caches: [u64; 2],
    rows: Vec<Row>,
}

impl Report {
    pub(super) const fn new(format: Format, seed: u64, caches: [u64; 2]) -> Self {
        Self {
            format,
            seed,
            caches,
            rows: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, row: Row) -> Result<()> {
        if self.format == Format::Text {
            if self.rows.is_empty() {
                print(&head())?;
            }
            print(&line(&row))?;
        }
        self.rows.push(row);
        Ok(())
    }

    /// Prints what is not printed yet, and writes the file.
    pub(super) fn finish(&self, path: Option<&Path>, from: &Circumstances) -> Result<()> {
        match self.format {
            Format::Text => {}
            Format::Json => print(&self.json(from))?,
            Format::Csv => print(&self.csv(from))?,
        }
        let Some(path) = path else { return Ok(()) };
        let text = match is_csv(path) {
            true => self.csv(from),
            false => self.json(from),
        };
        fs::write(path, text).map_err(|error| Error::Output(path.display().to_string(), error))
    }

    fn json(&self, from: &Circumstances) -> String {
        let rest = [
            ("seed", json!(self.seed)),
            ("caches", json!(self.caches)),
            ("rows", json!(self.rows)),
        ];
        document("depth", from, rest)
    }

    fn csv(&self, from: &Circumstances) -> String {
        let mut text = String::from(
            "engine,queue,layout,age,keys,cache,wild,wild_kind,wild_at,ahead,behind,ns,ns_min,ns_max,attempts,false_hits,lines,\
             l1_misses,l2_misses,instructions,hw_instructions,hw_l1_misses,hw_misses,checked\n",
        );
        for row in &self.rows {
            let value = serde_json::to_value(row).expect("its keys are text");
            let fields = value.as_object().into_iter().flatten();
            let checked = row.checked.map(|checked| checked.to_string());
            let field = |(name, value): (&String, &Value)| match value {
                Value::Null => (name.clone(), String::new()),
                Value::String(text) if text.contains(',') => (name.clone(), format!("\"{text}\"")),
                Value::String(text) => (name.clone(), text.clone()),
                Value::Object(_) => (name.clone(), checked.clone().unwrap_or_default()),
                other => (name.clone(), other.to_string()),
            };
            let fields: Vec<(String, String)> = fields.map(field).collect();
            let heads = text.lines().next().unwrap_or_default().split(',');
            let of = |head: &str| fields.iter().find(|(name, _)| name == head);
            let line: Vec<&str> = heads
                .map(|head| of(head).map_or("", |(_, value)| value.as_str()))
                .collect();
            let line = line.join(",");
            text.push_str(&line);
            text.push('\n');
        }
        beside(&text, from)
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn head() -> String {
    format!(
        "# tagwire match depth: figures of one match\n\
         {:<24} {:<10} {:<10} {:<13} {:<4} {:<10} {:>7} {:>7} {:>10} {:>9} {:>7} {:>9} {:>9} {:>9} {:>12} checked\n",
        "engine",
        "queue",
        "layout",
        "keys",
        "",
        "wild",
        "ahead",
        "behind",
        "ns",
        "attempts",
        "false",
        "lines",
        "l1",
        "l2",
        "instructions"
    )
}

/// `aged 100%`, or the word alone.
fn layout(row: &Row) -> String {
    let word = plain(&json!(row.layout));
    row.age
        .map_or_else(|| word.clone(), |age| format!("{word} {age}%"))
}

/// `10%`, and where they are when that is not everywhere.
fn wildcards(row: &Row) -> String {
    match row.wild_at {
        WildAt::Front => format!("{}% front", row.wild),
        WildAt::Spread => format!("{}%", row.wild),
    }
}

fn line(row: &Row) -> String {
    let word = |value: Value| plain(&value);
    let shown = |figure: Option<f64>| {
        figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.1}"))
    };
    let mut text = format!(
        "{:<24} {:<10} {:<10} {:<13} {:<4} {:<10} {:>7} {:>7} {:>10.1} {:>9.1} {:>7.1}",
        row.engine,
        word(json!(row.queue)),
        layout(row),
        word(json!(row.keys)),
        word(json!(row.cache)),
        wildcards(row),
        row.ahead,
        row.behind,
        row.ns,
        row.attempts,
        row.false_hits
    );
    for figure in [row.lines, row.l1_misses, row.l2_misses] {
        let _ = write!(text, " {:>9}", shown(figure));
    }
    let checked = row.checked.map_or("no", |checked| checked.grade());
    let _ = write!(text, " {:>12} {checked}", shown(row.instructions));
    if let Some(instructions) = row.hw_instructions {
        let (first, all) = (shown(row.hw_l1_misses), shown(row.hw_misses));
        let _ = write!(
            text,
            "; processor: {instructions:.1} instructions, misses {first} and {all}"
        );
    }
    text.push('\n');
    text
}

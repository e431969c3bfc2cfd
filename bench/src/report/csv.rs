//! Comma-separated values with the JSON's keys as header (RFC 4180), then the environment and the command in each line.

use serde::Serialize;
use serde_json::Value;

use super::Report;
use crate::document::{COMMAND, ENVIRONMENT};
use crate::error::{Error, Result};
use crate::visible::csv as quoted;

/// The rows of a report. The header has each key once, in the order of first appearance; a row
/// that lacks a key has an empty field.
pub(crate) fn to_text(report: &Report) -> Result<String> {
    let mut keys: Vec<String> = vec!["test".to_owned()];
    let mut lines = Vec::new();
    for row in &report.rows {
        let mut fields = Vec::new();
        for (key, value) in ordered_fields(row)? {
            match &*key {
                "series" => fields.extend(ordered_fields(&row.series)?),
                "sampling" => fields.extend(ordered_fields(&row.sampling)?),
                "figures" => fields.extend(ordered_fields(&row.figures)?),
                _ => fields.push((key, value)),
            }
        }
        // Lists of ranks and samples are for JSON: readers of tables stumble over them, and the figures have what they come to.
        fields.retain(|(_, value)| !value.is_array() && !value.is_object());
        for (key, _) in &fields {
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        lines.push(fields);
    }
    let (heads, circumstances) = circumstances(report)?;
    let head = keys.iter().chain(&heads).map(|key| quoted(key));
    let mut text = head.collect::<Vec<_>>().join(",") + "\n";
    for fields in lines {
        let field = |key: &String| {
            if key == "test" {
                return report.test.clone();
            }
            let found = fields.iter().find(|(name, _)| name == key);
            found.map_or_else(String::new, |(_, value)| quoted(&plain(value)))
        };
        let row = keys.iter().map(field);
        text += &row.collect::<Vec<_>>().join(",");
        text += &circumstances;
        text.push('\n');
    }
    Ok(text)
}

/// The heads of what all rows share, and its fields.
fn circumstances(report: &Report) -> Result<(Vec<String>, String)> {
    let (mut heads, mut fields) = (Vec::new(), String::new());
    let environment = ordered_fields(&report.environment)?.into_iter();
    let environment =
        environment.map(|(key, value)| (format!("{ENVIRONMENT}{key}"), readable(&value)));
    let command = (COMMAND.to_owned(), report.command.clone());
    for (key, value) in environment.chain([command]) {
        heads.push(key);
        fields = fields + "," + &quoted(&value);
    }
    Ok((heads, fields))
}

/// The fields of a JSON object in their order, which a map of values would lose.
fn ordered_fields(object: &impl Serialize) -> Result<Vec<(String, Value)>> {
    struct Fields(Vec<(String, Value)>);
    impl<'de> serde::Deserialize<'de> for Fields {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Visitor)
        }
    }
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Fields;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
            let mut fields = Vec::new();
            while let Some(field) = map.next_entry::<String, Value>()? {
                fields.push(field);
            }
            Ok(Fields(fields))
        }
    }
    let text = serde_json::to_string(object);
    let fields = text.and_then(|text| serde_json::from_str::<Fields>(&text));
    let fields = fields.map_err(|error| Error::Job(error.to_string()))?;
    Ok(fields.0)
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A value so that [`document`](crate::document) reads the same: text is in quotes where it would be taken for a number, say.
fn readable(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.is_empty() || serde_json::from_str::<Value>(text).is_ok() => {
            value.to_string()
        }
        value => plain(value),
    }
}

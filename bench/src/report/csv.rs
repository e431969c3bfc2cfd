//! Comma-separated values with the JSON's keys as header (RFC 4180).

use serde_json::Value;

use super::Report;
use crate::error::{Error, Result};

/// The rows of a report. The header has each key once, in the order of first appearance; a row
/// that lacks a key has an empty field.
pub(crate) fn to_text(report: &Report) -> Result<String> {
    let mut keys: Vec<String> = vec!["test".to_owned()];
    let mut lines = Vec::new();
    for row in &report.rows {
        let text = serde_json::to_string(row).map_err(|error| Error::Job(error.to_string()))?;
        let fields = ordered_fields(&text).map_err(|error| Error::Job(error.to_string()))?;
        for (key, _) in &fields {
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        lines.push(fields);
    }
    let mut text = keys
        .iter()
        .map(|key| quoted(key))
        .collect::<Vec<_>>()
        .join(",")
        + "\n";
    for fields in lines {
        let field = |key: &String| {
            if key == "test" {
                return report.test.clone();
            }
            let found = fields.iter().find(|(name, _)| name == key);
            found.map_or_else(String::new, |(_, value)| quoted(value))
        };
        text += &keys.iter().map(field).collect::<Vec<_>>().join(",");
        text.push('\n');
    }
    Ok(text)
}

/// The fields of a JSON object in their order, which a map of values would lose.
fn ordered_fields(text: &str) -> serde_json::Result<Vec<(String, String)>> {
    struct Fields(Vec<(String, String)>);
    impl<'de> serde::Deserialize<'de> for Fields {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Visitor)
        }
    }
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Fields;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a row")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
            let mut fields = Vec::new();
            while let Some((key, value)) = map.next_entry::<String, Value>()? {
                let value = match value {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                fields.push((key, value));
            }
            Ok(Fields(fields))
        }
    }
    serde_json::from_str::<Fields>(text).map(|fields| fields.0)
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

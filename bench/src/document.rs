//! Reading results back: JSON of our schema, or the CSV of the same rows.

use serde_json::{Map, Number, Value};

use crate::record::SCHEMA;
use crate::visible;

/// What the heads of the environment begin with, in CSV.
pub(crate) const ENVIRONMENT: &str = "environment.";
/// The head of the command, in CSV.
pub(crate) const COMMAND: &str = "command";

/// The version before, in whose rows everything is a field of its own.
const FLAT: &str = "tagwire.bench/1";
/// The parts of a row that hold fields.
const PARTS: [&str; 3] = ["series", "sampling", "figures"];

/// Returns what a file of results of `tagwire bench` holds, as [`document_of`] does.
///
/// # Errors
/// As [`document_of`].
pub fn document(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    document_of(bytes, &[])
}

/// Returns what a file of results holds: an object with `test`, `rows` and, as far as the file has them, `environment` and
/// `command`. Rows are flat: the fields of their parts are their own, as in CSV and in `tagwire.bench/1`. CSV that was written by
/// earlier versions has neither. Its texts have [letters that show](crate::visible::text) alone. A document of one of the `others`, schemas
/// of other tools, is returned as it is, but for the letters.
///
/// # Errors
/// What is wrong with it, in words: it is empty, cut off, of another schema, or something else.
pub fn document_of(bytes: &[u8], others: &[&str]) -> Result<Map<String, Value>, String> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err("is empty".to_owned());
    }
    if bytes.starts_with(b"test,") {
        let text = std::str::from_utf8(bytes).map_err(|_| "is CSV, but not in UTF-8")?;
        return of_csv(text)
            .map_err(|reason| visible::line(&reason))
            .map(shown);
    }
    let document: Value = serde_json::from_slice(bytes).map_err(|error| {
        if error.is_eof() {
            let line = error.line();
            format!("is cut off in line {line}: it is no complete JSON document")
        } else {
            format!("is no JSON: {}", visible::line(&error.to_string()))
        }
    })?;
    let Value::Object(document) = document else {
        return Err("is no JSON object".to_owned());
    };
    match document.get("schema").and_then(Value::as_str) {
        Some(SCHEMA) => Ok(shown(flat(document))),
        Some(FLAT) => Ok(shown(document)),
        Some(other) if others.contains(&other) => Ok(shown(document)),
        Some(other) => {
            let names = [SCHEMA, FLAT].into_iter().chain(others.iter().copied());
            let mut names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
            let last = names.pop().unwrap_or_default();
            let (other, names) = (visible::line(other), names.join(", "));
            Err(format!(
                "has the schema '{other}', this version reads {names} and {last}"
            ))
        }
        None => Err(format!("has no key 'schema', expected '{SCHEMA}'")),
    }
}

/// The same with what the parts of rows hold in the rows themselves, as the version before has it.
fn flat(mut document: Map<String, Value>) -> Map<String, Value> {
    let lists = document
        .iter_mut()
        .filter(|(key, _)| ["rows", "summary"].contains(&&***key));
    let rows = lists.filter_map(|(_, list)| list.as_array_mut()).flatten();
    for row in rows.filter_map(Value::as_object_mut) {
        for part in PARTS {
            match row.remove(part) {
                Some(Value::Object(fields)) => row.extend(fields),
                // What is none of a row is what its reader finds there.
                Some(other) => drop(row.insert(part.to_owned(), other)),
                None => {}
            }
        }
    }
    document
}

/// The same with letters that show.
fn shown(object: Map<String, Value>) -> Map<String, Value> {
    fn of(value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(visible::text(&text)),
            Value::Array(values) => values.into_iter().map(of).collect(),
            Value::Object(object) => Value::Object(shown(object)),
            other => other,
        }
    }
    let fields = object.into_iter();
    fields
        .map(|(key, field)| (visible::text(&key), of(field)))
        .collect()
}

fn of_csv(text: &str) -> Result<Map<String, Value>, String> {
    let mut lines = records(text)?.into_iter();
    let heads = lines.next().ok_or("is empty")?;
    let mut test = None;
    let (mut rows, mut environment, mut command) = (Vec::new(), Map::new(), None);
    for (number, fields) in lines.enumerate() {
        if fields.len() != heads.len() {
            let (found, wanted) = (fields.len(), heads.len());
            return Err(format!(
                "row {number} has {found} fields and the head {wanted}: it is cut off, or no CSV of 'bench'"
            ));
        }
        let mut row = Map::new();
        for (head, field) in heads.iter().zip(fields) {
            if let Some(key) = head.strip_prefix(ENVIRONMENT) {
                if number == 0 {
                    environment.insert(key.to_owned(), circumstance(field));
                }
            } else if head == COMMAND {
                command.get_or_insert_with(|| visible::of_csv(field));
            } else if head != "test" && !field.is_empty() {
                row.insert(head.clone(), value(field));
            } else if head == "test" && *test.get_or_insert_with(|| field.clone()) != field {
                return Err(format!(
                    "row {number} is of the test '{field}', others are not"
                ));
            }
        }
        rows.push(Value::Object(row));
    }
    let test = test.ok_or("has no rows: nothing was measured")?;
    let mut document = Map::new();
    document.insert("test".to_owned(), Value::String(test));
    document.insert("rows".to_owned(), Value::Array(rows));
    if !environment.is_empty() {
        document.insert("environment".to_owned(), Value::Object(environment));
    }
    if let Some(command) = command {
        document.insert(COMMAND.to_owned(), Value::String(command));
    }
    Ok(document)
}

/// A value of the environment as it was in JSON.
fn circumstance(field: String) -> Value {
    match &*field {
        "" => Value::Null,
        text => {
            let value = serde_json::from_str(text);
            value.unwrap_or_else(|_| Value::String(visible::of_csv(field)))
        }
    }
}

/// A field as it was in JSON.
fn value(field: String) -> Value {
    match &*field {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text => {
            let whole = text.parse::<u64>().ok().map(Number::from);
            let number = whole.or_else(|| text.parse().ok().and_then(Number::from_f64));
            number.map_or_else(
                || Value::String(visible::of_csv(field.clone())),
                Value::Number,
            )
        }
    }
}

/// The records of CSV (RFC 4180); the last line has its end.
fn records(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut records = Vec::new();
    let (mut record, mut field) = (Vec::new(), String::new());
    let mut is_quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut field)),
            '\r' if !is_quoted && letters.peek() == Some(&'\n') => {}
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            letter => field.push(letter),
        }
    }
    if is_quoted || !field.is_empty() || !record.is_empty() {
        return Err("is cut off: its last line has no end".to_owned());
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_reads_back() {
        let text = "test,size,transport,validated,latency_us\nlatency,8,\"a,\"\"b\"\"\",true,0.5\nlatency,16,shm,,1e3\n";
        let document = document(text.as_bytes()).unwrap();
        assert_eq!(document["test"], "latency");
        assert_eq!(
            Value::Array(document["rows"].as_array().unwrap().clone()),
            serde_json::json!([
                {"size": 8, "transport": "a,\"b\"", "validated": true, "latency_us": 0.5},
                {"size": 16, "transport": "shm", "latency_us": 1000.0},
            ])
        );
    }

    #[test]
    fn no_text_of_a_file_has_letters_that_do_not_show() {
        let evil = "\\u001b[31mx\\u202e";
        let file = |schema: &str, name: &str| {
            let text = format!(
                "{{\"schema\":\"{schema}\",\"test\":\"latency\",\"rows\":[{{\"{name}\":[\"{name}\"]}}]}}"
            );
            document(text.as_bytes())
        };
        let rows = &file(SCHEMA, evil).unwrap()["rows"];
        let shown = "\u{fffd}[31mx\u{fffd}";
        assert_eq!(*rows, serde_json::json!([{shown: [shown]}]));
        let reason = file(evil, "x").unwrap_err();
        assert!(
            reason.starts_with(&format!("has the schema '{shown}'")),
            "{reason}"
        );
        let csv = "test,size,transport,latency_us\nlatency,8,\u{1b}x,1\n";
        let rows = &document(csv.as_bytes()).unwrap()["rows"];
        assert_eq!(rows[0]["transport"], "\u{fffd}x");
    }

    #[test]
    fn csv_that_is_cut_off_is_no_report() {
        let text = "test,size,latency_us\nlatency,8,0.5\n";
        for end in 6..text.len() {
            let cut = document(&text.as_bytes()[..end]);
            // At the end of a line it is whole, but has no rows.
            let reason = if end == text.find('\n').unwrap() + 1 {
                "has no rows"
            } else {
                "cut off"
            };
            assert!(cut.unwrap_err().contains(reason), "{end}");
        }
        let mixed = "test,size\nlatency,8\nring,8\n";
        assert!(document(mixed.as_bytes()).unwrap_err().contains("'ring'"));
    }

    /// What version 1 wrote reads as what this version writes of the same rows.
    #[test]
    fn the_version_before_is_read() {
        let latency = include_bytes!("../tests/data/latency-v1.json");
        let halo3d = include_bytes!("../tests/data/halo3d-v1.json");
        for (bytes, key) in [(&latency[..], "latency_us"), (halo3d, "mode")] {
            let before = document(bytes).unwrap();
            let (flat, mut nested) = (before["rows"].as_array().unwrap(), before.clone());
            assert!(flat.len() > 1);
            // Which part holds a field makes no difference to readers.
            let into = |row: &Value| {
                let fields = row.as_object().unwrap().clone().into_iter();
                let (figures, series): (Map<_, _>, Map<_, _>) =
                    fields.partition(|(_, value)| value.is_f64());
                serde_json::json!({"series": series, "figures": figures, "sampling": {}})
            };
            nested["rows"] = flat.iter().map(into).collect();
            nested["schema"] = SCHEMA.into();
            let text = Value::Object(nested).to_string();
            assert!(flat.iter().all(|row| !row[key].is_null()), "{flat:?}");
            assert_eq!(document(text.as_bytes()).unwrap()["rows"], before["rows"]);
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_the_bytes_are_there_is_an_answer(bytes: Vec<u8>) {
            let _ = document(&bytes);
            let _ = document(&[b"test,size\n", &bytes[..]].concat());
        }

        #[test]
        fn any_text_survives_csv(fields in proptest::collection::vec("[^\r]{0,20}", 1..6)) {
            let quoted = fields.iter().map(|field| format!("\"{}\"", field.replace('"', "\"\"")));
            let line = quoted.collect::<Vec<_>>().join(",") + "\n";
            proptest::prop_assert_eq!(records(&line).unwrap(), vec![fields]);
        }
    }
}

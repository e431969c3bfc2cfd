//! Under which circumstances was measured, file by file.

use serde_json::Value;
use tagwire_bench::differences;

use crate::phrase::capitalized;
use crate::read::{Results, word};
use crate::table::{Cell, Mark, Table};

/// What is told first, and how it is called. Other keys follow under their own names.
const KNOWN: [(&str, &str); 23] = [
    ("started_unix_s", "Measured"),
    ("host", "Host"),
    ("cpu_model", "Processor"),
    ("cores", "Cores"),
    ("cpus_online", "CPUs online"),
    ("cpus_allowed", "CPUs allowed"),
    ("smt", "Several threads per core"),
    ("numa_nodes", "NUMA nodes"),
    ("virtual_machine", "Virtual machine"),
    ("memory_bytes", "Memory"),
    ("kernel", "Kernel"),
    ("governors", "Frequency governors"),
    ("boost", "Boost"),
    ("clock_source", "Clock source"),
    ("tcp_congestion", "TCP's congestion control"),
    ("clock_cost_ns", "Cost of the clock, ns"),
    ("version", "Tagwire"),
    ("commit", "Commit"),
    ("ranks", "Ranks"),
    ("launches", "Launches"),
    ("binding", "Binding"),
    ("oversubscribed", "Oversubscribed"),
    ("seed", "Seed"),
];

/// Returns a table of the circumstances, with a column for each file.
#[must_use]
pub fn table(files: &[&Results], labels: &[String]) -> Table {
    let mut keys: Vec<(String, String)> = KNOWN
        .iter()
        .map(|(key, title)| ((*key).to_owned(), (*title).to_owned()))
        .collect();
    for key in files.iter().flat_map(|results| results.environment.keys()) {
        if !keys.iter().any(|(known, _)| known == key) {
            keys.push((key.clone(), titled(key)));
        }
    }
    let mut heads = vec![String::new()];
    heads.extend(labels.iter().cloned());
    let rows = keys.into_iter().filter_map(|(key, title)| {
        let values: Vec<String> = files.iter().map(|results| value(results, &key)).collect();
        if values.iter().all(String::is_empty) {
            return None;
        }
        let differs = files[1..].iter().any(|other| {
            let all = differences(&files[0].environment, &other.environment);
            all.iter().any(|difference| difference.key == key)
        });
        let mark = if differs { Mark::Differs } else { Mark::None };
        let mut row = vec![Cell::new(title)];
        row.extend(values.into_iter().map(|text| Cell {
            text,
            mark,
            note: String::new(),
        }));
        Some(row)
    });
    Table {
        rows: rows.collect(),
        heads,
    }
}

/// Returns a sentence about what differs between the files, `None` where nothing does.
#[must_use]
pub fn difference(files: &[&Results], labels: &[String]) -> Option<String> {
    let table = table(files, labels);
    let differing = table
        .rows
        .iter()
        .filter(|row| row.last().is_some_and(|cell| cell.mark == Mark::Differs));
    let told = differing.map(|row| {
        let mut values: Vec<&str> = Vec::new();
        for cell in &row[1..] {
            let text = if cell.text.is_empty() {
                "not told"
            } else {
                &cell.text
            };
            if !values.contains(&text) {
                values.push(text);
            }
        }
        format!(
            "{} ({})",
            row[0].text.to_lowercase(),
            values.join(" against ")
        )
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| {
        format!(
            "The files were measured under different circumstances: {}.",
            told.join(", ")
        )
    })
}

/// Returns when it was measured, in UTC.
#[must_use]
pub fn measured(results: &Results) -> String {
    value(results, "started_unix_s")
}

fn value(results: &Results, key: &str) -> String {
    let Some(value) = results.environment.get(key) else {
        return String::new();
    };
    match (key, value) {
        ("started_unix_s", Value::Number(seconds)) => {
            seconds.as_u64().map_or_else(String::new, date)
        }
        #[allow(
            clippy::cast_precision_loss,
            reason = "bytes of memory, to three digits"
        )]
        ("memory_bytes", Value::Number(count)) => count
            .as_u64()
            .map_or_else(String::new, |count| crate::number::bytes(count as f64)),
        ("transports", Value::Array(all)) => {
            all.iter().map(transport).collect::<Vec<_>>().join("; ")
        }
        (_, Value::Bool(is_so)) => if *is_so { "yes" } else { "no" }.to_owned(),
        ("settings", Value::Object(map)) if map.is_empty() => "all at their default".to_owned(),
        (_, Value::Object(map)) => {
            let pairs = map
                .iter()
                .map(|(key, value)| format!("{key}={}", word(value)));
            pairs.collect::<Vec<_>>().join(", ")
        }
        (_, value) => word(value),
    }
}

/// What a job used, in words.
fn transport(used: &Value) -> String {
    let text = |key: &str| {
        used.get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let mut words = vec![text("transport").unwrap_or("?").to_owned()];
    for key in [
        "library", "provider", "pml", "engine", "file", "launcher", "why",
    ] {
        let Some(value) = text(key) else { continue };
        words.push(match key {
            "provider" | "engine" | "launcher" => format!("{key} {value}"),
            "file" => format!("from {value}"),
            _ => value.to_owned(),
        });
    }
    words.join(", ")
}

fn titled(key: &str) -> String {
    capitalized(&key.replace('_', " "))
}

/// Returns a time since 1970 as date and time of day (the days of the civil calendar, by eras of 400 years).
#[must_use]
pub fn date(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // The year begins in March here, so that the leap day is its last.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = era * 400 + year + u64::from(month <= 2);
    format!(
        "{year}-{month:02}-{day:02} {:02}:{:02} UTC",
        of_day / 3600,
        of_day % 3600 / 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_795_478_399), "2026-11-23 23:59 UTC");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00 UTC");
    }
}

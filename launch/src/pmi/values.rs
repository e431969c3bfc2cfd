//! Values of any length, in a key-value space whose values are short lines of text.

use std::time::{Duration, Instant};

use tagwire_base::bootstrap::Attribute;
use tagwire_base::{Error, Rank, hex};

use super::client::Client;
use crate::error::Result;
use crate::key_values::KeyValues;
use crate::patience::Pauses;
use crate::store::wire::{MAX_KEY, MAX_VALUE};

/// Digits in front of a value: of how many parts it is.
const COUNT: usize = 4;

/// Returns the name of a part of a value in the launcher's space.
fn name(rank: Rank, key: &str, part: usize) -> String {
    format!("tw.{}.{key}.{part}", rank.as_u32())
}

fn malformed(rank: Rank, key: &str) -> Error {
    Error::Bootstrap(format!(
        "what rank {rank} put as '{key}' came back changed from the launcher's key-value space"
    ))
}

impl Client {
    /// Returns a value where it is there, in all its parts.
    fn fetch(&mut self, rank: Rank, key: &str) -> Result<Option<Vec<u8>>> {
        let mut text = String::new();
        let (mut number, mut count) = (0, 1);
        while number < count {
            let Some(part) = self.get_part(&name(rank, key, number))? else {
                return Ok(None);
            };
            let told = part
                .get(..COUNT)
                .and_then(|count| usize::from_str_radix(count, 16).ok());
            let Some(told) = told.filter(|told| *told > 0) else {
                return Err(malformed(rank, key).into());
            };
            count = told;
            text.push_str(&part[COUNT..]);
            number += 1;
        }
        hex::decode(&text)
            .map(Some)
            .ok_or_else(|| malformed(rank, key).into())
    }
}

impl KeyValues for Client {
    const NAME: &'static str = "PMI-1";

    fn put(&mut self, rank: Rank, key: &str, value: &[u8]) -> Result<()> {
        let text = hex::encode(value);
        let maxima = self.maxima();
        let longest_name = name(rank, key, 1 << (4 * COUNT)).len();
        let most = self.longest_value(longest_name).saturating_sub(COUNT);
        let parts: Vec<&[u8]> = text.as_bytes().chunks(most.max(1)).collect();
        let count = parts.len().max(1);
        if longest_name >= maxima.key || count >= 1 << (4 * COUNT) {
            return Err(Error::Bootstrap(format!(
                "'{key}' of {} bytes does not fit into the launcher's key-value space (keys of {}, values of {}); 'tagwire run' has keys of {MAX_KEY} and values of {MAX_VALUE}",
                value.len(), maxima.key, maxima.value
            ))
            .into());
        }
        for number in 0..count {
            let name = name(rank, key, number);
            let part = parts
                .get(number)
                .map_or("", |part| std::str::from_utf8(part).unwrap_or_default());
            self.put_part(&name, &format!("{count:04x}{part}"))?;
        }
        Ok(())
    }

    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> Result<Option<Vec<u8>>> {
        let deadline = Instant::now().checked_add(timeout);
        let mut pauses = Pauses::new();
        loop {
            let value = self.fetch(rank, key)?;
            // What was put before the last fence is there; some launchers show what was put since.
            if value.is_some() || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(value);
            }
            pauses.sleep();
        }
    }

    fn barrier(&mut self, timeout: Duration) -> Result<Option<()>> {
        self.wait_for_all(timeout)
    }

    fn attribute(&mut self, attribute: Attribute) -> Option<u32> {
        // -1 where nobody has said.
        match attribute {
            Attribute::UniverseSize => self.number("get_universe_size", "universe_size", "size"),
            Attribute::ApplicationNumber => self.number("get_appnum", "appnum", "appnum"),
            _ => None,
        }
    }

    fn abort(&mut self, status: i32) {
        self.end_job(status);
    }

    fn finalize(&mut self) -> Result<()> {
        self.say_goodbye()
    }
}

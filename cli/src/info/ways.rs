//! How ranks of one machine copy messages: the ways that there are, which of them can be used here, and what settings fix.

use serde::Serialize;
use tagwire_base::Config;
use tagwire_base::config::parse::format_bytes;
use tagwire_transport::shm::{ShmOptions, ways_here};

use super::choices::PML;

/// How long messages are copied over shared memory.
#[derive(Debug, Serialize)]
pub struct WaysReport {
    /// The way that the setting `shm-way` fixes; `None` where the fastest is found by trial.
    pub fixed: Option<&'static str>,
    /// All ways. The first one that can be used is taken at first.
    pub ways: Vec<CopyWayReport>,
}

/// A way.
#[derive(Debug, Serialize)]
pub struct CopyWayReport {
    /// Its name in the setting.
    pub name: &'static str,
    /// Why it cannot be used here.
    pub why_not: Option<String>,
}

/// What the settings fix, and what this machine has; `attaches` says whether it lets a rank copy straight from the memory of another.
pub fn gather(config: &Config, attaches: &Result<(), String>) -> WaysReport {
    let options = options(config);
    let ways = ways_here(&options, attaches).into_iter();
    let ways: Vec<CopyWayReport> = ways
        .map(|(name, why_not)| CopyWayReport { name, why_not })
        .collect();
    let fixed = ways
        .iter()
        .map(|way| way.name)
        .find(|name| *name == config.choice("shm-way"));
    WaysReport { fixed, ways }
}

fn options(config: &Config) -> ShmOptions {
    let mut options = ShmOptions::from_config(config);
    options.matches = config.choice(PML) == "cm";
    options
}

impl WaysReport {
    /// Returns one sentence for the ways that can be used, and one for each reason against others.
    pub fn lines(&self) -> Vec<String> {
        if let Some(fixed) = self.fixed {
            return vec![format!("way of long messages: {fixed} (shm-way)")];
        }
        let usable = self.ways.iter().filter(|way| way.why_not.is_none());
        let usable: Vec<&str> = usable.map(|way| way.name).collect();
        let mut lines = vec![match &usable[..] {
            [] => "way of long messages: in pieces through the ring".to_owned(),
            [only] => format!("way of long messages: {only} alone"),
            [first, others @ ..] => format!(
                "ways of long messages, found by trial for each pair and length: {first} (at first), {}; --shm-way fixes one",
                others.join(", ")
            ),
        }];
        let reasons = self.ways.iter().filter_map(|way| way.why_not.as_ref());
        let mut told: Vec<&String> = Vec::new();
        for reason in reasons {
            if told.contains(&reason) {
                continue;
            }
            told.push(reason);
            let same = |way: &&CopyWayReport| way.why_not.as_ref() == Some(reason);
            let names: Vec<&str> = (self.ways.iter().filter(same).map(|way| way.name)).collect();
            lines.push(format!("not by {}: {reason}", names.join(" or ")));
        }
        lines
    }
}

/// What the settings say of memory that messages are copied through: one sentence each.
pub fn rooms(config: &Config) -> Vec<String> {
    let options = options(config);
    let rooms = match options.room {
        _ if options.matches => "rings do not grow: ranks under pml=cm have no rooms".to_owned(),
        Some(0) => "rings do not grow: shm-room is 0".to_owned(),
        Some(bytes) => format!(
            "rings of ranks that send each other long messages grow, within {} over all ranks (shm-room)",
            format_bytes(bytes as u64)
        ),
        None => "rings of ranks that send each other long messages grow, within 1/64 of the machine's memory over all ranks (shm-room)"
            .to_owned(),
    };
    let has_rooms = !options.matches && options.room != Some(0);
    let reuse = match options.reuse {
        _ if !has_rooms => "never, without rooms",
        Some(true) => "always (shm-reuse)",
        Some(false) => "never (shm-reuse)",
        None => "where a trial finds that faster (shm-reuse)",
    };
    let reuse = format!(
        "messages of 256 B to 16 KiB go into memory of a ring that their sender has just read: {reuse}"
    );
    vec![rooms, reuse]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(settings: &[(&str, &str)]) -> Config {
        let mut config = Config::defaults(&tagwire::settings::registry());
        for (name, value) in settings {
            config.set(name, value).unwrap();
        }
        config
    }

    fn told(settings: &[(&str, &str)], attaches: Result<(), &str>) -> String {
        let report = gather(&config(settings), &attaches.map_err(str::to_owned));
        report.lines().join("\n")
    }

    #[test]
    fn ways_are_told_with_what_stands_against_them() {
        let all = "ways of long messages, found by trial for each pair and length: halves (at first), one-side, ring; --shm-way fixes one";
        assert_eq!(told(&[], Ok(())), all);
        assert_eq!(
            told(&[], Err("EPERM")),
            "way of long messages: ring alone\n\
             not by halves or one-side: this system forbids the kernel's copy (EPERM)"
        );
        let off = told(&[("shm-cma", "off")], Ok(()));
        assert!(
            off.contains("ring alone\nnot by halves or one-side: shm-cma is off"),
            "{off}"
        );
        let cm = told(&[("pml", "cm")], Ok(()));
        assert!(
            cm.contains("halves alone\nnot by one-side or ring: ranks that match"),
            "{cm}"
        );
        assert_eq!(
            told(&[("shm-way", "ring")], Err("EPERM")),
            "way of long messages: ring (shm-way)"
        );
    }

    #[test]
    fn rooms_and_reuse_follow_their_settings() {
        let told = |settings: &[(&str, &str)]| rooms(&config(settings)).join("\n");
        let plain = told(&[]);
        assert!(
            plain.contains("1/64") && plain.contains("a trial finds"),
            "{plain}"
        );
        let set = told(&[("shm-room", "96M"), ("shm-reuse", "off")]);
        assert!(
            set.contains("within 96M") && set.contains("never (shm-reuse)"),
            "{set}"
        );
        assert!(told(&[("shm-reuse", "on")]).contains("always (shm-reuse)"));
        let none = told(&[("shm-room", "0")]);
        assert!(
            none.contains("shm-room is 0") && none.contains("never, without rooms"),
            "{none}"
        );
        assert!(told(&[("pml", "cm")]).contains("pml=cm have no rooms"));
    }
}

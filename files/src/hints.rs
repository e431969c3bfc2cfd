//! Hints: what programs say of how files should be accessed (MPI-5.0, section 14.2.8).

/// Whether something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Switch {
    /// Where it pays.
    #[default]
    Automatic,
    /// Always.
    Enable,
    /// Never.
    Disable,
}

impl Switch {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "automatic" => Some(Self::Automatic),
            "enable" | "true" => Some(Self::Enable),
            "disable" | "false" => Some(Self::Disable),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::Enable => "enable",
            Self::Disable => "disable",
        }
    }
}

/// The hints of a file.
///
/// | key | value | what it is for |
/// |---|---|---|
/// | `cb_buffer_size` | bytes | the memory of an aggregator for one round |
/// | `cb_nodes` | a number | how many aggregators there are at most |
/// | `cb_config_list` | `*:N` | how many of them are on a host |
/// | `collective_buffering` | `true`, `false` | both of the next two |
/// | `romio_cb_write`, `romio_cb_read` | `enable`, `disable`, `automatic` | whether collective writes and reads are in two phases |
/// | `romio_ds_read` | the same | whether reads of short extents are sieved |
/// | `ind_rd_buffer_size` | bytes | the window of such a read |
/// | `striping_unit` | bytes | where the parts of aggregators are cut |
/// | `file_perm` | octal digits | permissions of a file that is made |
/// | `tagwire_sync_on_close` | `true`, `false` | whether closing the file puts what was written on the storage |
///
/// Values that are none are ignored, as the standard wants it, and so are other keys. Writes are not sieved: `romio_ds_write` is
/// `disable` always.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hints {
    /// Bytes of an aggregator's memory.
    pub buffer: u64,
    /// Aggregators at most; `None` for [`per_host`](Self::per_host) of each.
    pub aggregators: Option<usize>,
    /// Aggregators of a host.
    pub per_host: usize,
    /// Whether collective writes are in two phases.
    pub two_phase_writes: Switch,
    /// Whether collective reads are.
    pub two_phase_reads: Switch,
    /// Whether reads of short extents are sieved.
    pub sieve: Switch,
    /// Bytes of the window of a sieved read.
    pub window: u64,
    /// Parts of aggregators begin at multiples of so many bytes; `None` for [`UNIT`](Self::UNIT). It is not given back then: programs
    /// take the hint as that of the file system, and align what they write.
    pub unit: Option<u64>,
    /// Permissions of a file that is made.
    pub permissions: u32,
    /// Whether closing synchronizes.
    pub syncs_on_close: bool,
}

impl Default for Hints {
    fn default() -> Self {
        Self {
            buffer: Self::BUFFER,
            aggregators: None,
            per_host: 1,
            two_phase_writes: Switch::Automatic,
            two_phase_reads: Switch::Automatic,
            sieve: Switch::Automatic,
            window: 4 << 20,
            unit: None,
            permissions: crate::unix::PERMISSIONS,
            syncs_on_close: false,
        }
    }
}

/// Buffers that a hint asks for have so many bytes at most: more would be memory that a program does not expect.
const LONGEST: u64 = 1 << 30;

impl Hints {
    /// Bytes of an aggregator's memory, unless a hint says otherwise: what it copies next is still in the caches then.
    pub const BUFFER: u64 = 2 << 20;

    /// Where the parts of aggregators are cut, in bytes, unless a hint says otherwise.
    pub const UNIT: u64 = 1 << 20;

    /// Takes the value of a key. Returns whether the key is one and the value is good for it.
    pub fn set(&mut self, key: &str, value: &str) -> bool {
        let value = value.trim();
        let bytes = || {
            value
                .parse()
                .ok()
                .filter(|bytes| (1..=LONGEST).contains(bytes))
        };
        let number = || value.parse().ok().filter(|number| *number > 0);
        match key {
            "cb_buffer_size" => put(&mut self.buffer, bytes()),
            "ind_rd_buffer_size" => put(&mut self.window, bytes()),
            "striping_unit" => put(&mut self.unit, bytes().map(Some)),
            "cb_nodes" => put(&mut self.aggregators, number().map(Some)),
            "cb_config_list" => put(&mut self.per_host, per_host(value)),
            "collective_buffering" => {
                let switch = Switch::parse(value).filter(|_| matches!(value, "true" | "false"));
                put(&mut self.two_phase_writes, switch) && put(&mut self.two_phase_reads, switch)
            }
            "romio_cb_write" => put(&mut self.two_phase_writes, Switch::parse(value)),
            "romio_cb_read" => put(&mut self.two_phase_reads, Switch::parse(value)),
            "romio_ds_read" => put(&mut self.sieve, Switch::parse(value)),
            "file_perm" => put(&mut self.permissions, crate::unix::permissions(value)),
            "tagwire_sync_on_close" => put(&mut self.syncs_on_close, value.parse().ok()),
            _ => false,
        }
    }

    /// Returns the hints that are in use, by key.
    #[must_use]
    pub fn all(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![
            ("cb_buffer_size", self.buffer.to_string()),
            ("cb_config_list", config_list(self.per_host)),
            ("romio_cb_write", self.two_phase_writes.name().to_owned()),
            ("romio_cb_read", self.two_phase_reads.name().to_owned()),
            ("romio_ds_read", self.sieve.name().to_owned()),
            ("romio_ds_write", "disable".to_owned()),
            ("ind_rd_buffer_size", self.window.to_string()),
            ("file_perm", format!("{:o}", self.permissions)),
            ("tagwire_sync_on_close", self.syncs_on_close.to_string()),
        ];
        if let Some(most) = self.aggregators {
            all.push(("cb_nodes", most.to_string()));
        }
        if let Some(unit) = self.unit {
            all.push(("striping_unit", unit.to_string()));
        }
        all
    }
}

/// Sets a value where there is one.
fn put<T>(into: &mut T, value: Option<T>) -> bool {
    let is_good = value.is_some();
    if let Some(value) = value {
        *into = value;
    }
    is_good
}

/// Returns the list of ROMIO's form that asks for so many aggregators of each host.
fn config_list(per_host: usize) -> String {
    match per_host {
        usize::MAX => "*:*".to_owned(),
        number => format!("*:{number}"),
    }
}

/// Returns how many aggregators of each host a list of ROMIO's form asks for; `*` are as many as there are.
fn per_host(list: &str) -> Option<usize> {
    let (hosts, number) = list.split_once(':').unwrap_or((list, "1"));
    match (hosts, number) {
        ("*", "*") => Some(usize::MAX),
        ("*", number) => number.parse().ok().filter(|number| *number > 0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_none_are_ignored() {
        let mut hints = Hints::default();
        for (key, value) in [
            ("cb_buffer_size", "0"),
            ("cb_buffer_size", "many"),
            ("cb_nodes", "-1"),
            ("romio_cb_write", "perhaps"),
            ("collective_buffering", "automatic"),
            ("cb_config_list", "one:1"),
            ("file_perm", "rw"),
            ("romio_ds_write", "enable"),
            ("unknown", "1"),
        ] {
            assert!(!hints.set(key, value), "{key}={value}");
        }
        assert_eq!(hints, Hints::default());
        assert!(hints.set("cb_config_list", "*:*") && hints.set("file_perm", "0640"));
        assert!(hints.set("collective_buffering", "false") && hints.set("cb_nodes", " 3 "));
        assert_eq!((hints.per_host, hints.permissions), (usize::MAX, 0o640));
        assert_eq!(hints.two_phase_reads, Switch::Disable);
        assert_eq!(hints.aggregators, Some(3));
    }

    /// What a file gives back, another takes.
    #[test]
    fn all_that_is_given_back_is_taken() {
        let mut hints = Hints::default();
        assert!(hints.set("cb_nodes", "2") && hints.set("striping_unit", "4096"));
        let mut other = Hints::default();
        for (key, value) in hints.all() {
            assert!(other.set(key, &value) || key == "romio_ds_write", "{key}");
        }
        assert_eq!(other, hints);
    }

    /// Values are given back as they were said, and none that nobody said of the file system.
    #[test]
    fn values_are_given_back_as_they_are_written() {
        let of = |hints: &Hints, key: &str| {
            let mut all = hints.all().into_iter();
            all.find_map(|(name, value)| (name == key).then_some(value))
        };
        let mut hints = Hints::default();
        assert_eq!(of(&hints, "striping_unit"), None);
        for (key, value) in [
            ("cb_config_list", "*:*"),
            ("cb_config_list", "*:3"),
            ("striping_unit", "65536"),
        ] {
            assert!(hints.set(key, value));
            assert_eq!(of(&hints, key).as_deref(), Some(value));
        }
    }
}

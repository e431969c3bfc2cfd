//! What distinguishes a host from others.

/// The variable of the setting `host`, which launchers' joins read before there is a configuration.
pub const VARIABLE: &str = "TAGWIRE_HOST";

/// Returns the name of this host: the user's, or what the kernel says. `None` where neither does.
#[must_use]
pub fn name() -> Option<String> {
    let named = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty());
    named.or_else(identity)
}

/// Returns what all ranks of one host have in common, and those of another have not: the run of its kernel, the user, and
/// the namespace of processes, so that containers are hosts of their own. `None` where the kernel does not say.
#[must_use]
pub fn identity() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let user = rustix::process::geteuid().as_raw();
    Some(format!("{} {user} {}", boot.trim(), namespace.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_itself_each_time() {
        let own = identity().expect("Linux has it");
        assert_eq!(identity().as_ref(), Some(&own));
        assert!(own.contains(" pid:["), "{own}");
    }
}

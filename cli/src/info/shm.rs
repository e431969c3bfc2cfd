//! What `info` has to say of shared memory on this machine: what the kernel forbids, what that
//! costs, and what would change it.

use tagwire_base::Config;
use tagwire_base::topology::Topology;
use tagwire_transport::shm::{Probe, probe};

use super::ways;

/// The setting that switches cross-memory attach.
const ATTACH: &str = "shm-cma";

/// The setting that says how much memory ranks can share.
const ARENA: &str = "shm-arena";

/// One sentence for each thing that this machine or a setting forbids, and some on how messages are copied.
pub fn notes(config: &Config, topology: &Topology) -> Vec<String> {
    let Probe {
        shared_memory,
        room,
        proc_descriptors,
        cross_attach,
        barriers,
        process_descriptors,
        ..
    } = probe();
    let mut notes = vec![copies(config, topology.ptrace_scope, &cross_attach)];
    notes.extend(ways::gather(config, &cross_attach).lines());
    notes.extend(ways::rooms(config));
    for (found, consequence) in [
        (shared_memory, "nothing can be sent"),
        (
            room,
            "shared buffers (Session::alloc) are fewer, and pml=cm may not open",
        ),
        (proc_descriptors, "the launcher passes descriptors instead"),
        (
            barriers,
            "a sleeping rank looks once in a millisecond instead of being woken",
        ),
        (
            process_descriptors,
            "the end of a peer is found by its process number",
        ),
    ] {
        notes.extend(found.err().map(|reason| format!("{reason}: {consequence}")));
    }
    notes
}

/// How often a large message is copied, and why.
fn copies(config: &Config, scope: Option<u32>, attach: &Result<(), String>) -> String {
    let but = if config.bytes(ARENA) == 0 {
        ""
    } else {
        "; those from or into shared buffers (Session::alloc) are copied once"
    };
    let switch = config.entry(ATTACH).map(|entry| entry.value().to_string());
    if switch.is_ok_and(|value| value == "off") {
        return format!(
            "large messages are copied twice: '{ATTACH}' is off; --{ATTACH} auto copies them once{but}"
        );
    }
    match (attach, scope) {
        (Ok(()), _) => "large messages are copied once, by cross-memory attach".to_owned(),
        (Err(reason), Some(scope @ 2..)) => {
            let remedy = yama_remedy(scope);
            format!("large messages are copied twice: {reason}; {remedy}{but}")
        }
        (Err(reason), _) => format!(
            "large messages are copied twice: {reason}; in a container, a seccomp profile that \
             allows process_vm_readv (or the capability SYS_PTRACE) changes it{but}"
        ),
    }
}

/// What lowers the kernel's switch for attaching.
const fn yama_remedy(scope: u32) -> &'static str {
    if scope >= 3 {
        "only a restart of the machine lowers it"
    } else {
        "'sysctl kernel.yama.ptrace_scope=0' allows it to all processes of one user"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(settings: &[(&str, &str)], scope: Option<u32>, attach: Result<(), &str>) -> String {
        let mut config = Config::defaults(&tagwire::settings::registry());
        for (name, value) in settings {
            config.set(name, value).unwrap();
        }
        copies(&config, scope, &attach.map_err(str::to_owned))
    }

    #[test]
    fn a_free_machine_copies_once() {
        for scope in [None, Some(0), Some(1)] {
            assert!(told(&[], scope, Ok(())).contains("copied once"));
        }
    }

    #[test]
    fn each_obstacle_is_named_with_its_remedy() {
        let restricted = told(&[], Some(2), Err("administrators only"));
        assert!(
            restricted.contains("sysctl kernel.yama.ptrace_scope=0"),
            "{restricted}"
        );
        let forbidden = told(&[], Some(3), Err("no process may attach"));
        assert!(
            forbidden.contains("no process may attach; only a restart"),
            "{forbidden}"
        );
        let filtered = told(&[], None, Err("process_vm_readv: not permitted"));
        assert!(
            filtered.contains("not permitted; in a container, a seccomp"),
            "{filtered}"
        );
    }

    #[test]
    fn the_setting_comes_before_the_kernel() {
        let text = told(&[(ATTACH, "off")], Some(3), Err("forbidden"));
        assert!(
            text.contains("--shm-cma auto") && !text.contains("forbidden"),
            "{text}"
        );
        assert!(text.contains("Session::alloc"), "{text}");
        let text = told(&[(ATTACH, "off"), (ARENA, "0")], None, Ok(()));
        assert!(!text.contains("Session::alloc"), "{text}");
    }
}

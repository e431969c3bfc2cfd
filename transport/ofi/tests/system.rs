//! The conformance kit over the system's libfabric (1.17 on Debian 12).
//!
//! `sockets` passes most of it: its thread brings messages at times of its own, and libfabric has given
//! it up for `tcp`.

mod common;

use common::{expect_published, published, system};
use tagwire_ofi::Ofi;

provider_conformance!(on_tcp_rxm, crate::common::system(), "tcp;ofi_rxm");
provider_conformance!(
    without_notices,
    crate::common::system(),
    "tcp;ofi_rxm",
    crate::common::without_notices
);
provider_conformance!(on_net, crate::common::system(), "net");
provider_conformance!(on_udp_rxd, crate::common::system(), "udp;ofi_rxd");

/// Each check has a process of its own. The provider maps the memory of a rank of its own process once, where that rank
/// has it, so that of two that close side by side one now and then reaches for what the other has returned. Ranks that
/// are processes each have a mapping of their own.
mod on_shm {
    #![allow(clippy::unwrap_used, reason = "a test that panics fails")]

    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    /// Set for the processes of checks.
    const CHILD: &str = "TAGWIRE_TEST_CHILD";
    /// So many processes may be lost to the provider.
    const TRIES: usize = 5;
    const SIGSEGV: i32 = 11;

    /// Removes the memory of the ranks of a process that is no more: a later one of its number would find it in use.
    fn remove_memory(process: u32) {
        let prefix = format!("{process}:");
        for file in std::fs::read_dir("/dev/shm")
            .into_iter()
            .flatten()
            .flatten()
        {
            if file.file_name().to_string_lossy().starts_with(&prefix) {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }

    fn check(name: &str) {
        if std::env::var_os(CHILD).is_some() {
            match crate::common::bench(crate::common::system(), "shm") {
                Ok(options) => {
                    let factory = crate::common::factory(options);
                    tagwire_conformance::assert_check(name, &factory);
                }
                Err(reason) => println!("SKIPPED: no shm here: {reason}"),
            }
            return;
        }
        for _ in 0..TRIES {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", &format!("on_shm::{name}"), "--show-output"]);
            child.stdout(Stdio::piped()).stderr(Stdio::piped());
            let child = child.env(CHILD, "1").spawn().unwrap();
            let id = child.id();
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            if output.status.success() {
                assert!(text.contains("1 passed"), "{text}");
                text.lines()
                    .filter(|line| line.starts_with("SKIPPED"))
                    .for_each(|line| println!("{line}"));
                return;
            }
            let crashed = output.status.signal() == Some(SIGSEGV);
            assert!(crashed, "{}\n{text}", output.status);
            remove_memory(id);
            println!("a rank reached for the memory of one that had closed: once more");
        }
        panic!("{TRIES} processes ended by SIGSEGV");
    }

    tagwire_conformance::transport_conformance!(@for_each tests);
}

mod on_sockets {
    fn check(name: &str) {
        if super::published::OWN_TIMES.contains(&name) {
            println!("SKIPPED: sockets moves messages at times of its own");
            return;
        }
        match crate::common::bench(crate::common::system(), "sockets") {
            Ok(options) => {
                let factory = crate::common::factory(options);
                tagwire_conformance::assert_check(name, &factory);
            }
            Err(reason) => println!("SKIPPED: no sockets here: {reason}"),
        }
    }

    tagwire_conformance::transport_conformance!(@for_each tests);
}

#[test]
fn providers_offer_what_is_published() {
    expect_published(system(), published::SYSTEM_LIBFABRIC);
}

provider_farewell!(farewell_tcp_rxm, crate::common::system(), "tcp;ofi_rxm");
provider_farewell!(farewell_net, crate::common::system(), "net");

provider_matching!(
    matching_tcp_rxm,
    crate::common::system(),
    "tcp;ofi_rxm",
    &[]
);
provider_matching!(
    matching_little_data,
    crate::common::system(),
    "tcp;ofi_rxm",
    &[],
    crate::common::with_little_data
);
/// A provider that asks the sender for the bytes of an unmatched message, as ofi_rxm does for one that is longer than its
/// buffers: who claims it waits for nobody. The provider reads the setting once in a process, so that these checks have their own.
#[test]
fn claims_wait_for_no_sender_where_the_provider_asks_for_bytes() {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args([
        "--exact",
        "matching_tcp_rxm::claims_take_out_of_matching",
        "matching_tcp_rxm::random_runs_match_the_lists",
        "matching_tcp_rxm::claims_of_the_dead_end",
    ]);
    let output = child.env("FI_OFI_RXM_BUFFER_SIZE", "4096").output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("3 passed"),
        "{text}"
    );
}

/// Providers whose matching is wrong are refused with the reason, and what to do.
#[test]
fn broken_matching_is_refused() {
    let newer_works = "TAGWIRE_LIBFABRIC";
    for (provider, reason, remedy) in [
        ("shm", "wildcards", newer_works),
        ("net", "have left", newer_works),
        ("udp;ofi_rxd", "overtake", "pml=ob1"),
        ("sockets", "race", "pml=ob1"),
    ] {
        let Ok(options) = common::bench(system(), provider) else {
            println!("SKIPPED: no {provider} here");
            continue;
        };
        match common::open_matching(&options) {
            Ok(version) => assert!(
                version >= (1, 19) && remedy == newer_works,
                "{provider} of {version:?}"
            ),
            Err(error) => assert!(error.contains(reason) && error.contains(remedy), "{error}"),
        }
    }
}

/// Writes tell of themselves as they are asked to, at best.
#[test]
fn the_order_of_writes_is_known_where_it_is_needed() {
    use tagwire_ofi::Notices;
    use tagwire_transport::{ByteTransport, Ordering};

    for provider in ["tcp;ofi_rxm", "net"] {
        let Ok(options) = common::bench(system(), provider) else {
            println!("SKIPPED: no {provider} here");
            continue;
        };
        // What ofi_rxm does with one that is cut off ends the process.
        let data = match provider {
            "net" => (Notices::Data, 8, Ordering::None),
            _ => (Notices::Data, 0, Ordering::WriteAfterWrite),
        };
        for (notices, width, ordering) in [
            data,
            (Notices::Flags, 0, Ordering::WriteAfterWrite),
            (Notices::Messages, 0, Ordering::None),
        ] {
            let options = tagwire_ofi::OfiOptions {
                notices,
                ..options.clone()
            };
            let job = tagwire_base::bootstrap::LocalJob::new(1).unwrap();
            let member = job.member(tagwire_base::Rank::new(0));
            let limits = Ofi::open(&options, &member).unwrap().limits();
            assert_eq!(
                (limits.immediate_width, limits.ordering),
                (width, ordering),
                "{provider}, {notices:?}"
            );
        }
    }
}

/// The receive buffers that `ofi_rxm` posts are in memory from the start: 4,096 of them, as many as it would post, are 68 MB. In a process of
/// its own: the library reads the variable once.
#[test]
fn an_open_rank_takes_little_memory() {
    const CHILD: &str = "TAGWIRE_TEST_MEMORY";
    const MOST_KIB: u64 = 40 << 10;
    if std::env::var_os(CHILD).is_none() {
        return common::alone(&["an_open_rank_takes_little_memory"], CHILD, "1");
    }
    let resident_kib = || -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.unwrap()
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .unwrap()
    };
    let Some(library) = system() else {
        println!("SKIPPED: no libfabric here");
        return;
    };
    let job = tagwire_base::bootstrap::LocalJob::new(1).unwrap();
    let member = job.member(tagwire_base::Rank::new(0));
    let before = resident_kib();
    match Ofi::open(&common::options(&library, "tcp;ofi_rxm"), &member) {
        Ok(_open) => {
            let grown = resident_kib() - before;
            assert!(grown < MOST_KIB, "{grown} KiB");
        }
        Err(error) => println!("SKIPPED: no tcp;ofi_rxm here: {error}"),
    }
}

/// A message is longer than what is left of the buffer that it comes into.
#[test]
fn messages_are_whole_with_small_buffers_of_the_provider() {
    common::with_small_buffers(&[
        "on_tcp_rxm::delivers_every_size",
        "on_tcp_rxm::delivers_each_message_once",
        "on_tcp_rxm::goes_on_with_any_length",
        "on_tcp_rxm::sends_without_a_copy",
    ]);
}

//! Devices without which a provider has nothing to offer. Libraries say only "no data available" then, and
//! some do not even list the provider: 1.17 shows `verbs` and `psm3` only where there is a device.

use std::path::Path;

/// Where the kernel lists RDMA devices.
const RDMA: &str = "/sys/class/infiniband";

/// Provider, its device, where the kernel lists it, and what its name begins with.
const NEEDS: [(&str, &str, &str, &str); 8] = [
    ("verbs", "an RDMA device", RDMA, ""),
    ("psm3", "an RDMA device", RDMA, ""),
    ("psm2", "an Omni-Path device", RDMA, "hfi1"),
    ("opx", "an Omni-Path device", RDMA, "hfi1"),
    ("psm", "a True Scale device", RDMA, "qib"),
    ("efa", "an EFA device", RDMA, "efa"),
    ("usnic", "a usNIC device", RDMA, "usnic"),
    ("cxi", "a Slingshot device", "/sys/class/cxi", "cxi"),
];

/// The device that `provider` needs and this machine lacks, as a sentence.
pub(crate) fn missing(provider: &str) -> Option<String> {
    missing_below(Path::new("/"), provider)
}

fn missing_below(root: &Path, provider: &str) -> Option<String> {
    let core = provider.split(';').next()?;
    let (_, device, folder, prefix) = NEEDS.iter().find(|(name, ..)| *name == core)?;
    let listed = root.join(folder.trim_start_matches('/'));
    let found = std::fs::read_dir(listed).is_ok_and(|entries| {
        let mut names = entries.flatten().map(|entry| entry.file_name());
        names.any(|name| name.to_string_lossy().starts_with(prefix))
    });
    let which = if prefix.is_empty() {
        "no device".to_owned()
    } else {
        format!("no device '{prefix}*'")
    };
    (!found).then(|| format!("{core} needs {device}, and there is none here ({which} in {folder})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_missed_until_it_is_there() {
        let root = std::env::temp_dir().join(format!("tagwire-devices-{}", std::process::id()));
        let why = |provider| missing_below(&root, provider);
        let verbs = why("verbs;ofi_rxm").expect("there is no such folder");
        assert!(
            verbs.contains("RDMA") && verbs.contains("/sys/class/infiniband"),
            "{verbs}"
        );
        assert!(why("cxi").is_some_and(|cxi| cxi.contains("/sys/class/cxi")));
        std::fs::create_dir_all(root.join("sys/class/infiniband/rxe0")).expect("a scratch folder");
        let with_device = ["verbs", "verbs;ofi_rxm", "efa"].map(|name| why(name).is_some());
        std::fs::remove_dir_all(&root).expect("it was just made");
        assert_eq!(with_device, [false, false, true]);
        assert_eq!(why("tcp"), None);
    }
}

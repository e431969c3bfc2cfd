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
    let need = Need::of(Path::new("/"), provider)?;
    need.found.is_empty().then(|| need.sentence())
}

/// The device without which `provider`, which offers nothing here, has nothing to offer, as a sentence:
/// there is none, or none of those that there are is one.
pub(crate) fn needed(provider: &str) -> Option<String> {
    Need::of(Path::new("/"), provider).map(|need| need.sentence())
}

/// What a provider needs, and what there is of it.
struct Need<'a> {
    core: &'a str,
    device: &'static str,
    folder: &'static str,
    prefix: &'static str,
    found: Vec<String>,
}

impl<'a> Need<'a> {
    /// On the machine whose files are below `root`; `None` for a provider that needs no device.
    fn of(root: &Path, provider: &'a str) -> Option<Self> {
        let core = provider.split(';').next()?;
        let (_, device, folder, prefix) = NEEDS.iter().find(|(name, ..)| *name == core)?;
        let listed = std::fs::read_dir(root.join(folder.trim_start_matches('/')));
        let names = listed.into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut found: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
        found.sort();
        Some(Self {
            core,
            device,
            folder,
            prefix,
            found,
        })
    }

    fn sentence(&self) -> String {
        let Self {
            core,
            device,
            folder,
            prefix,
            found,
        } = self;
        if !found.is_empty() {
            let found = found.join(", ");
            return format!(
                "{core} needs {device} that its library knows, and finds none in those here \
                 ({found} in {folder})"
            );
        }
        let which = if prefix.is_empty() {
            "no device".to_owned()
        } else {
            format!("no device '{prefix}*'")
        };
        format!("{core} needs {device}, and there is none here ({which} in {folder})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_missed_until_it_is_there() {
        let root = std::env::temp_dir().join(format!("tagwire-devices-{}", std::process::id()));
        let why = |provider: &str| {
            let need = Need::of(&root, provider)?;
            need.found.is_empty().then(|| need.sentence())
        };
        let verbs = why("verbs;ofi_rxm").expect("there is no such folder");
        assert!(
            verbs.contains("RDMA") && verbs.contains("/sys/class/infiniband"),
            "{verbs}"
        );
        assert!(why("cxi").is_some_and(|cxi| cxi.contains("/sys/class/cxi")));
        std::fs::create_dir_all(root.join("sys/class/infiniband/rxe0")).expect("a scratch folder");
        let with_device = ["verbs", "verbs;ofi_rxm", "efa"].map(|name| why(name).is_some());
        let unsuitable = Need::of(&root, "psm3").map(|need| need.sentence());
        std::fs::remove_dir_all(&root).expect("it was just made");
        assert_eq!(with_device, [false, false, true]);
        assert_eq!(why("tcp"), None);
        assert_eq!(
            unsuitable.expect("it needs a device"),
            "psm3 needs an RDMA device that its library knows, and finds none in those here (rxe0 in \
             /sys/class/infiniband)"
        );
    }
}

//! Providers that are files of their own, `lib*-fi.so`. libfabric looks for them in `FI_PROVIDER_PATH`, or
//! else in the folder that it was built for. One that was unpacked elsewhere finds none of them there, and
//! says nothing of it: it seems to have no providers.

use std::path::{Path, PathBuf};

/// The variable of libfabric that names their folder.
const VARIABLE: &str = "FI_PROVIDER_PATH";

/// Files of providers near a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plugins {
    folder: PathBuf,
    /// The providers, as the files call them.
    names: Vec<String>,
}

impl Plugins {
    /// Looks beside `library`, then in the folders beside it. Returns `None` where no such file is there,
    /// or libfabric has been sent there already.
    pub(crate) fn near(library: &Path) -> Option<Self> {
        let found = Self::find(library)?;
        let set = std::env::var_os(VARIABLE).map(PathBuf::from);
        (set.as_ref() != Some(&found.folder)).then_some(found)
    }

    fn find(library: &Path) -> Option<Self> {
        let beside = library.parent()?;
        let mut below: Vec<_> = (std::fs::read_dir(beside).ok()?.flatten())
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect();
        below.sort();
        let mut folders = std::iter::once(beside.to_owned()).chain(below);
        folders.find_map(Self::in_folder)
    }

    fn in_folder(folder: PathBuf) -> Option<Self> {
        let files = std::fs::read_dir(&folder).ok()?.flatten();
        let mut names: Vec<_> = files
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let name = name.strip_prefix("lib")?.strip_suffix("-fi.so")?;
                Some(name.to_owned())
            })
            .collect();
        names.sort();
        (!names.is_empty()).then_some(Self { folder, names })
    }

    /// Whether one of the files is that of `provider`: files have a version behind the name at times,
    /// and lack the `ofi_` of layers.
    pub(crate) fn has(&self, provider: &str) -> bool {
        let core = provider.split(';').next().unwrap_or_default();
        let core = core.strip_prefix("ofi_").unwrap_or(core);
        let is_it = |name: &String| {
            let rest = name.strip_prefix(core);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        self.names.iter().any(is_it)
    }

    /// What to do about them.
    pub(crate) fn advice(&self) -> String {
        format!(
            "its providers are files of their own: set {VARIABLE}={} for {}",
            self.folder.display(),
            self.names.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_providers_are_found_beside_a_library_and_below() {
        let root = std::env::temp_dir().join(format!("tagwire-plugins-{}", std::process::id()));
        let library = root.join("libfabric.so.1");
        std::fs::create_dir_all(root.join("empty")).unwrap();
        assert_eq!(Plugins::find(&library), None);
        assert_eq!(Plugins::find(Path::new("libfabric.so.1")), None, "a name");
        let put = |path: &str| std::fs::write(root.join(path), "").unwrap();
        std::fs::create_dir_all(root.join("prov")).unwrap();
        put("prov/libtcp-fi.so");
        put("prov/libverbs-1.12-fi.so");
        put("prov/libtcp.so");
        put("prov/librxm-fi.so");
        let below = Plugins::find(&library).unwrap();
        put("libefa-fi.so");
        let beside = Plugins::find(&library).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        let prov = root.join("prov");
        assert_eq!(
            below.advice(),
            format!(
                "its providers are files of their own: set FI_PROVIDER_PATH={} for rxm, tcp, verbs-1.12",
                prov.display()
            )
        );
        let known = ["tcp", "tcp;ofi_rxm", "ofi_rxm", "verbs"];
        assert!(known.iter().all(|name| below.has(name)));
        let unknown = ["verb", "tc", "efa", "nothing"];
        assert!(!unknown.iter().any(|name| below.has(name)));
        assert_eq!(beside.folder, root);
        assert!(beside.has("efa"));
    }
}

//! Providers: what the library offers, and the choice among it.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::path::Path;
use std::ptr::NonNull;

use tagwire_base::Error as BaseError;
use tagwire_base::nearest::nearest;
use tagwire_libfabric_sys::Library;
use tagwire_libfabric_sys::bindings::*;
use tagwire_transport::ForeignLibrary;

use crate::config::OfiOptions;
use crate::devices;
use crate::error::{Failure, bad_setting};
use crate::interface::address_of;
use crate::plugins::Plugins;

/// What a transport asks of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Capabilities without which it does not work.
    pub(crate) capabilities: u64,
    /// Messages that are lost and overtaken do as well.
    pub(crate) is_datagrams: bool,
}

impl Wanted {
    pub(crate) const MESSAGES: Self = Self::reliable(FI_MSG);
    pub(crate) const REMOTE: Self = Self::reliable(FI_MSG | FI_RMA);
    pub(crate) const MATCHING: Self = Self::reliable(FI_MSG | FI_TAGGED);
    pub(crate) const MATCHING_REMOTE: Self = Self::reliable(FI_MSG | FI_TAGGED | FI_RMA);
    pub(crate) const DATAGRAMS: Self = Self {
        capabilities: FI_MSG,
        is_datagrams: true,
    };

    const fn reliable(capabilities: u64) -> Self {
        Self {
            capabilities,
            is_datagrams: false,
        }
    }

    const fn kind(self) -> &'static str {
        match self.is_datagrams {
            true => "datagrams",
            false => "reliable datagrams",
        }
    }
}

/// Modes of registration that are kept to: all that there are for memory of the host.
const MR_MODES: u64 =
    FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;

/// A list of what the library offers; owned.
pub(crate) struct Infos {
    library: Library,
    first: Option<NonNull<fi_info>>,
}

impl Infos {
    /// What fits `options` and `wanted`, the library's preference first.
    ///
    /// # Errors
    /// When the library has nothing.
    pub(crate) fn find(
        library: &Library,
        options: &OfiOptions,
        wanted: Wanted,
    ) -> Result<Self, BaseError> {
        let hints = Self::hints(library, &options.provider, wanted)?;
        let own = address_of(&options.source).map(|address| address.to_string());
        let source = own.as_deref().unwrap_or(&options.source);
        let source = (!source.is_empty())
            .then(|| CString::new(source))
            .transpose()
            .map_err(|_| bad_setting("ofi-source", &options.source, "an address"))?;
        let flags = if source.is_some() { FI_SOURCE } else { 0 };
        Self::query(library, source.as_deref(), flags, Some(&hints)).map_err(|code| {
            let at = if options.source.is_empty() {
                String::new()
            } else {
                format!(" on {} (TAGWIRE_OFI_SOURCE)", options.source)
            };
            // With an address of the user's it may be that one at which nothing is.
            let needed = match options.source.is_empty() {
                true => devices::needed(&options.provider),
                false => devices::missing(&options.provider),
            };
            let hint = match needed {
                Some(why) => format!(", since {why}"),
                None => Self::instead(library, &options.provider),
            };
            let what = format!(
                "a provider that {} has{at}, for {} with {}: it says '{}'{hint}; \
                 see `tagwire info --why-not ofi` and TAGWIRE_LIBFABRIC",
                library.file(),
                wanted.kind(),
                names(wanted.capabilities).join(" and "),
                library.describe(code),
            );
            bad_setting("transport", &format!("ofi:{}", options.provider), &what)
        })
    }

    /// Everything that the library offers on this machine.
    pub(crate) fn everything(library: &Library) -> Result<Self, i32> {
        Self::query(library, None, 0, None)
    }

    /// Every provider that the library has, whether there is a device for it or not: names only.
    pub(crate) fn built_in(library: &Library) -> Result<Self, i32> {
        Self::query(library, None, FI_PROV_ATTR_ONLY, None)
    }

    /// What to name, or to set, instead of a provider that the library does not have: the one that it was
    /// most likely meant to be, or any, or where its file lies. Nothing where the library has it.
    fn instead(library: &Library, wanted: &str) -> String {
        let Ok(known) = Self::built_in(library) else {
            return String::new();
        };
        let mut names: Vec<_> = known.iter().map(|provider| provider.name()).collect();
        names.sort();
        names.dedup();
        let plugins = Plugins::near(Path::new(&file_of(library).file));
        instead(&names, wanted, plugins.as_ref())
    }

    fn hints(library: &Library, provider: &str, wanted: Wanted) -> Result<Self, BaseError> {
        let short = || BaseError::from(Failure::new(provider, "hints", "no memory left"));
        let hints = NonNull::new(library.allocate_info()).ok_or_else(short)?;
        let hints = Self {
            library: library.clone(),
            first: Some(hints),
        };
        let name = CString::new(provider)
            .map_err(|_| bad_setting("transport", provider, "a provider's name"))?;
        // SAFETY: `fi_allocinfo` makes all attribute structures; they are ours alone. The name is
        // freed with `free` by the library, so it comes from `strdup`.
        unsafe {
            let info = &mut *hints.first.ok_or_else(short)?.as_ptr();
            info.caps = wanted.capabilities;
            info.mode = FI_CONTEXT | FI_CONTEXT2;
            (*info.domain_attr).mr_mode = MR_MODES as _;
            (*info.domain_attr).threading = FI_THREAD_SAFE;
            if wanted.is_datagrams {
                (*info.ep_attr).type_ = FI_EP_DGRAM;
            } else {
                (*info.ep_attr).type_ = FI_EP_RDM;
                (*info.domain_attr).resource_mgmt = FI_RM_ENABLED;
                (*info.tx_attr).msg_order = FI_ORDER_SAS;
                (*info.rx_attr).msg_order = FI_ORDER_SAS;
            }
            if !provider.is_empty() {
                (*info.fabric_attr).prov_name = libc::strdup(name.as_ptr());
            }
        }
        Ok(hints)
    }

    fn query(
        library: &Library,
        node: Option<&CStr>,
        flags: u64,
        hints: Option<&Self>,
    ) -> Result<Self, i32> {
        let hints = hints
            .and_then(|hints| hints.first)
            .map_or(std::ptr::null(), |hints| hints.as_ptr().cast_const());
        // SAFETY: the hints are null or came from this library.
        let list = unsafe { library.get_info(node, None, flags, hints) }?;
        Ok(Self {
            library: library.clone(),
            first: NonNull::new(list),
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Provider<'_>> {
        // SAFETY: the list is the library's, alive as long as `self`, and ends with null.
        let next = |info: &&fi_info| unsafe { info.next.as_ref() };
        // SAFETY: as above.
        let first = self.first.map(|first| unsafe { &*first.as_ptr() });
        std::iter::successors(first, next).map(Provider)
    }

    /// A copy of the first, to open.
    pub(crate) fn take_first(&self) -> Option<Info> {
        // SAFETY: the list came from this library and is alive.
        unsafe { Info::copy_of(&self.library, self.first?) }
    }
}

impl Drop for Infos {
    fn drop(&mut self) {
        if let Some(first) = self.first {
            // SAFETY: the list came from this library; nothing borrows it any more.
            unsafe { self.library.free_info(first.as_ptr()) };
        }
    }
}

impl fmt::Debug for Infos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Infos({})", self.iter().count())
    }
}

/// One provider's offer, to look at.
#[derive(Clone, Copy)]
pub(crate) struct Provider<'a>(pub(super) &'a fi_info);

/// Reads a field of one of an info's attribute structures.
macro_rules! attribute {
    ($info:expr, $structure:ident, $field:ident) => {{
        let attributes = $info.$structure;
        // SAFETY: infos that the library returns have all attribute structures, or null.
        unsafe { attributes.as_ref() }.map_or_else(Default::default, |all| all.$field)
    }};
}

impl Provider<'_> {
    pub(crate) fn name(&self) -> String {
        // SAFETY: as for `attribute`.
        let name = unsafe { self.0.fabric_attr.as_ref() }.map(|fabric| fabric.prov_name);
        text(name.unwrap_or(std::ptr::null_mut()))
    }

    /// The network interface or device.
    pub(crate) fn domain(&self) -> String {
        // SAFETY: as for `attribute`.
        let name = unsafe { self.0.domain_attr.as_ref() }.map(|domain| domain.name);
        text(name.unwrap_or(std::ptr::null_mut()))
    }

    pub(crate) const fn capabilities(&self) -> u64 {
        self.0.caps
    }

    pub(crate) fn is_reliable_datagram(&self) -> bool {
        attribute!(self.0, ep_attr, type_) == FI_EP_RDM
    }

    /// Whether writes to one peer are promised to become visible in their order, of any length.
    pub(crate) fn promises_order_of_writes(&self) -> bool {
        let order = attribute!(self.0, tx_attr, msg_order);
        let most = attribute!(self.0, ep_attr, max_order_waw_size);
        order & (FI_ORDER_WAW | FI_ORDER_RMA_WAW) != 0 && most >= self.max_message()
    }

    pub(crate) const fn address_format(&self) -> u32 {
        self.0.addr_format
    }

    pub(crate) fn inject_size(&self) -> usize {
        attribute!(self.0, tx_attr, inject_size)
    }

    pub(crate) fn queue_sizes(&self) -> (usize, usize) {
        (
            attribute!(self.0, tx_attr, size),
            attribute!(self.0, rx_attr, size),
        )
    }

    pub(crate) fn regions_per_send(&self) -> usize {
        attribute!(self.0, tx_attr, iov_limit)
    }

    pub(crate) fn max_message(&self) -> usize {
        attribute!(self.0, ep_attr, max_msg_size)
    }

    pub(crate) fn registration_mode(&self) -> u64 {
        attribute!(self.0, domain_attr, mr_mode) as u64
    }

    /// Whether local buffers have to be registered as well.
    pub(crate) fn registers_locally(&self) -> bool {
        self.registration_mode() & FI_MR_LOCAL != 0
    }

    /// Whether remote memory is named by its owner's addresses, not by offsets.
    pub(crate) fn names_by_address(&self) -> bool {
        self.registration_mode() & FI_MR_VIRT_ADDR != 0
    }

    pub(crate) fn immediate_width(&self) -> usize {
        attribute!(self.0, domain_attr, cq_data_size)
    }
}

/// A provider's offer that is to be opened; owned.
pub(crate) struct Info {
    library: Library,
    info: NonNull<fi_info>,
}

impl Info {
    pub(crate) const fn library(&self) -> &Library {
        &self.library
    }

    pub(super) const fn as_ptr(&self) -> *mut fi_info {
        self.info.as_ptr()
    }

    /// Another of the same; `None` where there is no memory left.
    pub(crate) fn duplicate(&self) -> Option<Self> {
        // SAFETY: an info of this library, alive.
        unsafe { Self::copy_of(&self.library, self.info) }
    }

    /// # Safety
    /// `info` came from this library and is alive.
    unsafe fn copy_of(library: &Library, info: NonNull<fi_info>) -> Option<Self> {
        // SAFETY: the caller's promise.
        let copy = unsafe { library.duplicate_info(info.as_ptr()) };
        NonNull::new(copy).map(|info| Self {
            library: library.clone(),
            info,
        })
    }

    pub(crate) const fn provider(&self) -> Provider<'_> {
        // SAFETY: the structure is ours, alive as long as `self`.
        Provider(unsafe { self.info.as_ref() })
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: it came from this library; what was opened with it keeps no pointer to it.
        unsafe { self.library.free_info(self.info.as_ptr()) };
    }
}

impl fmt::Debug for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Info({})", self.provider().name())
    }
}

/// The library, by the file that it was found in.
pub(crate) fn file_of(library: &Library) -> ForeignLibrary {
    let (major, minor) = library.version();
    let version = format!("{major}.{minor}");
    ForeignLibrary::new("libfabric", version, library.file(), library.address())
}

/// What to name instead of `mistyped`, of providers and layers on top of them that are `known`, or to
/// set, where files of others are there.
fn instead(known: &[String], mistyped: &str, plugins: Option<&Plugins>) -> String {
    let is_known = |name: &str| known.iter().any(|known| known == name);
    let layer = |layer| match is_known(layer) {
        true => Some(layer),
        false => nearest(layer, known.iter().map(AsRef::as_ref)),
    };
    if is_known(mistyped) || mistyped.split(';').all(is_known) {
        return String::new();
    }
    let named = plugins.filter(|plugins| plugins.has(mistyped));
    let layers = mistyped.split(';').map(layer).collect::<Option<Vec<_>>>();
    match (named.or(plugins), layers) {
        (Some(plugins), _) if named.is_some() => format!("; {}", plugins.advice()),
        (_, Some(layers)) => format!("; did you mean 'ofi:{}'?", layers.join(";")),
        (Some(plugins), None) => format!("; it has {}, and {}", known.join(", "), plugins.advice()),
        (None, None) => format!("; it has {}", known.join(", ")),
    }
}

fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: strings of infos have their ends, and live as long as the info.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// The names of modes of registration, for people.
pub(crate) fn mode_names(mode: u64) -> Vec<&'static str> {
    const NAMES: [(u64, &str); 5] = [
        (FI_MR_LOCAL, "local"),
        (FI_MR_VIRT_ADDR, "virtual address"),
        (FI_MR_ALLOCATED, "allocated"),
        (FI_MR_PROV_KEY, "provider key"),
        (FI_MR_ENDPOINT, "endpoint"),
    ];
    chosen(&NAMES, mode)
}

fn chosen(names: &[(u64, &'static str)], bits: u64) -> Vec<&'static str> {
    let has = names.iter().filter(|(bit, _)| bits & bit != 0);
    has.map(|(_, name)| *name).collect()
}

/// The names of capabilities, for people.
pub(crate) fn names(capabilities: u64) -> Vec<&'static str> {
    const NAMES: [(u64, &str); 7] = [
        (FI_MSG, "messages"),
        (FI_TAGGED, "tagged messages"),
        (FI_RMA, "remote access"),
        (FI_ATOMIC, "atomics"),
        (FI_MULTI_RECV, "multi-receive"),
        (FI_DIRECTED_RECV, "directed receive"),
        (FI_SOURCE, "source"),
    ];
    chosen(&NAMES, capabilities)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layer_of_a_mistyped_name_is_put_right() {
        let known = ["ofi_rxm", "tcp", "tcp;ofi_rxm"].map(str::to_owned);
        for (mistyped, told) in [
            ("tpc;ofi_rxm", "; did you mean 'ofi:tcp;ofi_rxm'?"),
            ("tcp;ofi_rmx", "; did you mean 'ofi:tcp;ofi_rxm'?"),
            ("tcpp", "; did you mean 'ofi:tcp'?"),
            ("nothing-like-it", "; it has ofi_rxm, tcp, tcp;ofi_rxm"),
            ("tcp", ""),
            ("tcp;ofi_rxm", ""),
        ] {
            assert_eq!(instead(&known, mistyped, None), told, "{mistyped}");
        }
    }

    #[test]
    fn providers_in_files_of_their_own_are_pointed_out() {
        let root = std::env::temp_dir().join(format!("tagwire-instead-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        for name in ["tcp", "rxm", "efa"] {
            std::fs::write(root.join(format!("lib{name}-fi.so")), "").unwrap();
        }
        let plugins = Plugins::near(&root.join("libfabric.so.1"));
        std::fs::remove_dir_all(&root).unwrap();
        let known = ["off_coll", "ofi_hook_noop"].map(str::to_owned);
        let set = format!("FI_PROVIDER_PATH={}", root.display());
        let told = |wanted| instead(&known, wanted, plugins.as_ref());
        for wanted in ["tcp", "tcp;ofi_rxm", "efa", "ofi_rxm"] {
            let told = told(wanted);
            assert!(told.contains(&set), "{told}");
        }
        // Whatever it is called in its file.
        let other = told("nothing-like-it");
        assert!(
            other.contains(&set) && other.contains("off_coll"),
            "{other}"
        );
        let mistyped = told("of_coll");
        assert_eq!(mistyped, "; did you mean 'ofi:off_coll'?");
        assert_eq!(told("off_coll"), "");
    }
}

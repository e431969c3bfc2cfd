//! What UCX offers on this machine, as plain data.

use tagwire_ucx_sys::{UCP_FEATURE_AM, UCP_FEATURE_TAG};

use crate::config::UcxOptions;
use crate::library::Library;
use crate::worker::{Context, version};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// The library that was looked for.
    pub library: String,
    /// Its version, or why it cannot be used.
    pub version: Result<String, String>,
    /// The transports that Tagwire knows by name; none where there is no library.
    pub transports: Vec<Offer>,
}

/// One of UCX's transports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its name, as it follows `ucx:`.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Why it cannot be used here; `None` where it can.
    pub why_not: Option<String>,
}

/// UCX's public interface does not list its transports: each of these is tried. With what each is, and
/// what it needs: UCX says only "no such device" where that is missing.
const TRANSPORTS: &[(&str, &str, &str)] = &[
    ("tcp", "sockets", "a network interface that is up"),
    ("posix", "shared memory by POSIX", "/dev/shm"),
    ("sysv", "shared memory by System V", "System V segments"),
    ("xpmem", "shared memory by XPMEM", "the module of XPMEM"),
    ("rc_verbs", "RDMA, reliable connections, by verbs", RDMA),
    ("ud_verbs", "RDMA, unreliable datagrams, by verbs", RDMA),
    ("rc_mlx5", "RDMA, reliable connections, by mlx5", MLX5),
    ("dc_mlx5", "RDMA, dynamic connections, by mlx5", MLX5),
    ("ud_mlx5", "RDMA, unreliable datagrams, by mlx5", MLX5),
];

const RDMA: &str = "an RDMA device (in /sys/class/infiniband)";
const MLX5: &str = "an RDMA device of NVIDIA (mlx5_* in /sys/class/infiniband)";

/// Looks at the library that `options` name and at its transports. Opens each of them once.
#[must_use]
pub fn survey(options: &UcxOptions) -> Survey {
    let name = options.library_name().to_owned();
    let library = match Library::open(&name) {
        Ok(library) => library,
        Err(error) => {
            return Survey {
                library: name,
                version: Err(error.to_string()),
                transports: Vec::new(),
            };
        }
    };
    let (major, minor, release) = version(library.ucp);
    Survey {
        library: name,
        version: Ok(format!("{major}.{minor}.{release}")),
        transports: TRANSPORTS
            .iter()
            .map(|&(name, about, needs)| Offer {
                name,
                about,
                why_not: why_not(library, options, name).map(|why| {
                    format!("{why}; it needs {needs}, and a UCX that was built with {name}")
                }),
            })
            .collect(),
    }
}

/// Why a context cannot be opened with the transport alone.
fn why_not(library: Library, options: &UcxOptions, name: &str) -> Option<String> {
    let options = UcxOptions {
        transports: Some(name.to_owned()),
        ..options.clone()
    };
    let features = u64::from(UCP_FEATURE_AM | UCP_FEATURE_TAG);
    let error = Context::open(library, &options, features).err()?;
    Some(error.to_string())
}

//! What build this is.

use serde::Serialize;

/// What `--version` prints behind the name.
pub const VERSION_LINE: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("BUILD_STAMP_COMMIT"),
    ")"
);

/// The build, for reports.
#[derive(Debug, Clone, Serialize)]
pub struct Build {
    /// Tagwire's version.
    pub version: &'static str,
    /// The commit, `-modified` behind it when the sources differed, or `unknown`.
    pub commit: &'static str,
    /// The machine that it was compiled for.
    pub target: &'static str,
    /// The profile that it was built in: `debug`, `release`, `dist`.
    pub profile: &'static str,
    /// The compiler.
    pub compiler: &'static str,
    /// Features that were switched on.
    pub features: Vec<&'static str>,
}

/// This build.
pub fn build() -> Build {
    Build {
        version: env!("CARGO_PKG_VERSION"),
        commit: env!("BUILD_STAMP_COMMIT"),
        target: env!("BUILD_STAMP_TARGET"),
        profile: env!("BUILD_STAMP_PROFILE"),
        compiler: env!("BUILD_STAMP_COMPILER"),
        features: env!("BUILD_STAMP_FEATURES")
            .split(',')
            .filter(|name| !name.is_empty())
            .collect(),
    }
}

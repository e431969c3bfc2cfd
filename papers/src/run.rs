//! A run of `tagwire bench`.

/// A run of `tagwire bench`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its arguments, but for the file of the results.
    pub arguments: Vec<String>,
    /// Environment variables that it is run with.
    pub environment: &'static [(&'static str, &'static str)],
    /// Of which of the item's turns it is.
    pub turn: Option<usize>,
    /// Whether it is measured with each of several builds.
    pub is_own: bool,
}

/// What makes MPI libraries use TCP between processes of one host, each by variables of its own.
pub(crate) const OVER_TCP: &[(&str, &str)] = &[
    ("MPIR_CVAR_NOLOCAL", "1"),
    ("UCX_TLS", "tcp,self"),
    ("OMPI_MCA_pml", "ob1"),
    ("OMPI_MCA_btl", "tcp,self"),
    ("I_MPI_FABRICS", "ofi"),
    ("I_MPI_OFI_PROVIDER", "tcp"),
    ("TAGWIRE_TRANSPORT", "ofi:tcp"),
];

/// What keeps MPI libraries from collectives whose ranks look at shared memory without a pause or another rank's turn: MPICH's take a
/// hundred times as long where ranks are more than cores. Others give way by themselves.
pub(crate) const OVERSUBSCRIBED: &[(&str, &str)] = &[
    ("MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM", "mpir"),
    ("MPIR_CVAR_BARRIER_POSIX_INTRA_ALGORITHM", "mpir"),
    ("MPIR_CVAR_BCAST_POSIX_INTRA_ALGORITHM", "mpir"),
    ("MPIR_CVAR_REDUCE_POSIX_INTRA_ALGORITHM", "mpir"),
];

/// The option of `tagwire bench` by which a job that fails leaves the others their rows.
pub(crate) const KEEP_GOING: &str = "--keep-going";

impl Run {
    /// Whether a job that fails leaves the others their rows.
    #[must_use]
    pub fn keeps_going(&self) -> bool {
        self.arguments.iter().any(|word| word == KEEP_GOING)
    }

    /// Whether MPI libraries are told to use TCP between processes of one host.
    #[must_use]
    pub fn is_over_tcp(&self) -> bool {
        self.environment == OVER_TCP
    }
}

//! Jobs over a provider that every libfabric has, with both ends in this process. For tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tagwire_base::Rank;
use tagwire_base::bootstrap::{LocalBootstrap, LocalJob};
use tagwire_transport::Result;

use crate::config::OfiOptions;
use crate::fabric::faulty;
use crate::open::{Use, open_info};

/// All ranks of a job, and with each how to make it go without a word.
pub(crate) struct Ranks<T> {
    pub(crate) ranks: Vec<T>,
    pub(crate) silent: Vec<Arc<AtomicBool>>,
}

/// The provider on the loopback interface, with an empty script; nothing, loudly, without a libfabric.
pub(crate) fn options(wanted: Use) -> Option<OfiOptions> {
    faulty::clear();
    let options = OfiOptions {
        provider: "tcp;ofi_rxm".to_owned(),
        source: "127.0.0.1".to_owned(),
        ..OfiOptions::default()
    };
    if let Err(error) = open_info(&options, 2, wanted) {
        println!("SKIPPED: {error}");
        return None;
    }
    Some(options)
}

/// Opens all ranks of a job.
pub(crate) fn open_all<T>(
    size: u32,
    options: &OfiOptions,
    open: impl Fn(&OfiOptions, &LocalBootstrap) -> Result<T>,
) -> Ranks<T> {
    let job = LocalJob::new(size).unwrap();
    let (mut ranks, mut silent) = (Vec::new(), Vec::new());
    for rank in 0..size {
        let options = OfiOptions {
            silent: Arc::default(),
            ..options.clone()
        };
        ranks.push(open(&options, &job.member(Rank::new(rank))).unwrap());
        silent.push(options.silent);
    }
    Ranks { ranks, silent }
}

/// The rank dies as processes do: its endpoint is closed, and it informs nobody.
pub(crate) fn die<T: ?Sized>(silent: &[Arc<AtomicBool>], rank: Rank, transport: Box<T>) {
    silent[rank.index()].store(true, Ordering::Relaxed);
    drop(transport);
}

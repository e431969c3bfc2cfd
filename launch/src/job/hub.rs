//! Where the ranks of a job find each other, and what of the job is elsewhere: nothing for a job of this host; the ranks of
//! other hosts, where this one has the store; the store, where another one has it.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use tagwire_base::Rank;

use super::hosts::Hosts;
use crate::error::Result;
use crate::patience::Stop;
use crate::proof::draw_for_terminal;
use crate::store::{HostLink, HostMessage, Membership, Report, Store};
use crate::{host, patience};

/// Where ranks meet.
#[derive(Debug)]
pub(super) struct Hub {
    place: Place,
}

#[derive(Debug)]
enum Place {
    Here(Store),
    Listening {
        store: Store,
        /// How many ranks other hosts are to bring, have brought, and have ended.
        wanted: u32,
        came: u32,
        over: u32,
        /// Until when they have to come, and after how long that is.
        late: Option<(Instant, Duration)>,
        own: u32,
        name: String,
    },
    Elsewhere(HostLink),
}

/// What the hub has heard.
#[derive(Debug)]
pub(super) enum HubEvent {
    /// A rank wants the job ended.
    Abort { rank: Rank, status: u32 },
    /// A rank of another host has failed.
    Failed { rank: Rank, status: u32 },
    /// Another host is lost, and these of its ranks.
    HostLost { name: String, ranks: Vec<Rank> },
    /// The host with the store ends the job.
    End { status: u32 },
    /// The host with the store is lost.
    Lost,
    /// Not all hosts have come in time.
    Late {
        came: u32,
        wanted: u32,
        within: Duration,
    },
}

impl Hub {
    /// Opens the hub of a job that has `ranks` ranks here; says where it listens, unless it is `quiet`. A wait for the host
    /// that listens ends when `stop` says why.
    pub fn open(
        hosts: Option<&Hosts>,
        ranks: u32,
        quiet: bool,
        stop: &mut dyn FnMut() -> Option<Stop>,
    ) -> Result<Self> {
        let place = match hosts {
            None => Place::Here(Store::start(ranks)?),
            Some(hosts) => Self::of_hosts(hosts, ranks, quiet, stop)?,
        };
        Ok(Self { place })
    }

    fn of_hosts(
        hosts: &Hosts,
        own: u32,
        quiet: bool,
        stop: &mut dyn FnMut() -> Option<Stop>,
    ) -> Result<Place> {
        let within = patience::of_environment()?;
        match hosts {
            Hosts::Connect { address, secret } => {
                let link = HostLink::join(address, secret.clone(), own, within, stop)?;
                Ok(Place::Elsewhere(link))
            }
            Hosts::Listen {
                address,
                total,
                secret,
            } => {
                let (told, secret) = match secret {
                    Some(secret) => ("the secret that was given here".to_owned(), secret.clone()),
                    None => {
                        let (secret, text) = draw_for_terminal()?;
                        (format!("this secret: {text}"), secret)
                    }
                };
                let store = Store::start_for_hosts(*total, own, address, secret)?;
                let name = host::reachable(store.address().unwrap_or_default());
                if !quiet {
                    let _ = writeln!(
                        std::io::stderr(),
                        "tagwire: listening at {name}: start 'tagwire run -n RANKS --connect {name} --secret @FILE -- PROGRAM' on the other hosts, for {} ranks in all, where FILE has {told}",
                        total - own
                    );
                }
                Ok(Place::Listening {
                    store,
                    wanted: total - own,
                    came: 0,
                    over: 0,
                    late: Instant::now()
                        .checked_add(within)
                        .map(|until| (until, within)),
                    own,
                    name,
                })
            }
        }
    }

    /// Returns where it listens for other hosts.
    pub fn address(&self) -> Option<&str> {
        match &self.place {
            Place::Listening { name, .. } => Some(name),
            Place::Here(_) | Place::Elsewhere(_) => None,
        }
    }

    /// The number of this host's first rank.
    pub const fn first(&self) -> u32 {
        match &self.place {
            Place::Here(_) | Place::Listening { .. } => 0,
            Place::Elsewhere(link) => link.first(),
        }
    }

    /// What the rank that is `local` here needs to know.
    pub fn membership(&self, local: u32) -> Membership {
        match &self.place {
            Place::Here(store) => store.membership(Rank::new(local)),
            Place::Listening {
                store, own, name, ..
            } => {
                let known = store.membership(Rank::new(local));
                Membership {
                    local_size: *own,
                    store: format!("tcp:{name}"),
                    ..known
                }
            }
            Place::Elsewhere(link) => link.membership(local),
        }
    }

    /// A rank of this host has ended.
    pub fn rank_ended(&mut self, rank: Rank, status: u32) {
        match &mut self.place {
            Place::Here(store) | Place::Listening { store, .. } => store.rank_ended(rank),
            Place::Elsewhere(link) => link.rank_ended(rank, status),
        }
    }

    /// Tells other hosts with which status the job ends.
    pub fn end_job(&self, status: u32) {
        if let Place::Listening { store, .. } = &self.place {
            store.end_job(status);
        }
    }

    /// Returns what becomes readable when there is something to hear.
    pub fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        match &self.place {
            Place::Here(store) | Place::Listening { store, .. } => Some(store.waits_for()),
            Place::Elsewhere(link) => link.is_open().then(|| link.as_fd()),
        }
    }

    /// Returns when something is due though nothing is heard.
    pub fn due(&self) -> Option<Instant> {
        match &self.place {
            Place::Listening { late, .. } => late.map(|(until, _)| until),
            _ => None,
        }
    }

    /// Whether other hosts are waited for: while the job runs also those that have not come.
    pub fn is_waiting(&self, runs: bool) -> bool {
        match &self.place {
            Place::Listening {
                wanted, came, over, ..
            } => *over < if runs { *wanted } else { *came },
            // The host that listens says how the job ends, which may be badly though all went well here.
            Place::Elsewhere(link) => runs && link.is_open(),
            Place::Here(_) => false,
        }
    }

    /// Returns what has been heard since.
    pub fn hear(&mut self) -> Vec<HubEvent> {
        match &mut self.place {
            Place::Elsewhere(link) => {
                let words = link.hear().into_iter().map(|word| match word {
                    HostMessage::End(status) => HubEvent::End { status },
                    HostMessage::Lost => HubEvent::Lost,
                });
                words.collect()
            }
            Place::Here(store) => store
                .take_reports()
                .into_iter()
                .filter_map(|report| match report {
                    Report::Abort(rank, status) => Some(HubEvent::Abort { rank, status }),
                    Report::Came(_) | Report::Ended(..) | Report::HostLost(..) => None,
                })
                .collect(),
            Place::Listening {
                store,
                wanted,
                came,
                over,
                late,
                ..
            } => {
                let mut heard = Vec::new();
                for report in store.take_reports() {
                    match report {
                        Report::Abort(rank, status) => heard.push(HubEvent::Abort { rank, status }),
                        Report::Came(ranks) => *came += ranks,
                        Report::Ended(rank, status) => {
                            *over += 1;
                            if status != 0 {
                                heard.push(HubEvent::Failed { rank, status });
                            }
                        }
                        Report::HostLost(name, ranks) => {
                            *over += ranks.len() as u32;
                            heard.push(HubEvent::HostLost { name, ranks });
                        }
                    }
                }
                if came == wanted {
                    *late = None;
                }
                if let Some((_, within)) = late.take_if(|(until, _)| *until <= Instant::now()) {
                    heard.push(HubEvent::Late {
                        came: *came,
                        wanted: *wanted,
                        within,
                    });
                }
                heard
            }
        }
    }
}

//! torchrun, and whoever else sets its variables: rank, size, and the address of the host of rank 0.

use tagwire_base::{JobSecret, Rank};

use super::{At, Found, Known, Launcher, Meeting, RENDEZVOUS_SECRET as SECRET};
use crate::environment::Environment;
use crate::error::{Error, Result};

const VARIABLES: [&str; 4] = ["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"];

const ADVICE: &str = "torchrun sets them all, for ranks to meet at that address; TAGWIRE_LAUNCHER=single runs this process alone";

/// `True` where torchrun itself listens at the port that it names.
const PORT_IS_TAKEN: &str = "TORCHELASTIC_USE_AGENT_STORE";

/// A launcher that sets torchrun's variables.
#[derive(Debug)]
pub(crate) struct Torchrun;

impl Known for Torchrun {
    fn launcher(&self) -> Launcher {
        Launcher("torchrun")
    }

    fn choice(&self) -> &'static str {
        "torchrun"
    }

    fn find(&self, environment: &Environment<'_>) -> Result<Found> {
        // The names are others' too: some of them without the rest say nothing.
        if let Some(missing) = VARIABLES.iter().find(|name| !environment.has(name)) {
            let of_several = environment
                .rank_of("RANK", "WORLD_SIZE")
                .is_ok_and(|(_, size)| size > 1);
            if of_several {
                environment.has_all(&VARIABLES, ADVICE)?;
            }
            return Ok(Found::No(format!("{missing} is not set")));
        }
        let (rank, size) = environment.rank_of("RANK", "WORLD_SIZE")?;
        if size == 1 {
            return Ok(Found::No("WORLD_SIZE is 1".to_owned()));
        }
        let host = environment.text("MASTER_ADDR").unwrap_or_default();
        let port = environment.number("MASTER_PORT")?;
        let is_taken = environment
            .text(PORT_IS_TAKEN)
            .is_some_and(|value| value == "True");
        let port = u16::try_from(port + u32::from(is_taken))
            .map_err(|_| Error::Environment(format!("MASTER_PORT is {port}, which is no port")))?;
        let secret = environment.text(SECRET).map_or_else(
            || Ok(JobSecret::from_bytes([0; JobSecret::LEN])),
            |text| {
                JobSecret::of_text(&text)
                    .map_err(|why| Error::Environment(format!("{SECRET} {why}")))
            },
        )?;
        Ok(Found::Rank(Box::new(Meeting {
            launcher: self.launcher().name(),
            rank: Rank::new(rank),
            size,
            at: At::Network { host, port, secret },
        })))
    }
}

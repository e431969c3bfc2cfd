//! `campaign`: trials that try to break jobs, drawn from seeds.
//!
//! ```text
//!   seed -> Plan: a ground, a program, and blows of disturbances
//!             |
//!           Trial: starts the job on the ground, strikes, hears its ranks, looks what is left
//!             |
//!           oracle: what must have happened, against what the ranks said and when
//!             |
//!           Record: a line of JSON          -> report: docs/campaign.md
//! ```
//!
//! Ranks check the contents of what arrives by themselves: every byte of a message follows from the seed, its
//! sender, its receiver and its number. What the driver knows beside is who was killed, and when.
//!
//! | to add | where |
//! |---|---|
//! | a disturbance | a file in `disturbances/` with its [`Disturbance`](disturbances::Disturbance), a line of `ALL` |
//! | a program | a file in `programs/` with its [`Program`](programs::Program), a line of `ALL` |
//! | what a hostile member does in one process | a file in `hostile/` with its [`Target`](hostile::Target), a line of `ALL` |
//! | a ground: transports and settings, or hosts | a file in `grounds/` with its [`Ground`](grounds::Ground), a line of `ALL` |

#![deny(unsafe_code)]

mod away;
mod bars;
mod blow;
mod campaign;
mod command;
mod contents;
mod deadline;
mod disturbances;
mod events;
mod grounds;
mod hostile;
mod idle;
mod job;
mod leftovers;
mod oracle;
mod origin;
mod plan;
mod programs;
mod rank;
mod record;
mod report;
mod site;
mod stage;
mod stalls;
mod trial;

use std::process::ExitCode;

fn main() -> ExitCode {
    match command::main() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("campaign: {error}");
            ExitCode::from(2)
        }
    }
}

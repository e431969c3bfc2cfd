//! The command `tagwire` and its jobs, run as a user runs them: one program, a module for each thing. `ci/tests` runs
//! each module as a process of its own.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod command;
mod process;

mod engine;
mod engine_library;
mod help;
mod info;
mod instructions;
mod matching;
mod matching_traces;
mod mpiexec;
mod process_bench;
mod process_bench_runs;
mod process_cmake;
mod process_collective_death;
mod process_collectives;
mod process_computes;
mod process_concurrent;
mod process_death;
mod process_device;
mod process_examples;
mod process_fallback;
mod process_flood;
mod process_fortran;
mod process_groups;
mod process_hosts;
mod process_launchers;
mod process_leftovers;
mod process_machines;
mod process_mixed;
mod process_mpi;
mod process_one_sided;
mod process_partitioned;
mod process_parts;
mod process_patterns;
mod process_refusals;
mod process_rendezvous;
mod process_restarts;
mod process_resume;
mod process_slurm;
mod process_threads;
mod process_two_rails;
mod process_waiting;
mod report;
mod reproduce;
mod run;
mod sim;
mod tools;
mod usage;

//! What a command asks of a test with a device.

use std::time::Duration;

use clap::ValueEnum;

use super::device::{Algorithm, Callback, DataRate, DevicePlan, EnginePlan};
use super::partitioned::or;
use super::{BenchArgs, DeviceArgs, Result, usage};

impl BenchArgs {
    /// Whether vectors come from a device.
    pub(crate) fn has_device(&self) -> bool {
        let device = &self.device;
        let is_asked = device.producer.is_some() || !device.algorithm.is_empty();
        self.test.has_option("producer") && (self.copies_alone() || is_asked)
    }

    /// Whether vectors are copied, and not reduced.
    fn copies_alone(&self) -> bool {
        !self.test.has_option("algorithm")
    }

    /// What the plan of a test with a device has beside that of others.
    pub(crate) fn device_plan(&self) -> Option<DevicePlan> {
        if !self.has_device() {
            return None;
        }
        let device = &self.device;
        let is_copy = self.copies_alone();
        let algorithms = match is_copy {
            true => Vec::new(),
            false => or(&device.algorithm, Algorithm::value_variants()),
        };
        let copies = self.partitioned.partitions.clone();
        let copies = copies.map_or_else(|| vec![1, 20], |list| list.as_slice().to_vec());
        Some(DevicePlan {
            engine: EnginePlan {
                rate: device.engine_rate.unwrap_or(DataRate(10e9)),
                latency: device.engine_latency.unwrap_or(Duration::from_micros(8)),
                sharing: device.engine_sharing.unwrap_or(1),
                flops_per_element: device.flops_per_element.unwrap_or(1),
                copy_stream: device.copy_stream.unwrap_or_default(),
            },
            group_size: device.group_size,
            algorithms,
            callbacks: or(&device.callback, &[Callback::Deferred]),
            copies: if is_copy { copies } else { Vec::new() },
        })
    }

    /// Refuses groups, and ranks that share an engine, that do not divide the ranks.
    pub(super) fn check_groups(&self) -> Result<()> {
        let plan = self.device_plan();
        plan.map_or(Ok(()), |plan| {
            plan.group_among(self.rank_count())?;
            plan.sharing_among(self.rank_count()).map(|_| ())
        })
    }

    /// Refuses what does not fit a test with a device.
    pub(super) fn check_device(&self) -> Result<()> {
        let Some(plan) = self.device_plan() else {
            return match self.given.first_but::<DeviceArgs>("producer") {
                Some(name) if self.test.has_option("algorithm") => usage(format!(
                    "--{name} is for vectors that come from a device: with --algorithm or --producer"
                )),
                _ => Ok(()),
            };
        };
        let sizes = self.size_list();
        if let Some(odd) = sizes.as_slice().iter().find(|size| *size % 8 != 0) {
            return usage(format!(
                "{} is of doubles here: size {odd} is no multiple of 8",
                self.test
            ));
        }
        let other = ["nonblocking", "percentiles", "profile", "memory", "cache"];
        if let Some(name) = self.given.first_of(&other) {
            return usage(format!(
                "--{name} has no meaning for vectors that come from a device"
            ));
        }
        if !self.device.callback.is_empty() && !plan.algorithms.contains(&Algorithm::Pr) {
            return usage("--callback is for --algorithm pr");
        }
        Ok(())
    }
}

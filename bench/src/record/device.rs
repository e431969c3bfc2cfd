//! The keys that only rows of vectors from a device have.

use serde::{Deserialize, Serialize};

/// What the device was, and what was done with its vectors.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceKeys {
    /// How vectors were reduced: `native`, `multilane`, `pr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// Ranks of a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_size: Option<u32>,
    /// What produced them: `engine 10GB/s 8us (stand-in for a device)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer: Option<String>,
    /// Arithmetic on each element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops_per_element: Option<u32>,
    /// Who started the reduction of a partition: `direct`, `deferred`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<String>,
    /// Where copies stood: `same`, `other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_stream: Option<String>,
    /// In how many pieces a vector was copied, where that is what was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<u32>,
}

impl DeviceKeys {
    /// What tells series apart, in one word; `None` of a row of another kind.
    pub(crate) fn label(&self) -> Option<String> {
        if let Some(copies) = self.copies {
            return Some(format!("copies:{copies}"));
        }
        let algorithm = self.algorithm.as_ref()?;
        let flops = self.flops_per_element.unwrap_or(0);
        Some(match &self.callback {
            Some(callback) => format!("{algorithm}:{callback}/{flops}"),
            None => format!("{algorithm}/{flops}"),
        })
    }
}

//! Instruction sets, and which of them the processor has.

use core::fmt;

/// An instruction set for which there are kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// x86-64 with AVX-512F and AVX-512BW: 64 bytes at once, compared into a mask register.
    Avx512,
    /// x86-64 with AVX2: 32 bytes at once.
    Avx2,
    /// x86-64: 16 bytes at once, on every processor of the architecture.
    Sse2,
    /// AArch64, little-endian: 16 bytes at once, on every processor of the architecture.
    Neon,
    /// Loops over the slots, which the compiler may make vectors of with what every processor of the architecture has.
    Scalar,
}

impl Isa {
    /// All of them, the widest first within an architecture.
    pub const ALL: [Self; 5] = [
        Self::Avx512,
        Self::Avx2,
        Self::Sse2,
        Self::Neon,
        Self::Scalar,
    ];

    /// Returns the name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Sse2 => "sse2",
            Self::Neon => "neon",
            Self::Scalar => "scalar",
        }
    }

    /// Returns the instruction set with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|isa| isa.name() == name)
    }

    /// Returns whether the processor, and the operating system, let a program use it.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                std::is_x86_feature_detected!("avx512f")
                    && std::is_x86_feature_detected!("avx512bw")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => std::is_x86_feature_detected!("avx2"),
            Self::Sse2 => cfg!(target_arch = "x86_64"),
            Self::Neon => cfg!(all(target_arch = "aarch64", target_endian = "little")),
            Self::Scalar => true,
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 => false,
        }
    }

    /// Returns those that can be used here, the widest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|isa| isa.is_available())
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The processor lacks an instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// Which one.
    pub isa: Isa,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the processor has no {}; it has", self.isa)?;
        for (place, isa) in Isa::available().enumerate() {
            let before = if place == 0 { "" } else { "," };
            write!(f, "{before} {isa}")?;
        }
        Ok(())
    }
}

impl core::error::Error for Missing {}

//! Tests of ranks that match.

//! What several transports publish, in one blob.

/// Parts of any length, or none, in one blob: each a 32-bit length, all ones for none.
pub(crate) fn bundle<'a>(parts: impl Iterator<Item = Option<&'a [u8]>>) -> Vec<u8> {
    let mut blob = Vec::new();
    for part in parts {
        let length = part.map_or(u32::MAX, |part| part.len() as u32);
        blob.extend(length.to_le_bytes());
        blob.extend(part.unwrap_or_default());
    }
    blob
}

/// The parts of a blob of so many; `None` where it is not one.
pub(crate) fn unbundle(mut blob: &[u8], parts: usize) -> Option<Vec<Option<&[u8]>>> {
    let mut found = Vec::with_capacity(parts);
    for _ in 0..parts {
        let (length, rest) = blob.split_first_chunk::<4>()?;
        blob = rest;
        let length = u32::from_le_bytes(*length);
        if length == u32::MAX {
            found.push(None);
            continue;
        }
        let (part, rest) = blob.split_at_checked(length as usize)?;
        blob = rest;
        found.push(Some(part));
    }
    blob.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_come_back_and_nothing_else_does() {
        let parts = [Some(&b"host"[..]), None, Some(b""), Some(b"address")];
        let blob = bundle(parts.into_iter());
        assert_eq!(unbundle(&blob, 4).unwrap(), parts);
        assert_eq!(unbundle(&blob, 3), None);
        assert_eq!(unbundle(&blob, 5), None);
        for end in 0..blob.len() {
            assert_eq!(unbundle(&blob[..end], 4), None, "{end} bytes");
        }
        assert_eq!(unbundle(&[0xff, 0xff, 0xff, 0x7f], 1), None);
    }
}

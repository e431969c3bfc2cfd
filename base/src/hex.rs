//! Bytes as text: hexadecimal digits, two for each.

/// Returns `bytes` as lower-case digits.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes that [`encode`] wrote; `None` where `text` is anything else but digits in pairs.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    // The parser of numbers takes signs too.
    if !text.bytes().all(|digit| digit.is_ascii_hexdigit()) || !text.len().is_multiple_of(2) {
        return None;
    }
    let pairs = (0..text.len())
        .step_by(2)
        .map(|place| &text[place..place + 2]);
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        let bytes: Vec<u8> = (0..=u8::MAX).collect();
        assert_eq!(decode(&encode(&bytes)), Some(bytes));
        assert_eq!((encode(&[]), decode("")), (String::new(), Some(Vec::new())));
    }

    #[test]
    fn what_is_no_pairs_of_digits_is_nothing() {
        for text in ["a", "0g", "abc", "\u{e9}", "  ", "+1"] {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }
}

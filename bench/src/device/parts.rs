//! How a vector is cut into partitions.

use std::ops::Range;

/// Bytes of an element.
pub(super) const ELEMENT: usize = 8;

/// Returns where the partitions of a vector of so many bytes lie. All have the same number of elements, and the last one takes the
/// remainder too; some are empty where there are fewer elements than partitions.
pub(crate) fn parts(bytes: usize, count: usize) -> Vec<Range<usize>> {
    let elements = bytes / ELEMENT;
    let each = elements / count;
    let end = |part: usize| match part + 1 == count {
        true => elements,
        false => (part + 1) * each,
    };
    (0..count)
        .map(|part| ELEMENT * part * each..ELEMENT * end(part))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_follow_each_other_and_the_last_takes_the_remainder() {
        for elements in 0..50 {
            for count in 1..8 {
                let all = parts(ELEMENT * elements, count);
                assert_eq!(all.len(), count);
                assert_eq!(all[0].start, 0);
                assert!(all.windows(2).all(|two| two[0].end == two[1].start));
                assert_eq!(all[count - 1].end, ELEMENT * elements);
                let each = ELEMENT * (elements / count);
                assert!(all[..count - 1].iter().all(|part| part.len() == each));
                assert_eq!(all[count - 1].len(), each + ELEMENT * (elements % count));
            }
        }
    }

    #[test]
    fn a_vector_of_fewer_elements_has_empty_partitions() {
        assert_eq!(parts(24, 4), [0..0, 0..0, 0..0, 0..24]);
    }
}

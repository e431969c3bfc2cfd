//! Extents of a grid for a number of processes (MPI-5.0, section 8.5.2).

/// Returns `count` extents whose product is `total`, in decreasing order: as close to each other as they can be, and of
/// those lists the one with the greatest last one, then last but one, and so on, as MPICH has it.
pub(crate) fn balanced(total: usize, count: usize) -> Vec<usize> {
    if count == 0 {
        return Vec::new();
    }
    let mut search = Search {
        divisors: divisors(total),
        primes: primes(total),
        chosen: Vec::with_capacity(count),
        spread: usize::MAX,
        best: Vec::new(),
    };
    search.extend(total, count, total);
    search.best
}

/// A search through the decreasing lists of divisors with a product.
struct Search {
    /// In increasing order.
    divisors: Vec<usize>,
    /// In decreasing order.
    primes: Vec<usize>,
    chosen: Vec<usize>,
    /// Between the first and the last of the best list.
    spread: usize,
    best: Vec<usize>,
}

impl Search {
    /// Tries all lists of `count` more divisors with the product `rest`, none of them above `most`.
    fn extend(&mut self, rest: usize, count: usize, most: usize) {
        // One of them is a multiple of the largest prime.
        let prime = self
            .primes
            .iter()
            .find(|prime| rest.is_multiple_of(**prime));
        if prime.is_some_and(|prime| *prime > most) {
            return;
        }
        if count == 1 {
            let first = *self.chosen.first().unwrap_or(&rest);
            if rest > most || first - rest > self.spread {
                return;
            }
            self.chosen.push(rest);
            let is_greater = self.chosen.iter().rev().gt(self.best.iter().rev());
            if first - rest < self.spread || is_greater {
                self.spread = first - rest;
                self.best.clone_from(&self.chosen);
            }
            self.chosen.pop();
            return;
        }
        for place in 0..self.divisors.len() {
            let divisor = self.divisors[place];
            if divisor > most {
                break;
            }
            let power = divisor.checked_pow(count as u32);
            if power.is_some_and(|power| power < rest) || !rest.is_multiple_of(divisor) {
                continue;
            }
            match self.chosen.first() {
                // The last one is not above this one,
                Some(first) if first - divisor > self.spread => continue,
                // nor above the mean of all.
                None if self.is_beyond(divisor, rest, count) => break,
                _ => {}
            }
            self.chosen.push(divisor);
            self.extend(rest / divisor, count - 1, divisor);
            self.chosen.pop();
        }
    }

    /// Whether lists that begin with `first` are spread wider than the best one.
    fn is_beyond(&self, first: usize, total: usize, count: usize) -> bool {
        let Some(last) = first.checked_sub(self.spread) else {
            return false;
        };
        // The last one would have to be `last` at least.
        let power = last.checked_pow(count as u32);
        power.is_none_or(|power| power > total)
    }
}

fn divisors(number: usize) -> Vec<usize> {
    let low = (1..).take_while(|divisor| divisor * divisor <= number);
    let low: Vec<_> = low
        .filter(|divisor| number.is_multiple_of(*divisor))
        .collect();
    let high = low.iter().rev().map(|divisor| number / divisor);
    let mut all: Vec<_> = low.iter().copied().chain(high).collect();
    all.dedup();
    all
}

fn primes(mut number: usize) -> Vec<usize> {
    let mut primes = Vec::new();
    let mut divisor = 2;
    while divisor * divisor <= number {
        if number.is_multiple_of(divisor) {
            primes.push(divisor);
            while number.is_multiple_of(divisor) {
                number /= divisor;
            }
        }
        divisor += 1;
    }
    if number > 1 {
        primes.push(number);
    }
    primes.reverse();
    primes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_as_close_as_they_can_be() {
        for (total, extents) in [
            (1, &[1, 1, 1][..]),
            (6, &[3, 2]),
            (7, &[7, 1]),
            (12, &[3, 2, 2]),
            (16, &[4, 4]),
            (56, &[7, 4, 2]),
            (56, &[7, 2, 2, 2]),
            (495, &[33, 15]),
            (5040, &[21, 16, 15]),
            (55440, &[44, 36, 35]),
            (98784, &[14, 14, 9, 8, 7]),
            (495, &[11, 9, 5]),
            (495, &[11, 5, 3, 3, 1]),
            (4096, &[16, 16, 16]),
            (2_147_483_647, &[2_147_483_647, 1, 1, 1]),
        ] {
            assert_eq!(balanced(total, extents.len()), extents, "{total}");
        }
        assert!(balanced(5, 0).is_empty());
    }

    /// Against all lists of divisors.
    #[test]
    fn no_list_is_closer() {
        fn least(rest: usize, count: usize, first: usize, most: usize) -> Option<usize> {
            if count == 0 {
                return (rest == 1).then(|| first - most);
            }
            let fits = (1..=most.min(rest)).filter(|one| rest.is_multiple_of(*one));
            fits.filter_map(|one| least(rest / one, count - 1, first.max(one), one))
                .min()
        }
        for total in 1..=240 {
            for count in 1..=4 {
                let found = balanced(total, count);
                assert_eq!(found.iter().product::<usize>(), total);
                assert!(found.is_sorted_by(|one, next| one >= next));
                let spread = found[0] - found[count - 1];
                assert_eq!(
                    Some(spread),
                    least(total, count, 0, total),
                    "{total}, {count}"
                );
            }
        }
    }

    #[test]
    fn numbers_with_many_divisors_are_done_at_once() {
        for total in [
            735_134_400,
            1 << 30,
            1_102_701_600,
            2_095_133_040,
            2_147_483_640,
        ] {
            for count in 2..40 {
                assert_eq!(balanced(total, count).iter().product::<usize>(), total);
            }
        }
    }
}

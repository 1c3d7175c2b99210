//! Byte keys of several shapes, whose timings include the hash.

use std::sync::LazyLock;

use bloomline::mix;

use crate::queries::Reorder;

/// What the keys of a database look like.
pub struct Shape {
    pub name: &'static str,
    /// The length of the key of a number, at least 8.
    length: fn(u64) -> usize,
}

pub const SHAPES: [Shape; 3] = [
    Shape { name: "16 bytes", length: |_| 16 },
    Shape { name: "lengths of URLs", length: |number| URL_LENGTHS[draw(number, 30_088)] },
    Shape { name: "20 to 80 bytes, triangular", length: |number| 20 + draw(number, 31) + draw(!number, 31) },
];

/// The length of each of 30,088 URLs, homepages of projects.
static URL_LENGTHS: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let lengths = include_str!("../url-lengths.csv").lines().skip(1).flat_map(|line| {
        let (length, urls) = line.split_once(',').expect("two columns");
        let number = |text: &str| text.parse().expect("a number");
        std::iter::repeat_n(number(length), number(urls))
    });
    lengths.collect()
});

/// Appends `length` bytes, at least 8, which are different for each number.
fn random(number: u64, length: usize, bytes: &mut Vec<u8>) {
    let words = (0..).flat_map(|i| mix(number.wrapping_add(i << 56)).to_le_bytes());
    bytes.extend(words.take(length));
}

/// A number below `limit` that has nothing to do with the key's bytes.
fn draw(number: u64, limit: u64) -> usize {
    (mix(number ^ (1 << 62)) % limit) as usize
}

/// Keys stored end to end. Their lengths are read from memory, as a database reads them.
#[derive(Clone)]
pub struct Keys {
    bytes: Vec<u8>,
    /// Where each key starts, and where the last key ends, in ascending order.
    starts: Vec<u32>,
}

impl Keys {
    pub fn new(numbers: impl Iterator<Item = u64>, shape: &Shape) -> Self {
        let mut keys = Self { bytes: Vec::new(), starts: vec![0] };
        for number in numbers {
            random(number, (shape.length)(number), &mut keys.bytes);
            keys.end_key();
        }
        keys
    }

    fn end_key(&mut self) {
        self.starts.push(u32::try_from(self.bytes.len()).expect("less than 4 GiB of keys"));
    }

    #[inline(always)]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.starts.windows(2).map(|ends| {
            // SAFETY: the starts ascend from 0 to the number of bytes.
            unsafe { self.bytes.get_unchecked(ends[0] as usize..ends[1] as usize) }
        })
    }

    /// The bytes, and the offsets at which each key starts and the last key ends.
    pub fn parts(&self) -> (&[u8], &[u32]) {
        (&self.bytes, &self.starts)
    }
}

impl Reorder for Keys {
    fn reorder(&mut self, from: &Self, order: impl Iterator<Item = usize>) {
        self.bytes.clear();
        self.starts.truncate(1);
        for i in order {
            self.bytes.extend_from_slice(&from.bytes[from.starts[i] as usize..from.starts[i + 1] as usize]);
            self.end_key();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::queries::Queries;

    #[test]
    fn keys_differ_and_reordering_keeps_them() {
        for shape in &SHAPES {
            let keys = Keys::new((0..4096).chain(1 << 40..(1 << 40) + 4096), shape);
            let distinct: HashSet<&[u8]> = keys.iter().collect();
            assert_eq!(distinct.len(), 8192, "{}", shape.name);
            let mut queries = Queries::new(keys.clone(), 8192);
            let reordered = queries.reordered(1);
            assert!(reordered.iter().ne(keys.iter()), "{}", shape.name);
            assert_eq!(reordered.iter().collect::<HashSet<_>>(), distinct, "{}", shape.name);
        }
    }

    #[test]
    fn urls_are_39_bytes_on_average() {
        assert_eq!(URL_LENGTHS.len(), 30_088);
        let keys = Keys::new(0..30_088, &SHAPES[1]);
        let mean = keys.bytes.len() as f64 / 30_088.0;
        assert!((38.5..39.5).contains(&mean), "{mean}");
    }
}

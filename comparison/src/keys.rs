//! Byte keys of several shapes: their timings include the hash.

use std::sync::LazyLock;

use bloomline::mix;

use crate::queries::Queries;

/// What the keys of a database look like.
#[derive(Clone, Copy)]
pub struct Shape {
    pub name: &'static str,
    /// Appends the key of a number. Different numbers have different keys.
    append: fn(u64, &mut Vec<u8>),
}

pub const SHAPES: [Shape; 10] = [
    Shape { name: "8 bytes", append: |number, bytes| random(number, 8, bytes) },
    Shape { name: "16 bytes", append: |number, bytes| random(number, 16, bytes) },
    Shape { name: "24 bytes", append: |number, bytes| random(number, 24, bytes) },
    Shape { name: "40 bytes", append: |number, bytes| random(number, 40, bytes) },
    Shape { name: "64 bytes", append: |number, bytes| random(number, 64, bytes) },
    Shape {
        name: "lengths of URLs",
        append: |number, bytes| random(number, URL_LENGTHS[draw(number, 30_088)], bytes),
    },
    Shape {
        name: "20 to 80 bytes, triangular",
        append: |number, bytes| random(number, 20 + draw(number, 31) + draw(!number, 31), bytes),
    },
    Shape {
        name: "8 to 31 bytes, uniform",
        append: |number, bytes| random(number, 8 + draw(number, 24), bytes),
    },
    // Its default: a big-endian number, padded to 16 bytes.
    Shape {
        name: "db_bench",
        append: |number, bytes| {
            bytes.extend(number.to_be_bytes());
            bytes.extend([b'0'; 8]);
        },
    },
    // Its default: "user" and a hash of 63 bits, which has 19 digits, sometimes fewer.
    Shape {
        name: "YCSB",
        append: |number, bytes| bytes.extend(format!("user{}", mix(number) >> 1).into_bytes()),
    },
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

/// `length` bytes, at least 8.
fn random(number: u64, length: usize, bytes: &mut Vec<u8>) {
    let words = (0..).flat_map(|i| mix(number.wrapping_add(i << 56)).to_le_bytes());
    bytes.extend(words.take(length));
}

/// A number below `limit` that has nothing to do with the key's bytes.
fn draw(number: u64, limit: u64) -> usize {
    (mix(number ^ (1 << 62)) % limit) as usize
}

/// Keys stored end to end. Their lengths are read from memory, as a database reads them.
pub struct Keys {
    as_made: Packed,
    reordered: Packed,
}

#[derive(Clone, Default)]
struct Packed {
    bytes: Vec<u8>,
    /// Where each key starts, and where the last one ends: ascending.
    starts: Vec<u32>,
}

impl Packed {
    fn end_key(&mut self) {
        self.starts.push(u32::try_from(self.bytes.len()).expect("less than 4 GiB of keys"));
    }

    fn key(&self, i: usize) -> &[u8] {
        &self.bytes[self.starts[i] as usize..self.starts[i + 1] as usize]
    }
}

impl Keys {
    pub fn new(numbers: impl Iterator<Item = u64>, shape: Shape) -> Self {
        let mut keys = Packed { bytes: Vec::new(), starts: vec![0] };
        for number in numbers {
            (shape.append)(number, &mut keys.bytes);
            keys.end_key();
        }
        Self { reordered: keys.clone(), as_made: keys }
    }

    #[inline(always)]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let Packed { bytes, starts } = &self.reordered;
        starts.windows(2).map(|ends| {
            // SAFETY: the starts ascend from 0 to the number of bytes.
            unsafe { bytes.get_unchecked(ends[0] as usize..ends[1] as usize) }
        })
    }

    /// The bytes, in them the start of each key and the end of the last, and the number of keys.
    pub fn parts(&self) -> (&[u8], &[u32], usize) {
        (&self.reordered.bytes, &self.reordered.starts, self.number())
    }
}

impl Queries for Keys {
    fn number(&self) -> usize {
        self.as_made.starts.len() - 1
    }

    fn reorder(&mut self, order: impl Fn(usize) -> usize) {
        self.reordered.bytes.clear();
        self.reordered.starts.truncate(1);
        for i in 0..self.number() {
            self.reordered.bytes.extend_from_slice(self.as_made.key(order(i)));
            self.reordered.end_key();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_differ_and_reordering_keeps_them() {
        for shape in SHAPES {
            let mut keys = Keys::new((0..4096).chain(1 << 40..(1 << 40) + 4096), shape);
            let distinct: HashSet<Vec<u8>> = keys.iter().map(<[u8]>::to_vec).collect();
            assert_eq!(distinct.len(), 8192, "{}", shape.name);
            keys.reorder(crate::queries::order(8192, 1));
            assert_eq!(keys.iter().map(<[u8]>::to_vec).collect::<HashSet<_>>(), distinct, "{}", shape.name);
        }
    }

    #[test]
    fn urls_are_39_bytes_on_average() {
        assert_eq!(URL_LENGTHS.len(), 30_088);
        let keys = Keys::new(0..30_088, SHAPES[5]);
        let mean = keys.parts().0.len() as f64 / 30_088.0;
        assert!((38.5..39.5).contains(&mean), "{mean}");
    }
}

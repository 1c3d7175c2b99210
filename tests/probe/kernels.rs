//! The functions whose machine code is proved, accessors that show where a filter has its fields, and a way to run them.
use std::hint::black_box;
use std::io::{Read, Write};

use bloomline::{BloomFilter, Kernel};

#[used]
#[unsafe(no_mangle)]
static FILTER_BYTES: u64 = size_of::<BloomFilter>() as u64;

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn contains(filter: &BloomFilter, hash: u64) -> bool {
    filter.contains_hash(hash)
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn insert(filter: &mut BloomFilter, hash: u64) -> bool {
    filter.insert_hash(hash)
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn k(filter: &BloomFilter) -> u32 {
    filter.k()
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn n_blocks(filter: &BloomFilter) -> usize {
    filter.n_blocks()
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn n_modules(filter: &BloomFilter) -> usize {
    filter.n_modules()
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn keys(filter: &BloomFilter) -> bool {
    filter.known_keys().is_some()
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn kernel(filter: &BloomFilter, length: &mut usize) -> *const u8 {
    let name = filter.kernel().name();
    *length = name.len();
    name.as_ptr()
}

/// Each case: a hash and a block. Each result: the answer and the block.
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, name, k_of, function] = &arguments[..] else {
        let names: Vec<_> = Kernel::available().map(Kernel::name).collect();
        return println!("{}", names.join(" "));
    };
    let mut filter = BloomFilter::with_blocks(1, k_of.parse().unwrap()).unwrap();
    black_box((k(&filter), n_blocks(&filter), n_modules(&filter), keys(&filter), kernel(&filter, &mut 0)));
    let kernel = Kernel::available().find(|kernel| kernel.name() == name).unwrap();
    let trailer = 0x20 | (filter.k() - 1) as u8;
    let mut cases = Vec::new();
    std::io::stdin().read_to_end(&mut cases).unwrap();
    let mut results = Vec::new();
    for case in cases.as_chunks::<72>().0 {
        let (hash, block) = case.split_first_chunk::<8>().unwrap();
        let mut bytes = block.to_vec();
        bytes.push(trailer);
        filter = BloomFilter::from_compact(&bytes).unwrap().with_kernel(kernel);
        let hash = u64::from_le_bytes(*hash);
        let answer = if function == "insert" { insert(&mut filter, hash) } else { contains(&filter, hash) };
        results.push(u8::from(answer));
        bytes.clear();
        filter.write_compact(&mut bytes).expect("a `Vec` takes all bytes");
        results.extend(bytes.iter().cycle().take(64));
    }
    std::io::stdout().write_all(&results).unwrap();
}

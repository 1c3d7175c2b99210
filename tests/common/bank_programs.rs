//! Programs of operations on a bank, compared with its filters one by one.

use arbitrary::{Arbitrary, Unstructured};
use bloomline::bank::{BankFooter, BankView, FilterBank, SlotBitmap};
use bloomline::{BloomFilter, BloomView, Kernel, Sizing, mix};

use super::allocations::allocated;
use super::decode::forge_footer;
use super::error_texts::{Refusal, wrong_range};

#[derive(Arbitrary, Debug)]
pub struct Input {
    n_blocks: u8,
    k: u8,
    seed: u64,
    capacity: u8,
    operations: Vec<Operation>,
}

impl Input {
    /// A program of as many operations as given, each from bytes of its own, because `arbitrary` ends a list after each
    /// operation with a probability of one half.
    #[allow(dead_code, reason = "the fuzz target has a list of bytes")]
    pub fn of(bank: &[u8], operations: &[Vec<u8>]) -> Self {
        let mut input = Self::arbitrary(&mut Unstructured::new(bank)).expect("bytes that run out are zeros");
        let operation = |bytes: &Vec<u8>| Operation::arbitrary(&mut Unstructured::new(bytes));
        input.operations = operations.iter().map(operation).collect::<Result<_, _>>().expect("as above");
        input
    }
}

#[derive(Arbitrary, Debug)]
pub enum Operation {
    /// Pushes as many filters.
    Push(u8, Filters),
    PushAll(u16, Filters),
    Replace(u16, Filters),
    Clear(u16),
    /// Pushes a filter of a wrong k, seed or number of blocks, and replaces a filter with it.
    Mismatch(u16, u8),
    Reserve(u16),
    /// Arbitrary hashes, for example of one block, or that differ only in unused bits.
    Find([u64; 3]),
    Standalone,
    /// Changes a byte of the standalone bytes, and truncates them at that byte.
    Damage(u32, u8),
    /// Changes two bytes of the footer and corrects its checksum.
    Forge(u8, [u8; 2]),
    Kernel(u8),
}

/// Filters of consecutive numbers. Has the first number, how many each, how often to fold, and their form.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Filters {
    first: u16,
    count: u8,
    factor: u8,
    form: u8,
}

/// More run long and find no more.
const MOST_OPERATIONS: usize = 24;
const MOST_SLOTS: usize = 600;

struct Model {
    bank: FilterBank,
    filters: Vec<BloomFilter>,
    hashes: Vec<u64>,
}

pub fn check(input: Input) {
    let n_blocks = usize::from(input.n_blocks % 5) + 1;
    let k = u32::from(input.k % 16) + 1;
    let sizing = Sizing::new(n_blocks, k).expect("in range");
    let bank = FilterBank::with_capacity(sizing, input.capacity.into()).expect("enough memory");
    let bank = bank.with_seed(input.seed).expect("no filter yet");
    assert!(bank.capacity() >= input.capacity.into() && bank.as_view().slots() == 0);
    let mut model = Model { bank, filters: Vec::new(), hashes: vec![mix(1 << 40)] };
    for operation in input.operations.iter().take(MOST_OPERATIONS) {
        model.run(operation);
        assert_eq!(model.bank.as_view().slots(), model.filters.len());
    }
    model.check();
}

impl Model {
    /// A filter to be pushed, larger by `factor`, and the same filter folded. The numbers differ for each `index`.
    fn filter(&mut self, filters: Filters, index: u64) -> (BloomFilter, BloomFilter) {
        let factor = usize::from(filters.factor % 3) + 1;
        let bank = self.bank.as_view();
        let sizing = Sizing::new(factor * bank.sizing().n_blocks(), bank.sizing().k()).expect("in range");
        let filter = BloomFilter::with_sizing(sizing).expect("enough memory");
        let mut filter = filter.with_seed(bank.seed()).expect("no key yet");
        let first = u64::from(filters.first) + 300 * index;
        let hashes: Vec<u64> = (first..first + u64::from(filters.count % 64)).map(mix).collect();
        filter.insert_batch(&hashes);
        // Only some of them, because each is looked up in all filters by all kernels.
        if index < 8 {
            self.hashes.extend(hashes.iter().take(2));
        }
        let mut folded = filter.clone();
        folded.fold(factor).expect("a multiple");
        (filter, folded)
    }

    /// Calls `put` with a filter as itself, as compact bytes or as standalone bytes. The filter that is then in the slot.
    fn put<T>(
        &mut self,
        filters: Filters,
        index: u64,
        put: impl FnOnce(&mut FilterBank, BloomView<'_>) -> T,
    ) -> (T, BloomFilter) {
        let (filter, mut folded) = self.filter(filters, index);
        let result = match filters.form % 3 {
            0 => put(&mut self.bank, filter.as_view()),
            1 => {
                // Compact bytes do not have the number of keys.
                let compact = folded.to_compact();
                folded =
                    BloomView::from_compact_with_seed(&compact, folded.seed()).unwrap().to_filter().unwrap();
                let bytes = filter.to_compact();
                let view = BloomView::from_compact_with_seed(&bytes, filter.seed()).expect("our own bytes");
                put(&mut self.bank, view)
            }
            _ => put(
                &mut self.bank,
                BloomView::from_standalone(&filter.to_standalone()).expect("our own bytes"),
            ),
        };
        (result, folded)
    }

    fn run(&mut self, operation: &Operation) {
        let slots = self.filters.len();
        let slot_of = |slot: u16| if slots == 0 { 0 } else { usize::from(slot) % slots };
        match *operation {
            Operation::Push(n, filters) => {
                for i in 0..u64::from(n % 8) {
                    let is_full = self.bank.capacity() == self.filters.len();
                    let (slot, filter) = self.put(filters, i, |bank, view| bank.push(view));
                    assert_eq!(slot.is_err(), is_full);
                    if let Ok(slot) = slot {
                        assert_eq!(slot, self.filters.len());
                        self.filters.push(filter);
                    }
                }
            }
            Operation::PushAll(n, filters) => {
                let n = usize::from(n) % (MOST_SLOTS + 1 - slots.min(MOST_SLOTS));
                let (pushed, folded): (Vec<_>, Vec<_>) =
                    (0..n as u64).map(|i| self.filter(filters, i)).unzip();
                let room = self.bank.capacity() - slots;
                match self.bank.push_all(&pushed) {
                    Ok(range) => {
                        assert_eq!(range, slots..slots + n);
                        self.filters.extend(folded);
                    }
                    Err(_) => assert!(n > room),
                }
            }
            Operation::Replace(slot, filters) => {
                let slot = slot_of(slot);
                let (result, filter) = self.put(filters, 0, |bank, view| bank.replace(slot, view));
                assert_eq!(result.is_ok(), slots != 0);
                if let Some(old) = self.filters.get_mut(slot) {
                    *old = filter;
                }
            }
            Operation::Clear(slot) => {
                let slot = slot_of(slot);
                assert_eq!(self.bank.clear_slot(slot).is_ok(), slots != 0);
                if let Some(filter) = self.filters.get_mut(slot) {
                    filter.clear();
                }
            }
            Operation::Mismatch(slot, kind) => {
                let bank = self.bank.as_view();
                let ours = (bank.sizing().n_blocks(), bank.sizing().k(), bank.seed());
                let (n_blocks, k, seed) = match kind % 3 {
                    0 => (ours.0 + 1, ours.1, ours.2),
                    1 => (ours.0, ours.1 % 16 + 1, ours.2),
                    _ => (ours.0, ours.1, ours.2 ^ 1),
                };
                let mut filter = BloomFilter::with_blocks(n_blocks, k).unwrap().with_seed(seed).unwrap();
                filter.insert(1);
                if !n_blocks.is_multiple_of(ours.0) || kind % 3 != 0 {
                    assert!(self.bank.push(&filter).is_err());
                    assert!(self.bank.replace(slot_of(slot), &filter).is_err());
                    let equal = BloomFilter::with_blocks(ours.0, ours.1).unwrap();
                    let equal = equal.with_seed(ours.2).unwrap();
                    assert!(self.bank.push_all([&equal, &filter]).is_err());
                }
            }
            Operation::Reserve(additional) => {
                let additional = usize::from(additional) % MOST_SLOTS;
                self.bank.try_reserve(additional).expect("enough memory");
                assert!(self.bank.capacity() >= slots + additional);
            }
            Operation::Find(hashes) => self.hashes.extend(hashes),
            Operation::Standalone => {
                self.check();
                let bytes = self.bank.to_standalone();
                let kernel = self.bank.as_view().kernel();
                self.bank = FilterBank::from_standalone(&bytes).expect("our own bytes").with_kernel(kernel);
                assert!(self.bank.to_standalone() == bytes);
            }
            Operation::Damage(at, change) => {
                let read = |bytes: &[u8]| BankView::from_standalone(bytes).map(drop);
                let bytes = super::damaged(self.bank.to_standalone(), at as usize, change, read);
                decoder_survives(&bytes, &self.hashes);
                self.check_ranges(&bytes);
            }
            Operation::Forge(offset, bytes) => {
                let forged = forge_footer(&self.bank.to_standalone(), usize::from(offset % 47), &bytes);
                decoder_survives(&forged, &self.hashes);
            }
            Operation::Kernel(kernel) => {
                self.bank = self.bank.clone().with_kernel(super::kernel(kernel));
            }
        }
    }

    /// The slots whose filters possibly have the hash.
    fn expected(&self, hash: u64) -> Vec<usize> {
        (0..self.filters.len()).filter(|&slot| self.filters[slot].contains_hash(hash)).collect()
    }

    fn check(&self) {
        let bytes = self.bank.to_standalone();
        assert_eq!(bytes.len(), self.bank.standalone_len());
        let view = BankView::from_standalone(&bytes).expect("our own bytes");
        assert_eq!(view.byte_len(), bytes.len());
        let of_kernels: Vec<FilterBank> =
            Kernel::available().map(|kernel| self.bank.clone().with_kernel(kernel)).collect();
        let mut found = SlotBitmap::new();
        for &hash in &self.hashes {
            let expected = self.expected(hash);
            let check = |any: bool, found: &SlotBitmap| {
                assert_eq!(any, !expected.is_empty());
                assert_eq!(found.count(), expected.len());
                assert!(found.iter().eq(expected.iter().copied()));
                assert!(
                    (0..self.filters.len() + 65).all(|slot| found.contains(slot) == expected.contains(&slot))
                );
            };
            check(self.bank.as_view().find_hash(hash, &mut found), &found);
            check(view.find_hash(hash, &mut found), &found);
            for bank in &of_kernels {
                check(bank.as_view().find_hash(hash, &mut found), &found);
                check(view.with_kernel(bank.as_view().kernel()).find_hash(hash, &mut found), &found);
            }
        }
        let mut next = 0;
        self.bank.as_view().find_batch(&self.hashes, |i, found| {
            assert_eq!(i, next);
            next += 1;
            assert!(found.iter().eq(self.expected(self.hashes[i])));
        });
        assert_eq!(next, self.hashes.len());
        self.check_ranges(&bytes);
        for (slot, filter) in self.filters.iter().enumerate().rev().take(70) {
            for copy in [self.bank.as_view().to_filter(slot), view.to_filter(slot)] {
                let copy = copy.expect("a slot");
                assert!(copy == *filter);
                assert_eq!(copy.known_keys(), filter.known_keys());
                assert!(copy.to_standalone() == filter.to_standalone());
            }
        }
        assert!(
            self.bank.as_view().to_filter(self.filters.len()).is_err()
                && view.to_filter(self.filters.len()).is_err()
        );
    }

    /// Answers from one range of the bytes, which may be damaged, are those of the filters, or an error.
    fn check_ranges(&self, bytes: &[u8]) {
        let Ok(footer) = BankFooter::read(&bytes[bytes.len() - 64..]) else { return };
        let bank = self.bank.as_view();
        assert_eq!((footer.slots(), footer.seed()), (self.filters.len(), bank.seed()));
        assert_eq!(footer.hash_key("ant"), bank.hash_key("ant"));
        let (slots, n_blocks, k, seed) =
            (self.filters.len(), bank.sizing().n_blocks(), bank.sizing().k(), bank.seed());
        let fields = format!("BankFooter {{ slots: {slots}, n_blocks: {n_blocks}, k: {k}, seed: {seed}, ");
        assert!(format!("{footer:?}").starts_with(&fields));
        assert_eq!(footer.standalone_len(), bytes.len() as u64);
        let whole = self.bank.to_standalone();
        let mut found = SlotBitmap::new();
        for &hash in &self.hashes {
            let range = footer.range(hash);
            let range = range.start as usize..range.end as usize;
            match footer.find_in_range(&bytes[range.clone()], hash, &mut found) {
                Ok(any) => {
                    assert_eq!(any, found.count() != 0);
                    assert!(found.iter().eq(self.expected(hash)));
                    assert!(bytes[range.clone()] == whole[range.clone()]);
                }
                Err(error) => {
                    assert!(error.to_string().starts_with("the bank's region "), "{error}");
                    assert!(bytes[range.clone()] != whole[range.clone()]);
                    assert!(found.iter().eq(0..self.filters.len()));
                }
            }
            let longer = [&whole[range.clone()], &[0]].concat();
            for wrong in [&whole[range.start..range.end - 1], &longer] {
                let result = footer.find_in_range(wrong, hash, &mut found);
                assert_eq!(result.text(), wrong_range(range.len(), wrong.len()));
                assert!(found.iter().eq(0..self.filters.len()));
            }
            // The region of a different block is not mistaken for this block's.
            if bank.sizing().n_blocks() > 1 {
                let other = if range.start == 0 { range.len()..2 * range.len() } else { 0..range.len() };
                assert!(footer.find_in_range(&whole[other], hash, &mut found).is_err());
            }
        }
    }
}

/// Any bytes are an error or a bank that answers. Only a successful decode allocates memory.
pub fn decoder_survives(bytes: &[u8], hashes: &[u64]) {
    let (of_views, unverified) = allocated(|| BankView::from_standalone_unverified(bytes));
    let (of_bank, bank) = allocated(|| FilterBank::from_standalone(bytes));
    assert_eq!(of_views, 0);
    let Ok(view) = unverified else {
        assert!(bank.is_err() && of_bank == 0 && BankView::from_standalone(bytes).is_err());
        return;
    };
    let mut found = SlotBitmap::new();
    for &hash in hashes {
        view.find_hash(hash, &mut found);
        assert!(found.iter().all(|slot| slot < view.slots()));
    }
    for slot in [0, view.slots().saturating_sub(1)] {
        if view.slots() != 0 {
            let filter = view.to_filter(slot).expect("a slot");
            for &hash in hashes {
                view.find_hash(hash, &mut found);
                assert_eq!(found.contains(slot), filter.contains_hash(hash));
            }
        }
    }
    match bank {
        Ok(bank) => {
            assert!(view.verify().is_ok());
            // Rows that have no checksums, and the padding that aligns them to a cache line.
            assert!(of_bank <= bytes.len() + 8 * 64 + 128);
            assert!(bank.to_standalone() == bytes || bank.as_view().slots() % 64 != 0);
        }
        Err(error) => {
            assert_eq!(of_bank, 0);
            assert_eq!(view.verify(), Err(error));
        }
    }
}

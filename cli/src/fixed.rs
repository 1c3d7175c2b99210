//! The filters that commands make. A filter of fixed size consists of blocks, or of modules of blocks.
#![forbid(unsafe_code)]

use std::io::{self, Write};

use bloomline::sizing::ModularSizing;
use bloomline::variants::{ModularBloomFilter, ModularView, ScalableBloomFilter};
use bloomline::{BloomFilter, BloomView, BuildError, KeyEstimate, MismatchError, Sizing};

use crate::numbers::counted;

pub enum Fixed {
    Blocked(BloomFilter),
    Modular(ModularBloomFilter),
}

#[derive(Clone, Copy)]
pub enum FixedView<'a> {
    Blocked(BloomView<'a>),
    Modular(ModularView<'a>),
}

pub enum Filter {
    Fixed(Fixed),
    Growing(ScalableBloomFilter),
}

pub enum FilterView<'a> {
    Fixed(FixedView<'a>),
    Growing(&'a ScalableBloomFilter),
}

/// What both kinds can do.
macro_rules! either {
    ($kind:ident::{$one:ident, $other:ident}, $of:expr, $filter:ident => $result:expr) => {
        match $of {
            $kind::$one($filter) => $result,
            $kind::$other($filter) => $result,
        }
    };
    ($of:expr, $filter:ident => $result:expr) => {
        either!(Self::{Blocked, Modular}, $of, $filter => $result)
    };
}

/// Methods that both kinds have.
macro_rules! methods {
    ($one:ident, $other:ident: $($name:ident -> $type:ty),+) => {
        $(pub fn $name(&self) -> $type {
            either!(Self::{$one, $other}, self, view => view.$name())
        })+
    };
}

impl Filter {
    pub fn as_view(&self) -> FilterView<'_> {
        match self {
            Self::Fixed(filter) => FilterView::Fixed(filter.as_view()),
            Self::Growing(filter) => FilterView::Growing(filter),
        }
    }

    pub fn write_standalone(&self, out: impl Write) -> io::Result<()> {
        either!(Self::{Fixed, Growing}, self, filter => filter.write_standalone(out))
    }
}

impl FilterView<'_> {
    methods!(Fixed, Growing: seed -> u64, estimated_fpr -> f64);

    /// `None` if it grows.
    pub fn n_blocks(&self) -> Option<usize> {
        match self {
            Self::Fixed(view) => Some(view.n_blocks()),
            Self::Growing(_) => None,
        }
    }
}

impl Fixed {
    /// A filter of one module is made as a blocked filter, because older programs read that too.
    pub fn with_sizing(sizing: ModularSizing) -> Result<Self, BuildError> {
        match sizing.n_modules() {
            1 => BloomFilter::with_sizing(Sizing::new(sizing.n_blocks(), sizing.k())?).map(Self::Blocked),
            _ => ModularBloomFilter::with_sizing(sizing).map(Self::Modular),
        }
    }

    pub fn as_view(&self) -> FixedView<'_> {
        match self {
            Self::Blocked(filter) => FixedView::Blocked(filter.as_view()),
            Self::Modular(filter) => FixedView::Modular(filter.as_view()),
        }
    }

    pub fn insert_batch(&mut self, hashes: &[u64]) {
        either!(self, filter => filter.insert_batch(hashes));
    }

    pub fn fold(&mut self, factor: usize) -> Result<(), BuildError> {
        either!(self, filter => filter.fold(factor))
    }

    /// Both must be of one kind.
    pub fn union_with(&mut self, other: FixedView) -> Result<(), MismatchError> {
        match (self, other) {
            (Self::Blocked(ours), FixedView::Blocked(theirs)) => ours.union_with(theirs),
            (Self::Modular(ours), FixedView::Modular(theirs)) => ours.union_with(theirs),
            _ => unreachable!("compared before"),
        }
    }

    pub fn standalone_len(&self) -> usize {
        either!(self, filter => filter.standalone_len())
    }

    pub fn write_standalone(&self, out: impl Write) -> io::Result<()> {
        either!(self, filter => filter.write_standalone(out))
    }
}

impl FixedView<'_> {
    // `n_blocks` is of each module.
    methods!(Blocked, Modular: n_blocks -> usize, k -> u32, seed -> u64, byte_len -> usize);
    methods!(Blocked, Modular: known_keys -> Option<u64>, estimated_keys -> Option<KeyEstimate>, estimated_fpr -> f64);

    pub fn is_modular(&self) -> bool {
        matches!(self, Self::Modular(_))
    }

    pub fn n_modules(&self) -> usize {
        match self {
            Self::Blocked(_) => 1,
            Self::Modular(view) => view.n_modules(),
        }
    }

    pub fn sizing(&self) -> ModularSizing {
        ModularSizing::new(self.n_modules(), self.n_blocks(), self.k()).expect("a filter's")
    }

    /// For messages, such as "2 modules of 60 blocks".
    pub fn shape(&self) -> String {
        let blocks = counted(self.n_blocks() as u64, "block");
        let modules = || counted(self.n_modules() as u64, "module");
        if self.is_modular() { format!("{} of {blocks}", modules()) } else { blocks }
    }

    /// Without its keys.
    pub fn to_empty(self) -> Result<Fixed, BuildError> {
        let (n_blocks, k, seed) = (self.n_blocks(), self.k(), self.seed());
        match self {
            Self::Blocked(_) => BloomFilter::with_blocks(n_blocks, k)?.with_seed(seed).map(Fixed::Blocked),
            Self::Modular(_) => {
                ModularBloomFilter::with_sizing(self.sizing())?.with_seed(seed).map(Fixed::Modular)
            }
        }
    }

    pub fn to_filter(self) -> Result<Fixed, BuildError> {
        match self {
            Self::Blocked(view) => view.to_filter().map(Fixed::Blocked),
            Self::Modular(view) => view.to_filter().map(Fixed::Modular),
        }
    }

    pub fn to_folded(self, factor: usize) -> Result<Fixed, BuildError> {
        let mut filter = match self {
            // This needs less memory than to copy and then fold.
            Self::Blocked(view) => return view.to_folded(factor).map(Fixed::Blocked),
            Self::Modular(view) => view.to_filter()?,
        };
        filter.fold(factor)?;
        Ok(Fixed::Modular(filter))
    }
}

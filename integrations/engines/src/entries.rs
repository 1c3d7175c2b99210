//! What the filters of a SlateDB policy have, whole keys or prefixes.

use std::fmt;
use std::sync::Arc;

use slatedb::{FilterTarget, PrefixExtractor, PrefixTarget};

/// What a policy adds to its filters, which is whole keys, prefixes or both.
#[derive(Clone)]
pub(crate) struct Entries {
    pub(crate) base_name: &'static str,
    pub(crate) whole_keys: bool,
    pub(crate) extractor: Option<Arc<dyn PrefixExtractor>>,
    /// Two policies that differ in a field above have different names.
    pub(crate) name: Arc<str>,
}

impl Entries {
    pub(crate) fn whole_keys(base_name: &'static str) -> Self {
        Self { base_name, whole_keys: true, extractor: None, name: base_name.into() }
    }

    pub(crate) fn named(self) -> Self {
        let mut name = self.base_name.to_string();
        if !self.whole_keys {
            name += ":wh=0";
        }
        // The extractor's name comes last, so that no two policies have the same name, whatever the extractor's
        // contains.
        if let Some(extractor) = &self.extractor {
            name += ":p=";
            name += extractor.name();
        }
        Self { name: name.into(), ..self }
    }

    /// The length of the target's prefix. A length above the target's breaks the extractor's contract. It counts as no
    /// prefix, because a panic would not end a compactor, but stop its compactions.
    pub(crate) fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
        self.extractor.as_ref()?.prefix_len(target).filter(|&len| len <= bytes.len())
    }

    /// The entry that an SST's filter has if the SST has what the query looks for. `None` if filters cannot answer the
    /// query.
    pub(crate) fn entry_of<'a>(&self, target: &'a FilterTarget) -> Option<&'a [u8]> {
        match target {
            FilterTarget::Point(key) if self.whole_keys => Some(key),
            FilterTarget::Point(bytes) | FilterTarget::Prefix(bytes) => {
                self.extractor.as_ref()?;
                bytes.get(..self.prefix_len(&target.as_prefix_target()?)?)
            }
            FilterTarget::Range { .. } => None,
        }
    }
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entries").field(&self.name).finish()
    }
}

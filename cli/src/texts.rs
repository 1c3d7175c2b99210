//! Keys of texts: their paragraphs, or the n-grams of their words. Section 15 of docs/format.md has the rules.
#![forbid(unsafe_code)]

use std::collections::TryReserveError;
use std::ops::Range;

use bloomline::hash_key;
use memchr::memmem;

use crate::input::KeyRule;
use crate::json::Places;
use crate::words::letter;

/// A text, or one of its paragraphs, which is seen or new as a whole.
pub struct Unit {
    /// Index of its line.
    pub line: usize,
    /// 0 if it is left alone.
    pub n_keys: usize,
    /// Whether it has nothing but white space, and is one of several paragraphs.
    pub is_blank: bool,
    /// Where it is in the buffer, with escapes, and the bytes that separate it from the one before.
    pub place: Range<usize>,
    pub separator: usize,
    /// The bytes of the decoded text that it has, with the separator behind it.
    pub bytes: Range<usize>,
}

impl Unit {
    /// The share of its keys that was found.
    pub fn share(&self, n_found: usize) -> f64 {
        n_found as f64 / self.n_keys.max(1) as f64
    }
}

/// The text of a line.
pub struct Text<'a> {
    /// Index of the line.
    pub line: usize,
    pub text: &'a [u8],
    /// Of a JSON field, its JSON and where that is in the buffer.
    pub json: Option<(&'a str, usize)>,
}

/// Makes keys. It holds memory for the words of one text.
#[derive(Default)]
pub struct Texts {
    /// Words, with a space behind each, and where they end.
    words: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    /// Appends the hashes of the keys of a text, and its units.
    pub fn add(
        &mut self,
        rule: &KeyRule,
        Text { line, text, json }: Text,
        seed: u64,
        hashes: &mut Vec<u64>,
        units: &mut Vec<Unit>,
    ) -> Result<(), TryReserveError> {
        let mut places = json.map(|(json, at)| (Places::of(json), at));
        let mut place = |range: Range<usize>| {
            let Some((places, at)) = &mut places else { return range };
            let range = places.range(range);
            *at + range.start..*at + range.end
        };
        let Some(separator) = rule.separator() else {
            let n_keys = self.keys(rule, text, seed, hashes)?;
            let (place, bytes) = (place(0..text.len()), 0..text.len());
            units.push(Unit { line, n_keys, is_blank: false, place, separator: 0, bytes });
            return Ok(());
        };
        let (mut start, mut place_end) = (0, None);
        let ends = memmem::find_iter(text, separator).chain([text.len()]);
        for end in ends {
            let paragraph = &text[start..end];
            let is_blank = paragraph.trim_ascii().is_empty();
            let n_keys = if is_blank { 0 } else { self.keys(rule, trimmed(paragraph), seed, hashes)? };
            let next = text.len().min(end + separator.len());
            let place = place(start..end);
            let separator = place.start - place_end.replace(place.end).unwrap_or(place.start);
            units.try_reserve(1)?;
            units.push(Unit { line, n_keys, is_blank, place, separator, bytes: start..next });
            start = next;
        }
        Ok(())
    }

    /// Appends the hashes of the keys of a text or paragraph, and returns how many these are.
    pub fn keys(
        &mut self,
        rule: &KeyRule,
        text: &[u8],
        seed: u64,
        hashes: &mut Vec<u64>,
    ) -> Result<usize, TryReserveError> {
        let n_before = hashes.len();
        if rule.has_words() {
            self.split(text)?;
        }
        let n_words = self.ends.len();
        match rule.ngrams {
            _ if rule.min_words.is_some_and(|least| n_words < least.get()) => (),
            Some(n) if n_words > 0 => {
                let n = n_words.min(n.into());
                let starts = [0].into_iter().chain(self.ends.iter().map(|end| end + 1));
                let ngrams = starts.zip(&self.ends[n - 1..]);
                hashes.try_reserve(n_words)?;
                hashes.extend(ngrams.map(|(start, &end)| hash_key(&self.words[start..end], seed)));
            }
            _ => hashes.push(hash_key(text, seed)),
        }
        Ok(hashes.len() - n_before)
    }

    /// Words of the text whose keys were made last, if they count.
    pub fn n_words(&self) -> usize {
        self.ends.len()
    }

    /// Finds the words of a text.
    fn split(&mut self, text: &[u8]) -> Result<(), TryReserveError> {
        self.words.clear();
        self.ends.clear();
        let mut at = 0;
        while at < text.len() {
            let (start, mut is_whole) = (at, false);
            while let Some(letter) =
                letter(&text[at..]).filter(|letter| !is_whole && (at == start || !letter.is_alone))
            {
                at += letter.len;
                is_whole = letter.is_alone;
            }
            if at == start {
                at += 1;
                continue;
            }
            self.words.try_reserve(at - start + 1)?;
            self.ends.try_reserve(1)?;
            self.words.extend(text[start..at].iter().map(u8::to_ascii_lowercase));
            self.ends.push(self.words.len());
            self.words.push(b' ');
        }
        Ok(())
    }
}

/// Without the ends of lines around it.
fn trimmed(mut paragraph: &[u8]) -> &[u8] {
    while let [b'\r' | b'\n', rest @ ..] | [rest @ .., b'\r' | b'\n'] = paragraph {
        paragraph = rest;
    }
    paragraph
}

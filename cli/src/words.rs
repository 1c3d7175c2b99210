//! Words, such as addresses, ids and host names, that a search in logs looks for. Section 14 of docs/format.md has the
//! rule.
//!
//! A **run** is a word with all that may belong to it, such as `java.lang.NullPointerException`. Its **parts** are what
//! `.`, `-` and `:` join, here `java`, `lang` and `NullPointerException`. An index has both.
#![forbid(unsafe_code)]

use std::mem;
use std::ops::Range;

const ESCAPE: u8 = 0x1b;

/// White space, punctuation and symbols outside ASCII, as ranges. Each pair is the first code point of a range, and the
/// first after it. If one is missing here at which `grep -w` ends a word, `find --parts` misses files. More do no harm.
#[rustfmt::skip]
const SEPARATORS: [u32; 266] = [
    0x80, 0xaa, 0xab, 0xb5, 0xb6, 0xba, 0xbb, 0xc0, 0xd7, 0xd8, 0xf7, 0xf8, 0x2c2, 0x370, 0x375, 0x376,
    0x37e, 0x37f, 0x384, 0x386, 0x387, 0x388, 0x3f6, 0x3f7, 0x482, 0x483, 0x55a, 0x560, 0x589, 0x590, 0x5be,
    0x5c7, 0x5f3, 0x610, 0x61b, 0x620, 0x66a, 0x66e, 0x6d4, 0x6d5, 0x6dd, 0x6df, 0x6e9, 0x6ea, 0x6fd, 0x6ff,
    0x700, 0x710, 0x7f6, 0x7fa, 0x7fe, 0x800, 0x830, 0x83f, 0x85e, 0x85f, 0x888, 0x889, 0x890, 0x892, 0x8e2,
    0x8e3, 0x964, 0x966, 0x970, 0x971, 0x9f2, 0x9fc, 0x9fd, 0x9fe, 0xa76, 0xa77, 0xaf0, 0xaf2, 0xb70, 0xb71,
    0xbf3, 0xbfb, 0xc77, 0xc80, 0xc84, 0xc85, 0xd4f, 0xd50, 0xd79, 0xd7a, 0xdf4, 0xdf5, 0xe3f, 0xe40, 0xe4f,
    0xe50, 0xe5a, 0xe5c, 0xf01, 0xf20, 0xf34, 0xf3e, 0xf85, 0xf86, 0xfbe, 0xfdb, 0x104a, 0x1050, 0x109e,
    0x10a0, 0x10fb, 0x10fc, 0x1360, 0x1369, 0x1390, 0x139a, 0x1400, 0x1401, 0x166d, 0x166f, 0x1680, 0x1681,
    0x169b, 0x169d, 0x16eb, 0x16ee, 0x1735, 0x1737, 0x17d4, 0x17d7, 0x17d8, 0x17dc, 0x1800, 0x180f, 0x1940,
    0x1946, 0x19de, 0x1a00, 0x1a1e, 0x1a20, 0x1aa0, 0x1aa7, 0x1aa8, 0x1aae, 0x1b5a, 0x1b7f, 0x1bfc, 0x1c00,
    0x1c3b, 0x1c40, 0x1c7e, 0x1c80, 0x1cc0, 0x1cd4, 0x1fbd, 0x1fbe, 0x1fbf, 0x1fc2, 0x1fcd, 0x1fd0, 0x1fdd,
    0x1fe0, 0x1fed, 0x1ff0, 0x1ffd, 0x2c00, 0x2ce5, 0x2ceb, 0x2cf9, 0x2d00, 0x2d70, 0x2d71, 0x2e00, 0x3005,
    0x3008, 0x3021, 0x3030, 0x3031, 0x3036, 0x3038, 0x303d, 0x3040, 0x309b, 0x309d, 0x30a0, 0x30a1, 0x30fb,
    0x30fc, 0x3190, 0x31a0, 0x31c0, 0x31e4, 0x3200, 0x3400, 0x4dc0, 0x4e00, 0xa490, 0xa4c7, 0xa4fe, 0xa500,
    0xa60d, 0xa610, 0xa673, 0xa674, 0xa67e, 0xa67f, 0xa6f2, 0xa722, 0xa789, 0xa78b, 0xa828, 0xa83a, 0xa874,
    0xa878, 0xa8ce, 0xa8d0, 0xa8f8, 0xa8fb, 0xa8fc, 0xa8fd, 0xa92e, 0xa930, 0xa95f, 0xa960, 0xa9c1, 0xa9ce,
    0xa9de, 0xa9e0, 0xaa5c, 0xaa60, 0xaa77, 0xaa7a, 0xaade, 0xaae0, 0xaaf0, 0xaaf2, 0xab5b, 0xab5c, 0xab6a,
    0xab6c, 0xabeb, 0xabec, 0xe000, 0xf900, 0xfb29, 0xfb2a, 0xfbb2, 0xfbc3, 0xfd3e, 0xfd50, 0xfdcf, 0xfdd0,
    0xfdfc, 0xfe6c, 0xfeff, 0xff10, 0xff1a, 0xff21, 0xff3b, 0xff41, 0xff5b, 0xff66, 0xffe0, 0x10000, 0x1d000,
    0x1d400, 0x1f000, 0x1fc00, 0xe0000, 0x110000,
];

/// Classes of bytes, as bits, so that one loop finds where a run ends and which classes it has.
const LETTER: u8 = 1;
/// Within a run, between parts.
const JOINER: u8 = 2;
/// Not ASCII.
const WIDE: u8 = 4;
const SEPARATOR: u8 = 8;
/// Letters that are also hexadecimal digits, and those that are also decimal digits.
const HEXADECIMAL: u8 = 16;
const DECIMAL: u8 = 32;

const CLASSES: [u8; 256] = {
    let (mut classes, mut byte) = ([SEPARATOR; 256], 0);
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'.' | b'-' => JOINER,
            128.. => WIDE,
            b'0'..=b'9' => LETTER | HEXADECIMAL | DECIMAL,
            b'a'..=b'f' | b'A'..=b'F' => LETTER | HEXADECIMAL,
            b'g'..=b'z' | b'G'..=b'Z' | b'_' => LETTER,
            _ => SEPARATOR,
        };
        byte += 1;
    }
    classes
};

fn class(byte: u8) -> u8 {
    CLASSES[usize::from(byte)]
}

/// The code point outside ASCII that a text begins with, or `None` if its first byte begins none.
fn code_point(text: &[u8]) -> Option<char> {
    let beginning = &text[..text.len().min(4)];
    beginning.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next())
}

fn is_separator(letter: char) -> bool {
    SEPARATORS.partition_point(|&bound| bound <= u32::from(letter)) % 2 == 1
}

/// The class and length of the code point outside ASCII that a text begins with. A byte that begins none joins, so that
/// text in other encodings keeps its runs, and its ASCII words are parts.
#[cold]
fn wide(text: &[u8]) -> (u8, usize) {
    let Some(letter) = code_point(text) else { return (JOINER, 1) };
    let class = match letter {
        _ if is_separator(letter) => SEPARATOR,
        '\u{10000}'..='\u{1ffff}' => JOINER,
        _ => LETTER,
    };
    (class, letter.len_utf8())
}

/// A letter of the words of n-grams, which nothing joins.
pub struct Letter {
    pub len: usize,
    /// Whether it is a word by itself, because its script has no spaces between words.
    pub is_alone: bool,
}

/// The letter that a text begins with.
#[inline]
pub fn letter(text: &[u8]) -> Option<Letter> {
    match class(*text.first()?) {
        WIDE => code_point(text).filter(|&letter| !is_separator(letter)).map(|letter| Letter {
            len: letter.len_utf8(),
            is_alone: matches!(letter, '\u{2e80}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}'),
        }),
        class => (class & LETTER > 0).then_some(Letter { len: 1, is_alone: false }),
    }
}

/// A word with all that may belong to it, which has parts if it is `joined`.
#[derive(Clone, Copy)]
struct Run<'a> {
    text: &'a [u8],
    joined: bool,
}

impl<'a> Run<'a> {
    /// Replaces `pieces` by what joiners separate.
    fn split(self, pieces: &mut Vec<Piece>) {
        pieces.clear();
        let (mut start, mut at, mut all) = (0, 0, !0);
        while at <= self.text.len() {
            let (class, len) = match self.text.get(at).map(|&byte| class(byte)) {
                None => (SEPARATOR, 1),
                Some(WIDE) => wide(&self.text[at..]),
                Some(class) => (class, 1),
            };
            if class & LETTER > 0 {
                all &= class;
                at += len;
                continue;
            }
            if start < at {
                pieces.push(Piece { range: start..at, all });
            }
            at += len;
            (start, all) = (at, !0);
        }
    }

    /// Passes the parts to `each`: dates, IPv4 addresses and UUIDs, and each piece that is in none of the last two.
    fn parts(self, pieces: &[Piece], mut each: impl FnMut(&'a [u8], Part)) {
        // What colons join can be several runs in a shorter text.
        let has_colon = self.text.contains(&b':');
        let (mut covered, mut date_end) = (0, 0);
        for (i, piece) in pieces.iter().enumerate() {
            let (rest, start) = (if has_colon { &[][..] } else { &pieces[i..] }, piece.range.start);
            if let Some(end) = self.date_end(rest) {
                date_end = end;
                each(&self.text[start..end], Part::Date);
            }
            if let Some((n, placeholder)) = address_or_uuid(rest) {
                covered = i + n;
                each(&self.text[start..rest[n - 1].range.end], Part::Number(placeholder));
            } else if i >= covered {
                each(&self.text[piece.range.clone()], Part::Piece(piece, start < date_end));
            }
        }
    }

    /// Where the date ends that begins with these pieces, such as `2026-11-28`, also before `T` and a time.
    fn date_end(self, pieces: &[Piece]) -> Option<usize> {
        let [year, month, day] = pieces.first_chunk()?;
        let is_decimal = |piece: &Piece, len| piece.range.len() == len && piece.all & DECIMAL > 0;
        let (day, start) = (&self.text[day.range.clone()], day.range.start);
        let is_day = matches!(day, [b'0'..=b'9', b'0'..=b'9'] | [b'0'..=b'9', b'0'..=b'9', b'T' | b't', ..]);
        (is_decimal(year, 4) && is_decimal(month, 2) && is_day).then_some(start + 2)
    }
}

/// What a part of a run is.
enum Part<'a> {
    Date,
    /// An IPv4 address or a UUID, with the key in place of its pieces.
    Number(&'static [u8]),
    /// A piece, and whether a date has it too.
    Piece(&'a Piece, bool),
}

/// What joiners separate, and the classes that all of its bytes have.
struct Piece {
    range: Range<usize>,
    all: u8,
}

impl Piece {
    fn is_octet(&self) -> bool {
        self.range.len() <= 3 && self.all & DECIMAL > 0
    }

    fn is_group(&self) -> bool {
        matches!(self.range.len(), 4 | 8 | 12) && self.all & HEXADECIMAL > 0
    }
}

/// The keys in place of the pieces of all IPv4 addresses and of all UUIDs, which would be half of an index. Few of these
/// pieces tell files apart, and few are typed alone. No word has a space.
const ADDRESS: &[u8] = b"an IPv4 address";
const UUID: &[u8] = b"a UUID";

/// If these pieces begin with an address or a UUID, how many are its own, and the key in their place.
fn address_or_uuid(pieces: &[Piece]) -> Option<(usize, &'static [u8])> {
    let is_uuid = |groups: &[Piece; 5]| {
        groups.iter().map(|group| group.range.len()).eq([8, 4, 4, 4, 12])
            && groups.iter().all(Piece::is_group)
    };
    match (pieces.first_chunk(), pieces.first_chunk::<4>()) {
        (Some(groups), _) if is_uuid(groups) => Some((5, UUID)),
        (_, Some(octets)) if octets.iter().all(Piece::is_octet) => Some((4, ADDRESS)),
        _ => None,
    }
}

/// Passes the keys of a text that neither begins nor ends within a word to `each`, which returns their hashes.
pub fn keys<'a>(text: &'a [u8], mut each: impl FnMut(&'a [u8]) -> u64) {
    // Logs repeat themselves, so most runs were split before.
    let (mut seen, mut pieces) = (vec![&[][..]; 4096], Vec::new());
    for run in runs(text) {
        let hash = each(run.text);
        if run.joined && mem::replace(&mut seen[hash as usize % 4096], run.text) != run.text {
            run.split(&mut pieces);
            run.parts(&pieces, |text, part| {
                if text.len() < run.text.len() {
                    each(text);
                }
                if let Part::Number(placeholder) = part {
                    each(placeholder);
                }
            });
        }
    }
}

/// The runs of a text that neither begins nor ends within one.
fn runs(text: &[u8]) -> Runs<'_> {
    Runs { text, at: 0, no_address_until: 0 }
}

struct Runs<'a> {
    text: &'a [u8],
    at: usize,
    /// Up to here, colons are known to join nothing, so that no piece is looked at twice.
    no_address_until: usize,
}

impl Runs<'_> {
    /// The first run from `at` on without colons: where it begins, where it ends, and whether it is joined.
    #[inline(always)]
    fn plain(&self, mut at: usize) -> Option<(usize, usize, bool)> {
        let text = self.text;
        loop {
            let (class, len) = match class(*text.get(at)?) {
                class if class & LETTER > 0 => break,
                WIDE => wide(&text[at..]),
                SEPARATOR if text[at] == ESCAPE => (SEPARATOR, escape_len(&text[at..])),
                // A joiner here is left out.
                _ => (SEPARATOR, 1),
            };
            if class != SEPARATOR {
                break;
            }
            at += len;
        }
        let (start, mut found) = (at, 0);
        while let Some(&byte) = text.get(at) {
            let (class, len) = match class(byte) {
                SEPARATOR => break,
                WIDE => wide(&text[at..]),
                class => (class, 1),
            };
            if class == SEPARATOR {
                break;
            }
            found |= class;
            at += len;
        }
        let mut run = &text[start..at];
        while let [rest @ .., b'.' | b'-'] = run {
            run = rest;
        }
        let joined = found & JOINER > 0 && (start + run.len() == at || has_joiner(run));
        Some((start, start + run.len(), joined))
    }

    /// From this run on, the end of the pieces of up to four hexadecimal digits that one or two colons join, and
    /// whether they are an IPv6 or MAC address, or a fingerprint. A time has no letter and fewer than six pieces, so it
    /// is none.
    fn address(&self, start: usize, first_end: usize) -> (usize, bool) {
        let text = self.text;
        let is_piece = |piece: &[u8]| piece.len() <= 4 && piece.iter().all(u8::is_ascii_hexdigit);
        let (mut piece, mut is_after_two, mut end) = ((start, first_end, false), false, first_end);
        let (mut n, mut has_letter, mut has_two) = (0, false, false);
        while let (start, piece_end, false) = piece
            && is_piece(&text[start..piece_end])
        {
            end = piece_end;
            n += 1;
            has_letter |= text[start..end].iter().any(u8::is_ascii_alphabetic);
            has_two |= is_after_two;
            let colons = text[end..].iter().take(2).take_while(|&&byte| byte == b':').count();
            if colons == 0 || !text.get(end + colons).is_some_and(u8::is_ascii_hexdigit) {
                break;
            }
            let Some(found) = self.plain(end + colons) else { break };
            (piece, is_after_two) = (found, colons == 2);
        }
        (end, has_two || n >= 3 && has_letter || n >= 6)
    }
}

impl<'a> Iterator for Runs<'a> {
    type Item = Run<'a>;

    fn next(&mut self) -> Option<Run<'a>> {
        let (start, end, joined) = self.plain(self.at)?;
        self.at = end;
        if start >= self.no_address_until && self.text.get(end) == Some(&b':') {
            let (address_end, is_address) = self.address(start, end);
            if is_address {
                self.at = address_end;
                return Some(Run { text: &self.text[start..address_end], joined: true });
            }
            self.no_address_until = address_end;
        }
        Some(Run { text: &self.text[start..end], joined })
    }
}

#[cold]
fn has_joiner(run: &[u8]) -> bool {
    let mut at = 0;
    while let Some(&byte) = run.get(at) {
        let (class, len) = if class(byte) == WIDE { wide(&run[at..]) } else { (class(byte), 1) };
        if class & LETTER == 0 {
            return true;
        }
        at += len;
    }
    false
}

/// Length of a sequence that sets a terminal's colours, or 1 if there is none.
fn escape_len(text: &[u8]) -> usize {
    if let [ESCAPE, b'[', rest @ ..] = text {
        let parameters = rest.iter().take_while(|byte| (b'0'..=b'?').contains(byte)).count();
        if rest.get(parameters).is_some_and(u8::is_ascii_alphabetic) {
            return 2 + parameters + 1;
        }
    }
    1
}

/// The length of a text up to its last byte that neither runs nor sequences for terminals have. What follows may be the
/// beginning of one.
pub fn whole(text: &[u8]) -> usize {
    let is_between = |&byte: &u8| class(byte) == SEPARATOR && !matches!(byte, ESCAPE | b'[' | b':'..=b'?');
    text.iter().rposition(is_between).map_or(0, |at| at + 1)
}

/// The keys that a file must have to have a text as whole words: one of each list. By parts, the first and the last
/// run, which may be cut, can be parts of longer ones.
pub fn asked(text: &[u8], by_parts: bool) -> Vec<Vec<&[u8]>> {
    let runs: Vec<_> = runs(text).collect();
    let (mut asked, mut pieces) = (Vec::new(), Vec::new());
    for (i, run) in runs.iter().enumerate() {
        if !by_parts || i > 0 && i + 1 < runs.len() {
            asked.push(vec![run.text]);
            continue;
        }
        run.split(&mut pieces);
        run.parts(&pieces, |text, part| {
            let mut keys = vec![text];
            if let Part::Piece(piece, in_date) = part {
                if in_date {
                    return;
                }
                keys.extend(piece.is_octet().then_some(ADDRESS));
                keys.extend(piece.is_group().then_some(UUID));
            }
            asked.push(keys);
        });
    }
    // A run without pieces tells nothing by parts, unless there is no other.
    if asked.is_empty() { runs.iter().map(|run| vec![run.text]).collect() } else { asked }
}

/// Whether the first or the last run of a text has parts other than itself.
pub fn is_joined(text: &[u8]) -> bool {
    let first_keys = |by_parts| asked(text, by_parts).into_iter().map(|keys| keys[0]).collect::<Vec<_>>();
    first_keys(true) != first_keys(false)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};
    use std::fs;

    use bloomline::hash_key;

    use super::*;

    fn all_keys(text: &[u8]) -> HashSet<&[u8]> {
        let mut all = HashSet::new();
        keys(text, |key| {
            all.insert(key);
            hash_key(key, 0)
        });
        all
    }

    fn below(random: &mut u64, n: usize) -> usize {
        *random = bloomline::mix(*random);
        (*random % n as u64) as usize
    }

    /// Mostly at what words begin and end.
    fn text(random: &mut u64) -> String {
        const PIECES: [&str; 32] = [
            "a",
            "F",
            "0",
            "12",
            "z_",
            ".",
            "-",
            ":",
            "::",
            ":",
            " ",
            "/",
            "\n",
            "\u{e9}",
            "\u{2014}",
            "\u{1f600}",
            "e\u{301}",
            "\u{a0}",
            "..",
            "\u{5931}\u{6557}",
            "\u{3002}",
            "aa:bb:cc",
            "fe80::",
            "12345",
            "10.0.0.1",
            "1.2.3.4.5",
            "7c7905bd-1692-4e77-a6a2-ad2f558436e0",
            "7c7905bd-",
            "2026-11-28",
            "T1",
            "1:2:3",
            "\u{10100}",
        ];
        (0..below(random, 14)).map(|_| PIECES[below(random, PIECES.len())]).collect()
    }

    /// As `grep -wF` in a locale of UTF-8.
    fn grep(text: &str, key: &str) -> bool {
        let is_word = |letter: Option<char>| letter.is_some_and(|it| it == '_' || it.is_alphanumeric());
        text.match_indices(key).any(|(at, _)| {
            !is_word(text[..at].chars().next_back()) && !is_word(text[at + key.len()..].chars().next())
        })
    }

    /// No key that `grep -wF` finds is missed by its parts, and most are found as whole words.
    #[test]
    fn what_grep_finds_is_found() {
        let (random, mut n_found, mut n_whole) = (&mut 1, 0, 0);
        for _ in 0..100_000 {
            let text = text(random);
            let bounds: Vec<_> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let [a, b] = [(); 2].map(|()| bounds[below(random, bounds.len())]);
            let key = &text[a.min(b)..a.max(b)];
            if !grep(&text, key) || !key.contains(|letter: char| letter.is_ascii_alphanumeric()) {
                continue;
            }
            let has = all_keys(text.as_bytes());
            let finds = |by_parts| {
                let asked = asked(key.as_bytes(), by_parts);
                asked.iter().all(|keys| keys.iter().any(|key| has.contains(key)))
            };
            assert!(finds(true), "{key:?} in {text:?}");
            n_found += 1;
            n_whole += usize::from(finds(false));
        }
        assert!(n_found > 10_000 && n_whole > n_found / 2, "{n_found}, {n_whole}");
    }

    #[test]
    fn words_are_the_same_however_they_are_read() {
        let random = &mut 2;
        for round in 0..50_000 {
            // All bytes, or mostly those at which words begin and end, also of terminals.
            let text: Vec<u8> = match round % 3 {
                0 => (0..below(random, 60)).map(|_| below(random, 256) as u8).collect(),
                1 => text(random).into_bytes(),
                _ => (0..below(random, 40)).map(|_| b"\x1b[[;3m:a.-\xc3\xa9 "[below(random, 13)]).collect(),
            };
            let (mut found, mut rest, mut at) = (Vec::new(), Vec::new(), 0);
            while at < text.len() {
                let n = (1 + below(random, 12)).min(text.len() - at);
                rest.extend_from_slice(&text[at..at + n]);
                at += n;
                let next = rest.split_off(whole(&rest));
                found.extend(runs(&rest).map(|run| run.text.to_vec()));
                rest = next;
            }
            found.extend(runs(&rest).map(|run| run.text.to_vec()));
            let expected: Vec<_> = runs(&text).map(|run| run.text.to_vec()).collect();
            assert_eq!(found, expected, "{:?}", text.escape_ascii().to_string());
            for run in runs(&text) {
                let mut split = Vec::new();
                run.split(&mut split);
                let parts: Vec<_> = split.iter().map(|part| &run.text[part.range.clone()]).collect();
                assert!(run.joined || parts == [run.text], "{:?}", text.escape_ascii().to_string());
                assert!(!run.joined || parts != [run.text], "{:?}", text.escape_ascii().to_string());
            }
        }
    }

    #[test]
    fn runs_of_a_log() {
        for (text, expected) in [
            ("10.0.0.1:80 -- bob@example.com key=a-b. ..x_9..", "10.0.0.1|80|bob|example.com|key|a-b|x_9"),
            ("(\u{e9}t\u{e9}) 2026-03-01T12:30:05.1Z --", "\u{e9}t\u{e9}|2026-03-01T12|30|05.1Z"),
            (
                "\u{201c}db1\u{201d} retry\u{2014}timeout \u{5931}\u{6557}\u{3002}host42",
                "db1|retry|timeout|\u{5931}\u{6557}|host42",
            ),
            ("\x1b[31mERROR\x1b[0m \x1b[1;38;5;9mx\x1b[", "ERROR|x"),
            (
                "MAC 02:42:ac:11:00:02, [fe80::1]:80 2001:db8::1/64",
                "MAC|02:42:ac:11:00:02|fe80::1|80|2001:db8::1|64",
            ),
            (
                "62:92:59:88:95:68 10:00:01 2026:10:00:01 a:b std::fs aa:bb::zz ::1",
                "62:92:59:88:95:68|10|00|01|2026|10|00|01|a|b|std|fs|aa|bb|zz|1",
            ),
            ("aa:bb:cc.d aa:bb:cc:12345 aa:bb:cc:::dd", "aa|bb|cc.d|aa:bb:cc|12345|aa:bb:cc|dd"),
        ] {
            let found: Vec<_> = runs(text.as_bytes()).map(|run| str::from_utf8(run.text).unwrap()).collect();
            assert_eq!(found.join("|"), expected);
        }
        // Not UTF-8, as quotes of Windows.
        let runs: Vec<_> = runs(b"\x93db1\x94 M\xfcller").collect();
        assert_eq!(runs.iter().map(|run| run.text).collect::<Vec<_>>(), [&b"\x93db1\x94"[..], b"M\xfcller"]);
        let parts = all_keys(b"\x93db1\x94 M\xfcller");
        let parts: BTreeSet<_> = parts.into_iter().filter(|part| part.is_ascii()).collect();
        assert!(parts.into_iter().eq([&b"M"[..], b"db1", b"ller"]));
    }

    #[test]
    fn addresses_and_uuids_are_parts() {
        let keys_of = |text: &'static str| {
            let keys: BTreeSet<_> =
                all_keys(text.as_bytes()).into_iter().map(|key| str::from_utf8(key).unwrap()).collect();
            keys.into_iter().collect::<Vec<_>>().join("|")
        };
        assert_eq!(keys_of("ip=10.20.30.40"), "10.20.30.40|an IPv4 address|ip");
        assert_eq!(keys_of("a-10.20.30.40.x"), "10.20.30.40|a|a-10.20.30.40.x|an IPv4 address|x");
        assert_eq!(keys_of("1.2.3.4.5"), "1.2.3.4|1.2.3.4.5|2.3.4.5|an IPv4 address");
        assert_eq!(keys_of("1.2.3"), "1|1.2.3|2|3");
        assert_eq!(keys_of("2026-11-28T10"), "11|2026|2026-11-28|2026-11-28T10|28T10");
        assert_eq!(keys_of("a-2026.11.28"), "11|2026|2026.11.28|28|a|a-2026.11.28");
        assert_eq!(keys_of("2026-11-28Z"), "11|2026|2026-11-28Z|28Z");
        const ID: &str = "7c7905bd-1692-4e77-a6a2-ad2f558436e0";
        assert_eq!(
            keys_of("7c7905bd-1692-4e77-a6a2-ad2f558436e0.json"),
            format!("{ID}|{ID}.json|a UUID|json")
        );
        assert_eq!(keys_of("1:2:3:4:aa:bb"), "1|1:2:3:4:aa:bb|2|3|4|aa|bb");
        let asked_of = |text: &'static str, by_parts| {
            let asked = asked(text.as_bytes(), by_parts);
            asked
                .iter()
                .map(|keys| String::from_utf8(keys.join(&b'|')).unwrap())
                .collect::<Vec<_>>()
                .join(", ")
        };
        assert_eq!(asked_of("10.20", false), "10.20");
        assert_eq!(asked_of("10.20", true), "10|an IPv4 address, 20|an IPv4 address");
        assert_eq!(asked_of("10.20.30.40", true), "10.20.30.40");
        assert_eq!(asked_of("x-2026-11-28", true), "x, 2026-11-28");
        assert_eq!(asked_of("7c7905bd", true), "7c7905bd|a UUID");
        assert_eq!(asked_of(ID, true), ID);
        assert_eq!(asked_of("web-x 1.2 a.b", false), "web-x, 1.2, a.b");
        assert_eq!(asked_of("web-x 1.2 a.b", true), "web, x, 1.2, a, b");
    }

    /// Of a hostile file, in which each piece could begin an address.
    #[test]
    fn long_rows_of_pieces_are_read_once() {
        for row in ["1:", "a:", "1::", "1:.", "::", "\x1b["] {
            assert!(runs(row.repeat(1_000_000).as_bytes()).count() <= 1_000_000);
        }
    }

    #[test]
    fn separators_are_those_of_the_format() {
        let format = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/format.md")).unwrap();
        let (_, list) = format.split_once("```text\n80-A9").expect("the list");
        let (list, _) = list.split_once("```").unwrap();
        let code_point = |text| u32::from_str_radix(text, 16).unwrap();
        let bounds = "80-A9".split_whitespace().chain(list.split_whitespace()).flat_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            [code_point(first), code_point(last) + 1]
        });
        assert!(bounds.eq(SEPARATORS));
        assert!(SEPARATORS.is_sorted());
    }
}

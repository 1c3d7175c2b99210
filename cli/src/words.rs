//! Words, such as addresses, ids and host names, that a search in logs looks for.
//!
//! A word is a longest run of ASCII letters, digits, `_`, `.`, `-` and bytes above 127, without `.` and `-` at its ends.
#![forbid(unsafe_code)]

const IS_IN_RUN: [bool; 256] = {
    let (mut is_in_run, mut byte) = ([false; 256], 0);
    while byte < 256 {
        let letter = byte as u8;
        is_in_run[byte] =
            letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'.' | b'-') || !letter.is_ascii();
        byte += 1;
    }
    is_in_run
};

fn is_between(byte: &u8) -> bool {
    !IS_IN_RUN[usize::from(*byte)]
}

/// The words of a text that neither begins nor ends within one.
pub fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(is_between).map(trimmed).filter(|word| !word.is_empty())
}

fn trimmed(mut run: &[u8]) -> &[u8] {
    while let [b'.' | b'-', rest @ ..] | [rest @ .., b'.' | b'-'] = run {
        run = rest;
    }
    run
}

/// Bytes up to the last one that no word has. What follows may be the beginning of a word.
pub fn whole(text: &[u8]) -> usize {
    text.iter().rposition(is_between).map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the rule, byte by byte.
    fn defined(text: &[u8]) -> Vec<&[u8]> {
        let is_edge = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte > 127;
        let is_in_run = |byte: u8| is_edge(byte) || byte == b'.' || byte == b'-';
        let mut found = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let length = text[at..].iter().take_while(|&&byte| is_in_run(byte)).count();
            let edges: Vec<_> = (at..at + length).filter(|&i| is_edge(text[i])).collect();
            if let (Some(first), Some(last)) = (edges.first(), edges.last()) {
                found.push(&text[*first..=*last]);
            }
            at += length + 1;
        }
        found
    }

    #[test]
    fn words_are_as_defined_however_they_are_read() {
        let mut random = 1;
        let mut below = |n: usize| {
            random = bloomline::mix(random);
            (random % n as u64) as usize
        };
        for round in 0..20_000 {
            // All bytes, or mostly those at which words begin and end.
            let text: Vec<u8> = (0..below(60))
                .map(|_| if round % 4 == 0 { below(256) as u8 } else { b".-.-aZ0_ \n\xc3\xa9@/"[below(14)] })
                .collect();
            assert!(words(&text).eq(defined(&text)), "{:?}", text.escape_ascii().to_string());
            let (mut found, mut rest, mut at) = (Vec::new(), Vec::new(), 0);
            while at < text.len() {
                let n = (1 + below(12)).min(text.len() - at);
                rest.extend_from_slice(&text[at..at + n]);
                at += n;
                let next = rest.split_off(whole(&rest));
                found.extend(words(&rest).map(<[u8]>::to_vec));
                rest = next;
            }
            found.extend(words(&rest).map(<[u8]>::to_vec));
            assert!(found.iter().eq(defined(&text)), "{:?}", text.escape_ascii().to_string());
        }
    }

    #[test]
    fn words_of_a_log() {
        let text = "10.0.0.1:80 -- bob@example.com key=a-b. ..x_9.. (\u{e9}t\u{e9}) 2026-03-01T12:30 --";
        let found: Vec<_> = words(text.as_bytes()).map(|word| str::from_utf8(word).unwrap()).collect();
        let expected = "10.0.0.1 80 bob example.com key a-b x_9 \u{e9}t\u{e9} 2026-03-01T12 30";
        assert_eq!(found.join(" "), expected);
    }
}

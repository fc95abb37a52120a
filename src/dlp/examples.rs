//! Makes texts of the examples in `detectors.yaml`: `{CLASS:N}` stands for N characters that look random and are the same
//! at each time.

use super::validator::base_62;

const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const DIGITS: &str = "0123456789";

/// Fills in an example.
pub(super) fn expand(example: &str) -> String {
    // Any seed: no characters of the file are those of a secret.
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ example.len() as u64);
    let (mut text, mut rest) = (String::new(), example);
    while let Some((before, from)) = rest.split_once('{') {
        text.push_str(before);
        match from.split_once('}').and_then(|(inside, after)| Some((inside.split_once(':')?, after))) {
            Some(((class, length), after)) if length.parse::<usize>().is_ok() => {
                text.push_str(&random.text(class, length.parse().unwrap()));
                rest = after;
            }
            _ => {
                text.push('{');
                rest = from;
            }
        }
    }
    text + rest
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> usize {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize >> 16
    }

    fn text(&mut self, class: &str, length: usize) -> String {
        let alphabet = match class {
            "an" | "crc" => [UPPER, LOWER, DIGITS].concat(),
            "let" => [UPPER, LOWER].concat(),
            "low" => [LOWER, DIGITS].concat(),
            "num" => DIGITS.to_owned(),
            "hex" => "0123456789abcdef".to_owned(),
            "b32" => [UPPER, "234567"].concat(),
            "b64" => [UPPER, LOWER, DIGITS, "+/"].concat(),
            "url" => [UPPER, LOWER, DIGITS, "-_"].concat(),
            "bech" => "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L".to_owned(),
            other => panic!("no such class of characters: {other}"),
        };
        let alphabet: Vec<char> = alphabet.chars().collect();
        let mut text: String = (0..length).map(|_| alphabet[self.next() % alphabet.len()]).collect();
        if class == "crc" {
            text.truncate(length - 6);
            let checksum = base_62(crc32fast::hash(text.as_bytes()));
            text.extend(checksum.map(char::from));
        }
        text
    }
}

//! Numbers as text: 32-bit floating point numbers, least significant byte first, in base64 (RFC 4648).

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text. A number keeps about seven digits.
pub fn packed(numbers: impl Iterator<Item = f64>) -> String {
    let bytes: Vec<u8> = numbers.flat_map(|number| (number as f32).to_le_bytes()).collect();
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for place in 0..4 {
            let letter = LETTERS.get(((bits >> (18 - 6 * place)) & 63) as usize).copied().unwrap_or(b'A');
            text.push(if place > group.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_a_browser_unpacks() {
        // python3 -c 'import base64,struct; print(base64.b64encode(struct.pack("<3f", 1, -2.5, 4096)).decode())'
        assert_eq!(packed([1.0, -2.5, 4096.0].into_iter()), "AACAPwAAIMAAAIBF");
        assert_eq!(packed([1.0].into_iter()), "AACAPw==");
        assert_eq!(packed([1.0, 2.0].into_iter()), "AACAPwAAAEA=");
        assert_eq!(packed(std::iter::empty()), "");
    }
}

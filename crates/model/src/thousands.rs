//! Digits with separators: "61,000".

/// Groups the digits of a whole number by three.
pub fn separated(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::separated;

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!(["", "7", "999", "1000", "1234567"].map(separated), ["", "7", "999", "1,000", "1,234,567"]);
    }
}

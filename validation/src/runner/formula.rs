//! Arithmetic in experiment files: `+ - * /`, parentheses, names of values, `abs`, `round`, `root`, `hypot`, `min`, `max`, and
//! `inside(value, low, high)`.
//! A value that is not known is NaN, and so is every result made of it.

use anyhow::{Context, bail, ensure};

/// Of a name, its value.
type LookUp<'a> = &'a dyn Fn(&str) -> anyhow::Result<f64>;

/// # Errors
/// When the text is no formula, or names what does not exist.
pub fn evaluate(text: &str, look_up: LookUp) -> anyhow::Result<f64> {
    let mut reader = Reader { rest: text, look_up };
    let value = reader.sum().with_context(|| format!("formula '{text}'"))?;
    ensure!(reader.rest.trim().is_empty(), "formula '{text}': '{}' is too much", reader.rest);
    Ok(value)
}

struct Reader<'a> {
    rest: &'a str,
    look_up: LookUp<'a>,
}

impl<'a> Reader<'a> {
    fn takes(&mut self, sign: char) -> bool {
        self.rest = self.rest.trim_start();
        let found = self.rest.strip_prefix(sign);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn word(&mut self, belongs: fn(char) -> bool) -> &'a str {
        let (word, rest) = self.rest.split_at(self.rest.find(|sign| !belongs(sign)).unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    fn sum(&mut self) -> anyhow::Result<f64> {
        let mut value = self.product()?;
        loop {
            match () {
                () if self.takes('+') => value += self.product()?,
                () if self.takes('-') => value -= self.product()?,
                () => return Ok(value),
            }
        }
    }

    fn product(&mut self) -> anyhow::Result<f64> {
        let mut value = self.factor()?;
        loop {
            match () {
                () if self.takes('*') => value *= self.factor()?,
                () if self.takes('/') => value /= self.factor()?,
                () => return Ok(value),
            }
        }
    }

    fn factor(&mut self) -> anyhow::Result<f64> {
        if self.takes('-') {
            return Ok(-self.factor()?);
        }
        if self.takes('(') {
            let value = self.sum()?;
            ensure!(self.takes(')'), "')' is missing");
            return Ok(value);
        }
        if self.rest.starts_with(|sign: char| sign.is_ascii_digit()) {
            return Ok(self.word(|sign| sign.is_ascii_digit() || sign == '.').parse()?);
        }
        let name = self.word(|sign| sign.is_ascii_alphanumeric() || "._".contains(sign));
        ensure!(!name.is_empty(), "a value is missing at '{}'", self.rest);
        if !self.takes('(') {
            return (self.look_up)(name);
        }
        let mut values = vec![self.sum()?];
        while self.takes(',') {
            values.push(self.sum()?);
        }
        ensure!(self.takes(')'), "')' is missing");
        if values.iter().any(|value| value.is_nan()) {
            return Ok(f64::NAN);
        }
        match (name, values.as_slice()) {
            ("abs", [value]) => Ok(value.abs()),
            ("inside", [value, low, high]) => Ok(f64::from(low <= value && value <= high)),
            ("round", [value]) => Ok(value.round()),
            ("root", [value]) => Ok(value.sqrt()),
            ("hypot", [one, other]) => Ok(one.hypot(*other)),
            ("min", values) => Ok(values.iter().copied().fold(f64::INFINITY, f64::min)),
            ("max", values) => Ok(values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            _ => bail!("no function {name} takes {} values", values.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_evaluated() {
        let look_up = |name: &str| match name {
            "a.net" => Ok(6.0),
            "unknown" => Ok(f64::NAN),
            _ => bail!("no value {name}"),
        };
        let of = |text: &str| evaluate(text, &look_up);
        assert_eq!(of("1 + 2 * (a.net - 1.5) / 3 - -1").unwrap(), 5.0);
        assert_eq!(of("max(1, a.net) + min(2, 3) - abs(-1) + inside(2, 1, 3)").unwrap(), 8.0);
        assert!(of("max(1, unknown)").unwrap().is_nan() && of("unknown - 1").unwrap().is_nan());
        for wrong in ["", "1 +", "(1", "1 2", "other", "abs(1, 2)", "$1"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}

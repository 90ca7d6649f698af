//! fio's keywords, which stand for a property of the machine, and arithmetic with them.

pub const KEYWORDS: [&str; 3] = ["$pagesize", "$mb_memory", "$ncpus"];

/// Replaces keywords by their values, which `environment` knows under their names. As in fio, a value with a keyword may
/// be an expression, such as `$pagesize*4`.
pub(super) fn replace(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut result = text.to_owned();
    for keyword in KEYWORDS.into_iter().filter(|keyword| text.contains(keyword)) {
        let value = environment(keyword).ok_or_else(|| format!("the value of {keyword} is not known; use a number"))?;
        result = result.replace(keyword, &value);
    }
    if result == text {
        return Ok(result);
    }
    let Some((name, value)) = result.split_once('=') else { return Ok(result) };
    let is_sum = |character: char| character.is_ascii_digit() || " +-*/()".contains(character);
    if value.contains(['+', '-', '*', '/']) && value.chars().all(is_sum) {
        let number =
            calculate(value).ok_or_else(|| format!("'{}' cannot be calculated; use a number", value.trim()))?;
        return Ok(format!("{name}={number}"));
    }
    Ok(result)
}

/// The value of an expression of whole numbers.
fn calculate(text: &str) -> Option<i64> {
    /// Deeper brackets are a mistake, and would need a deep stack.
    const DEEPEST: u32 = 16;
    let text: String = text.chars().filter(|character| *character != ' ').collect();
    let (value, rest) = sum(&text, DEEPEST)?;
    rest.is_empty().then_some(value)
}

fn sum(text: &str, depth: u32) -> Option<(i64, &str)> {
    let (mut value, mut rest) = product(text, depth)?;
    while let Some(sign) = rest.chars().next().filter(|sign| "+-".contains(*sign)) {
        let (next, behind) = product(rest.get(1..)?, depth)?;
        value = if sign == '+' { value.checked_add(next)? } else { value.checked_sub(next)? };
        rest = behind;
    }
    Some((value, rest))
}

fn product(text: &str, depth: u32) -> Option<(i64, &str)> {
    let (mut value, mut rest) = factor(text, depth)?;
    while let Some(sign) = rest.chars().next().filter(|sign| "*/".contains(*sign)) {
        let (next, behind) = factor(rest.get(1..)?, depth)?;
        value = if sign == '*' { value.checked_mul(next)? } else { value.checked_div(next)? };
        rest = behind;
    }
    Some((value, rest))
}

fn factor(text: &str, depth: u32) -> Option<(i64, &str)> {
    if let Some(inner) = text.strip_prefix('(') {
        let (value, rest) = sum(inner, depth.checked_sub(1)?)?;
        return Some((value, rest.strip_prefix(')')?));
    }
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_numbers_and_can_be_calculated_with() {
        let machine = |name: &str| Some(if name == "$pagesize" { "4096" } else { "2" }.to_owned());
        let replaced = |text: &str| replace(text, &machine);
        assert_eq!(replaced("bs=$pagesize").as_deref(), Ok("bs=4096"));
        assert_eq!(replaced("size=$pagesize*(3+$ncpus)-96/2").as_deref(), Ok("size=20432"));
        assert_eq!(replaced("filename=/d/x$ncpus-1").as_deref(), Ok("filename=/d/x2-1"));
        assert_eq!(replaced("filename=a-1*2").as_deref(), Ok("filename=a-1*2"), "no keyword, no arithmetic");
        assert!(replaced("bs=$pagesize/0").is_err_and(|reason| reason.contains("cannot be calculated")));
        let deep = format!("size={}$ncpus*1", "(".repeat(10_000));
        assert!(replaced(&deep).is_err());
        assert_eq!(replace("bs=$pagesize", &|_| None), Err("the value of $pagesize is not known; use a number".into()));
    }
}

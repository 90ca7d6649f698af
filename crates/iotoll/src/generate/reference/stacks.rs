//! The page of the stacks of guests, from the table that sets them up.

use super::super::markdown::{Page, code, prose};
use lab::guest::stack::{Expected, STACKS, Stack};

pub fn page() -> String {
    let mut page = Page::new("Stacks of guests");
    page.paragraph(
        "What `iotoll guest run --stack NAME` sends I/O through. Modules come from the guest's kernel, with those that they \
         depend on. Programs come from the host, or from the package in brackets, which apt downloads.",
    );
    let row = |stack: &Stack| vec![code(stack.name), prose(&sentence(stack.about)), modules(stack), programs(stack)];
    page.table(
        &["Stack", "What the I/O goes through", "Modules", "Programs"],
        &STACKS.iter().map(row).collect::<Vec<_>>(),
    );
    page.section("Counters that prove the path");
    page.paragraph(
        "Each is read in the guest before and after the measured I/Os. Its increase stands in `points[].path_proof` of the \
         [JSON](json-guest.md). A measurement whose I/O took another path is refused.",
    );
    let rows = STACKS.iter().flat_map(|stack| {
        stack.counters().map(|counter| vec![code(stack.name), code(counter.name), meaning(counter.expected).to_owned()])
    });
    page.table(&["Stack", "Counter", "Must be"], &rows.collect::<Vec<_>>());
    page.finish()
}

fn meaning(expected: Expected) -> &'static str {
    match expected {
        Expected::EachDirectIo => "at least 1 for each I/O, if the job has `direct=1`",
        Expected::EachDirectByte => "at least 1 for each byte, if the job has `direct=1`",
        Expected::Some => "at least 1",
        Expected::None => "0",
        Expected::Any => "anything: it is reported",
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn modules(stack: &Stack) -> String {
    stack.modules().map(|(name, _)| code(name)).collect::<Vec<_>>().join(", ")
}

fn programs(stack: &Stack) -> String {
    let name = |program: &lab::guest::programs::Program| format!("{} [{}]", code(program.name), program.package);
    stack.programs.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stack_has_a_row_and_a_counter() {
        let page = page();
        for stack in &STACKS {
            let rows = page.matches(&format!("\n| `{}` |", stack.name)).count();
            assert_eq!(rows, 1 + stack.counters().count(), "{}", stack.name);
            assert!(stack.counters().next().is_some(), "{}", stack.name);
        }
    }
}

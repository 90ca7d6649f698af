//! The page of caveats: each code, the gravest first, with its meaning.

use super::super::markdown::{Page, code, prose, sentence};
use super::json_keys::{Variant, variants};
use model::warning::Code;
use schemars::Schema;

/// The page, from the schema of the codes.
pub fn page(codes: &Schema) -> String {
    let mut page = Page::new("Caveats");
    page.paragraph(
        "A caveat is a warning that stays with a record or a finding: `warnings[]` in the JSON, each with a `code` for scripts \
         and a `message` for people. A code is never renamed. The order is that of reports: the gravest first.",
    );
    let row = |variant: Variant| {
        let mend = serde_json::from_str::<Code>(&variant.name).map_or("", Code::mend);
        vec![code(variant.name.trim_matches('"')), sentence(&variant.meaning), prose(mend)]
    };
    let rows: Vec<_> = variants(codes.as_value()).into_iter().map(row).collect();
    page.table(&["Code", "Meaning", "What to do"], &rows);
    page.finish()
}

//! Paths in JSON: a string, or an array of bytes if the path is not UTF-8, so that no path is changed.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    Utf8(String),
    Bytes(Vec<u8>),
}

/// Writes a path as a string or bytes.
pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    let text = path.to_str().map(|text| Text::Utf8(text.to_owned()));
    text.unwrap_or_else(|| Text::Bytes(path.as_os_str().as_bytes().to_vec())).serialize(serializer)
}

/// Reads a path from a string or bytes.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    Ok(match Text::deserialize(deserializer)? {
        Text::Utf8(text) => text.into(),
        Text::Bytes(bytes) => OsString::from_vec(bytes).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder(#[serde(with = "super")] PathBuf);

    #[test]
    fn every_path_survives() {
        for bytes in [b"/a b/\xc3\xa4".to_vec(), b"/\xff\n".to_vec(), Vec::new()] {
            let holder = Holder(OsString::from_vec(bytes).into());
            let text = serde_json::to_string(&holder).unwrap();
            assert_eq!(serde_json::from_str::<Holder>(&text).unwrap(), holder, "{text}");
        }
    }
}

//! A timeline as data for a script that draws it: the plotting library uPlot, as it was published, and `timeline.js`.

use super::{element, escape};
use crate::document::Timeline;
use serde_json::{Value, json};

/// Most readings in a page: about 6 bytes each for every track. A script draws this many in a tenth of a second.
const MOST_READINGS: usize = 200_000;

/// What a page with a timeline needs besides the timeline.
#[derive(Clone, Copy, Default)]
pub struct Means {
    /// An addition to the content security policy. Everything in the page is of iotoll, or escaped.
    pub policy: &'static str,
    /// An addition to the style sheet.
    pub style: &'static str,
    /// The scripts, at the end of the page, so that the text is shown first.
    pub script: &'static str,
}

impl Means {
    /// What is in every page with a timeline.
    pub const ALL: Self = Self {
        policy: "; script-src 'unsafe-inline'",
        style: concat!(include_str!("../../assets/uplot/uPlot.min.css"), "\n", include_str!("timeline.css")),
        script: concat!(
            "<script>",
            include_str!("../../assets/uplot/uPlot.iife.min.js"),
            "</script>\n<script>\n",
            include_str!("timeline.js"),
            "</script>\n"
        ),
    };
}

/// The timeline; empty if nothing can be drawn.
pub fn timeline(timeline: &Timeline) -> String {
    if timeline.is_empty() {
        return String::new();
    }
    let names: Vec<String> = timeline.tracks.iter().map(|track| timeline.name(track)).collect();
    let still = format!("Without JavaScript, `iotoll report` draws these with characters: {}", names.join("; "));
    let (thin, group) = timeline.thinned(MOST_READINGS);
    let note = match group {
        1 => String::new(),
        _ => element("p", "note", &format!("Drawn: the least and the greatest of every {group} readings.")) + "\n",
    };
    format!(
        "<div class=\"timeline\">\n{}\n<script type=\"application/json\">{}</script>\n</div>\n{note}",
        element("p", "note still", &escape(&still)),
        inert(&data(&thin).to_string()),
    )
}

/// What the script reads. Times are the lengths of readings: a small number keeps all its digits.
fn data(timeline: &Timeline) -> Value {
    let before = std::iter::once(&timeline.began).chain(&timeline.seconds);
    let lengths = timeline.seconds.iter().zip(before).map(|(at, before)| at - before);
    let scales = timeline.scales.iter().map(|scale| json!({"units": scale.units}));
    let tracks = timeline.tracks.iter().map(|track| {
        json!({
            "name": track.name,
            "title": timeline.name(track),
            "hue": track.hue,
            "trace": track.trace,
            "scale": track.scale,
            "values": packed(track.values.iter().copied()),
        })
    });
    json!({
        "began": timeline.began,
        "lengths": packed(lengths),
        "scales": scales.collect::<Vec<_>>(),
        "tracks": tracks.collect::<Vec<_>>(),
        "marks": timeline.marks,
        "marked": timeline.marked,
    })
}

/// JSON that neither ends its element nor has characters that [`escape`] removes. They occur in strings only.
fn inert(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut inert, letter| {
        if letter == '<' || (!letter.is_ascii_graphic() && letter != ' ') {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                inert += &format!("\\u{unit:04x}");
            }
        } else {
            inert.push(letter);
        }
        inert
    })
}

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
    fn a_name_cannot_end_the_data() {
        assert_eq!(inert(r#"{"a":"</script>読𝄞"}"#), r#"{"a":"\u003c/script>\u8aad\ud834\udd1e"}"#);
        let value: Value = serde_json::from_str(&inert(&json!({"a": "</script>\u{202e}読𝄞"}).to_string())).unwrap();
        assert_eq!(value["a"], "</script>\u{202e}読𝄞");
    }

    #[test]
    fn the_library_is_the_one_that_its_readme_names() {
        assert!(Means::ALL.script.contains("(v1.6.32)"), "another version than assets/uplot/README.md says");
        assert_eq!(Means::ALL.script.matches("</script").count(), 2, "neither script ends early");
    }

    #[test]
    fn numbers_are_those_that_a_browser_unpacks() {
        // python3 -c 'import base64,struct; print(base64.b64encode(struct.pack("<3f", 1, -2.5, 4096)).decode())'
        assert_eq!(packed([1.0, -2.5, 4096.0].into_iter()), "AACAPwAAIMAAAIBF");
        assert_eq!(packed([1.0].into_iter()), "AACAPw==");
        assert_eq!(packed([1.0, 2.0].into_iter()), "AACAPwAAAEA=");
        assert_eq!(packed(std::iter::empty()), "");
    }
}

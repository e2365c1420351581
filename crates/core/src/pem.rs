//! Certificates in PEM: read block by block, and written again in one form.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";
const CERTIFICATE: &str = "CERTIFICATE";
/// How many characters of base64 a line has.
const LINE: usize = 64;

/// Why a text is no list of certificates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PemError {
    /// It has a block of another kind.
    #[error("it has a {0:?} where only certificates belong")]
    OtherBlock(String),
    /// A block has no end, or its content is not base64.
    #[error("block {0} is damaged")]
    Damaged(usize),
}

/// The certificates of a text, in its order, in DER. Headers of blocks and what is between blocks is dropped.
///
/// # Errors
/// When a block is damaged or is no certificate.
pub fn certificates(text: &str) -> Result<Vec<Vec<u8>>, PemError> {
    let (mut found, mut lines) = (Vec::new(), text.lines().map(str::trim));
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(DASHES)) else {
            continue;
        };
        if kind != CERTIFICATE {
            return Err(PemError::OtherBlock(kind.to_owned()));
        }
        let (mut content, mut has_ended) = (String::new(), false);
        for line in lines.by_ref() {
            has_ended = line.starts_with(END);
            if has_ended {
                break;
            }
            // A header has a colon, which base64 has not.
            if !line.contains(':') {
                content.push_str(line);
            }
        }
        let damaged = PemError::Damaged(found.len() + 1);
        let decoded = STANDARD.decode(content).ok().filter(|der| has_ended && !der.is_empty());
        found.push(decoded.ok_or(damaged)?);
    }
    Ok(found)
}

/// Certificates as one text.
pub fn text_of_certificates<'a>(certificates: impl IntoIterator<Item = &'a Vec<u8>>) -> String {
    certificates.into_iter().map(|der| block(CERTIFICATE, der)).collect()
}

/// One block.
pub fn block(kind: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let lines = encoded.as_bytes().chunks(LINE).map(String::from_utf8_lossy);
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    format!("{BEGIN}{kind}{DASHES}\n{lines}{END}{kind}{DASHES}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_read_without_what_is_around_them() {
        let (first, second) = (vec![1; 100], vec![2; 5]);
        let noise = block(CERTIFICATE, &second).replacen('\n', "\nProc-Type: 4\n\n", 1);
        let text = format!("about\n{}between\n{noise}end", block(CERTIFICATE, &first));
        let read = certificates(&text).unwrap();
        assert_eq!(read, [first, second]);
        let again = text_of_certificates(&read);
        assert_eq!(certificates(&again).unwrap(), read);
        assert!(!again.contains("about") && again.lines().all(|line| line.len() <= LINE));
        assert_eq!(certificates("none at all"), Ok(vec![]));
    }

    #[test]
    fn damaged_blocks_and_keys_are_refused() {
        let key = block("PRIVATE KEY", b"secret");
        assert_eq!(certificates(&key), Err(PemError::OtherBlock("PRIVATE KEY".to_owned())));
        let whole = block(CERTIFICATE, b"certificate");
        for damaged in
            [&whole[..40], &whole.replace("Y2Vy", "?"), &whole.replace("Y2VydGlmaWNhdGU=\n", "")]
        {
            assert_eq!(certificates(damaged), Err(PemError::Damaged(1)), "{damaged}");
        }
    }
}

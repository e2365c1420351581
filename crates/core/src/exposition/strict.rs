//! A strict reader of the text format, for tests of whatever writes it.

use std::collections::{BTreeMap, BTreeSet};

/// The values of a text by series, such as `kubelet_active_pods{static="true"}`.
pub type SampleValues = BTreeMap<String, f64>;

/// Reads a text of metrics. Every family has one HELP and one TYPE before its samples, no series is there twice, and the buckets of a
/// histogram rise up to its count.
///
/// # Errors
/// The first line that is not as it should be, and why.
#[doc(hidden)]
pub fn read(text: &str) -> Result<SampleValues, String> {
    let mut reader = StrictReader::default();
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    for line in text.lines() {
        reader.line(line).map_err(|why| format!("{why}: {line}"))?;
    }
    reader.end_family()?;
    Ok(reader.values)
}

#[derive(Default)]
struct StrictReader {
    values: SampleValues,
    names: BTreeSet<String>,
    /// The name of the family, and its type once that is known.
    family: Option<(String, Option<String>)>,
    /// The series of the family, in order.
    samples: Vec<Sample>,
}

struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

impl StrictReader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some(help) = line.strip_prefix("# HELP ") {
            self.end_family()?;
            let (name, _) = help.split_once(' ').ok_or("HELP without a text")?;
            check_name(name)?;
            if !self.names.insert(name.to_owned()) {
                return Err("a second family of this name".to_owned());
            }
            self.family = Some((name.to_owned(), None));
            return Ok(());
        }
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').ok_or("TYPE without a type")?;
            let is_known = ["counter", "gauge", "histogram"].contains(&kind);
            return match &mut self.family {
                Some((family, type_ @ None)) if family == name && is_known => {
                    *type_ = Some(kind.to_owned());
                    Ok(())
                }
                _ => Err("a TYPE that follows no HELP, or of an unknown type".to_owned()),
            };
        }
        self.sample(line)
    }

    fn sample(&mut self, line: &str) -> Result<(), String> {
        let Some((family, Some(kind))) = &self.family else {
            return Err("a sample without HELP and TYPE".to_owned());
        };
        let (series, sample) = parse_sample(line)?;
        let suffixes: &[&str] =
            if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        if !suffixes.iter().any(|suffix| sample.name == format!("{family}{suffix}")) {
            return Err("a sample of another family".to_owned());
        }
        if kind != "gauge" && sample.value < 0.0 {
            return Err("what only grows is negative".to_owned());
        }
        if self.values.insert(series, sample.value).is_some() {
            return Err("a series for the second time".to_owned());
        }
        self.samples.push(sample);
        Ok(())
    }

    fn end_family(&mut self) -> Result<(), String> {
        let Some((family, kind)) = self.family.take() else { return Ok(()) };
        let samples = std::mem::take(&mut self.samples);
        if samples.is_empty() {
            return Err(format!("{family} has no samples"));
        }
        if kind.as_deref() == Some("histogram") {
            check_histograms(&samples).map_err(|why| format!("{family}: {why}"))?;
        }
        Ok(())
    }
}

/// Each histogram has its buckets, sum and count.
fn check_histograms(samples: &[Sample]) -> Result<(), String> {
    let mut histograms: BTreeMap<Vec<(String, String)>, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        let labels = sample.labels.iter().filter(|(name, _)| name != "le").cloned().collect();
        histograms.entry(labels).or_default().push(sample);
    }
    histograms.values().try_for_each(|parts| check_histogram(parts))
}

fn check_histogram(parts: &[&Sample]) -> Result<(), String> {
    let of = |suffix: &'static str| parts.iter().filter(move |part| part.name.ends_with(suffix));
    let count = of("_count").map(|part| part.value).next().ok_or("no count")?;
    of("_sum").next().ok_or("no sum")?;
    let (mut last_bound, mut last_value) = (f64::NEG_INFINITY, 0.0);
    for bucket in of("_bucket") {
        let bound = bucket.labels.iter().find(|(name, _)| name == "le").ok_or("no bound")?;
        let bound = number(&bound.1)?;
        if bound <= last_bound || bucket.value < last_value {
            return Err(format!("the bucket of {bound} is not above the one before"));
        }
        (last_bound, last_value) = (bound, bucket.value);
    }
    let is_whole = last_bound == f64::INFINITY && last_value == count;
    is_whole.then_some(()).ok_or_else(|| "the last bucket is not the count".to_owned())
}

fn parse_sample(line: &str) -> Result<(String, Sample), String> {
    let end = series_end(line).ok_or("a series without a value")?;
    let (series, rest) = line.split_at(end);
    let mut fields = rest.trim_start_matches(' ').split(' ');
    let value = number(fields.next().unwrap_or_default())?;
    if let Some(at) = fields.next() {
        at.parse::<i64>().map_err(|_| "a time that is no number")?;
    }
    if fields.next().is_some() {
        return Err("more than a value and a time".to_owned());
    }
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, parse_labels(labels)?),
        None => (series, Vec::new()),
    };
    check_name(name)?;
    Ok((series.to_owned(), Sample { name: name.to_owned(), labels, value }))
}

/// Where the series ends: at the first space that is in no quotes.
fn series_end(line: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    line.char_indices().find_map(|(at, character)| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match character {
            '\\' if is_quoted && !was_escaped => is_escaped = true,
            '"' if !was_escaped => is_quoted = !is_quoted,
            ' ' if !is_quoted => return Some(at),
            _ => {}
        }
        None
    })
}

/// The labels after the opening brace.
fn parse_labels(text: &str) -> Result<Vec<(String, String)>, String> {
    let (mut labels, mut rest) = (Vec::new(), text);
    loop {
        let (name, value) = rest.split_once("=\"").ok_or("a label without a value")?;
        check_name(name)?;
        let (value, after) = unescape(value).ok_or("a value without its end")?;
        if labels.iter().any(|(known, _)| known == name) {
            return Err("a label for the second time".to_owned());
        }
        labels.push((name.to_owned(), value));
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None if after == "}" => return Ok(labels),
            None => return Err("labels without their end".to_owned()),
        }
    }
}

/// A value up to its closing quote, and what comes after that.
fn unescape(text: &str) -> Option<(String, &str)> {
    let (mut value, mut characters) = (String::new(), text.char_indices());
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                escaped @ ('\\' | '"') => value.push(escaped),
                _ => return None,
            },
            other => value.push(other),
        }
    }
    None
}

fn check_name(name: &str) -> Result<(), String> {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let is_name = begins && name.chars().all(|it| it.is_ascii_alphanumeric() || "_:".contains(it));
    is_name.then_some(()).ok_or_else(|| format!("{name:?} is no name"))
}

fn number(text: &str) -> Result<f64, String> {
    match text {
        "+Inf" => Ok(f64::INFINITY),
        "-Inf" => Ok(f64::NEG_INFINITY),
        text => text.parse().map_err(|_| format!("{text:?} is no number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# HELP a A.\n# TYPE a gauge\n";
    const HISTOGRAM: &str = "# HELP h H.\n# TYPE h histogram\n";

    #[test]
    fn what_prometheus_would_not_read_is_refused() {
        let bucket = |bound: &str, count: u64| format!("h_bucket{{le=\"{bound}\"}} {count}\n");
        let rows = [
            (String::new(), ""),
            (format!("{HEAD}a 1\n"), ""),
            (format!("{HEAD}a{{b=\"x y\\\"z\\\\\"}} -1.5 1700000000000\n"), ""),
            (format!("{HISTOGRAM}{}{}h_sum 3\nh_count 2\n", bucket("1", 1), bucket("+Inf", 2)), ""),
            ("a 1\n".to_owned(), "without HELP"),
            (format!("{HEAD}a 1"), "last line"),
            (HEAD.to_owned(), "no samples"),
            (format!("{HEAD}a 1\n{HEAD}a 2\n"), "second family"),
            (format!("{HEAD}a 1\na 2\n"), "second time"),
            (format!("{HEAD}b 1\n"), "another family"),
            (format!("{HEAD}a{{b=\"x\",b=\"y\"}} 1\n"), "second time"),
            (format!("{HEAD}a{{b=\"x\\y\"}} 1\n"), "without its end"),
            (format!("{HEAD}a{{1b=\"x\"}} 1\n"), "no name"),
            (format!("{HEAD}a x\n"), "no number"),
            ("# HELP a A.\n# TYPE a counter\na -1\n".to_owned(), "negative"),
            (format!("{HISTOGRAM}{}h_sum 1\nh_count 1\n", bucket("1", 1)), "not the count"),
            (format!("{HISTOGRAM}{}h_sum 1\n", bucket("+Inf", 1)), "no count"),
            (
                format!("{HISTOGRAM}{}{}h_sum 1\nh_count 1\n", bucket("1", 2), bucket("+Inf", 1)),
                "not above",
            ),
        ];
        for (text, why) in rows {
            match read(&text) {
                Ok(_) => assert_eq!(why, "", "{text}"),
                Err(error) => assert!(!why.is_empty() && error.contains(why), "{error} of {text}"),
            }
        }
    }

    #[test]
    fn values_are_found_by_their_series() {
        let values = read(&format!("{HEAD}a{{b=\"x\"}} 2\na +Inf\n")).unwrap();
        assert_eq!(values["a{b=\"x\"}"], 2.0);
        assert_eq!(values["a"], f64::INFINITY);
    }
}

//! Tables with the columns of kubectl.

use anstyle::Style;

/// Spaces between two columns.
const GAP: usize = 3;

/// One cell: its text, and its style on a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableCell {
    text: String,
    style: Style,
}

impl TableCell {
    pub(super) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl<T: Into<String>> From<T> for TableCell {
    fn from(text: T) -> Self {
        Self { text: text.into(), style: Style::new() }
    }
}

/// Rows under a heading; the last column is not padded.
pub(super) fn table(heading: &[&str], rows: Vec<Vec<TableCell>>) -> String {
    let heading = heading.iter().map(|title| TableCell::from(*title)).collect();
    let all: Vec<Vec<TableCell>> = std::iter::once(heading).chain(rows).collect();
    let columns = all.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = all.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.text.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    all.iter().map(|row| line(row, &widths)).collect()
}

fn line(row: &[TableCell], widths: &[usize]) -> String {
    let last = row.len().saturating_sub(1);
    let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
        let TableCell { text, style } = cell;
        let missing = if column == last { 0 } else { width + GAP - text.chars().count() };
        format!("{style}{text}{style:#}{:missing$}", "")
    });
    format!("{}\n", cells.collect::<String>().trim_end())
}

#[cfg(test)]
mod tests {
    use anstyle::AnsiColor;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_without_colour_codes() {
        let red = Style::new().fg_color(Some(AnsiColor::Red.into()));
        let rows = vec![
            vec!["é".into(), TableCell::styled("Bad", red), "x".into()],
            vec!["longer".into(), "Running".into(), "".into()],
        ];
        let text = anstream::adapter::strip_str(&table(&["NAME", "STATUS", "Z"], rows)).to_string();
        assert_eq!(text, "NAME     STATUS    Z\né        Bad       x\nlonger   Running\n");
    }
}

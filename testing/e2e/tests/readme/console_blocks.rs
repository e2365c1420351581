//! Extracts the commands of a Markdown page's console blocks.

/// The commands in the console blocks of a page, in their order.
pub(super) fn commands(page: &str) -> Vec<&str> {
    let blocks = page.split("```console\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines());
    lines.filter_map(|line| line.strip_prefix("# ")).collect()
}

#[test]
fn commands_stand_behind_the_prompt_of_root() {
    let page = "# Title\n```console\n# one\nsaid\n# two\n```\n# No\n```yaml\n# no\n```\n```console\n# three\n```\n";
    assert_eq!(commands(page), ["one", "two", "three"]);
}

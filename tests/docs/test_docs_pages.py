"""Pages say what the code does, and lead somewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def variables_read(source: str) -> Iterator[str]:
    """Names given to `get`, `getenv` or a subscript of an environment, and to the settings' own readers."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            words = ast.unparse(node.func)
            named = node.args[0] if node.args else None
            if ("environ" in words and words.endswith((".get", ".pop"))) or words.endswith("getenv"):
                yield from constants(named)
            elif words in {"directory", "_positive"}:
                yield from (name for argument in node.args for name in constants(argument) if name.isupper())
        elif isinstance(node, ast.Subscript) and "environ" in ast.unparse(node.value):
            yield from constants(node.slice)


def constants(node: ast.AST | None) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def documented(section: str) -> set[str]:
    page = (ROOT / "docs" / "environment-variables.md").read_text("utf-8")
    rows = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([A-Z_]+)`", rows, re.MULTILINE))


@pytest.mark.contract("S45")
def test_every_variable_has_a_row_and_every_row_a_variable() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py")]
    read = {name for text in sources if re.search("env|_positive", text) for name in variables_read(text)}
    assert read == documented("Read by boxeval")


def test_variables_of_the_scripts() -> None:
    read = {
        name
        for path in (ROOT / "scripts").iterdir()
        if path.is_file()
        for name in re.findall(r"\$\{(BOXEVAL_[A-Z_]+)", path.read_text("utf-8"))
    }
    assert read == documented("Read by the set-up scripts")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_readme_starts_with_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    for words in ("make run", "make test", "boxeval run your-suite.yaml", "What it does not do yet"):
        assert words in text


def test_the_suite_in_the_readme_is_valid(tmp_path: Path) -> None:
    from boxeval.formats.suite_v2 import load_suite

    (suite,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "s.yaml").write_text(suite)
    assert [task.id for task in load_suite(tmp_path / "s.yaml").suite.tasks] == ["greet"]

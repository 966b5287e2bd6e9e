"""The code of the documentation runs, and prints what it says; tests/neighbours has what needs
other packages."""

import builtins
import re
import subprocess
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tfwire as tfw
from helpers.documents import PRINTING, api, blocks, page_text, run_page
from helpers.paths import DOCS
from helpers.products import check_each
from tfwire import compat
from tfwire.cli import _COMMANDS, command_parser

pytestmark = [pytest.mark.outside_c, pytest.mark.usefixtures("folder")]


def test_tutorial():
    with pytest.warns(tfw.TfwireWarning, match="left out 1 damaged region"):
        found = run_page("tutorial.md")
    assert 3000 % 256 == len(found["label"])
    pets = list(tfw.read_records("pets.tfrecord"))
    assert 3 == len(pets)
    assert pets == list(tfw.read_records("repaired.tfrecord"))


def test_datasets():
    found = run_page("datasets.md")
    assert (256, 8) == found["first"]["x"].shape
    assert [256] * 10 + [184] == [len(batch["x"]) for batch in found["resumed"]]


def test_training():
    found = run_page("training.md")
    assert 8 == found["steps"]


def test_training_on_images():
    found = run_page("train-images.md")
    assert (16, 32, 32, 3) == found["batch"]["image"].shape
    assert 12 == len(found["training"])


def test_recipes():
    found = run_page("recipes-tables.md")
    assert {"label": "int64", "name": "large_string", "weight": "float"} == found["reader"].types
    assert [b"pet 17"] == tfw.decode_example(found["pet"])["name"]
    assert [40.0, 2.0] == [row["weight"][0] for row in tfw.decode_examples(found["two"])]
    assert not found["there"]


def test_remote():
    found = run_page("remote.md")
    assert ["label"] == list(found["features"])
    assert sum(range(768, 1000)) == found["batch"]["label"].sum()


def test_integrity():
    found = run_page("integrity.md")
    assert found["expected"] == found["epoch"] == tfw.Receipt.of(found["records"])
    assert found["found"].file_crc32c == tfw.crc32c(Path("train.tfrecord").read_bytes())


def test_viewer():
    assert "<table>" in run_page("viewer.md")["page"]


def test_writing():
    run_page("writing.md")
    assert 1001 == tfw.verify_file("events.tfrecord").num_records
    shards = [f"events-00{i}-of-004" for i in range(4)]
    assert 1000 == sum(tfw.verify_file(path).num_records for path in shards)


def test_damage():
    found = run_page("damage.md")
    assert (2, 2 * 19) == found["position"]
    assert found["records"].tail is None


# ---- What the pages name ------------------------------------------------------------------------

ROOT = DOCS.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "examples" / "README.md"]
PAGES += [ROOT / "tests" / "fuzz" / "README.md", *sorted(DOCS.rglob("*.md"))]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def code_of(page):
    """What a page shows as code: between backticks, and indented."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`]+)`", text) + re.findall(r"^    (\S.*)$", text, re.MULTILINE)


def anchor_of(title):
    """The name of a heading in links, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_every_link_leads_somewhere():
    def check(page):
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)]+)\)", text):
            if target.startswith("https://"):
                continue
            path, _, part = target.partition("#")
            found = page.parent / path if path else page
            assert found.exists(), target
            if part:
                titles = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)
                assert part in map(anchor_of, titles), target

    check_each(check, PAGES)


@pytest.fixture(scope="module")
def sessions():
    """The sessions of noxfile.py and their tags."""
    if find_spec("nox") is None:
        pytest.skip("nox is not installed; make installs it")
    command = [sys.executable, "-m", "nox", "--list"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^[*-] (\S+)(?: \[(.*)\])? ->", listed, re.MULTILINE)
    return {name: set(tags.split(",")) for name, tags in found}


RULES = re.findall(r"^([\w% -]+):", MAKEFILE.replace("\\\n", ""), re.MULTILINE)
TARGETS = {target for rule in RULES for target in rule.split()}


def test_every_make_target_exists(sessions):
    def check(page):
        for code in code_of(page):
            for target in re.findall(r"^make ([\w-]+)", code):
                assert target in TARGETS or re.match("check-|engine-", target), code
                assert target in TARGETS or target in sessions, code

    check_each(check, PAGES)


def test_every_target_that_is_a_session_exists(sessions):
    rule = next(rule for rule in RULES if rule.startswith("bench "))
    assert set(rule.split()) <= sessions.keys()


def test_every_check_runs_in_ci_or_by_night(sessions):
    """As the pages say. check-c is part of make test."""
    for name, tags in sessions.items():
        if name.startswith("check-") and name != "check-c":
            assert len(tags & {"ci", "nightly"}) == 1, name
    in_ci = {name for name, tags in sessions.items() if "ci" in tags}
    assert {"oracle", "neighbours", "coverage", "bench-check", "docs", "engine-sail"} < in_ci
    for tag in ("ci", "nightly"):
        assert f"$(NOX) --tags {tag} --parallel 2" in MAKEFILE


def test_the_next_command_after_the_demo_exists():
    (command,) = re.findall(r"bin/tfwire (\w+) tfwire-demo/", MAKEFILE)
    assert command in _COMMANDS


def test_every_file_that_is_named_exists():
    known = {path.name for folder in FOLDERS for path in (ROOT / folder).rglob("*")}
    known |= {path.name for path in ROOT.iterdir()}

    def check(page):
        for code in code_of(page):
            for name in re.findall(r"(?<![\w<{*.-])[\w/.]+\.(?:py|c|h|md|toml)\b", code):
                assert name.rpartition("/")[2] in known, code
                if "/" in name:
                    assert any((root / name).is_file() for root in (ROOT, PACKAGE, page.parent)), (
                        code
                    )

    check_each(check, PAGES)


PACKAGE = ROOT / "src" / "tfwire"
FOLDERS = ["benchmarks", "csrc", "docs", "examples", "packaging", "src", "tests"]


def test_every_name_of_the_package_exists():
    def check(page):
        for code in code_of(page):
            for name in re.findall(r"(?<![\w./-])(?:tfw|tfwire)\.((?!(?:h|pc)\b)[\w.]*\w)", code):
                assert resolves(tfw, name), code

    check_each(check, PAGES)


def resolves(found, name):
    """Whether an object has an attribute of this name, or a module a module: those of neighbours
    that are not installed are not imported."""
    for part in name.split("."):
        if not hasattr(found, part):
            if not isinstance(found, ModuleType) or not find_spec(f"{found.__name__}.{part}"):
                return False
            if part in NEIGHBOURS:
                return True
            import_module(f"{found.__name__}.{part}")
        found = getattr(found, part)
    return True


NEIGHBOURS = {"torch", "grain", "huggingface", "polars", "beam", "ray", "spark"}


def is_public(name):
    """Whether tfwire has a name, or one of its public classes has a method of this name."""
    classes = [found for found in map(vars(tfw).get, tfw.__all__) if isinstance(found, type)]
    return resolves(tfw, name) or any(hasattr(found, name) for found in classes)


def test_every_command_line_has_a_command_and_its_options():
    options_of = {
        name: {option for action in parser._actions for option in action.option_strings}
        for name, parser in command_parser()[1].items()
    }

    def check(page):
        for code in code_of(page):
            for command, rest in re.findall(r"\btfwire ([a-z]+)((?: [^\s`]+)*)", code):
                assert command in _COMMANDS, code
                options = set(re.findall(r" (--?[a-z][\w-]*)", rest))
                assert set() == options - options_of[command], code

    check_each(check, PAGES)


def test_the_readme_lists_every_command():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set() == {c for c in _COMMANDS if f"`{c}`" not in text and f"tfwire {c}" not in text} - {
        "demo"
    }


def rows_of(page, title):
    """The rows of the first table after a title, their cells without backticks."""
    text = (DOCS / page).read_text(encoding="utf-8") if page != "README.md" else README
    table = text[text.index(title) :].split("\n\n")
    lines = next(part for part in table if part.startswith("|")).splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_names_of_the_readme_exist():
    items = re.findall(r"^\* \*\*(.*)\*\*((?:.+\n)+?)(?=^\*|^$)", README, re.MULTILINE)
    assert len(items) > 8
    for title, text in items:
        for code in re.findall(r"`([^`]+)`", text) if title != "C" else ():
            name = re.match(r"[A-Za-z_.][\w.]*", code)[0].removeprefix("tfwire.")
            if name not in _COMMANDS and not code.startswith(("tfwire ", "import ")):
                names = [name, f"{name}s"] if code.endswith("(s)") else [name]
                for each in names:
                    assert resolves(tfw, each), code


def test_porting_says_where_every_name_is():
    """In tfwire.compat or in tfwire; test_compat.py has what is in neither."""
    for row in rows_of("porting.md", "## Every call"):
        for name in re.findall(r"`@?tf\.([\w.]+)", row[0]):
            assert resolves(compat, name), name
        for code in re.findall(r"`([A-Za-z][\w.]+)", row[-1]):
            bare = code.removeprefix("tfw.").removeprefix("tfwire.").removeprefix("np.")
            known = bare == "GZIP" or hasattr(builtins, bare) or bare in sys.stdlib_module_names
            if not known and not code.startswith(("x.", "dataset")):
                assert resolves(np, bare) if code.startswith("np.") else is_public(bare), code


def test_porting():
    assert "tf" in run_page("porting.md")


def test_the_figures_of_the_readme_are_those_of_the_benchmarks():
    """Rounded, a row of the table of docs/benchmarks.md for each."""
    table, rate = [], 0.0
    for row in rows_of("benchmarks.md", "## Results\n"):
        rate = number(row[2]) if row[2] else rate  # one for all peers of an operation
        table.append((rate, number(row[6])))
    for row in rows_of("README.md", "## How fast"):
        rate, ratio = number(row[1]), number(row[3])
        assert any(
            rate == pytest.approx(r, rel=0.02) and ratio == pytest.approx(q, rel=0.02, abs=0.5)
            for r, q in table
        ), row


def number(cell):
    return float(cell.replace(",", "").removesuffix("x") or "nan")


def test_what_the_readme_needs_is_what_the_package_requires():
    required = re.search(r"^dependencies = \[(.*?)^\]", PROJECT, re.MULTILINE | re.DOTALL)[1]
    needs = README[README.index("It needs") : README.index("never TensorFlow")]
    for name in re.findall(r'"([a-z]+)', required):
        assert name in needs


PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_every_block_of_code_is_run():
    """Python by the tests here, in tests/neighbours and tests/engines, the sessions of docs/api by
    test_docstrings; commands of the shell are those of tests/fuzz."""
    run = {"README.md", "arrow.md", "damage.md", "datasets.md", "integrity.md", "porting.md"}
    run |= {"beam.md", "huggingface.md", "ray.md", "recipes-tables.md", "remote.md", "spark.md"}
    run |= {"train-images.md", "training.md", "viewer.md", "writing.md"}
    run |= {Path(page).name for page in PRINTING}
    kinds = {
        (page.name, kind)
        for page in PAGES
        for kind in re.findall(r"^```([\w{}]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    python = {name for name, kind in kinds if kind == "python"}
    assert run == python
    others = {("README.md", "sh"), ("index.md", "{toctree}"), ("api.md", "{toctree}")}
    reference = {path.name for path in REFERENCE}
    assert others == {k for k in kinds if k[1] not in ("python", "pycon")}
    assert {name for name, kind in kinds if kind == "pycon"} <= reference


def test_differences_are_listed_once():
    text = (ROOT / "docs" / "differences.md").read_text()
    names = re.findall(r"^\| `([a-z0-9-]+)` \|", text, re.MULTILINE)
    assert len(names) > 20
    assert sorted(set(names)) == sorted(names)


# ---- The API reference --------------------------------------------------------------------------

REFERENCE = sorted((DOCS / "api").glob("*.md"))


def reference():
    """The text of all pages of names."""
    return "".join(path.read_text(encoding="utf-8") for path in REFERENCE)


def test_the_reference_is_up_to_date():
    """If not: make docs."""
    assert 0 == api.main(["--check"]), "make docs"


ELSEWHERE = {"__version__", "compat"}  # porting.md is about compat


def test_the_reference_has_every_public_name():
    """With every method and property that has a docstring of its own, and the public modules."""
    titles = set(re.findall(r"^##+ (?:tfwire\.)?(.*)$", reference(), re.MULTILINE))
    for name in tfw.__all__:
        found = getattr(tfw, name)
        assert name in titles or name in ELSEWHERE, name
        for method, value in vars(found).items() if isinstance(found, type) else ():
            shown = callable(value) or isinstance(value, property | classmethod | staticmethod)
            if shown and not method.startswith("_") and getattr(value, "__doc__", None):
                is_field = issubclass(found, tuple) and method in found._fields
                assert f"{name}.{method}" in titles or is_field, method


def test_the_reference_says_first_what_a_name_is():
    """In one sentence: below its heading, and in the page of contents."""
    contents = (DOCS / "api.md").read_text(encoding="utf-8")
    names = re.sub(r"^# .*\n", "", reference(), flags=re.MULTILINE)
    entries = re.findall(r"^#{2,4} (\S+)\n\n(.+(?:\n.+)*)", names, re.MULTILINE)
    rows = dict(re.findall(r"^\| \[`(.+)`\]\(.+\) \| (.+) \|$", contents, re.MULTILINE))
    assert len(entries) > 150
    for title, paragraph in entries:
        assert re.fullmatch(r"[A-Z`\d].*[.:]", paragraph, re.DOTALL), title
    shown = {name.removeprefix("tfwire.").rpartition(".")[2]: line for name, line in rows.items()}
    assert len(shown) == len(rows)
    for title, paragraph in entries:
        if "." not in title.removeprefix("tfwire."):
            assert shown[title.removeprefix("tfwire.")] == " ".join(paragraph.split())
    assert set(tfw.__all__) - ELSEWHERE <= shown.keys()


def test_the_reference_hides_no_example():
    """Every example of a public docstring is shown once, as a block."""
    text = reference()
    blocks = re.findall(r"^```pycon\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert text.count(">>> ") == sum(block.count(">>> ") for block in blocks)
    assert text.count("```") % 2 == 0


def test_the_design_names_every_room():
    """Every folder of csrc, every package and public module."""
    text = (DOCS / "internals" / "design.md").read_text(encoding="utf-8")
    picture = text[text.index("## The picture") : text.index("## Decisions")]
    rooms = [path for path in [*(ROOT / "csrc").iterdir(), *PACKAGE.iterdir()] if path.is_dir()]
    rooms += [path for path in PACKAGE.glob("*.py") if not path.name.startswith("_")]
    for name in {path.stem for path in rooms} - {"__pycache__"}:
        assert re.search(rf"\b{name}\b", picture), name


# ---- What the pages print --------------------------------------------------------------------


# After a call of print, or on the line below it: what it prints first. Dots, or what comes "then",
# stand for the rest.
_PROMISE = re.compile(r"^ *print\(.*\)(?:\n *#|  +#) (.*)$", re.MULTILINE)
_REST = re.compile(r", then .*| ?\.\.\..*|(?<!value): .*")


def words(text):
    """Without spaces, in which versions of numpy differ."""
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize("page", PRINTING)
def test_the_page_prints_what_it_promises(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = "".join(block[1] for block in blocks(page_text(page)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tfw.TfwireWarning)  # tutorial.md shows damage
        run_page(page)
    printed = words(capsys.readouterr().out)
    promises = [words(_REST.sub("", promise)) for promise in _PROMISE.findall(text)]
    assert len(re.findall(r"^ *print\(", text, re.MULTILINE)) == len(promises) > 0
    for promise in promises:
        assert promise in printed
        printed = printed[printed.index(promise) + len(promise) :]

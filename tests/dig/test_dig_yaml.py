"""The YAML dialect of `.dig` files: what plain scalars become, duplicate keys, merges, includes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.authoring.dig.sources import read_source
from headrace.authoring.dig.yaml_dialect import parse
from headrace.errors import DefinitionError, HeadraceError, LoadError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(word, True) for word in ("true", "True")],
        *[(word, False) for word in ("false", "False")],
        *[(word, word) for word in ("yes", "no", "on", "off", "TRUE", "FALSE", "y", "Yes")],
        *[(word, word) for word in ("10:00:00", "30:00", "2016-01-01", "2016-01-01 00:00:00", "2016-01-01T00:00:00Z")],
        *[("0755", 493), ("010", 8), ("-010", -8), ("0x1F", 31), ("0b11", 3), ("1_000", 1000), ("0", 0), ("-7", -7)],
        *[(word, word) for word in ("08", "0.5", "-0.5", "0.0", "1.2.3", "0o17", "1e", "+")],
        *[("1.5", 1.5), (".5", 0.5), ("1e3", 1000.0), ("-2.5e-1", -0.25), ("12.", 12.0)],
        *[("10:00:00.5", 36000.5), ("-0:30.5", -30.5), (".inf", "Infinity"), ("-.INF", "-Infinity"), (".NaN", "NaN")],
        *[("!!set {b, a}", ["b", "a"]), ("!!binary 'aGVs bG8='", "aGVsbG8=")],
        *[(word, None) for word in ("~", "null", "")],
        *[('"true"', "true"), ("'5'", "5"), ("!!str 5", "5"), ("!!int '5'", 5), ("<<", "<<"), ("=", "=")],
        *[("${a}", "${a}"), ("[1, '2', {a: ~}]", [1, "2", {"a": None}])],
    ],
)
def test_plain_scalars(text, value):
    found = parse(f"key: {text}", "wf.dig")["key"]
    assert (found, type(found)) == (value, type(value))


def test_keys_become_texts_and_keep_their_order():
    assert list(parse("z: 1\n1: 1\ntrue: 1\n~: 1\n010: 1\na: 1", "wf.dig")) == ["z", "1", "true", "null", "8", "a"]


def test_a_key_of_the_map_itself_wins_over_a_merged_one():
    text = "one: &one {a: 1, b: 2}\ntwo: &two {b: 3, c: 4}\nall: {c: 5, <<: [*one, *two], a: 6}"
    assert parse(text, "wf.dig")["all"] == {"c": 5, "a": 6, "b": 2}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: 2\na: 3", 3, "the key `a` is written twice in one map, first in line 1"),
        ("+a:\n  x: 1\n  '1': 1\n  1: 2", 4, "the key `1` is written twice"),
        ("a: 1\n b: 2", 2, "is not valid YAML"),
        ("a: [1,", 1, "is not valid YAML"),
        ("a: \x07", 1, "is not valid YAML"),
        ("a: 1\n--- \nb: 1", 2, "is not valid YAML: expected a single document in the stream, but found another"),
        ("a:\n  b: !python/object:os.system x", 2, "the YAML tag `!python/object:os.system` is not known"),
        ("a: !!python/name:os.system x", 1, "the YAML tag `!!python/name:os.system` is not known"),
        ("a: !!int x", 1, "expected a value of type int, got: `x`"),
        ("a: !!omap {x}", 1, "the YAML tag `!!omap` is not known"),
        ("a: !!binary '*'", 1, "expected a value of type binary, got: `*`"),
        ("a: &x [*x]", 1, "an alias must not contain itself"),
        ("a: &x\n  <<: *x", 2, "an alias must not contain itself"),
        ("a:\n  ? [1]\n  : 2", 2, "a key must be a text"),
        ("a: 1e999", 1, "expected a value of type float"),
        ("\na: !include x.dig", 2, "`!include` cannot be used as a value"),
    ],
)
def test_broken_yaml_names_the_line(text, line, message):
    with pytest.raises(LoadError) as caught:
        parse(text, "wf.dig")
    assert message in caught.value.message
    assert (caught.value.file, caught.value.line) == ("wf.dig", line)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("+a:\n\techo>: x", "indent with spaces: YAML takes no tabs there"),
        ("+a:\n  \techo>: x", "indent with spaces: YAML takes no tabs there"),
        (
            "_export:\n  !include: 'x.yml'",
            "write `!include : 'path'` as an entry of a map, with a space before the colon",
        ),
        ("+a:\n  echo>: ${a ? b : c}", "quote the value: it contains `: `"),
        ("+a: x\n  echo>: y", None),
        ("a: [1,", None),
        ("a: !other 1", None),
    ],
)
def test_the_usual_slips_are_explained(text, hint):
    with pytest.raises(LoadError) as caught:
        parse(text, "wf.dig")
    assert caught.value.hint == hint


def test_aliases_cannot_blow_up():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(LoadError, match="unfolds into more than"):
        parse("\n".join(lines), "wf.dig")


# JSON writes characters beyond the basic plane as two escapes, which YAML does not know.
texts = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]))


@given(st.recursive(st.none() | st.booleans() | st.integers() | texts, lambda inner: st.lists(inner), max_leaves=8))
def test_json_reads_as_itself(value):
    # Flow style YAML contains JSON as long as texts are quoted.
    assert parse(json.dumps({"key": value}), "wf.dig")["key"] == value


def test_included_entries_take_the_place_of_the_include(project):
    project.write("wf.dig", "_export:\n  a: {x: 1}\n  !include : 'sub/one.dig'\n  !include : 'two.dig'\n  z: 0\n")
    project.write("sub/one.dig", "a: {y: 2}\nb: 1\n!include : 'deep.dig'\n")
    project.write("sub/deep.dig", "c: 1\n")
    project.write("two.dig", "b: 2\nz: 9\n")
    found = read_source(project.root, "wf.dig")
    assert json.dumps(found["_export"]) == '{"a": {"x": 1, "y": 2}, "b": 2, "c": 1, "z": 0}'
    assert (found["_export"].places["c"].file, found["_export"].places["z"].line) == ("sub/deep.dig", 5)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("../out.dig", "expected the included file to be below the folder of `sub/wf.dig`, got: `../out.dig`"),
        ("x/../../out.dig", "to be below the folder"),
        ("/etc/passwd", "to be below the folder"),
        ("none.dig", "the included file `sub/none.dig` does not exist"),
        ("link.dig", "to be below the folder"),
        ("wf.dig", "files include each other: `sub/wf.dig` → `sub/wf.dig`"),
        ("list.dig", "expected `sub/list.dig` to hold a map, got: a list"),
    ],
)
def test_includes_that_are_refused(project, tmp_path_factory, path, message):
    project.write("out.dig", "a: 1")
    project.write("sub/list.dig", "[1]")
    outside = tmp_path_factory.mktemp("outside") / "secret.dig"
    outside.write_text("a: 1")
    project.write("sub/wf.dig", f"x: 1\n!include : '{path}'\n")
    (project.root / "sub/link.dig").symlink_to(outside)
    with pytest.raises(HeadraceError) as caught:
        read_source(project.root, "sub/wf.dig")
    assert message in caught.value.message
    assert caught.value.line == (1 if path == "list.dig" else 2)


def test_files_that_cannot_be_read(project):
    (project.root / "latin.dig").write_bytes(b"a: \xff")
    with pytest.raises(LoadError, match="is not UTF-8 text"):
        read_source(project.root, "latin.dig")
    with pytest.raises(LoadError, match=r"could not read `none\.dig`: No such file"):
        read_source(project.root, "none.dig")
    with pytest.raises(DefinitionError, match="to hold a map, got: nothing"):
        project.load("# only a comment")

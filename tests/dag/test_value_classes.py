"""Results that are more than JSON: objects of the user's classes, numbers and tables of other libraries."""

from __future__ import annotations

import dataclasses
import datetime
import zoneinfo

import attrs
import pydantic
import pytest

from headrace.authoring.dag.exceptions import SerializationError
from headrace.authoring.dag.values import decode_value, encode_value, to_json


@dataclasses.dataclass
class Point:
    x: int
    when: datetime.date


@attrs.define
class Box:
    _inner: Point
    names: tuple[str, ...] = ()


class Model(pydantic.BaseModel):
    a: int
    when: datetime.datetime


class Own:
    __version__ = 3

    def __init__(self, text):
        self.text = text

    def serialize(self):
        return {"text": self.text}

    @staticmethod
    def deserialize(data, version):
        return Own(f"{data['text']} (version {version})")


@pytest.fixture
def allowed(monkeypatch):
    monkeypatch.setenv("AIRFLOW__CORE__ALLOWED_DESERIALIZATION_CLASSES", f"airflow.* {__name__}.*")


def there_and_back(value):
    import msgspec

    return decode_value(msgspec.json.decode(encode_value(value, "r")))


DAY = datetime.date(2026, 2, 3)
INSTANT = datetime.datetime(2026, 2, 3, 4, 5, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    "value",
    [
        Point(1, DAY),
        [Point(1, DAY)],
        {"p": (Point(2, DAY),)},
        Box(inner=Point(3, DAY), names=("a",)),
        Model(a=1, when=INSTANT),
    ],
)
def test_objects_come_back_if_their_class_is_allowed(allowed, value):
    assert there_and_back(value) == value


def test_an_object_that_serializes_itself_gets_its_version(allowed):
    assert there_and_back(Own("x")).text == "x (version 3)"


def test_classes_that_are_not_allowed_are_not_imported(monkeypatch):
    document = to_json(Point(1, DAY), "r")
    with pytest.raises(ImportError, match=rf"`{__name__}\.Point`, which may not be imported"):
        decode_value(document)
    monkeypatch.setenv("AIRFLOW__CORE__ALLOWED_DESERIALIZATION_CLASSES_REGEXP", rf"{__name__}\.P.*")
    assert decode_value(document) == Point(1, DAY)


@pytest.mark.parametrize("value", [datetime.UTC, datetime.timezone(datetime.timedelta(hours=5, minutes=30))])
def test_time_zones(value):
    assert there_and_back(value) == value
    assert there_and_back(zoneinfo.ZoneInfo("Europe/Berlin")).key == "Europe/Berlin"


def test_numbers_and_arrays_of_numpy():
    numpy = pytest.importorskip("numpy")
    assert there_and_back([numpy.int64(5), numpy.float32(0.5), numpy.bool_(True)]) == [5, 0.5, True]
    back = there_and_back(numpy.array([[1, 2], [3, 4]], dtype="int16"))
    assert back.dtype == "int16" and back.tolist() == [[1, 2], [3, 4]]


def test_a_plug_in_brings_classes_of_its_own(monkeypatch, tmp_path):
    from headrace.authoring.dag import value_plugins

    package = tmp_path / "my_serializer-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: my-serializer\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[headrace.serializers]\nmy_serializer_module.Thing=my_serializer_module:Codec\n"
    )
    (tmp_path / "my_serializer_module.py").write_text(
        "class Thing:\n    def __init__(self, n): self.n = n\n"
        "class Codec:\n    dump = staticmethod(lambda thing: thing.n)\n    load = staticmethod(lambda n: Thing(n))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    value_plugins._plugins.cache_clear()
    from my_serializer_module import Thing

    try:
        assert there_and_back(Thing(5)).n == 5
        document = to_json(Thing(5), "r")
    finally:
        monkeypatch.undo()
        value_plugins._plugins.cache_clear()
    with pytest.raises(SerializationError, match="no plug-in here knows it"):
        decode_value(document)


@pytest.mark.parametrize("value", [b"bytes", object(), {"a": {b"x"}}])
def test_what_has_no_form_is_named(value):
    with pytest.raises(SerializationError, match="expected the result `r` to be made of JSON values, got: builtins"):
        encode_value(value, "r")

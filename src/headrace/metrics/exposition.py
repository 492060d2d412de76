"""Prometheus's text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.metrics.instruments import Family, Reading, Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(readings: Iterable[Reading]) -> str:
    """The whole text; families without a series are left out."""
    return "".join(f"{line}\n" for reading in readings if reading.samples for line in _lines(reading))


def _lines(reading: Reading) -> Iterator[str]:
    family = reading.family
    yield f"# HELP {family.name} {_escaped(family.meaning)}"
    yield f"# TYPE {family.name} {family.kind}"
    for sample in reading.samples:
        yield f"{family.name}{sample.suffix}{_labels(family, sample)} {_number(sample.value)}"


def _labels(family: Family, sample: Sample) -> str:
    pairs = [f'{name}="{_quoted(value)}"' for name, value in zip(family.labels, sample.labels, strict=True)]
    if sample.bound is not None:
        pairs.append(f'le="{sample.bound}"')
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')

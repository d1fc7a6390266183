"""Records of images: where they are, and what of them is the image, its label and its names."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Iterator

from .example import NoExample, parse
from .index import Index
from .records import Record, read_records

FEATURES = {
    "image": "image/encoded",
    "label": "image/class/label",
    "id": "image/class/synset",
    "text": "image/class/text",
    "file": "image/filename",
}


@dataclass
class Source:
    """The files, and how to read them.  All methods raise ValueError for a record that is whole but not as
    expected."""

    files: list[str] = field(default_factory=list)
    features: dict[str, str] = field(
        default_factory=lambda: dict(FEATURES)
    )  # what for -> name in the records
    offset: int = 0  # subtracted from every label
    index: Index = field(default_factory=Index)

    def read(self, skip: bool = False) -> Iterator[Record]:
        """All records in the order of the files, while their places are noted down."""
        for path in self.files:
            self.index.begin(path)
            for record in read_records(path, skip):
                self.index.add(record)
                yield record

    def row(self, record: Record) -> dict[str, Any]:
        found = self.found(record, "image", "label", "file")
        return {
            "image": self.single(record, found, "image", bytes),
            "label": self.label_of(record, found),
            "file_name": self.text(found, "file") or f"{os.path.basename(record.path)}:{record.number}",
        }

    def found(self, record: Record, *wanted: str) -> dict[str, Any]:
        """The features of a record; values of the wanted ones."""
        try:
            return parse(record.data, {self.features[which] for which in wanted})
        except NoExample as error:
            raise ValueError(f"{record.place} {error}") from None

    def label_of(self, record: Record, found: dict) -> int:
        return self.single(record, found, "label", int) - self.offset

    def single(self, record: Record, found: dict, which: str, kind: type) -> Any:
        """The one value of a feature."""
        name = self.features[which]
        if name not in found:
            raise ValueError(
                f"{record.place} has no feature {name!r}: name it with --{which}_feature "
                f"(there are {', '.join(sorted(found))})"
            )
        value = found[name]
        if isinstance(value, str) or len(value) != 1 or not isinstance(value[0], kind):
            what = "one whole number" if kind is int else "one string of bytes"
            raise ValueError(f"{record.place}: the feature {name!r} is not {what}: see --{which}_feature")
        return value[0]

    def text(self, found: dict, which: str) -> str:
        """The text of a feature, or "" where there is none."""
        value = found.get(self.features[which])
        if not isinstance(value, list) or len(value) != 1 or not isinstance(value[0], bytes):
            return ""
        return value[0].decode("utf-8", "backslashreplace")

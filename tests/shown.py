"""The commands that README and docs show: in blocks of ```sh, and as code within sentences and tables."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.support import ROOT

CONVERTER = "scripts/convert_to_mindrecord/README.md"
PAGES = ["README.md", CONVERTER, *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
LANGUAGES = {"sh", "text", "python", "yaml", "json"}
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
# What makes code within a sentence a command: it begins with a program, and has more than one word.
PROGRAMS = re.compile(
    r"(?:\w+=\S+ )*(?:\./)?"
    r"(?:runner|python3?|make|docker|pip|msrun|mpirun|srun|[\w/]+\.(?:sh|py)) \S"
)


@dataclass(frozen=True)
class Shown:
    """Commands that belong together: a block, or one within a sentence."""

    page: str
    line: int
    commands: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def folder(self) -> str:
        """Where they are to be given, below the suite."""
        return str(Path(self.page).parent) if self.page == CONVERTER else "."


def languages(page: str) -> list[str]:
    """Of all its blocks."""
    return [match[1] for match in FENCE.finditer((ROOT / page).read_text(encoding="utf-8"))]


def programs(page: str) -> list[str]:
    """Its blocks of Python."""
    found = FENCE.finditer((ROOT / page).read_text(encoding="utf-8"))
    return [match[2] for match in found if match[1] == "python"]


def shown(page: str) -> list[Shown]:
    """All of a page, in its order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = [
        Shown(page, _line(text, match), commands_of(match[2]))
        for match in FENCE.finditer(text)
        if match[1] == "sh"
    ]
    prose = FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    # A code span may go on in the next line, but not in the next paragraph, item or row.
    for match in re.finditer(r"`([^`|]+?)`", re.sub(r"\n(?=\n|\||[*#])", "\n|", prose)):
        command = " ".join(match[1].split())
        if PROGRAMS.match(command):
            found.append(Shown(page, prose[: match.start()].count("\n") + 1, (command,)))
    return sorted(found, key=lambda each: each.line)


def _line(text: str, match: re.Match[str]) -> int:
    return text[: match.start()].count("\n") + 2


def commands_of(block: str) -> tuple[str, ...]:
    """The lines of a block: those that go on joined, without comments."""
    lines = re.sub(r"\\\n\s*", "", block).splitlines()
    bare = [re.sub(r"(^|\s)#.*$", "", line).strip() for line in lines]
    return tuple(line for line in bare if line)


def words_of(command: str) -> list[list[str]]:
    """The words of each program that a command starts, without the variables before it."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="&|;")
    lexer.whitespace_split = True
    programs: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("&|;"):
            programs.append([])
        elif programs[-1] or not re.fullmatch(r"[A-Z_]+=\S*", word):
            programs[-1].append(word)
    return [words for words in programs if words]


ALL = [each for page in PAGES for each in shown(page)]

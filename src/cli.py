"""Command line and YAML recipes <-> Config. The only module that reads a command line; no MindSpore here."""

import contextlib
import difflib
import io
import re
import shlex
import typing
from pathlib import Path
from typing import Any, Callable, Container, Dict, List, Optional, Sequence, Tuple, Type, TypeVar

import tyro
import yaml

from src.config import Config
from src.errors import OptionError
from src.option_checks import check

C = TypeVar("C", bound=Config)
S = TypeVar("S")  # any dataclass of sections
TRUE_WORDS, FALSE_WORDS = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


def parse(
    argv: Sequence[str],
    prog: str,
    config_type: Type[C] = Config,  # type: ignore[assignment]
    checkpoint_options: Optional[Callable[[Path], Dict[str, Any]]] = None,
    strangers: Optional[List[str]] = None,
) -> C:
    """The checked configuration of a command line.

    A recipe (--config) yields to the command line. Where a checkpoint is only used (--mode val and pred),
    the options that `checkpoint_options` reads from it yield to both.
    Unknown options are an error, unless `strangers` takes them: a list, to which they are added.
    Raises OptionError (one sentence) on anything that cannot work; `--help` prints and exits 0.
    """
    own = _normalise(list(argv), config_type, strangers)
    words = _recipe_argv(own, config_type) + own
    config = _tyro(words, prog, config_type)
    load = config.output.load
    if checkpoint_options and load and config.training.mode in ("val", "pred"):
        saved = [
            part for name, value in checkpoint_options(load).items() for part in _option_argv(name, value)
        ]
        config = _tyro(saved + words, prog, config_type)
    check(config)
    return config


def parse_own(argv: Sequence[str], prog: str, config_type: Type[S]) -> Tuple[S, List[str]]:
    """The options of `config_type` among others, not checked; and the words of the others.

    Raises OptionError (one sentence) where they cannot be read; `--help` prints and exits 0.
    """
    others: List[str] = []
    own = _normalise(list(argv), config_type, others)
    return _tyro(own, prog, config_type), others


def to_argv(config: Config, always: Container[str] = ()) -> List[str]:
    """The shortest command line that parses to `config`: what differs from the defaults, and `always`."""
    defaults = type(config)().flat()
    argv: List[str] = []
    for name, value in config.flat().items():
        if name != "config" and value is not None and (value != defaults[name] or name in always):
            argv += _option_argv(name, value)
    return argv


def join(argv: Sequence[str]) -> str:
    """A command line as a person would type it."""
    return shlex.join(argv)


def option_types(config_type: Type[Any]) -> Dict[str, Any]:
    """Option name (with dashes) -> its type."""
    sections = typing.get_type_hints(config_type)
    return {
        name.replace("_", "-"): hint
        for section in sections.values()
        for name, hint in typing.get_type_hints(section).items()
    }


def _short_options(config_type: Type[Any]) -> Dict[str, str]:
    """`-b` -> `batch-size`."""
    found: Dict[str, str] = {}
    for section in typing.get_type_hints(config_type).values():
        for name, hint in typing.get_type_hints(section, include_extras=True).items():
            for meta in getattr(hint, "__metadata__", ()):
                for alias in getattr(meta, "aliases", None) or ():
                    found[alias] = name.replace("_", "-")
    return found


def _option_argv(name: str, value: Any) -> List[str]:
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, (tuple, list)):
        return [f"--{name}", *map(_word, value)]
    word = _word(value)
    return [f"--{name}={word}"] if word.startswith("-") else [f"--{name}", word]


def _word(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _normalise(argv: List[str], config_type: Type[Any], strangers: Optional[List[str]] = None) -> List[str]:
    """Bring the accepted spellings to one: `--data_url`, `--lr-steps 30,60`, `--random-mirror 0`."""
    types, short = option_types(config_type), _short_options(config_type)
    known: List[str] = []
    out = known
    name = ""
    for word, is_value in (part for whole in argv for part in _split_equals(whole)):
        if word in ("-h", "--help"):
            known.append(word)
        elif not is_value and re.match(r"--?[A-Za-z]", word):
            dashed = word.replace("_", "-")
            name = short.get(dashed, dashed.lstrip("-"))
            out = known
            if strangers is not None and not _is_option(name, types):
                out = strangers
            else:
                _refuse_unknown(word, name, types)
            out.append(word if out is strangers and word[1] != "-" else f"--{name}")
        elif not name:
            raise OptionError(f"unexpected word {word!r}: options start with --; see --help")
        elif types.get(name) is bool:
            out[-1] = _flag(name, word)
            name = ""
        elif typing.get_origin(types.get(name)) is tuple:
            out += _elements(name, word, types[name])
        elif is_value:
            out[-1] += f"={word}"
        else:
            out.append(word)
    return known


def _split_equals(word: str) -> List[Tuple[str, bool]]:
    """The parts of a word, and whether each is surely a value: what stands behind `=` is, even `-x`."""
    if word.startswith("-") and "=" in word:
        option, value = word.split("=", 1)
        return [(option, False), (value, True)]
    return [(word, False)]


def _elements(name: str, word: str, hint: Any) -> List[str]:
    """The parts of `3,224,224`; tyro's own message on a wrong one does not say which, or what is expected."""
    parts = [part for part in word.split(",") if part]
    kind = typing.get_args(hint)[0]
    for part in parts if kind in (int, float) else []:
        try:
            kind(part)
        except ValueError:
            expected = "whole numbers" if kind is int else "numbers"
            raise OptionError(f"--{name} takes {expected}, not {part!r}") from None
    return parts


def _flag(name: str, word: str) -> str:
    if word.lower() not in TRUE_WORDS | FALSE_WORDS:
        raise OptionError(f"--{name} is a switch: give it alone, or with 0 or 1, not {word!r}")
    return f"--{name}" if word.lower() in TRUE_WORDS else f"--no-{name}"


def _is_option(name: str, types: Dict[str, Any]) -> bool:
    return name in types or (name.startswith("no-") and types.get(name[3:]) is bool)


def _refuse_unknown(word: str, name: str, types: Dict[str, Any], where: str = "") -> None:
    if _is_option(name, types):
        return
    close = difflib.get_close_matches(name, types, n=1)
    hint = f"did you mean --{close[0]}?" if close else "--help lists all options"
    raise OptionError(f"{where}unknown option {word}; {hint}")


def _recipe_argv(argv: List[str], config_type: Type[Config]) -> List[str]:
    """The command line saved in the recipe that `argv` names, or nothing."""
    places = [i for i, word in enumerate(argv) if word == "--config"]
    if not places or places[-1] + 1 >= len(argv):
        return []
    path = Path(argv[places[-1] + 1])
    words: List[str] = []
    types = option_types(config_type)
    for key, value in _read_recipe(path).items():
        name = str(key).replace("_", "-")
        _refuse_unknown(repr(key), name, types, where=f"{path}: ")
        if isinstance(value, bool) and types[name] is not bool:
            value = "on" if value else "off"  # YAML reads the words on and off as booleans
        words += _option_argv(name, value)
    try:
        words = _normalise(words, config_type)
        _tyro(words, "recipe", config_type)
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from None
    return words


def _read_recipe(path: Path) -> Dict[Any, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"--config {path}: {error.strerror or error}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise OptionError(f"--config {path} is not YAML: {' '.join(str(error).split())}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise OptionError(f"--config {path}: a recipe is a list of `option: value` lines")
    nested = [key for key, value in content.items() if isinstance(value, dict)]
    if nested:
        raise OptionError(f"{path}: {nested[0]!r} holds further keys; a recipe is flat, `option: value`")
    return content


def _tyro(argv: List[str], prog: str, config_type: Type[S]) -> S:
    """tyro's own parse, its error box turned into one sentence."""
    box = io.StringIO()
    try:
        with contextlib.redirect_stderr(box):
            return tyro.cli(config_type, prog=prog, args=argv, config=(tyro.conf.OmitArgPrefixes,))
    except SystemExit as end:
        if end.code in (0, None):
            raise
        raise OptionError(_first_sentence(box.getvalue())) from None


def _first_sentence(box: str) -> str:
    """The message of tyro's box: what stands above its first rule, unwrapped."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip("│╭╮╰╯| ") for line in box.splitlines()]
    body = [line for line in lines if line]
    text: List[str] = []
    for line in body[1:] if len(body) > 1 else body:
        if set(line) <= {"─", "-"}:
            break
        text.append(line)
    return " ".join(text) or "the options could not be read; see --help"

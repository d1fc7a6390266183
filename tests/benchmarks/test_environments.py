"""A peer's environment is made once, and again when its packages change; without network it says why."""

from __future__ import annotations

import pytest

from benchmarks import environments


@pytest.fixture
def made(monkeypatch):
    """The commands that would install, and how often an environment was made."""
    commands: list[list[str]] = []
    monkeypatch.setattr(
        environments.venv, "create", lambda folder, **_: folder.mkdir(parents=True, exist_ok=True)
    )
    monkeypatch.setattr(environments, "run", lambda words: commands.append([str(w) for w in words]))
    return commands


def test_it_is_made_once_with_pinned_versions(made, tmp_path):
    for _ in range(2):
        python = environments.interpreter("dali", tmp_path)
    assert python == tmp_path / "dali" / "bin" / "python"
    assert len(made) == 1
    assert made[0][-2:] == environments.PACKAGES["dali"]
    assert all("==" in package for packages in environments.PACKAGES.values() for package in packages)


def test_other_packages_make_it_anew(made, tmp_path, monkeypatch):
    environments.interpreter("jpeg", tmp_path)
    monkeypatch.setitem(environments.PACKAGES, "jpeg", ["simplejpeg==9"])
    environments.interpreter("jpeg", tmp_path)
    assert [words[-1] for words in made][-1] == "simplejpeg==9"


def test_what_cannot_be_installed_is_told_and_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(environments.venv, "create", lambda folder, **_: (folder / "bin").mkdir(parents=True))

    def fail(words):
        raise environments.Unavailable("no network")

    monkeypatch.setattr(environments, "run", fail)
    with pytest.raises(environments.Unavailable, match="no network"):
        environments.interpreter("torch", tmp_path)
    assert not (tmp_path / "torch" / "packages.json").exists()


def test_a_failed_command_gives_its_last_words():
    with pytest.raises(environments.Unavailable, match=r"^last$"):
        environments.run(["sh", "-c", "echo first >&2; echo last >&2; exit 1"])

"""The notes of a release are its section of the changelog, and its tag is the version of the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from release_notes import notes_of, release_notes, version_of

ROOT = Path(__file__).resolve().parents[1]
PROJECT = '[project]\nname = "x"\nversion = "1.2.0"\n'
CHANGELOG = """# Changelog

## [Unreleased]

## [1.2.0] - 2026-01-02

### Added

- A thing, see [Keep a Changelog](https://keepachangelog.com).

## [1.1.0] - 2025-01-02

- Another.
"""


def test_the_notes_are_the_section_of_the_version():
    notes = release_notes("v1.2.0", PROJECT, CHANGELOG)
    assert notes.startswith("### Added\n")
    assert notes.endswith("keepachangelog.com).\n")
    assert notes_of(CHANGELOG, "1.1.0") == "- Another.\n"


@pytest.mark.parametrize("tag", ["v1.1.0", "1.2.0", "v1.2.0rc1"])
def test_a_tag_that_is_not_the_version_is_refused(tag):
    with pytest.raises(ValueError, match=f"the tag is {tag}.*expected the tag v1.2.0"):
        release_notes(tag, PROJECT, CHANGELOG)


@pytest.mark.parametrize("version", ["Unreleased", "2.0.0"])
def test_a_version_without_notes_is_refused(version):
    with pytest.raises(ValueError, match=f"CHANGELOG.md has nothing on {version}"):
        notes_of(CHANGELOG, version)


@pytest.mark.parametrize(("name", "line"), [("CITATION.cff", "version: {}"), ("recipe/recipe.yaml", '  version: "{}"')])
def test_other_files_have_the_version_of_the_package(name, line):
    version = version_of((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert line.format(version) in (ROOT / name).read_text(encoding="utf-8").splitlines()

"""Print what the changelog says about a release: ``python tools/release_notes.py v0.2.0`` (used by the release).

The tag has to be the version in ``pyproject.toml``, so that no release has the number of another.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def version_of(project: str) -> str:
    """Return the version in the text of a ``pyproject.toml``."""
    found = re.search(r'^version = "(.*)"$', project, flags=re.MULTILINE)
    if found is None:
        raise ValueError('pyproject.toml has no version: expected a line such as version = "0.2.0"')
    return found[1]


def notes_of(changelog: str, version: str) -> str:
    """Return the section of a version, without its heading."""
    sections = re.split(r"^## \[(.*?)\].*\n", changelog, flags=re.MULTILINE)
    texts = dict(zip(sections[1::2], sections[2::2], strict=True))
    if not texts.get(version, "").strip():
        raise ValueError(f"CHANGELOG.md has nothing on {version}: expected text below '## [{version}] - date'")
    return texts[version].strip() + "\n"


def release_notes(tag: str, project: str, changelog: str) -> str:
    """Return the notes of the release with this tag."""
    version = version_of(project)
    if tag != f"v{version}":
        raise ValueError(
            f"the tag is {tag}, but the version in pyproject.toml is {version}: expected the tag v{version}"
        )
    return notes_of(changelog, version)


if __name__ == "__main__":
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "CHANGELOG.md")]
    try:
        print(release_notes(sys.argv[1], *texts), end="")
    except ValueError as error:
        sys.exit(str(error))

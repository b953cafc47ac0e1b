"""Profiles of hypothesis: ``HYPOTHESIS_PROFILE=thorough`` runs ten times as many examples as the default.

By default the examples are the same in every run, so that a failure comes from the change that is tested; the thorough
profile draws new ones.
"""

from __future__ import annotations

import os

from hypothesis import settings

FACTORS = {"ci": 1, "thorough": 10}
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")

for name, factor in FACTORS.items():
    settings.register_profile(name, deadline=None, max_examples=100 * factor, derandomize=name == "ci")
settings.load_profile(PROFILE)


def examples(count: int, **others: bool) -> settings:
    """Return the settings of a test with this number of examples in the profile "ci", and more in "thorough"."""
    return settings(max_examples=count * FACTORS[PROFILE], **others)

"""The certificate of a model that another library has fitted.

One file per library states the objectives of its models, in a table by the names of their classes. No library is
imported: the model brings it.
"""

from .judge import Judgement, judge

__all__ = ["Judgement", "judge"]

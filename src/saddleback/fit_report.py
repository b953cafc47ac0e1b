"""The page that ``saddleback fit --report`` writes: one file with tables and pictures, which needs no network."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from io import StringIO
from typing import Any

import numpy as np

import saddleback as sb

from .common import pictures
from .estimators.displays import CVDisplay, PathDisplay
from .estimators.path import coefficients
from .io.csv_tables import CsvTable

BEYOND = 3.0
"""How far a path goes beyond a given alpha, as a quotient."""

MOST_BARS = 20
"""Most coefficients in the picture."""

STYLE = """
body{font-family:system-ui,sans-serif;color:#1a202c;background:#fff;line-height:1.5;max-width:60rem;margin:0 auto;
padding:1rem}
h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px solid #ddd}
table{border-collapse:collapse;font-size:.9rem}th,td{padding:.2rem .8rem .2rem 0;text-align:left;
border-bottom:1px solid #eee;overflow-wrap:break-word}td.n{text-align:right;font-variant-numeric:tabular-nums}
.side{display:flex;flex-wrap:wrap;gap:1rem 2rem;align-items:flex-start}.side>*{min-width:0;max-width:100%}
figure{margin:0;flex:1 1 22rem}svg{max-width:100%;height:auto}figcaption{font-size:.85rem;color:#555}
pre{background:#f5f5f5;padding:.8rem;white-space:pre-wrap;font-size:.85rem}pre,code{overflow-wrap:anywhere}
.wide{overflow-x:auto}
"""


def page(model: Any, table: CsvTable, X: Any, recipe: str, command: Sequence[str]) -> str:
    """Return the report on a fitted model as HTML.

    Parameters
    ----------
    model : the fitted model.
    table : the columns of the file.
    X : the features.
    recipe : Python code that does the same.
    command : the words of the command line.
    """
    results = model.result_ if isinstance(model.result_, list) else [model.result_]
    target = escape(table.target.name)
    sections = {
        "Certificate": "".join(map(_card, results))
        + "<p>The best objective that is possible lies between the lower bound and the objective.</p>"
        + "".join(f"<p>{escape(said)}</p>" for said in remarks(model)),
        "Coefficients": _coefficients(model, X),
        "The choice of alpha" if hasattr(model, "alpha_") else "Other values of alpha": _choice(model, X, table),
        "Fit": _classes(model, table, X) if hasattr(model, "classes_") else _residuals(model, table, X),
        "Data": _data(table, X),
        "The same in Python": f"<pre>{escape(recipe)}</pre>",
    }
    body = "".join(f"<section><h2>{title}</h2>{content}</section>" for title, content in sections.items() if content)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{target}: a certified fit</title><style>{STYLE}</style></head><body>"
        f"<h1>{target}: {escape(model._objective().loss_text)}</h1>"
        f"<p>{table.target.values.size} rows, {X.shape[1]} features, penalty {escape(_penalty(model))}</p>{body}"
        f"<footer><p><small>saddleback {escape(sb.__version__)}: <code>{escape(shlex.join(command))}</code></small></p>"
        "</footer></body></html>"
    )


def remarks(model: Any) -> list[str]:
    """Return what a reader should know of a fitted model besides its certificate, one sentence or more each."""
    if hasattr(model, "alpha_") and model.alpha_ == model.path_.alphas[-1]:
        return [
            "This alpha is the smallest that was tried, so that a smaller one may predict better. Columns in very "
            "different units are a common reason: scale them, or pass --alpha."
        ]
    return []


def _card(result: sb.Result) -> str:
    """Return a result as HTML, which counts the coefficients without the intercept."""
    return replace(result, x=coefficients(result)[0])._repr_html_()


def _penalty(model: Any) -> str:
    chosen = getattr(model, "alpha_", None)
    name = str(model.penalty).lower()
    return f"{name}, alpha = {chosen:.6g}, by cross-validation" if chosen else model._objective().penalty_text


def _table(head: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
    titles = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: Any) -> str:
    return f"<td>{escape(value)}</td>" if isinstance(value, str) else f'<td class="n">{value:.6g}</td>'


def _figure(figure: Any, caption: str) -> str:
    """Return a matplotlib figure as inline SVG."""
    import matplotlib as mpl

    stream = StringIO()
    with mpl.rc_context({"svg.fonttype": "path"}):  # as outlines, so that no font is needed
        figure.savefig(stream, format="svg")
    svg = stream.getvalue()
    label = escape(caption, quote=True)
    drawn = svg[svg.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def _axes(height: float = 3.5) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("--report needs matplotlib: pip install 'saddleback[plot]'") from None
    return Figure(figsize=(5.2, height), layout="constrained").subplots()


def _coefficients(model: Any, X: Any) -> str:
    coefs, names = model.coef_.reshape(-1, X.shape[1]), list(model.coef_by_name_)
    spread = np.std(X, axis=0)
    order = [int(j) for j in np.argsort(-np.abs(coefs * spread).max(axis=0), kind="stable") if np.any(coefs[:, j])]
    classes = [str(label) for label in model.classes_] if len(coefs) > 1 else []
    head = ["name", *(classes or ["coefficient", "times its standard deviation"])]
    rows: list[list[Any]] = [["intercept", *np.broadcast_to(model.intercept_, len(coefs))]]
    rows[0] += [] if classes else [""]
    rows += [[names[j], *coefs[:, j], *([] if classes else [coefs[0, j] * spread[j]])] for j in order]
    some = f"{len(order)} of {X.shape[1]} coefficients are not 0. The others have no influence."
    told = f"<p>{some if order else f'All {X.shape[1]} coefficients are 0: no column has influence.'}</p>"
    largest = order[:MOST_BARS]
    picture = ""
    if largest:
        axis = _axes(1.2 + 0.25 * len(largest))
        size = 0.8 / len(coefs)
        for k, own in enumerate(coefs):
            places = np.arange(len(largest)) + k * size
            axis.barh(places, (own * spread)[largest], size, label=pictures.plain(classes[k]) if classes else None)
        axis.set_yticks(np.arange(len(largest)) + 0.4 - size / 2, [_short(names[j]) for j in largest])
        axis.invert_yaxis()
        axis.axvline(0.0, color="black", linewidth=0.8)
        pictures.label(axis, "coefficient times the standard deviation of its column", "")
        if classes:
            axis.legend(fontsize="small")
        picture = _figure(axis.figure, "The largest coefficients, in comparable units.")
    return f'{told}<div class="side">{_table(head, rows)}{picture}</div>'


def _short(name: str) -> str:
    """Return a name for a picture."""
    return pictures.plain(name if len(name) <= 28 else f"{name[:25]}...")


def _choice(model: Any, X: Any, table: CsvTable) -> str:
    """Return the pictures of the path, and of cross-validation if it has chosen alpha."""
    if not model._objective().penalised:
        return ""
    chosen = hasattr(model, "path_")
    along = replace(model.path_ if chosen else _path(model, X, table), feature_names=list(table.features))
    drawn = ""
    for k in range(along.n_panels):
        axis = _axes()
        PathDisplay(_panel(along, k)).plot(axis)
        axis.axvline(model.alpha_ if chosen else model.alpha, color="black", linestyle=":")
        title = f" of {along.panels[k]}" if along.panels else ""
        drawn += _figure(
            axis.figure, f"The coefficients{title} against alpha; the dotted line is the alpha of the model."
        )
    if chosen:
        axis = _axes()
        CVDisplay(model).plot(axis)
        drawn = _figure(axis.figure, "The loss on samples that a fit has not seen, against alpha.") + drawn
    return f'<div class="side">{drawn}</div>'


def _path(model: Any, X: Any, table: CsvTable) -> Any:
    """Return the solutions from the largest alpha that matters to one below that of the model."""
    given = (X, table.target.values, None if table.weights is None else table.weights.values)
    along = model.path(*given, n_alphas=30, eps=1e-2)
    if model.alpha > along.alphas[-1]:
        return along
    return model.path(*given, alphas=np.geomspace(along.alphas[0], model.alpha / BEYOND, along.alphas.size))


def _panel(along: Any, k: int) -> Any:
    """Return one panel of a path."""
    return replace(along, coefs=along.by_panel()[k], panels=along.panels[k : k + 1])


def _residuals(model: Any, table: CsvTable, X: Any) -> str:
    fitted, y = model.predict(X), table.target.values
    residuals = y - fitted
    axis = _axes()
    axis.plot(fitted, residuals, ".", markersize=4, alpha=0.6)
    axis.axhline(0.0, color="black", linewidth=0.8)
    pictures.label(axis, f"fitted {_short(table.target.name)}", "residual: target minus fit")
    spread = _axes()
    spread.hist(residuals, bins="auto" if y.size < 10_000 else 60)
    spread.axvline(0.0, color="black", linewidth=0.8)
    pictures.label(spread, "residual: target minus fit", "number of rows")
    below = f"{100 * np.mean(residuals <= 1e-9 * np.abs(y).max()):.1f}% of the targets lie on or below the fit."
    told = f"<p>The mean absolute residual is {np.abs(residuals).mean():.6g}. {below}</p>"
    shown = _figure(axis.figure, "Residuals against the fit.") + _figure(
        spread.figure, "The distribution of residuals."
    )
    return f'{told}<div class="side">{shown}</div>'


def _classes(model: Any, table: CsvTable, X: Any) -> str:
    found, y = model.predict(X), table.target.values
    rows = [
        [f"{label}", *(np.count_nonzero((y == label) & (found == other)) for other in model.classes_)]
        for label in model.classes_
    ]
    head = ["class", *(f"predicted {label}" for label in model.classes_)]
    share = f"{100 * np.mean(found == y):.1f}% of the rows are in the class that the model predicts."
    return f"<p>{share}</p>{_table(head, rows)}"


def _data(table: CsvTable, X: Any) -> str:
    rows = [[column.name, column.described(), len(column.features())] for column in table.columns]
    kind = "target"
    rows.insert(0, [table.target.name, kind, 0])
    if table.weights is not None:
        rows.insert(1, [table.weights.name, "weights of the rows", 0])
    told = f"{escape(table.path.name)}: {X.shape[0]} rows, {len(table.columns)} columns, {X.shape[1]} features. "
    return f"<p>{told}A category is a feature that is 1 where it occurs, and 0 elsewhere.</p>" + _table(
        ["column", "values", "features"], rows
    )

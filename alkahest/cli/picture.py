"""Lines and maps drawn with matplotlib, which is imported when a picture is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from alkahest.cli.pending import check_target
from alkahest.errors import IoError, install

KINDS = ("line", "heat", "contour")

FORMATS = (".png", ".svg", ".pdf")

# Told apart by people who confuse colours too, and in print (Okabe and Ito, 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#222222")

_STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "0.4",
    "axes.linewidth": 0.8,
    "xtick.color": "0.3",
    "ytick.color": "0.3",
    "legend.framealpha": 0.85,
    "legend.edgecolor": "none",
    "svg.hashsalt": "alkahest",  # the same file for the same numbers
}

_LEVELS = 12
"""About as many steps as contours have."""

_DECADES = 4
"""Of a logarithmic scale, from which on only powers of ten are steps."""


def check_picture(path: str) -> str:
    """The suffix of a picture that can be written.

    Raises:
        IoError: E-IO-003 for another format, E-IO-006 without matplotlib, E-IO-002 for a place that
            cannot be written to.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise IoError(
            "E-IO-003",
            f"{path!r}: the suffix {suffix!r} is not one of a picture",
            remediation=f"Name the file with one of {', '.join(FORMATS)}.",
        )
    check_target(path)
    _matplotlib("")
    return suffix


@attrs.frozen
class Curve:
    """One expression's values.

    Attributes:
        label: what stands beside it, as it is.
        values: float64, one axis for each of the picture's.
    """

    label: str
    values: NDArray[np.float64]


@attrs.frozen(kw_only=True)
class Picture:
    """What is drawn.

    Attributes:
        kind: one of :data:`KINDS`.
        axes: name and values, one axis for lines and two for maps.
        curves: lines of one plot, or a panel each.
        title: stands above, or "".
        log: whether values have a logarithmic scale; those that are not positive are left out.
        size: width and height in inches, or None.
        dpi: dots per inch.
    """

    kind: str
    axes: Sequence[tuple[str, NDArray[np.float64]]]
    curves: Sequence[Curve]
    title: str = ""
    log: bool = False
    size: tuple[float, float] | None = None
    dpi: int = 150

    def save(self, path: str, suffix: str) -> None:
        """Draw into a file of the format that ``suffix`` says.

        Raises:
            IoError: E-IO-006 without matplotlib.
        """
        with _matplotlib("").rc_context(_STYLE):
            figure = self._figure()
            dated = {"CreationDate": None} if suffix == ".pdf" else {"Date": None}
            figure.savefig(
                path,
                format=suffix[1:],
                dpi=self.dpi,
                metadata=None if suffix == ".png" else dated,
            )

    def _figure(self) -> Any:
        columns = 1 if self.kind == "line" else math.ceil(math.sqrt(len(self.curves)))
        rows = 1 if self.kind == "line" else math.ceil(len(self.curves) / columns)
        figure = _matplotlib("figure").Figure(
            figsize=self.size or ((6.4, 4.0) if columns == 1 else (4.2 * columns, 3.4 * rows)),
            layout="constrained",
        )
        if self.kind == "line":
            self._lines(figure.subplots())
        else:
            panels = figure.subplots(rows, columns, squeeze=False)
            for panel, curve in zip(panels.flat, self.curves, strict=False):
                self._map(figure, panel, curve)
            for panel in panels.flat[len(self.curves) :]:
                panel.remove()
        if self.title:
            figure.suptitle(self.title)
        return figure

    def _lines(self, axes: Any) -> None:
        ((name, points),) = self.axes
        low, high = visible_range(np.concatenate([c.values for c in self.curves]), self.log)
        for number, curve in enumerate(self.curves):
            values = curve.values if self.log else _cut_at_poles(curve.values, low, high)
            shown = {"marker": "o", "markersize": 4} if len(points) < 20 else {}
            axes.plot(
                points,
                np.where(values > 0, values, np.nan) if self.log else values,
                color=COLOURS[number % len(COLOURS)],
                linestyle=("-", "--", "-.", ":")[number // len(COLOURS) % 4],
                linewidth=1.8,
                label=_literal(curve),
                **shown,
            )
        axes.set_yscale("log" if self.log else "linear")
        if not self.log and low < high:
            room = 0.05 * (high - low)
            axes.set_ylim(low - room, high + room)
        axes.set_xlim(points.min(), points.max() if len(points) > 1 else None)
        axes.set_xlabel(name)
        axes.grid(True, color="0.9", linewidth=0.8)
        axes.set_axisbelow(True)
        if len(self.curves) == 1:
            axes.set_ylabel(_literal(self.curves[0]))
        elif len(self.curves) <= 5:
            axes.legend(loc="best")
        else:
            axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))

    def _map(self, figure: Any, axes: Any, curve: Curve) -> None:
        (across, xs), (up, ys) = self.axes
        values = np.where(np.isfinite(curve.values), curve.values, np.nan).T
        if self.log:
            values = np.where(values > 0, values, np.nan)
        low, high = visible_range(values, self.log)
        colours = _colours(low, high, self.log)
        beyond = _beyond(values, low, high)
        if self.kind == "heat":
            image = axes.imshow(
                values,
                origin="lower",
                aspect="auto",
                extent=(*_edges(xs), *_edges(ys)),
                **colours,
            )
        else:
            levels = _levels(low, high, self.log)
            image = axes.contourf(xs, ys, values, levels, extend=beyond, **colours)
            lines = axes.contour(xs, ys, values, levels, colors="0.25", linewidths=0.5)
            axes.clabel(lines, lines.levels[::2], fontsize=7)
        axes.set_facecolor("0.88")  # shows where there is no value
        axes.spines[["top", "right"]].set_visible(True)
        axes.set_title(_literal(curve))
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        if low < high:
            bar = figure.colorbar(image, ax=axes, extend=beyond if self.kind == "heat" else None)
            if self.log and self.kind == "contour":
                bar.set_ticks(image.levels, labels=[f"{level:g}" for level in image.levels])
            bar.outline.set_visible(False)


def visible_range(values: NDArray[np.float64], log: bool = False) -> tuple[float, float]:
    """Lowest and highest value to show.

    Where a few values, as near a pole, would flatten all others, these are left out.
    """
    finite = values[np.isfinite(values) & ((values > 0) | (not log))]
    if not finite.size:
        return 0.0, 0.0
    low, high = float(finite.min()), float(finite.max())
    if log:
        return low, high
    most_low, most_high = (float(q) for q in np.quantile(finite, [0.05, 0.95]))
    room = 0.5 * (most_high - most_low)
    if room > 0 and high - low > 8 * (most_high - most_low):
        return max(low, most_low - room), min(high, most_high + room)
    return low, high


def _cut_at_poles(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Without the stroke from one end of the picture to the other where the sign flips at a pole."""
    before, after = values[:-1], values[1:]
    flips = ((before > high) & (after < low)) | ((before < low) & (after > high))
    cut = values.copy()
    cut[1:][flips] = np.nan
    return cut


def _colours(low: float, high: float, log: bool) -> dict[str, Any]:
    """Colours that meet at zero where values have both signs, from dark to light elsewhere."""
    if log and low < high:
        norm = _matplotlib("colors").LogNorm(low, high)
        return {"cmap": "viridis", "norm": norm}
    if low < 0 < high:
        most = max(-low, high)
        return {"cmap": "RdBu_r", "vmin": -most, "vmax": most}
    return {"cmap": "viridis", "vmin": low, "vmax": high}


def _levels(low: float, high: float, log: bool) -> Any:
    ticker = _matplotlib("ticker")
    if not low < high:
        return [low - 1, low + 1]
    if log:
        steps = (1.0,) if math.log10(high / low) > _DECADES else (1.0, 2.0, 5.0)
        return ticker.LogLocator(subs=steps, numticks=2 * _LEVELS).tick_values(low, high)
    return ticker.MaxNLocator(_LEVELS, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)


def _beyond(values: NDArray[np.float64], low: float, high: float) -> str:
    """On which side there are values that the colours do not tell apart."""
    below, above = bool(np.any(values < low)), bool(np.any(values > high))
    return {(False, False): "neither", (True, True): "both"}.get(
        (below, above), "min" if below else "max"
    )


def _edges(points: NDArray[np.float64]) -> tuple[float, float]:
    """Ends of the pixels whose centres are the points."""
    if len(points) == 1:
        return float(points[0]) - 0.5, float(points[0]) + 0.5
    half = (points[1] - points[0]) / 2
    return float(points[0] - half), float(points[-1] + half)


def _literal(curve: Curve) -> str:
    """The label for matplotlib, which reads what stands between dollars as TeX."""
    return curve.label.replace("$", r"\$")


def _matplotlib(module: str) -> Any:
    """A module of matplotlib; untyped, and installed with an extra."""
    try:
        return import_module(f"matplotlib.{module}".rstrip("."))
    except ImportError as error:
        raise IoError(
            "E-IO-006",
            f"pictures need the package matplotlib, which did not import: {error}",
            remediation=f"{install('plot')}.",
        ) from None


__all__ = ["FORMATS", "KINDS", "Curve", "Picture", "check_picture", "visible_range"]

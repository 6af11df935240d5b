"""``hardmax model`` and ``hardmax phase-diagram``: the models of the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .options import AsJson, Quiet, panel, read_number, read_whole

if TYPE_CHECKING:
    from ..zoo import FieldModel

_run = panel("Run")
_output = panel("Output")
_axes = panel("Axes")
# Points of a range such as 0.5:4 that names no number of points.
_POINTS = 6
# The names of hardmax.zoo, repeated here because the help must not import it; a test compares them.
MODELS = (
    "kuramoto", "sphere_attention", "metastable", "causal_sphere", "normalisation", "equiangular", "long_context",
    "noisy", "multi_head", "value_spectrum", "sinkhorn", "frank_wolfe", "rank_collapse",
)  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(model)
    app.command("phase-diagram")(phase_diagram)


_NAME = Annotated[str | None, typer.Argument(metavar="MODEL", help=f"One of {', '.join(MODELS)}.", show_default=False)]
_SET = Annotated[
    list[str] | None, _run("--set", metavar="NAME=VALUE", help="A parameter of the model; may be given several times.")
]


def model(
    name: _NAME = None,
    settings: _SET = None,
    n: Annotated[str | None, _run("--n", "--number", metavar="N", help="Number of tokens.")] = None,
    time: Annotated[str | None, _run(metavar="T", help="Duration of a model in continuous time.")] = None,
    depth: Annotated[str | None, _run(metavar="K", help="Number of layers of a model made of layers.")] = None,
    seed: Annotated[str | None, _run(metavar="S", help="Seed of the random generator.", show_default="0")] = None,
    figure: Annotated[Path | None, _output(metavar="PATH", help="Draw to .png, .pdf, .svg or .html.")] = None,
    animate: Annotated[Path | None, _output(metavar="PATH", help="Film to .gif or .mp4.")] = None,
    save: Annotated[Path | None, _output(metavar="PATH", help="Save the run to .zarr, .zip or .nc.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run a model of the field and show its measures beside the predictions of the theory.

    [bold]Examples[/bold]

    [dim]# the models, with their papers[/dim]
    [cyan]hardmax model[/cyan]
    [dim]# synchronisation of oscillators against its known curve[/dim]
    [cyan]hardmax model kuramoto --set coupling=2 --time 4[/cyan]
    [dim]# a decoder on the circle, as a film[/dim]
    [cyan]hardmax model causal_sphere --set beta=4 --animate causal.gif[/cyan]

    The exit status is 0 for a complete run, 1 when it ended early, 2 for bad input.
    """
    from .simulate_report import require_targets, write_files

    require_targets(figure, animate, save)
    if name is None:
        _list_models(as_json)
        return
    chosen = _model(name, _settings(settings))
    run = chosen.run(
        n=read_whole("--n", n, 100, least=1),
        time=read_number("--time", time, 10.0),
        depth=read_whole("--depth", depth, 20, least=1),
        random_state=read_whole("--seed", seed, 0, least=0) or 0,
        progress=False if quiet else None,
    )
    files = write_files(run, run.tokens[0], None, table=save, figure=figure, animation=animate, quiet=quiet)
    found = {key: value(run) for key, value in chosen.measures.items()}
    theory = {key: predicted for key, (_, predicted) in chosen.compare(run).items()}
    if as_json:
        data = {
            "model": chosen.name,
            "parameters": {key: str(value) for key, value in chosen.parameters.items()},
            "reference": chosen.reference,
            "outcome": str(run.outcome),
            "measured": found,
            "theory": theory,
            "files": files,
        }
        typer.echo(json.dumps(data))
    elif not quiet:
        typer.echo(f"model     {chosen}")
        typer.echo(f"paper     {chosen.reference}")
        typer.echo(f"equation  {chosen.equation}")
        for key, value in found.items():
            beside = f"   theory {theory[key]:.6g}" if key in theory else ""
            typer.echo(f"{'measured':<10}{key} = {value:.6g}{beside}")
        typer.echo(f"outcome   {run.outcome}")
        for path in files:
            typer.echo(f"wrote     {path}")
    if not run.outcome.ok:
        raise typer.Exit(1)


def phase_diagram(
    name: _NAME = None,
    x: Annotated[str | None, _axes("--x", metavar="NAME=VALUES", help="As coupling=1:4:8, or beta=0.5,1,2.")] = None,
    y: Annotated[str | None, _axes("--y", metavar="NAME=VALUES", help="The other axis, in the same form.")] = None,
    measure: Annotated[str, _axes(metavar="NAME", help="Quantity to measure.")] = "order",
    settings: _SET = None,
    seeds: Annotated[str | None, _run(metavar="S", help="Runs per point.", show_default="3")] = None,
    time: Annotated[str | None, _run(metavar="T", help="Duration of each run.")] = None,
    depth: Annotated[str | None, _run(metavar="K", help="Number of layers of each run.")] = None,
    jobs: Annotated[str | None, _run(metavar="J", help="Runs at a time.", show_default="1")] = None,
    folder: Annotated[
        Path | None, _run(metavar="FOLDER", help="Folder for finished runs; a stopped diagram resumes there.")
    ] = None,
    figure: Annotated[Path | None, _output(metavar="PATH", help="Draw to .png, .pdf, .svg or .html.")] = None,
    save: Annotated[Path | None, _output(metavar="PATH", help="Write the table to .csv, or all to .json.")] = None,
    quiet: Quiet = False,
) -> None:
    """Measure a model over a grid of two parameters, with the transition that theory predicts.

    [bold]Examples[/bold]

    [dim]# where noise destroys synchronisation[/dim]
    [cyan]hardmax phase-diagram noisy --x coupling=0.5:4:8 --y beta=0.5:3:6 --figure noisy.png[/cyan]
    [dim]# the critical inverse temperature of long contexts[/dim]
    [cyan]hardmax phase-diagram long_context --x rho=0:0.6:4 --y gamma=0.5:3:6 --measure own_weight[/cyan]
    """
    from ..sweeps import phase_diagram as measure_all
    from .simulate_report import require_targets

    require_targets(figure, None, None)
    if name is None or x is None or y is None:
        missing = "MODEL" if name is None else "--x" if x is None else "--y"
        raise InputError(missing, None, "must be given", "see hardmax phase-diagram --help")
    _model(name, {})
    found = measure_all(
        name,
        x=_axis("--x", x),
        y=_axis("--y", y),
        measure=measure,
        fixed=_settings(settings),
        seeds=read_whole("--seeds", seeds, 3, least=1) or 3,
        time=read_number("--time", time, 10.0),
        depth=read_whole("--depth", depth, 20, least=1),
        path=folder,
        jobs=read_whole("--jobs", jobs, 2, least=1) or 1,
        progress=False if quiet else None,
    )
    if save is not None:
        found.save(save)
    if figure is not None:
        from ..figures.save import save_figure

        save_figure(found.draw().figure, figure)  # type: ignore[arg-type]
    if not quiet:
        typer.echo(found.to_pandas().to_string(index=False, max_rows=40))


def _list_models(as_json: bool) -> None:
    from .. import zoo

    made: dict[str, FieldModel] = {name: getattr(zoo, name)() for name in zoo.MODELS}
    if as_json:
        rows = {name: {"reference": one.reference, "parameters": [*one.parameters]} for name, one in made.items()}
        typer.echo(json.dumps(rows))
        return
    for name, one in made.items():
        typer.echo(f"{name:<18}{one.reference}")
        typer.echo(f"{'':<18}parameters: {', '.join(one.parameters)}; measured: {', '.join(one.measures)}")


def _model(name: str, settings: dict[str, Any]) -> FieldModel:
    from .. import zoo

    if name not in zoo.MODELS:
        raise InputError("MODEL", repr(name), "is not known", f"pass one of {', '.join(zoo.MODELS)}")
    default: FieldModel = getattr(zoo, name)()
    return default.with_parameters(**settings) if settings else default


def _settings(given: list[str] | None) -> dict[str, Any]:
    """Parameters from ``NAME=VALUE``: whole numbers, numbers, lists of numbers, or words."""
    found: dict[str, Any] = {}
    for one in given or []:
        name, equals, text = one.partition("=")
        if not equals or not name or not text:
            raise InputError("--set", repr(one), "must be NAME=VALUE", "pass for example --set beta=2")
        found[name] = _value(text)
    return found


def _value(text: str) -> Any:
    if "," in text:
        return tuple(_value(part) for part in text.split(","))
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _axis(flag: str, text: str) -> tuple[str, list[float]]:
    """Name and values of an axis: ``beta=1,2,4``, or ``beta=1:4:8`` for eight values from 1 to 4."""
    name, _, values = text.partition("=")
    try:
        if ":" in values:
            first, last, *more = (float(part) for part in values.split(":"))
            count = int(more[0]) if more else _POINTS
            if count < 2 or len(more) > 1:
                raise ValueError
            return name, [first + (last - first) * k / (count - 1) for k in range(count)]
        return name, [float(part) for part in values.split(",")]
    except ValueError:
        remedy = f"pass for example {flag} beta=1,2,4 or {flag} beta=1:4:8"
        raise InputError(flag, repr(text), "must be NAME=VALUES", remedy) from None

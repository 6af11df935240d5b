"""One report on all papers: every figure and table made again, published figures beside measured ones.

Each part is finished on its own and then stored; the same command resumes after the last finished part.
"""

from __future__ import annotations

import base64
import datetime
import html
import json
import os
import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._version import __version__
from ..citations import PAPERS
from ..errors import FileError, InputError, MissingExtraError
from ..files import make_folder, write_bytes, write_text
from .claims import (
    AGREES,
    DIFFERS,
    NOT_JUDGED,
    SHOWN,
    Claim,
    clustering_claims,
    forecasting_claims,
    interpolation_claims,
    meanfield_claims,
    sentiment_claims,
)
from .recorded import measured_in_full, recorded_runs
from .report import Report, Section, Table

PAGE, RECORD, _DONE = "index.html", "report.json", "finished.json"
# Counts up when stored parts of an older version can no longer be read.
_FORMAT = 2
_IMAGE = re.compile(r'src="data:image/(png|gif|jpeg|svg\+xml);base64,([^"]+)"')
# The part that repeats the command of a page: here it stands under every figure and table.
_LEFT_OUT = "Reproduce this page"


@dataclass(frozen=True)
class Options:
    """What all parts are told."""

    quick: bool = False
    data: str | None = None
    """File of film reviews; the corpus of the extra ``data`` without it."""
    device: str | None = None
    """Where the published text model is trained."""
    seconds: float | None = None
    """Processor seconds after which each search or training of the forecasting part ends; None for no limit."""


@dataclass(frozen=True)
class Part:
    """One part of the report: a paper, or a study beside it."""

    name: str
    title: str
    paper: str
    """Key of the paper in ``hardmax.citations.PAPERS``."""
    seed: str
    """Seeds of its random numbers, in words."""
    run: Callable[[Path, Options], Report]
    """Writes figures and tables into a folder and returns the page."""
    claims: Callable[[Mapping[str, Sequence[Mapping[str, Any]]], Options], list[Claim]] = lambda tables, options: []

    def command(self, options: Options) -> str:
        """Command that makes this part alone."""
        words = f"hardmax reproduce {self.name}" + (" --quick" if options.quick else "")
        if self.name == "sentiment":
            words += f" --data {options.data}" if options.data else ""
            words += f" --device {options.device}" if options.device else ""
        if self.name == "forecasting" and options.seconds is not None:
            words += f" --seconds {options.seconds:g}"
        return words


def _clustering(folder: Path, options: Options) -> Report:
    from .clustering import reproduce_clustering

    return reproduce_clustering(folder, quick=options.quick)


def _sentiment(folder: Path, options: Options) -> Report:
    from .sentiment import reproduce_sentiment

    return reproduce_sentiment(folder, quick=options.quick, data=options.data, device=options.device)


def _interpolation(folder: Path, options: Options) -> Report:
    from .interpolation import reproduce_interpolation

    return reproduce_interpolation(folder, quick=options.quick)


def _meanfield(folder: Path, options: Options) -> Report:
    from .meanfield import reproduce_meanfield

    return reproduce_meanfield(folder, quick=options.quick)


def _forecasting(folder: Path, options: Options) -> Report:
    from .forecasting import reproduce_forecasting

    return reproduce_forecasting(folder, quick=options.quick, seconds=options.seconds)


def _study(folder: Path, options: Options) -> Report:
    from ..figures import figure_bytes
    from .forecasting_study import (
        draw_forecasting_summary,
        read_study,
        run_forecasting_study,
        write_forecasting_summary,
    )
    from .forecasting_study_cases import FIRST

    if options.quick:
        run_forecasting_study(folder, seconds=1.0, seeds=1, settings=[FIRST], systems=["Chen", "Lorenz '63"])
    else:
        run_forecasting_study(folder)
    report = Report("Forecasters on chaotic systems")
    section = report.section("Valid prediction times")
    if (figure := draw_forecasting_summary(read_study(folder))) is not None:
        section.picture(figure_bytes(figure, dpi=130), "Valid prediction times by setting and model.")
    for number, table in enumerate(write_forecasting_summary(folder)):
        section.table(table)
        write_text(folder / f"summary-{number}.json", table.to_json())
    return report


PARTS: tuple[Part, ...] = (
    Part(
        "clustering", "Clustering in hardmax transformers", "clustering", "2407", _clustering,
        lambda tables, options: clustering_claims(tables, quick=options.quick),
    ),
    Part(
        "sentiment", "Sentiment analysis by leader words", "clustering", "0", _sentiment,
        lambda tables, options: sentiment_claims(
            tables, quick=options.quick, same_reviews=options.data is not None
        ),
    ),
    Part(
        "interpolation", "Exact sequence interpolation", "interpolation", "0 for data, 0 and 1 for training",
        _interpolation, lambda tables, options: interpolation_claims(tables, quick=options.quick),
    ),
    Part(
        "meanfield", "Mean-field transformers at low temperature", "meanfield", "none, tokens are quantiles",
        _meanfield, lambda tables, options: meanfield_claims(tables, quick=options.quick),
    ),
    Part(
        "forecasting", "Time-delayed transformers", "timedelayed", "0", _forecasting,
        lambda tables, options: forecasting_claims(tables, quick=options.quick),
    ),
    Part("forecasting-study", "Forecasters on chaotic systems", "timedelayed", "0, 1, 2 (quick: 0)", _study),
)  # fmt: skip
"""The parts of the report, in the order in which they are run."""


def reproduce_all(
    output: str | os.PathLike[str],
    *,
    quick: bool = False,
    data: str | os.PathLike[str] | None = None,
    device: str | None = None,
    only: Sequence[str] | None = None,
    seconds: float | None = None,
    say: Callable[[str], None] | None = None,
) -> Report:
    """The figures and tables of all papers as one page, published figures beside measured ones.

    The page is ``index.html``, everything in it as data is ``report.json``, each part has a folder of its own. A part
    that has finished is not run again by a later call with the same settings and the same version of the library; the
    page is written anew after each part.

    Parameters
    ----------
    output
        Folder for the report; it is made if it does not exist.
    quick
        Smaller sizes and short training: what such a run cannot judge is marked as not judged.
    data
        File of the film reviews of the paper, from ``hardmax data imdb``; the corpus of the extra ``data`` without it.
    device
        Where to train the published text model, such as "cuda".
    only
        Names of the parts to run; all of them when left out.
    seconds
        Processor seconds after which each search or training of the forecasting part ends; None for no limit.
    say
        Called with a sentence before and after each part.

    Returns
    -------
    Report
        The page.
    """
    folder = make_folder(output)
    wanted = [part.name for part in PARTS] if only is None else list(only)
    for name in wanted:
        if name not in {part.name for part in PARTS}:
            known = ", ".join(part.name for part in PARTS)
            raise InputError("only", repr(name), "must name parts of the report", f"choose among {known}")
    options = Options(quick, None if data is None else os.fspath(data), device, seconds)
    tell = say or (lambda sentence: None)
    records: dict[str, dict[str, Any]] = {}
    report = Report("The papers, made again")
    for part in PARTS:
        if part.name not in wanted:
            continue
        records[part.name] = _finished(folder / part.name, options) or _run(part, folder, options, tell)
        report = _page(records, options)
        report.write(folder / PAGE)
        kept = [{key: value for key, value in one.items() if key != "sections"} for one in records.values()]
        about = {"version": __version__, "quick": quick, "machine": machine(), "parts": kept}
        write_text(folder / RECORD, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    return report


def machine() -> str:
    """Processor, cores and Python of this machine, in words."""
    cores = os.cpu_count() or 1
    kind = platform.machine() or "unknown processor"
    return f"{kind}, {cores} cores, {platform.system()}, Python {platform.python_version()}"


def _key(options: Options) -> dict[str, Any]:
    found = {"format": _FORMAT, "version": __version__, "quick": options.quick, "data": options.data}
    return found if options.seconds is None else {**found, "seconds": options.seconds}


def _finished(folder: Path, options: Options) -> dict[str, Any] | None:
    """The stored record of a part that was finished with these settings."""
    try:
        record: dict[str, Any] = json.loads((folder / _DONE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if record.get("key") == _key(options) else None


def _run(part: Part, folder: Path, options: Options, tell: Callable[[str], None]) -> dict[str, Any]:
    tell(f"{part.name} …")
    began, used = time.perf_counter(), _processor_time()
    record: dict[str, Any] = {
        "name": part.name,
        "title": part.title,
        "key": _key(options),
        "command": part.command(options),
        "date": datetime.date.today().isoformat(),
        "seed": part.seed,
        "claims": [],
        "tables": {},
        "sections": [],
    }
    try:
        report = part.run(make_folder(folder / part.name), options)
    except (MissingExtraError, FileError) as error:
        # Not stored: the part is tried again by the next call.
        tell(f"{part.name}: not run, {error}")
        return {**record, "not_run": str(error)}
    tables = _tables(folder / part.name)
    rows = {name: table["rows"] for name, table in tables.items()}
    record |= {
        "seconds": round(time.perf_counter() - began, 1),
        "processor_seconds": round(_processor_time() - used, 1),
        "claims": [claim.data() for claim in part.claims(rows, options)],
        "tables": tables,
        "sections": _sections(report, folder / part.name, f"Seed: {part.seed}. Command: `{part.command(options)}`"),
    }
    write_text(folder / part.name / _DONE, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    tell(f"{part.name}: finished in {record['seconds']:.0f} s")
    return record


def _processor_time() -> float:
    """Processor seconds of this process and of its finished children."""
    return sum(os.times()[:4])


def _tables(folder: Path) -> dict[str, Any]:
    """Tables that a part has written as JSON, by name."""
    paths = [path for path in sorted(folder.glob("*.json")) if path.name != _DONE]
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    return {name: table for name, table in found.items() if isinstance(table, dict) and "rows" in table}


def _sections(report: Report, folder: Path, made: str) -> list[dict[str, str]]:
    """Sections of a page with their images as files, and seed and command under each figure and table."""
    note = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(made))
    numbers = iter(range(1, 10_000))

    def as_file(found: re.Match[str]) -> str:
        name = f"page-{next(numbers):02d}.{found[1].partition('+')[0].replace('jpeg', 'jpg')}"
        write_bytes(folder / name, base64.b64decode(found[2]))
        return f'loading="lazy" src="{folder.name}/{name}"'

    listed = []
    for section in report.sections:
        if section.title == _LEFT_OUT:
            continue
        body = _IMAGE.sub(as_file, section.body())
        body = body.replace("</figcaption>", f'<br><span class="made">{note}</span></figcaption>')
        body = body.replace("</table></div>", f'</table></div><p class="made">{note}</p>')
        listed.append({"title": section.title, "anchor": section.anchor, "body": body})
    return listed


def _page(records: Mapping[str, Mapping[str, Any]], options: Options) -> Report:
    lead = (
        "Figures and tables of the papers behind this library, with what was published beside what was measured here. "
        "Under each stand its seed and the command that makes it alone."
    )
    if options.quick:
        lead += (
            " This is a quick run: sizes are small and training is short, so most statements about training are shown "
            "but not judged. Judge the papers by a full run (`hardmax reproduce all`): the column on the right has the "
            "results of recorded ones."
        )
    report = Report(
        "The papers, made again", lead=lead, footer=f"Made by hardmax {__version__} on {machine()}. Data: `{RECORD}`."
    )
    verdicts = [claim["verdict"] for record in records.values() for claim in record["claims"]]
    summary = report.section("Published beside measured")
    summary.numbers(
        {
            **{verdict: verdicts.count(verdict) for verdict in (AGREES, DIFFERS, NOT_JUDGED, SHOWN)},
            "processor minutes": _minutes(records),
        }
    )
    for record in records.values():
        if record["claims"]:
            summary.table(_claims_table(record, quick=options.quick))
    for record in records.values():
        _fill(report.section(record["title"]), record)
    return report


def _claims_table(record: Mapping[str, Any], *, quick: bool) -> Table:
    """Published beside measured; beside a quick run also what the recorded full run measured."""
    claims, full = record["claims"], recorded_runs().get(record["name"], {}) if quick else {}
    columns = ("statement", "published", "measured", "verdict") + (("recorded full run",) if full else ())
    rows = [
        (
            f"{one['where']}: {one['statement']}",
            one["published"],
            one["measured"],
            f"{NOT_JUDGED}: {one['reason']}" if one["verdict"] == NOT_JUDGED else one["verdict"],
            *((measured_in_full(record["name"], one),) if full else ()),
        )
        for one in claims
    ]
    judged = dict.fromkeys(one["reason"] for one in claims if one["verdict"] in (AGREES, DIFFERS) and one["reason"])
    notes = [f"How it is judged: {'; '.join(judged)}."] if judged else []
    if full:
        notes.append(f"Recorded: {full['command']}, {full['date']}, {full['machine']}. {full['note']}".strip())
    return Table(record["title"], columns, rows, " ".join(notes))


def _minutes(records: Mapping[str, Mapping[str, Any]]) -> float:
    return round(sum(float(record.get("processor_seconds", 0.0)) for record in records.values()) / 60, 1)


def _fill(section: Section, record: Mapping[str, Any]) -> None:
    paper = PAPERS[next(part.paper for part in PARTS if part.name == record["name"])]
    section.text(f"{', '.join(paper.authors)}: {paper.title}, arXiv {paper.arxiv}.")
    if "not_run" in record:
        section.text(f"Not run: {record['not_run']}")
        return
    section.text(
        f"Made by `{record['command']}` in {record['seconds']:,.0f} seconds, {record['processor_seconds']:,.0f} of "
        "the processor."
    )
    for one in record["sections"]:
        anchor = f"{record['name']}-{one['anchor']}"
        section.markup(f'<h3 id="{anchor}">{html.escape(one["title"])}</h3>\n{one["body"]}')

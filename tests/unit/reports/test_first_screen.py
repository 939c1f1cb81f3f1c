"""What is read first: at most 25 lines with the answer, in every form; all else comes after it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from html import escape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import windtunnel
from neuron_sim.diagnostics import for_graphs
from tests.fakes.reports import report_for_counters, screen_of, text_of
from tests.fakes.split_job import split_counters
from tests.unit.conftest import Invoke
from tests.unit.priceperf.test_answer import (
    LONG,
    OTHERS,
    P4D,
    SHORT,
    SMALL,
    TRN1,
    rehearsed,
    sizes,
    workloads,
)
from tests.unit.reports.test_job_report import FakeJob
from windtunnel.priceperf import (
    BreakEven,
    FullScale,
    PerDevice,
    PriceBook,
    Workload,
    answers,
    by_offering,
    compare,
)
from windtunnel.priceperf.instances import instance_type, named_instance
from windtunnel.priceperf.published.bert_rehearsal import COUNTERS
from windtunnel.rendering.document import Document
from windtunnel.rendering.format import dollars, shortened
from windtunnel.rendering.page import as_page
from windtunnel.rendering.text import as_text
from windtunnel.reports.diagnostics import diagnostics_of
from windtunnel.reports.for_job import report_for_job
from windtunnel.reports.modelled.answer import _verdict, answer_section, screen
from windtunnel.reports.modelled.answer_data import answer_data
from windtunnel.reports.modelled.cheapest import otherwise, probability, turning
from windtunnel.reports.modelled.fitted_notes import LINES
from windtunnel.reports.modelled.labels import label
from windtunnel.reports.modelled.sections import size_words

PRINTABLE = "".join(map(chr, range(32, 127)))
REVIEWS = FullScale(3_600_000, 1, 400_000, sequence_length=128)
PAIR, P5 = [TRN1, P4D], "ml.p5.48xlarge"
LOADER = {"line": "train.py:9", "samples": 4, "passes": 1, "taken": 16, "trains": True}


def first(comparison: Any, workload: Any, size: FullScale | None, found: Any = None, lines: int = 0) -> Any:
    """The section of the answer."""
    return answer_section(screen(comparison, workload, size, PriceBook(), found), comparison, lines)


def with_findings(counters: Any, *texts: str) -> dict[str, Any]:
    """Counters of a script in which this was found."""
    found = [{"kind": "k", "line": "t.py:1", "message": text, "advice": text} for text in texts]
    return {**counters(), "diagnostics": found}


@given(
    workload=workloads,
    size=st.one_of(st.none(), sizes),
    names=st.lists(st.sampled_from(OTHERS), min_size=1, max_size=7, unique=True),
    count=st.integers(1, 1000),
    texts=st.lists(st.text(PRINTABLE, max_size=600), max_size=4),
    notes=st.lists(st.text(PRINTABLE, min_size=1, max_size=400), max_size=2),
)
@example(
    workload=rehearsed(
        asked=SMALL,
        flops=2103382352942.0,
        parameters=None,
        compiled=1e13,
        samples=354.44111346950694,
        bytes_moved=2103046808622.0,
    ),
    size=FullScale(1, epochs=63, evaluation_split=False),
    names=["ml.trn1n.32xlarge", "trn1.32xlarge", "p4d.24xlarge", "ml.p4de.24xlarge", SMALL],
    count=68,
    texts=["", "0"],
    notes=["0", "0"],
)
@settings(max_examples=75)
def test_the_first_screen_has_25_lines_of_100_columns(
    counters: Any, workload: Any, size: Any, names: Any, count: int, texts: Any, notes: Any
) -> None:
    """Whatever is compared, found in the script, or stands above it."""
    found = diagnostics_of(with_findings(counters, *texts))
    assume(count == 1 or not all(instance_type(name).trains_alone for name in names))
    comparison = compare(workload, names, size, instance_count=count)
    section = first(comparison, workload, size, found, 2 * len(notes))
    document = Document("x" * 60, "ml.trn1.32xlarge x 1", tuple(notes), (section,), "The rest: --full")
    lines = as_text(document).splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= 100
    assert section.title in document.sections[0].title and any(
        note.startswith("Trust: ") for note in section.notes[-3:]
    )


@pytest.mark.parametrize("size", [None, REVIEWS])
def test_print_command_page_and_notebook_begin_with_it(counters: Any, size: FullScale | None) -> None:
    """One document: the terminal shows its first part, HTML has the rest below."""
    report = report_for_job(FakeJob(counters()), size)
    text, full = str(report), report.to_text(full=True)
    assert len(text.splitlines()) <= LINES and "MEASURED HERE" not in text
    given = ", with what else was given here;" if size else ","
    assert text.splitlines()[-1].endswith(f"--full{given} report.to_text(full=True)")
    assert full.startswith("\n".join(text.splitlines()[:-1]))
    page = report.to_html()
    for html in (page, report._repr_html_()):
        assert html.index("The answer") < html.index("Measured here") < html.index("Assumptions")
    assert page.index("Trust: ") < page.find("<figure") or "<figure" not in page
    answer = json.loads(report.to_json())["answer"]
    assert answer["instances"][0]["priced_as"] == TRN1
    assert answer["verdict"].split()[0] in text and {"modelled", "measured"} <= set(report.to_dict())


def test_long_remarks_cut_neither_what_is_left_out_nor_a_sentence_to_its_first_word(counters: Any) -> None:
    """A line on trust that ended in "Not ..." said the opposite of "Not in it: ..."."""
    found = with_findings(counters, "word " * 60, "more " * 60)
    report = report_for_counters(found, FullScale(3_600_000, 1, 0))
    assert "Not included, as not stated: preparation of the data." in str(report)
    assert shortened("It is known. Nothing follows from it.", 1, 27) == "It is known. ..."
    assert shortened("This is known; that is not known at all.", 1, 30) == "This is known; ..."
    assert shortened("This has no clause which could go.", 1, 30) == "This has no clause which ..."


def test_a_long_name_leaves_it_25_lines(counters: Any) -> None:
    """The last line breaks; where sizes or a batch were given, the job's name would give other figures."""
    name = "bert-" * 12 + "303"
    job = FakeJob(with_findings(counters, "word " * 60, "more " * 60), TrainingJobName=name)
    reports = [report_for_job(job), report_for_job(job, REVIEWS), report_for_job(job, batch=512)]
    for report in reports:
        assert len(str(report).splitlines()) <= LINES
    assert ["else was given" in str(report) for report in reports] == [False, True, True]


def test_the_instance_asked_for_stands_first(counters: Any) -> None:
    """In the report and in a comparison that names none; then trn1.32xlarge, then p4d."""
    asked = counters(instance_type=SMALL, instance_cores=2)
    reports = (
        report_for_counters(asked, REVIEWS),
        windtunnel.compare(asked, None, REVIEWS),
        windtunnel.compare(asked, [P4D, TRN1, SMALL], REVIEWS),
    )
    for report in reports:
        labels = [row.label for row in report.document().sections[0].rows]
        assert labels[0] == "trn1.2xlarge, auto-cast bf16" and len(labels) == 3
    assert [item["priced_as"] for item in reports[0].to_dict()["answer"]["instances"]] == [SMALL, TRN1, P4D]


def test_a_model_that_cores_share_has_an_answer_that_says_how_it_is_modelled() -> None:
    """By its description: the split as rehearsed, that of the others as one would run it there. 25 lines, too."""
    report = report_for_counters(split_counters(), instances=["ml.trn1.32xlarge", "ml.p4d.24xlarge"])
    text = screen_of(report)
    assert len(report.to_text().splitlines()) <= LINES
    assert "6.74 G parameters; as the script has it: 5,000 samples x 2 epochs" in text
    assert "Batch: the job's own global batch, of as many instances." in text
    assert "trn1.32xlarge, from its description: tp8 pp1 dp4, ZeRO-1, passes of 1 x 4,096" in text
    assert "FSDP, passes of 1 on p4d.24xlarge." in text and "--microbatch" not in text
    full = text_of(report)
    assert "so the step is modelled from its description" in full
    assert "From what a rehearsal counts" not in full
    assert "Tensor x pipeline x data 8 x 1 x 4 1 x 1 x 8 Passes x sequences 64 x 1 32 x 1" in full
    assert "Samples a worker" not in full
    assert report.to_dict()["answer"]["instances"][0]["samples_each"] == 64


def test_parts_of_a_step_of_a_pipeline_add_up() -> None:
    """Its bubble and its transfers have rows, too."""
    report = report_for_counters(split_counters(4, 2), instances=["ml.trn1.32xlarge"])
    full = report.to_text(full=True)
    assert "   pipeline bubble" in full and "   transfers between stages" in full


def test_a_rehearsed_job_that_does_not_fit_gets_no_options_of_other_commands() -> None:
    """Neither a cost nor what compiling it takes; a report has no options that describe a job."""
    own = {**split_counters(2, 1), "instance_type": SMALL, "instance_cores": 2}
    for counted in (own, split_counters()):
        report = report_for_counters(counted, instances=[SMALL])
        text = screen_of(report)
        assert "does not fit the memory of trn1.2xlarge" in text
        assert "--nodes" not in text and "--zero" not in text and "windtunnel plan" not in text
        assert "to compile on" not in text
        assert report.cost_line(SMALL) is None


def test_an_instance_on_which_it_cannot_run_lacks_no_price() -> None:
    """A part of a node's cores that makes no whole copies."""
    report = report_for_counters(split_counters(8, 3), instances=[TRN1, P4D])
    text = screen_of(report)
    assert "No winner: the job runs on p4d.24xlarge, but cannot run on trn1.32xlarge." in text


def test_an_instance_that_cannot_be_modelled_stands_above_the_verdict(counters: Any) -> None:
    """In a note of its own, which names it first: at the end of the note on the batch nobody found it."""
    report = windtunnel.compare(counters(), [TRN1, "ml.inf2.xlarge"], REVIEWS)
    missing, verdict, *_ = report.document().sections[0].notes
    assert missing.startswith("NOT MODELLED: ml.inf2.xlarge is not calibrated") and "..." not in missing
    assert verdict.startswith("No winner: trn1.32xlarge is the only one modelled. Name other instances")
    assert "NOT MODELLED" not in report.screen.batch


def test_a_small_job_gets_its_dollars_and_no_verdict(counters: Any) -> None:
    """The first user's: what it costs, why nothing is said, what would make an answer."""
    section, *others = report_for_counters(counters(samples=32, steps=1)).document().sections
    assert all(re.match(r"\$[\d.]+ \(\$", row.cells[2]) for row in section.rows)
    assert section.notes[0].startswith("No winner, as the job is too small: on trn1.32xlarge")
    assert "full_scale=FullScale(train_samples=...)" in section.notes[0] and "least" not in section.notes[0]
    assert {row.style for row in section.rows} == {"normal"}
    verdicts = next(part for part in others if part.title == "Neuron instances against GPUs")
    assert {row.cells[-1] for row in verdicts.rows if row.cells} <= {"too small", "outside"}


def test_a_script_that_runs_as_one_process_is_told_so(counters: Any) -> None:
    """Its samples are those that it takes, not as many on each core; what is priced is not the script as it is."""
    loader = {**LOADER, "batches": 300_000, "bound": 300_000, "split": False}
    short = {"rehearsed_steps": 16, "ended_early": True, "loaders": [loader]}
    given = counters(instance_type="ml.trn1.2xlarge", instance_cores=2, local_cores=2, input=short)
    one = {**given, "world_size": 1, "cores_used": 1}
    shown = report_for_counters(one).to_dict()["answer"]
    assert "as the script has it, over all cores: 1,200,000 samples" in shown["job"]
    evaluation = {**LOADER, "line": "train.py:20", "batches": 500, "trains": False, "split": False}
    seen = {**short, "loaders": [loader, evaluation]}
    evaluated = report_for_counters({**one, "input": seen}).to_dict()["answer"]["job"]
    assert (
        "2,000 evaluated" in evaluated and "by each worker" not in evaluated
    )  # shared out, as its training is
    assert shown["change"][0].startswith("one process runs, so one core works but all are billed")
    assert "2 on trn1.2xlarge, 32 on trn1.32xlarge, 8 on p4d.24xlarge" in shown["change"][0]
    text = screen_of(report_for_counters(one))
    assert "torch_distributed, or xmp.spawn's NEURONCORE_NUM_DEVICES" in text
    # Fewer cores on purpose, and as many processes as cores.
    for meant in ({**one, "local_cores": 1}, given):
        other = report_for_counters(meant).to_dict()["answer"]
        assert "as the script has it: 2,400,000 samples" in other["job"]
        assert not any("one process" in text for text in other["change"])


def test_a_job_of_unknown_size_has_no_cost_in_a_line(counters: Any) -> None:
    """That of the whole job is not known, and that of the steps which ran is nobody's."""
    for loaders, is_known in (([], False), ([{**LOADER, "batches": 300_000, "split": True}], True)):
        report = report_for_counters(counters(input={"rehearsed_steps": 16, "loaders": loaders}))
        assert (report.cost_line(TRN1) is not None) is is_known


def test_an_evaluation_that_no_sampler_shares_out_is_modelled_so(counters: Any) -> None:
    """Also of a sample that ran whole, unless the caller says otherwise; and the size says it."""
    training, evaluation = {**LOADER, "split": True}, {**LOADER, "line": "train.py:20", "trains": False}

    def told(split: bool, **said: Any) -> tuple[Any, bool]:
        given = counters(input={"loaders": [training, {**evaluation, "split": split}]})
        size = FullScale(1_281_167, epochs=90, evaluation_samples=50_000, **said)
        shown = report_for_counters(given, size).to_dict()
        return shown["modelled"]["full_scale"]["evaluation_split"], "by each worker" in shown["answer"]["job"]

    assert told(split=False) == told(split=True, evaluation_split=False) == (False, True)
    assert told(split=True) == told(split=False, evaluation_split=True) == (True, False)
    # As it ran: two cores evaluated 160 samples, which are 80 if each went through all of them.
    for split, samples in ((True, 160), (False, 80)):
        as_it_ran = counters(input={"loaders": [training, {**evaluation, "split": split}]})
        size = Workload.from_counters(as_it_ran).sized(None)
        assert (size.evaluation_samples, size.evaluation_split) == (samples, split)
        text = screen_of(report_for_counters(as_it_ran))
        assert f"{samples} evaluated" in text and ("by each worker" in text) == (not split)


@pytest.mark.parametrize(("split", "said"), [(False, ", with no sampler to share them out"), (True, "")])
def test_samples_that_no_sampler_shares_out_are_said_to_be(counters: Any, split: bool, said: str) -> None:
    """Else their number, which is once the script's for each core, contradicts the script."""
    loader = {**LOADER, "batches": 500, "split": split}
    short = {"rehearsed_steps": 16, "ended_early": False, "loaders": [loader]}
    given = counters(instance_type="ml.trn1.2xlarge", instance_cores=2, local_cores=2, input=short)
    shown = report_for_counters(given).to_dict()["answer"]
    assert f"as the script has it{said}: 4,000 samples x 1 epoch" in shown["job"]
    told = [text for text in shown["change"] if "make as many steps as trn1.2xlarge" in text]
    assert len(told) == (not split)


def test_a_run_for_the_compiler_alone_has_no_price(counters: Any) -> None:
    """neuron_parallel_compile's steps are no training; a training beside it is priced."""
    ran = {"script": "train.py", "world_size": 2, "steps": 5, "training_steps": 5}
    both = [{**ran, "trial": False}, {**ran, "trial": True}]
    assert report_for_counters(counters(programs=both)).comparison is not None
    alone = report_for_job(FakeJob(counters(programs=both[1:])))
    assert alone.comparison is None and "for its graphs alone" in str(alone)


def test_a_small_job_of_a_known_size_is_not_asked_for_its_size() -> None:
    """Its loaders have told it: the advice to give the real one leads nowhere."""
    few = FullScale(100, 1)
    job = replace(rehearsed(), found=few)
    found = screen(compare(job, [TRN1, P4D]), job, None, PriceBook())
    assert "the job is too small" in found.verdict and found.verdict.endswith("A longer job has one.")
    assert "FullScale(" not in found.verdict


def test_a_size_that_the_rehearsal_could_not_tell_is_asked_for() -> None:
    """By name, with the reason, and without a winner; what it found is taken, what is stated comes first."""
    open_ = replace(rehearsed(), found="the loader of train.py:9 does not tell its length")
    shown = screen(compare(open_, [TRN1, P4D]), open_, None, PriceBook())
    assert shown.verdict.startswith(
        "No answer, as the size of the whole job is not known: the loader of train.py:9"
    )
    assert "FullScale(train_samples=...)" in shown.verdict
    assert shown.answer is not None and shown.answer.winner is None
    long = replace(open_, samples=3_000_000)  # by itself no job that is too small
    comparison = compare(long, [TRN1, P4D])
    assert {found.obstacle for found in answers(comparison)} == {"size"} and not comparison.verdicts
    assert compare(replace(long, found=None), [TRN1, P4D]).verdicts
    stated = screen(compare(open_, [TRN1, P4D], LONG), open_, LONG, PriceBook()).answer
    assert stated is not None and stated.winner is not None
    told = replace(rehearsed(), found=LONG)
    seen = screen(compare(told, [TRN1, P4D]), told, None, PriceBook())
    assert "as the script has it: 30,000,000 samples" in seen.job
    assert seen.answer is not None and seen.answer.winner is not None


def test_a_stated_size_leaves_known_that_the_rehearsal_read_texts() -> None:
    """It saw batches of token numbers, whatever number of samples the real job has."""
    job = replace(rehearsed(), found=FullScale(640, 3, sequence_length=64))
    for size in (None, FullScale(3_600_000)):
        assert (
            "preparation of the data (tokenising)" in first(compare(job, [TRN1], size), job, size).notes[-1]
        )


def test_outside_the_range_it_says_what_would_make_a_verdict() -> None:
    """A larger batch where that does; else a published throughput. Never a winner."""
    less = rehearsed(flops=8e11, samples=3.0)
    section = first(compare(less, [TRN1, P4D], LONG), less, LONG)
    batch = re.search(r"With --batch (\d+) p4d.24xlarge costs least, ", section.notes[0])
    begin = "No winner: the job is outside the range of trn1.32xlarge (work of a step"
    assert section.notes[0].startswith(begin) and batch
    near = rehearsed()
    assert any("outside of it no error is known" in note for note in section.notes)
    assert "beyond it" not in " ".join(first(compare(near, [TRN1, P4D], LONG), near, LONG).notes)
    assert all(e.range_check.inside for e in compare(less, [TRN1, P4D], LONG, batch=int(batch[1])).estimates)
    other = rehearsed(parameters=1e6)
    assert (
        "No other batch was found that lies inside."
        in first(compare(other, [TRN1, P4D], LONG), other, LONG).notes[0]
    )


def test_all_quantities_outside_are_named_the_farthest_with_its_range() -> None:
    """The same quantity is outside of two ranges on two chips: it is named once, both chips are."""
    job = Workload.transformer("GPT3-175B", sequence_length=16384, global_batch=1024)
    found = compare(job, [(TRN1, 64), (P4D, 64)], LONG)
    note = " ".join(first(found, job, LONG).notes[0].split())
    assert (
        "range of trn1.32xlarge x 64 (sequences of eager attention 16,384 tokens, calibrated from 1 token to 2,048 "
        "tokens; also sequence length, cluster size, pipeline parallelism" in note
    )
    short = rehearsed(flops=8e9, samples=3.0)
    note = first(compare(short, [TRN1, P4D], LONG), short, LONG).notes[0]
    assert note.count("work of a step") == 1 and "also" not in note
    assert ") and of p4d.24xlarge. " in note


def test_one_instance_outside_hides_no_answer_between_the_others() -> None:
    """It is named, with its value and range, and the others' cheapest has the probability that it has without it."""
    job = Workload.transformer("BERT-Base-Uncased", sequence_length=128, global_batch=256)
    size = FullScale(3_600_000)
    pair, three = (screen(compare(job, names, size), job, size, PriceBook()) for names in (PAIR, [*PAIR, P5]))
    assert pair.answer is not None
    assert three.verdict.startswith(
        "No winner: the job is outside the range of p5.48xlarge (sequence length 128 tokens, "
        "calibrated from 197 to 65,536 tokens). Of the others p4d.24xlarge costs least (with a "
        f"compile cache), {probability(pair.answer.probability)}. "
    )
    alone = screen(compare(job, [TRN1, P5], size), job, size, PriceBook()).verdict
    assert "outside the range of p5.48xlarge" in alone and "Of the others" not in alone


@pytest.mark.parametrize(
    ("job", "option"),
    [
        (rehearsed(flops=6.74e10, samples=1.0), r"--batch (544|576|608)"),  # 17 to 19 samples a core
        (rehearsed(SMALL, 4.25e13), r"--batch-per-device \d"),  # no batch is for all
    ],
)
def test_a_batch_that_few_others_are_like_is_found(job: Workload, option: str) -> None:
    """No batch inside was said to be found, where one was."""
    names = [SMALL, TRN1, P4D]
    found = screen(compare(job, names, LONG), job, LONG, PriceBook())
    said = re.search(rf"With ({option}) (\S+) costs least, ", found.verdict)
    assert said
    number = int(said[1].split()[1])
    with_it = compare(job, names, LONG, batch=PerDevice(number) if "device" in said[1] else number)
    best = answers(with_it)[-1].winner
    assert best is not None and with_it.estimates[best].name.endswith(said.groups()[-1])


def test_it_names_no_batch_of_other_passes_than_those_described() -> None:
    """Passes of 16,384 tokens lie outside. Half a pass less would not, and is none that a script of this has."""
    job = Workload.transformer("Llama-3.1-8B", microbatch=2, gradient_accumulation=4)
    size = FullScale(100_000)
    note = first(compare(job, [TRN1, P4D], size), job, size).notes[0]
    assert "tokens of a microbatch 16,384" in note
    assert "No other batch was found that lies inside." in note


def test_it_names_no_batch_with_which_an_instance_left_out_has_no_verdict() -> None:
    """At the batch of 8 trn1 cannot run at all; at 64 it would, but outside of the calibrated range."""
    chosen = ["trn1", "g6e", "p4d"]
    job = Workload.transformer("ViT-Base", global_batch=8)
    note = first(compare(job, chosen, LONG), job, LONG).notes[1]
    batch = re.search(r"With --global-batch (\d+) \S+ costs least, ", note)
    assert batch
    job = Workload.transformer("ViT-Base", global_batch=int(batch[1]))
    found = compare(job, chosen, LONG)
    assert not found.not_possible and answers(found)[-1].obstacle is None


def test_one_very_slow_instance_does_not_set_the_unit_of_all() -> None:
    """In the years of trn1.2xlarge the hours of 64 p5 were 0.011."""
    job = Workload.transformer("Llama-3.2-1B", global_batch=1024)
    size = FullScale(200_000_000)
    rows = first(compare(job, [("p5", 64), ("p5", 32), "trn1.2xlarge"], size), job, size).rows
    assert [row.cells[1].partition("(")[0].split()[1] for row in rows] == ["h", "h", "years"]


def test_instances_modelled_by_specification_are_told_by_their_number() -> None:
    """One has its specification, two have theirs."""
    job = Workload.transformer("BERT-Base", global_batch=1024)
    notes = {
        names: " ".join(first(compare(job, list(names), LONG), job, LONG).notes)
        for names in (("g5", "g6e"), ("trn2",), ("g5", "trn2"))
    }
    assert "Trust: g5, g6e by their specifications alone" in notes["g5", "g6e"]
    assert "Trust: trn2 by its specification alone, so with a wide interval." in notes["trn2",]
    assert "Trust: g5, trn2 by their specifications alone" in notes["g5", "trn2"]


def test_an_upload_of_one_copy_needs_no_fewer_checkpoints() -> None:
    """Only a size that the user states may hold several."""
    job = Workload.transformer("GPT3-175B", global_batch=1024)
    found = compare(job, [(TRN1, 64), (P4D, 64)], FullScale(3000))
    shown = screen(found, job, FullScale(3000), PriceBook())
    assert shown.largest[0].startswith("upload, ") and "checkpoints" not in shown.largest[0]
    stated = FullScale(3000, model_gib=3000.0)
    shown = screen(compare(job, [(TRN1, 64), (P4D, 64)], stated), job, stated, PriceBook())
    assert "keep fewer checkpoints" in shown.largest[0]


@given(
    flops=st.floats(1e11, 1e15),
    samples=st.sampled_from([1.0, 8.0, 64.0]),
    asked=st.sampled_from([TRN1, SMALL]),
    parameters=st.sampled_from([1e6, 2e8]),
    size=st.sampled_from([FullScale(100_000), LONG]),
)
@settings(max_examples=30)
def test_the_batch_that_it_names_makes_a_verdict(
    flops: float, samples: float, asked: str, parameters: float, size: FullScale
) -> None:
    """As whoever follows it sees; and none is named only where none of the usual ones does."""
    job = rehearsed(asked, flops, parameters, samples=samples)
    found = screen(compare(job, [TRN1, P4D], size), job, size, PriceBook())
    if found.answer is None or found.answer.obstacle != "outside":
        return
    said = re.search(r"With --batch (\d+) \S+ costs least", found.verdict)
    for batch in [int(said[1])] if said else [2**power for power in range(5, 14)]:
        other = compare(job, [TRN1, P4D], size, batch=batch)
        assert (answers(other)[-1].obstacle is None) == bool(said)


def test_the_batch_of_one_of_them_is_tried_for_all() -> None:
    """A job of two cores: 8 samples on each of trn1's 32 are too few on each GPU, whose batch is another."""
    job = rehearsed(SMALL, 1.5e12, 1.5e8)
    found = screen(compare(job, [TRN1, P4D], LONG), job, LONG, PriceBook())
    with_it = compare(job, [TRN1, P4D], LONG, batch=256)
    best = answers(with_it)[-1].winner
    assert best is not None
    name = with_it.estimates[best].name.removeprefix("ml.")
    assert (
        f"With --batch 256 {name} costs least, {probability(answers(with_it)[-1].probability)}."
        in found.verdict
    )


@pytest.mark.parametrize(
    ("job", "names", "option"),
    [
        (rehearsed(SMALL), [SMALL, TRN1, P4D], "256"),  # 16, 256 and 64 samples
        (Workload.from_counters(COUNTERS), [TRN1, P4D], "per-device"),  # 256 each
    ],
)
def test_a_winner_that_the_default_batch_makes_is_said_to_be_one(
    job: Workload, names: list[str], option: str
) -> None:
    """Beside the other one, with what the command line takes to see it."""
    seen = screen(compare(job, names, LONG), job, LONG, PriceBook())
    assert seen.answer is not None and seen.answer.winner is not None
    said = re.findall(rf"With [^(:]* \(--batch {option}\): (\S+), (\d+) %, outside the calibr", seen.verdict)
    rule: Any = int(option) if option.isdecimal() else "per_device"
    found = compare(job, names, LONG, batch=rule)
    other = answers(found)[-1].decided
    assert other.cheapest is not None and other.cheapest != seen.answer.winner
    assert said == [
        (found.estimates[other.cheapest].name.removeprefix("ml."), probability(other.probability)[:-2])
    ]


def test_a_batch_that_makes_no_other_winner_is_not_named() -> None:
    """Nor one that the user has not chosen beside the one that is."""
    for job, names, rule in (
        (rehearsed(SMALL, 8e12), [SMALL, TRN1], "rehearsed"),
        (rehearsed(SMALL), [SMALL, TRN1, P4D], "per_device"),
        (Workload.transformer("BERT-Large", microbatch=16), [SMALL, TRN1, P4D], "rehearsed"),
    ):
        found = compare(job, names, LONG, batch=rule)  # type: ignore[arg-type]  # names of rules
        assert "(--batch" not in screen(found, job, LONG, PriceBook()).verdict


def test_the_winner_is_in_the_table_however_many_there_are() -> None:
    """Seven rows at most: the one that the job asked for, and who costs least."""
    job = rehearsed()
    names: list[str | tuple[str, int]] = [
        "ml.trn1n.32xlarge",
        *((TRN1, count) for count in (1, 2, 4, 8, 16, 32, 64)),
        "p4d.24xlarge",
    ]
    comparison = compare(job, names, LONG)
    found = answers(comparison)[-1]
    assert found.winner == len(names) - 1
    rows = first(comparison, job, LONG).rows
    assert rows[0].label == "trn1.32xlarge, auto-cast bf16" and rows[-2].style == "total"
    shown = screen(comparison, job, LONG, PriceBook())
    assert answer_data(shown, comparison)["winner_instance_count"] == 1
    assert size_words(FullScale(1)) == "1 sample x 1 epoch"
    # Of a rehearsal it is an average: 18 epochs, and once more at the end, evaluate 19 times.
    evaluated = FullScale(8, epochs=18, evaluation_samples=5_269)
    assert size_words(evaluated) == "8 samples x 18 epochs, 5,269 evaluated an epoch"
    assert rows[-2].label.startswith("p4d.24xlarge on EC2") and rows[-1].label == "and 3 more"


@given(
    instances=st.permutations(
        ["ml.trn1.32xlarge", "p4d.24xlarge", "p5.48xlarge", "trn2.48xlarge", "p4de.24xlarge"]
    )
)
@settings(max_examples=10, deadline=None)
def test_all_that_were_named_are_on_the_screen_and_the_trust_in_them(instances: list[str]) -> None:
    """Five; what a compile cache would save goes before one of them, and most notes are cut before trust."""
    size = FullScale(250_000)
    described = Workload.transformer("Llama-3.1-8B", global_batch=1024)
    section = first(compare(described, instances, size), described, size, lines=1)
    rows = [row.label for row in section.rows if row.style != "detail"]
    assert {row.split(",")[0].split(" ")[0] for row in rows} == {
        name.removeprefix("ml.") for name in instances
    }
    [trust] = [note for note in section.notes if note.startswith("Trust:")]
    assert "on trn1" in trust and "on p4d (A100)" in trust


def test_the_verdict_keeps_its_probability_beside_many_instances() -> None:
    """Seven rows, of which four have no price. Other notes are cut before it."""
    names = [TRN1, SMALL, P4D, "ml.p5.48xlarge", "ml.trn2.48xlarge", "ml.g5.48xlarge", "ml.p4de.24xlarge"]
    size = FullScale(3_000_000)
    described = Workload.transformer("BERT-Base", sequence_length=128, microbatch=32)
    section = first(compare(described, names, size, on=date(2025, 1, 1)), described, size)
    assert " of the 3 with a price (with a compile cache) with" in section.notes[0]
    assert re.search(r"\d % probability\. At \$", section.notes[0]) and section.notes[0].endswith(".")


def test_instances_with_the_same_passes_share_the_words() -> None:
    """``passes of 32 on A, B, C``."""
    job = Workload.transformer("BERT-Base", sequence_length=128, global_batch=1024)
    names = [TRN1, P4D, "ml.p5.48xlarge"]
    shown = screen(compare(job, names, LONG, instance_count=2), job, LONG, PriceBook())
    assert re.search(r"fits: passes of \d+ on trn1.32xlarge x 2(; passes of \d+ on|,) p4d", shown.batch)
    assert "p4d.24xlarge x 2, p5.48xlarge x 2" in shown.batch


def test_whom_the_verdict_names_is_in_the_table() -> None:
    """The instance that costs least beyond a price, too: p4d stands last but one of seven."""
    g6e, g5 = "ml.g6e.48xlarge", "ml.g5.12xlarge"
    names: list[str | tuple[str, int]] = [(TRN1, 16), g6e, "trn1.32xlarge", g5, SMALL, (P4D, 2), (TRN1, 2)]
    job, size = Workload.transformer("Llama-3.1-8B", global_batch=32), FullScale(10_000_000)
    section = first(compare(job, names, size), job, size, lines=4)
    named = re.findall(r"\w+\.\w+(?: x \d+| on EC2)?", section.notes[0].replace("$", ""))
    assert {name for name in named if "xlarge" in name} <= {row.label for row in section.rows}
    assert "p4d.24xlarge x 2 costs least." in section.notes[0] and section.rows[-1].label.endswith(" more")


def test_only_a_terminal_cuts_the_answer() -> None:
    """A page and a comment in Markdown have every row and every note in full."""
    names: list[str | tuple[str, int]] = [SMALL, P4D, *((TRN1, count) for count in (1, 2, 4, 8, 16, 32, 64))]
    report = windtunnel.compare(rehearsed(), names, LONG)
    text, page, comment = str(report), as_page(report.document()), report.to_markdown()
    assert "and 3 more" in text and "and 3 more" not in page + comment
    assert "trn1.32xlarge x 64" not in text and "trn1.32xlarge x 64" in page
    assert " ..." in text
    for words in (report.screen.batch, report.screen.prices, report.screen.left_out):
        assert escape(words).replace(" %", "&nbsp;%") in page
    assert " ..." not in page + comment


def test_a_longer_job_is_promised_a_verdict_only_where_it_has_one() -> None:
    """Not outside of the calibrated range."""
    few = FullScale(100, sequence_length=128)
    for parameters, promised in ((3e8, True), (1e6, False)):
        job = rehearsed(parameters=parameters)
        found = screen(compare(job, [TRN1, P4D], few), job, few, PriceBook())
        assert "the job is too small" in found.verdict
        assert ("A longer job has one." in found.verdict) == promised
        obstacle = answers(compare(job, [TRN1, P4D], LONG))[-1].obstacle
        assert (obstacle is None) == promised


def test_another_precision_is_that_of_each_number_of_instances() -> None:
    """Two numbers of one type have one name, and an estimate each."""
    job, found = rehearsed(), []
    for pair in ([(P4D, 1), (P4D, 8)], [(P4D, 8), (P4D, 1)]):
        comparison = compare(job, [TRN1, *pair], LONG)
        found.append(list(otherwise(comparison, answers(comparison)[-1])))
    assert found[0] and found[0] == found[1]


def test_the_price_at_which_it_turns_is_on_its_side_of_the_price_now() -> None:
    """$25.30 in two digits would lie below $25.251286."""
    price = PriceBook().price(P4D)
    assert price.usd_per_hour == 25.251286
    texts = [turning(BreakEven(usd, usd, usd, 0), price) for usd in (38.2, 25.3, 25.252, 25.2, 25.251286)]
    assert texts == ["$38", "$25.3", "$25.3", "$25", "$25.25"]


def test_what_is_too_close_to_call_has_less_than_90_percent() -> None:
    """And it is said where another one is likelier, whose interval is the wider one."""
    assert [probability(chance) for chance in (0.894, 0.8999, 0.9, 0.99)] == ["89 %", "89 %", "90 %", "99 %"]
    job = rehearsed(flops=3.88e12, parameters=1.547e8)
    comparison = compare(job, [TRN1, P4D], LONG)
    found = answers(comparison)[-1]
    assert found.winner is not None
    other = 1 - found.winner

    def text_with(chance: float) -> str:
        likelier = replace(
            found.whole, probabilities=tuple(1 - chance if i != other else chance for i in range(2))
        )
        close = replace(found, whole=likelier, decided=likelier)
        return _verdict(comparison, close, job, LONG, PriceBook())

    text = text_with(0.55)
    assert (
        text.startswith("Too close to call: ")
        and " 45 % probability; " in text
        and " does with 55 %." in text
    )
    assert " with 50 % probability. " in text_with(0.501)  # and not: only with 50 %, the other does with 50 %


def test_the_winner_has_its_probability_and_the_price_at_which_it_turns() -> None:
    """Too close to call below 90 %; bold in the table; the break-even of the decision."""
    job = rehearsed()
    comparison = compare(job, [TRN1, P4D], LONG)
    shown = screen(comparison, job, LONG, PriceBook())
    found = shown.answer
    assert found is not None and found.winner is not None
    assert f"{round(100 * (found.probability or 0))} % probability" in shown.verdict or found.clear
    assert shown.verdict.startswith("Too close to call: ") != found.clear
    assert " At $" in shown.verdict and "an hour of" in shown.verdict
    four = screen(compare(rehearsed(), [(TRN1, 4), (P4D, 4)], LONG), rehearsed(), LONG, PriceBook()).verdict
    assert re.search(r"At \$[\d.]+ an hour of each (trn1\.32|p4d\.24)xlarge \(now \$2[45]\.", four)
    assert [row.style for row in answer_section(shown, comparison).rows].index("total") == found.winner


def test_compile_time_stands_beside_the_answer() -> None:
    """It is named where it is in the bill, and said to have decided nothing where it would have."""
    job, hours = rehearsed(compiled=1e12), rehearsed(compiled=1e16)
    assert (
        "In it: 200 s to compile on trn1.32xlarge the first time; cached afterwards."
        in first(compare(job, [TRN1, P4D], LONG), job, LONG).notes
    )
    bert = Workload.transformer("BERT-Base-Uncased", sequence_length=128, global_batch=256)
    told = screen(compare(bert, [SMALL, TRN1, P4D], LONG), bert, LONG, PriceBook())
    assert re.match(
        r"In it: (\S+ \w+) to compile on trn1.2xlarge, (?!\1)\S+ \w+ on trn1.32xlarge the", told.compiling
    )
    comparison = compare(hours, [TRN1, P4D], SHORT, on=compare(hours, [TRN1, P4D], SHORT).costs[0][0])
    told = screen(comparison, hours, SHORT, PriceBook())
    assert told.compiling.endswith("cached afterwards, and decides nothing.")
    assert "trn1.32xlarge costs least (with a compile cache)" in told.verdict
    trn1, cached, p4d = answer_section(told, comparison).rows
    usd = [
        float(re.sub(r"^\$([\d,.]+) .*", r"\1", row.cells[2]).replace(",", "")) for row in (trn1, cached, p4d)
    ]
    assert usd[0] > usd[2] > usd[1]  # the verdict is of what stands above it


def test_what_to_change_is_the_worst_found_or_what_most_of_the_bill_is(counters: Any) -> None:
    """Two things: findings first, each with what to do, then parts of the bill."""
    found = counters()
    common = {"kind": "host_read", "advice": "Use a closure.", "count": 1, "seconds": 1.0}
    found["diagnostics"] = [
        {**common, "severity": "note", "line": "a.py:1", "message": "one."},
        {**common, "severity": "error", "line": "b.py:2", "message": f"two. {'Why. ' * 90}"},
        {**common, "severity": "warning", "line": "c.py:3", "message": "three."},
    ]
    notes = report_for_counters(found, REVIEWS).document().sections[0].notes
    assert [note for note in notes if note.startswith("To change")] == [
        "To change: b.py:2: two. Use a closure.",
        "To change: c.py:3: three. Use a closure.",
    ]
    text = screen_of(report_for_counters(COUNTERS, REVIEWS))
    assert "host, 76 ms of a step's 150 ms on trn1.32xlarge" in text


def test_what_this_machine_took_to_compile_is_nothing_to_change(counters: Any) -> None:
    """Such a finding says itself that trn1 needs no change; its place goes to the next one."""
    found = counters()
    slow = for_graphs.slow_compile(294.0, "")
    assert slow is not None
    found["diagnostics"] = [
        {
            "kind": slow.kind,
            "severity": slow.severity,
            "line": slow.line,
            "message": slow.message,
            "seconds": 294.0,
        },
        {
            "kind": "host_read",
            "severity": "note",
            "line": "b.py:2",
            "message": "two.",
            "advice": "Use a closure.",
        },
    ]
    notes = report_for_counters(found, REVIEWS).document().sections[0].notes
    assert [note for note in notes if note.startswith("To change")] == [
        "To change: b.py:2: two. Use a closure."
    ]


def test_prices_have_region_and_date_in_a_line(counters: Any) -> None:
    """Of each instance; the day asked for replaces the newest."""
    (line,) = [
        note for note in report_for_counters(counters(), REVIEWS).document().sections[0].notes
        if note.startswith("Prices: ")
    ]  # fmt: skip
    assert "us-east-1 2022-10-10" in line and "p4d.24xlarge: us-west-2 2025-06-01" in line
    dated = windtunnel.compare(counters(), None, REVIEWS, on=before_the_reduction()).screen.prices
    assert dated.startswith("Prices: SageMaker on-demand us-east-1 2022-10-10.")
    mixed = windtunnel.compare(counters(), [TRN1, "p4d.24xlarge"], REVIEWS).screen.prices
    assert "p4d.24xlarge on EC2: EC2 on-demand us-east-1 2025-06-01" in mixed


def test_a_price_that_the_user_stated_is_named_by_its_instance(counters: Any) -> None:
    """However many are: the price of the job's own instance, which comes first, must not seem to be stated."""
    names = [TRN1, P5, "ml.p5en.48xlarge", "ml.g5.48xlarge"]
    book = PriceBook().stating({P5: 40.0, "ml.g5.48xlarge": 10.0}, date(2026, 1, 1))
    words = windtunnel.compare(counters(), names, REVIEWS, prices=book).screen.prices
    assert words.startswith("Prices: SageMaker on-demand us-east-1 2022-10-10; p5en.48xlarge: us-")
    assert "; p5.48xlarge, g5.48xlarge: as you state it." in words
    book = PriceBook().stating({P5: 40.0}, date(2026, 1, 1))
    words = windtunnel.compare(counters(), [P5], REVIEWS, prices=book).screen.prices
    assert words.startswith("Prices: SageMaker on-demand as you state it.")


def test_a_price_that_has_ended_says_so() -> None:
    """Its days alone do not; for a day on which it held it is as any other."""
    job = windtunnel.Workload.transformer("Llama-3.1-8B", global_batch=1024)
    book = PriceBook().buying("EC2 Capacity Block")
    held = "ap-southeast-4 2024-10-01 to 2025-01-01"
    for day, said in (
        (None, f"{held}, ended"),
        (date(2024, 12, 1), held),
        (date(2025, 2, 1), f"{held}, ended"),
    ):
        report = windtunnel.compare(job, [TRN1], LONG, prices=book, on=day)
        assert f" {said}. Blocks" in report.screen.prices
        plans = windtunnel.plan("Llama-3.1-8B", "trn1", prices=book, on=day, nodes=(8,))
        assert f" {said}. Blocks" in screen_of(plans)


def test_each_first_screen_says_whose_prices_it_has(counters: Any) -> None:
    """In the table's corner; where both are, the names say it, and no price of SageMaker stands after EC2's."""
    for names, said in (([SMALL, TRN1], "SageMaker prices"), (["trn1.2xlarge", "p5.48xlarge"], "EC2 prices")):
        report = windtunnel.compare(counters(), names, REVIEWS)
        assert report.document().sections[0].label_header == said and f" {said} " in str(report)
    both = windtunnel.compare(counters(), [SMALL, "trn1.2xlarge", P4D, P5], REVIEWS)
    assert both.document().sections[0].label_header == ""
    assert re.search(r"; trn1\.2xlarge on EC2: EC2 on-demand us-east-1 2022-10-10\.", both.screen.prices)


def test_a_price_in_a_sentence_is_in_cents(counters: Any) -> None:
    """Beside a break-even of two digits; its table has all digits."""
    report = windtunnel.compare(rehearsed(), [TRN1, P4D], LONG)
    assert re.search(r"\(now \$\d\d\.\d\d[,)]", report.screen.verdict)
    assert "$25.251286" in report.to_text(full=True) and "25.251286" not in str(report)


def before_the_reduction() -> date:
    """Before p4d's price fell."""
    return date(2024, 5, 1)


def test_capacity_blocks_that_turn_the_answer_are_on_the_first_screen() -> None:
    """With their date; an offering without a price of today's cheapest turns nothing."""
    job = rehearsed()
    early = compare(job, [TRN1, P4D], LONG, on=before_the_reduction())
    (decided,) = [found.decided for found in answers(early)]
    book = PriceBook().at(date(2024, 10, 1))
    blocks = dict(by_offering(early.estimates, book))["EC2 Capacity Block"]
    line = screen(compare(job, [TRN1, P4D], LONG, prices=book), job, LONG, book).prices
    turned = blocks.decided.cheapest != decided.cheapest
    assert ("At EC2 Capacity Block prices of 2024-10-01 p4d.24xlarge" in line) == turned
    only = screen(compare(job, [SMALL, P4D], LONG), job, LONG, PriceBook())
    if only.answer is not None and only.answer.decided.cheapest == 0:
        assert "Capacity Block" not in only.prices


def cheap_p4d() -> PriceBook:
    """Dear on SageMaker, and cheap on EC2 since before a p5 had a price."""
    book = PriceBook()
    own = [replace(book.price(name), usd_per_hour=usd) for name, usd in ((P4D, 99.0), ("p4d.24xlarge", 2.0))]
    return PriceBook([*own, book.price("p5.48xlarge")])


def test_each_way_to_buy_the_hour_has_its_newest_prices() -> None:
    """Those of Capacity Blocks change after SageMaker's, and some instances have no other."""
    job = windtunnel.Workload.transformer("Llama-3.1-8B", global_batch=1024)
    size = FullScale(1_000_000)
    newest = PriceBook().price("p5.48xlarge", offering="EC2 Capacity Block")
    assert newest.effective_from > PriceBook().price(P4D).effective_from
    report = windtunnel.compare(job, [TRN1, P4D, "ml.p5.48xlarge", "ml.trn2.48xlarge"], size)
    (ways,) = [part for part in report.document().sections if part.title == "Ways to buy the hour"]
    blocks = next(row for row in ways.rows if row.label == "EC2 Capacity Block")
    assert blocks.cells[2].startswith(f"${newest.usd_per_hour:g}:") and "no price" not in blocks.cells
    alone = windtunnel.compare(job, ["ml.p5.48xlarge", "ml.trn2.48xlarge"], size)
    assert re.search(
        r"derived\. At EC2 Capacity Block prices of 2026-05-01 \S+ costs least \(with a compile cache\) \(\$[\d,]+\), "
        r"\d\d %, though blocks are sold by whole days\.$",
        alone.screen.prices,
    )
    alone = windtunnel.compare(job, ["ml.p4d.24xlarge", "p5.48xlarge"], size, prices=cheap_p4d())
    assert alone.screen.prices.endswith(
        "At EC2 on-demand prices of 2025-06-01 p4d.24xlarge costs least ($200), over 99 %."
    )
    before = windtunnel.compare(job, [TRN1, P4D, "ml.p5.48xlarge"], size, on=date(2025, 1, 1))
    assert "At EC2 Capacity Block prices of 2024-10-01 p5.48xlarge costs least" in before.screen.prices


def test_no_way_to_buy_the_hour_costs_anything_where_the_job_does_not_fit() -> None:
    """The price of an hour stays; the instance that has room has its cost."""
    job = windtunnel.Workload.transformer(
        "Llama2-13B", tensor_parallel=8, recompute="selective", microbatch=1, global_batch=1024
    )
    report = windtunnel.compare(job, [(TRN1, 4), ("ml.p5.48xlarge", 4)], FullScale(1_000_000))
    assert [item.fits for item in report.comparison.estimates] == [False, True]
    (ways,) = [part for part in report.document().sections if part.title == "Ways to buy the hour"]
    for row in ways.rows:
        assert re.fullmatch(r"no price|\$[\d.]+: does not fit", row.cells[0]), row
        assert re.fullmatch(r"no price|\$[\d.]+: \$[\d,]+", row.cells[1]), row


def test_each_way_to_buy_the_hour_costs_what_the_job_takes() -> None:
    """Also where compile time would turn who is cheapest, and that is decided without it."""
    early = PriceBook().at(date(2023, 1, 1))
    report = windtunnel.compare(rehearsed(compiled=1e16), [TRN1, P4D], SHORT, prices=early)
    (ways,) = [part for part in report.document().sections if part.title == "Ways to buy the hour"]
    found = {str(offering): result for offering, result in by_offering(report.comparison.estimates, early)}
    assert any(result.without_compile for result in found.values())
    for row in ways.rows:
        whole = found[row.label].whole.costs
        assert [cell.partition(": ")[2] for cell in row.cells[:2]] == [
            dollars(cost.usd) for cost in whole if cost is not None
        ]
    assert (
        "Cheapest without compile time, which never decides: SageMaker training on-demand" in ways.notes[-1]
    )


def test_no_percentage_below_minus_hundred(counters: Any) -> None:
    """What costs several times as much is told in times."""
    text = report_for_counters(counters(instance_type=SMALL), FullScale(2_000)).to_text(full=True)
    assert not re.search(r"-\d{3,} %", text) and " times" in text


def test_a_job_without_counters_says_so_first() -> None:
    """Why it failed, and why there is no answer."""
    failed = FakeJob(None, TrainingJobStatus="Failed", FailureReason="ExecuteUserScriptError:\nno data")
    text = str(report_for_job(failed))
    assert len(text.splitlines()) <= LINES
    assert "It failed: ExecuteUserScriptError: no data" in text
    assert "No answer: the job left no counters." in text


def test_ways_to_buy_the_hour_come_with_region_date_and_source(counters: Any) -> None:
    """Capacity Blocks beside on-demand, in the full part; where they turn the answer, on the first screen."""
    text = text_of(windtunnel.compare(counters(), None, REVIEWS))
    assert "EC2 Capacity Block $15.49: $" in text and "$14.75: $" in text
    assert (
        "EC2 Capacity Block, trn1.32xlarge: ap-southeast-4, seen, 2024-10-01 to 2025-01-01, the last one known "
        "here: a stored copy of" in text
    )
    assert "paid in advance" in text


def test_the_command_takes_batches_and_the_rest(invoke: Invoke, tmp_path: Path, counters: Any) -> None:
    """25 lines, or all with --full; a number, so many a device, a rule."""
    path = tmp_path / "counters.json"
    path.write_text(json.dumps(counters()))

    def run(*words: str) -> str:
        return invoke("compare", str(path), "--full-scale-samples", "3600000", *words).out

    assert len(run().splitlines()) <= LINES < len(run("--full").splitlines())
    for words, batches in (
        (("--batch", "512"), [512, 512]),
        (("--batch-per-device", "32"), [1024, 256]),
        (("--batch", "per-device"), [256, 64]),
        (("--batch", "global"), [256, 256]),
    ):
        data = json.loads(run("--json", *words))
        assert [item["global_batch"] for item in data["answer"]["instances"]] == batches
    split, whole = (
        json.loads(run("--json", "--evaluation-samples", "99999", *more))["full_scale"]["evaluation_split"]
        for more in ((), ("--evaluation-not-split",))
    )
    assert (split, whole) == (True, False)


def test_a_batch_that_does_not_divide_is_said_with_the_nearest_that_does() -> None:
    """On all that are compared: with it nothing is a fraction."""
    job = {"sequence_length": 4096, "tensor_parallel": 8}
    names: list[str | tuple[str, int]] = [(TRN1, 3), (P5, 4)]
    for batch, said in ((256, "Fractions are averages: 256 does not divide over the copies"), (252, "")):
        workload = Workload.transformer("Llama2-7B", global_batch=batch, **job)  # type: ignore[arg-type]
        words = windtunnel.compare(workload, names, FullScale(1_000_000)).screen.batch
        assert (f"{said} of trn1.32xlarge x 3; 252 does." in words) if said else "Fractions" not in words
    searched = Workload.transformer("BERT-Large", global_batch=50)  # with 480 it would get another split
    words = windtunnel.compare(searched, [(TRN1, 2), (P5, 5)], FullScale(1_000_000)).screen.batch
    assert "Fractions are averages: 50 does not divide over the copies." in words


def test_eager_attention_that_nobody_stated_is_told() -> None:
    """With what a flash kernel would save: not for models whose scripts have it, nor once attention is stated."""
    size = FullScale(1_000_000)
    for name, stated, told in (
        ("OPT-1.3B", {}, True),
        ("OPT-1.3B", {"attention": "eager"}, False),
        ("Llama-3.2-1B", {}, False),
    ):
        job = Workload.transformer(name, sequence_length=2048, global_batch=1024, **stated)  # type: ignore[arg-type]
        comparison = compare(job, PAIR, size)
        note = screen(comparison, job, size, PriceBook()).attention
        assert note.startswith("EAGER ATTENTION assumed. With a flash kernel (--attention flash)") == told
        assert "p4d" not in note
    eager, flash = (
        compare(job.changed(attention=kind), [TRN1], size).estimates[0].step.total_s
        for kind in ("eager", "flash")
    )
    assert flash < eager
    plans = [windtunnel.plan("OPT-1.3B", [TRN1], nodes=[1], attention=kind) for kind in (None, "flash")]
    assert ["EAGER ATTENTION assumed" in str(report) for report in plans] == [True, False]
    assert {plan.training.attention for plan in plans[1].plans.plans} == {"flash"}


def test_of_many_instances_the_cheapest_are_shown() -> None:
    """After the one asked for and those that the verdict names; the rest of the report has all."""
    job = Workload.transformer("Llama-3.1-8B", sequence_length=2048, global_batch=512)
    names = ["g5", "g6e", "p4de", "trn1n", "ml.p5en.48xlarge", "p5e", "trn2", "trn1", "p4d", "p5", "p6-b200"]
    size = FullScale(1_000_000)
    comparison = compare(job, [named_instance(name) for name in names], size)
    shown = screen(comparison, job, size, PriceBook())
    rows = [row.label for row in answer_section(shown, comparison).rows if row.style != "detail"]
    usd = {
        label(item): cost.usd
        for item, cost in zip(comparison.estimates, shown.costs, strict=True)
        if cost is not None
    }
    cheapest = sorted(usd, key=usd.__getitem__)[: len(rows) - 3]
    assert rows[-1].startswith("and ") and set(cheapest) <= set(rows)

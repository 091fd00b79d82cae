"""``gapview predict``: the groups of new samples, from whatever views they have."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from ..progress import tell
from ..utils.storage import make_folder
from ..utils.words import counted, joined
from ._console import Say, new_console, progress_shown, saying, warnings_said
from ._folder import demand_new_file
from ._options import file_option, samples_options
from ._samples import SamplesRequest, load_latent, read_samples
from ._tables import write_predictions

__all__ = ["predict", "predict_files"]

_FAR = 3.0  # times the usual distance between neighbours: unlike anything seen in training


def predict_files(request: SamplesRequest, say: Say) -> Path:
    """Assign the samples of files to the groups of a model, and write a table; return its path."""
    demand_new_file(request.output, [request.model, *request.inputs.paths], force=request.force)
    with warnings_said(say):
        tell("Loading the model")
        model = load_latent(request.model, request.partial_rows)
        tell("Reading files")
        new, _ = read_samples(request.inputs, model, say)
        tell("Placing samples")
        labels, distances = model.predict(new, return_distance=True)
        make_folder(request.output.parent)
        write_predictions(request.output, new, labels, distances)
    sizes = np.bincount(labels, minlength=len(model.cluster_centers_))
    listed = joined([f"{size:,} in group {group}" for group, size in enumerate(sizes) if size])
    say("Groups", f"{counted(new.n_samples, 'sample')}: {listed}.")
    far = int((distances > _FAR).sum())
    if far:
        say(
            "Far off",
            f"{counted(far, 'sample')} more than {_FAR:g} times as far from any training sample as these are from each "
            "other: see the column distance, and trust their groups less.",
        )
    return request.output


@click.command(
    short_help="Put new samples into the groups of a model.",
    epilog="Example: gapview predict out/model.gapview new_blood.csv scans=march.csv -o new_labels.csv",
)
@samples_options(file_option("predicted.csv"), files_required=True, replaces="a file that is there")
def predict(request: SamplesRequest) -> None:
    """Put new samples into the groups of a model, from any of its views.

    Which file is which view is told by NAME=FILE, by the name of the file, or by its features. Writes a table with the
    id, the label, the distance from anything in training (around 1 is usual) and the views of every sample.
    """
    console = new_console()
    say = saying(console)
    with progress_shown(console):
        written = predict_files(request, say)
    say("Wrote", str(written))

"""``Views``: several matrices over one set of samples, some rows of some of them missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..compute.arrays import is_tensor, like, to_device
from ..errors import InputError, InputTypeError, some
from ..utils.messages import check_choice, printable, warn_user
from ..utils.shown import Table, as_html
from ..utils.types import Array, Matrix
from .cells import (
    PARTIAL_ROWS,
    SelectedRows,
    complete_rows,
    count_missing_cells,
    demand_finite,
    host_rows,
    moved_rows,
    select_rows,
)
from .containers import EXPECTED, Container, RawView, demand_encodable, is_missing, named_views
from .description import Description, describe
from .ids import check_links, report_similar
from .joining import join, keys_of, read_mask
from .keys import as_keys
from .orientation import check_orientation, stated_orientation
from .places import read_places
from .reading import AS_GIVEN, Reading, read_views
from .sample_columns import read_batch


class Views:
    """Samples described by several feature sets, of which any sample may lack some.

    Every function of gapview that takes views converts them to ``Views`` first.

    Parameters
    ----------
    data : list or dict of views, single view, MuData or Views
        Each view is a 2-D array, a pandas or polars frame, a SciPy sparse matrix or an AnnData. In an array a row
        of NaN alone is a missing view. Frames are joined on the sample id (the index of a pandas frame) and may hold
        different samples. Integers become float64, float32 stays float32. A list may hold ``None`` for a
        view that no sample has.
    mask : array-like of shape (n_samples, n_views), optional
        True where a sample has a view. Values hidden by the mask are never read. A frame whose index holds sample ids
        is matched by sample id and name of view.
    names : sequence of str, optional
        Names of the views; by default the keys of a dict, else ``view_0``, ``view_1``, …
    sample_ids : sequence, optional
        Ids of the samples, for views without ids.
    id_column : str, sequence of str or bool, optional
        Column of the frames that holds the sample ids, or several names of which the first that exists is used. True
        takes the index of every frame, False matches rows by their position. By default ids are the index of a frame,
        unless it only numbers the rows, or else a column of the same name in all frames, of unique text, or with a
        name such as ``id`` or ``patient``. Ids are compared as text: 1, 1.0 and "1" are one sample, "001" is another.
    id_pattern : str, callable or dict, optional
        How ids are rewritten before views are joined: a regular expression of which the first group, or the whole
        match, is the id; ``"PATTERN=>TEXT"`` replaces all matches; ``"lower"``, ``"nfc"``, ``"nfkc"``, ``"ascii"``,
        ``"spaces"``, ``"hyphens"``, ``"zeros"`` and ``"separators"`` unify the form. A list is applied in order. A dict
        has one of these for each of some views.
    orient : {"samples", "features"} or dict, optional
        What the rows of a view are. ``"features"`` transposes it; ``"samples"`` accepts it unchecked. By default rows
        are samples, and a view that looks transposed is an error.
    drop : str, sequence of str or dict, optional
        Columns of frames to leave out, of all views or, in a dict, of each.
    encode : bool, default=False
        Turn columns of frames that hold text or categories into columns of 0 and 1; else they are left out.
    layer, obsm : str or dict, optional
        The layer, or the array of ``obsm``, that is read of every AnnData in place of ``X``; a dict has one for each
        of some views. It is not copied.
    raw : bool or dict, default=False
        Read ``raw`` of every AnnData in place of ``X``; a dict has True for some views.
    partial_rows : {"raise", "fill", "drop"}, default="raise"
        How to treat a row that has some but not all values: raise an error, fill its gaps from the five nearest rows
        of the same view, or treat the view as missing for that sample.

    Attributes
    ----------
    matrices : tuple of arrays or csr_arrays
        For every view the rows that are present, in the order of the samples.
    mask : bool array of shape (n_samples, n_views)
        True where a sample has a view.
    sample_ids : array of shape (n_samples,)
        For arrays the row numbers; for frames the ids in the order of their first occurrence.
    names : tuple of str
        Names of the views.
    feature_names : tuple of (array of str or None)
        Names of the features of every view, None for a view without names.
    partial_rows : str
        The rule for rows that have some but not all values.
    notes : tuple of str
        How ids were found, how rows were matched, and which columns were encoded or left out.
    batches : tuple of (str or None), or None
        Batch of every sample, for the correction of batch effects; see :meth:`with_batch`.

    Notes
    -----
    Arrays that need no conversion are not copied: do not change them afterwards.

    Views joined by id that share too few samples to learn from give a warning here, and an error in ``fit``. The guide
    "How files and frames are read" lists what is detected, refused and not detected.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview import Views
    >>> blood = np.array([[1.0, 2.0], [3.0, 4.0], [np.nan, np.nan]])
    >>> scans = np.array([[5.0], [np.nan], [6.0]])
    >>> views = Views({"blood": blood, "scans": scans})
    >>> views
    Views of 3 samples, 1 of them complete: 'blood' 2 × 2, 'scans' 2 × 1
    >>> views[[0, 2]].mask
    array([[ True,  True],
           [False,  True]])
    >>> views.notes
    ('Rows are matched by their position: row i of every view is sample i.',)
    """

    _held: tuple[Any, ...]  # the matrices; of large ones the rows that are present, by reference
    mask: Array
    sample_ids: Array
    names: tuple[str, ...]
    feature_names: tuple[Array | None, ...]
    _named: bool  # the names are the user's own
    _outer: str  # "list", "dict" or "single": the container in which results are returned …
    _containers: tuple[Container, ...]  # … and the container of each view in it
    _is_unlinked: bool = False  # views were matched by id, and share too few samples to learn from
    notes: tuple[str, ...] = ()
    partial_rows: str = "raise"
    batches: tuple[str | None, ...] | None = None

    def __init__(
        self,
        data: Any,
        *,
        mask: Any = None,
        names: Sequence[str] | None = None,
        sample_ids: Any = None,
        id_column: str | Sequence[str] | bool | None = None,
        id_pattern: Any = None,
        orient: Any = None,
        drop: Any = None,
        encode: bool = False,
        layer: Any = None,
        obsm: Any = None,
        raw: Any = False,
        partial_rows: str = "raise",
    ) -> None:
        check_choice("partial_rows", partial_rows, PARTIAL_ROWS)
        reading = Reading(id_column, id_pattern, orient, drop, encode, read_places(layer, obsm, raw))
        if isinstance(data, Views):
            if names is not None or sample_ids is not None or reading != AS_GIVEN:
                raise InputError(
                    "A Views is read and joined already. Leave out names, sample_ids, id_column, id_pattern, orient, "
                    "drop, encode, layer, obsm and raw, or give them when you make it."
                )
            self.__dict__.update((data if mask is None else data.hide(mask)).__dict__)
            return
        gappy = read(data, mask, names, sample_ids, reading, links="warn")
        self.__dict__.update(completed(gappy, partial_rows).__dict__, partial_rows=partial_rows, batches=None)

    def with_matrices(
        self, matrices: Sequence[Matrix], mask: Array | None = None, sample_ids: Array | None = None
    ) -> Views:
        """Return the same views with other matrices, without checks.

        Parameters
        ----------
        matrices : sequence of matrices
            One for every view, with the present rows.
        mask : bool array of shape (n_samples, n_views), optional
            By default that of these views.
        sample_ids : array of shape (n_samples,), optional
            By default those of these views.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> views = Views({"a": np.eye(3), "b": np.ones((3, 2))})
        >>> views.with_matrices([matrix.astype(np.float32) for matrix in views.matrices])
        Views of 3 samples, 3 of them complete: 'a' 3 × 3, 'b' 3 × 2
        """
        other = Views.__new__(Views)
        other.__dict__.update(self.__dict__)
        other.matrices = tuple(matrices)
        other.mask = self.mask if mask is None else mask
        if sample_ids is not None:  # of other samples
            other.sample_ids, other.batches = sample_ids, None
        return other

    def with_batch(self, batch: Any) -> Views:
        """Return the same views with the batch of every sample, for the correction of batch effects.

        Parameters
        ----------
        batch : array-like of shape (n_samples,)
            As in ``fit``.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> Views([np.eye(4)]).with_batch(["a", "b", "a", "b"])[1:].batches
        ('b', 'a', 'b')
        """
        other = self.with_matrices(self._held)
        other.batches = tuple(read_batch(batch, self.sample_ids))
        return other

    def without_batch(self) -> Views:
        """Return the same views without batches.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> Views([np.eye(2)]).with_batch(["a", "b"]).without_batch().batches is None
        True
        """
        other = self.with_matrices(self._held)
        other.batches = None
        return other

    def batches_of(self, view: int) -> list[str | None]:
        """Return the batches of the samples that have the view; None where they are not known.

        Parameters
        ----------
        view : int
            Position of the view.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> Views([np.eye(2)]).batches_of(0)
        [None, None]
        """
        batches = self.batches or (None,) * self.n_samples
        return [batches[row] for row in self.rows(view).tolist()]

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """The rows of every view that are present, in the order of the samples.

        The rows of a large array with missing rows are copied at each access: avoid it in a loop.
        """
        return tuple(self.one_by_one()) if self.by_reference else self._held

    @matrices.setter
    def matrices(self, matrices: tuple[Any, ...]) -> None:  # model files set it by name
        self._held = tuple(matrices)

    def one_by_one(self) -> Iterator[Matrix]:
        """Yield the matrices of the views, so that at most one of them is a copy at a time.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> [matrix.shape for matrix in Views([np.eye(3), np.ones((3, 2))]).one_by_one()]
        [(3, 3), (3, 2)]
        """
        return (held.copied() if isinstance(held, SelectedRows) else held for held in self._held)

    def in_parts(self) -> Iterator[Any]:
        """Yield the views as objects that have a shape and can be sliced by rows.

        Rows of a view held by reference are copied slice by slice.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> [view[:2].shape for view in Views([np.eye(3), np.ones((3, 5))]).in_parts()]
        [(2, 3), (2, 5)]
        """
        return iter(self._held)

    @property
    def by_reference(self) -> bool:
        """Whether some view is so large that its present rows are held by reference to the given array."""
        return any(isinstance(held, SelectedRows) for held in self._held)

    @property
    def id_name(self) -> Any:
        """Name of the sample ids: that of the first named index among the frames, or None."""
        return next((place.id_name for place in self._containers if place.id_name is not None), None)

    # -- sizes ---------------------------------------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        """Number of samples, complete or not."""
        return len(self.mask)

    @property
    def n_views(self) -> int:
        """Number of views."""
        return len(self._held)

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of features of every view."""
        return tuple(int(held.shape[1]) for held in self._held)

    @property
    def n_present(self) -> tuple[int, ...]:
        """Number of samples that have every view."""
        return tuple(int(held.shape[0]) for held in self._held)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples, and of features of all views together, as scikit-learn expects."""
        return self.n_samples, sum(self.n_features)

    def demand_links(self) -> None:
        """Raise an error if views that were matched by id share too few samples to learn from.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> Views([np.eye(3), np.ones((3, 2))]).demand_links()  # rows are matched by position
        """
        if self._is_unlinked:
            keys = np.asarray(as_keys(self.sample_ids.tolist()), dtype=object)
            check_links({name: keys[self.mask[:, k]].tolist() for k, name in enumerate(self.names)})

    def rows(self, view: int) -> Array:
        """Return the positions of the samples that have the view: row r of its matrix is sample ``rows(view)[r]``.

        Parameters
        ----------
        view : int
            Position of the view.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> Views([np.eye(3), np.ones((3, 2))], mask=[[1, 1], [0, 1], [1, 0]]).rows(0)
        array([0, 2])
        """
        return np.flatnonzero(self.mask[:, view])

    def describe(self) -> Description:
        """Return what the values look like: ranges, kinds of values, and findings with a proposal each.

        Findings are counts, logarithms, codes for missing values such as -999, samples or features in other units,
        batch-like and outcome-like columns, constant and repeated columns, and features on very different scales.
        Nothing is changed. Ranges and shares are exact; all else is computed from up to 2000 rows.

        Returns
        -------
        Description
            Readable text when printed; ``findings``, ``warnings`` and ``to_frame()`` for programs.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> print(Views({"scans": np.arange(12.0).reshape(6, 2), "flags": np.eye(6)}).describe())
        scans: 6 samples × 2 features, whole numbers from 0 to 11, median 5.5, 8.3 % zeros
        flags: 6 samples × 6 features, values 0 and 1, 83.3 % zeros
        """
        return describe(self)

    def __len__(self) -> int:
        return self.n_samples

    def __repr__(self) -> str:
        held = zip(map(printable, self.names), (one.shape for one in self._held), strict=True)
        views = ", ".join(f"'{name}' {n_rows} × {n_features}" for name, (n_rows, n_features) in held)
        return f"Views of {self.n_samples} samples, {int(self.mask.all(axis=1).sum())} of them complete: {views}"

    def _repr_html_(self) -> str:
        return as_html(self._shown_as())

    def _shown_as(self) -> Table:
        """Return the number of samples and features of each view."""
        rows = [(name, *held.shape) for name, held in zip(self.names, self._held, strict=True)]
        return Table(repr(self).split(": ")[0], ("view", "samples", "features"), rows)

    def __array__(self, *args: Any, **kwargs: Any) -> Array:
        raise InputTypeError("A Views is several matrices and cannot become one array; take .matrices[k] instead.")

    # -- other samples, other gaps ---------------------------------------------------------------------------

    def __getitem__(self, rows: Any) -> Views:
        """Return some of the samples, by position, slice or boolean mask, in the given order."""
        if isinstance(rows, tuple):  # scikit-learn takes views[rows, ...]
            if len(rows) != 2 or rows[1] is not Ellipsis:
                raise InputError(f"A Views is indexed by samples alone; got {rows!r}. Take columns of .matrices[k].")
            rows = rows[0]
        try:
            wanted = np.atleast_1d(np.arange(self.n_samples)[rows])
        except (IndexError, TypeError) as error:
            raise InputError(f"Samples are taken by position, slice or boolean mask; got {rows!r}: {error}.") from None
        matrices = []
        for k, held in enumerate(self._held):
            where = np.cumsum(self.mask[:, k]) - 1  # row of the matrix that holds a present sample
            matrices.append(select_rows(held, where[wanted[self.mask[wanted, k]]]))
        other = self.with_matrices(matrices, self.mask[wanted], self.sample_ids[wanted])
        other.batches = None if self.batches is None else tuple(self.batches[row] for row in wanted.tolist())
        return other

    def __iter__(self) -> Iterator[Views]:
        return (self[row] for row in range(self.n_samples))

    def hide(self, keep: Any) -> Views:
        """Return the same samples with only the views that ``keep`` marks True and that were present.

        Parameters
        ----------
        keep : array-like of shape (n_samples, n_views)
            True where a sample keeps a view, in the same form as ``mask``.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> Views([np.eye(3), np.ones((3, 2))]).hide([[1, 1], [0, 1], [1, 0]])
        Views of 3 samples, 1 of them complete: 'view_0' 2 × 3, 'view_1' 2 × 2
        """
        mask = read_mask(keep, self.sample_ids, self.names) & self.mask
        demand_a_view_for_each(mask, self.sample_ids)
        pairs = enumerate(self.matrices)
        other = self.with_matrices([m[like(mask[self.mask[:, k], k], m)] for k, m in pairs], mask)
        other._is_unlinked = False  # views that share no sample are intended
        return other

    def to_device(self, device: Any) -> Views:
        """Return the same samples with dense matrices as tensors of PyTorch on a device.

        Parameters
        ----------
        device : str or torch.device
            Such as ``"cuda"``.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> views = Views([np.eye(3)])
        >>> views.on_host() is views
        True
        """
        for name, held in zip(self.names, self._held, strict=True):
            if sparse.issparse(held):
                raise InputError(
                    f"View '{name}' is sparse, and a device takes dense views only. Leave device out, or pass the view "
                    "as a dense array (.toarray()) if it fits into the memory of the device."
                )
        place = to_device(np.zeros(0), device)
        return self.with_matrices([moved_rows(held, place) for held in self._held])

    def on_host(self) -> Views:
        """Return the same samples with matrices in the memory of the host."""
        if not any(is_tensor(held[:0]) for held in self._held):
            return self
        return self.with_matrices([host_rows(held) for held in self._held])

    def in_arrays(self, *, keep_sparse: bool = False) -> Views:
        """Return the same samples as if their views had been given in a list of arrays.

        Parameters
        ----------
        keep_sparse : bool, default=False
            Whether sparse views are returned sparse.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> Views({"a": np.eye(2)}).in_arrays().give_back([np.zeros((2, 2))])
        [array([[0., 0.],
               [0., 0.]])]
        """
        other = self.with_matrices(self._held)
        kinds = ["sparse" if keep_sparse and sparse.issparse(held) else "array" for held in self._held]
        other._outer, other._containers = "list", tuple(Container(kind) for kind in kinds)
        return other

    def give_back(self, complete: Sequence[Matrix]) -> Any:
        """Return one complete matrix per view in the kind of container in which the views were given.

        Parameters
        ----------
        complete : sequence of matrices of shape (n_samples, n_features)
            One for every view, in their order.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import Views
        >>> sorted(Views({"a": np.eye(2), "b": np.ones((2, 1))}).give_back([np.zeros((2, 2)), np.zeros((2, 1))]))
        ['a', 'b']
        """
        given = [place.put(m, self.sample_ids) for place, m in zip(self._containers, complete, strict=True)]
        if self._outer == "dict":
            return dict(zip(self.names, given, strict=True))
        return given[0] if self._outer == "single" else given


def read(
    data: Any,
    mask: Any = None,
    names: Any = None,
    sample_ids: Any = None,
    reading: Reading = AS_GIVEN,
    *,
    links: str = "ignore",
) -> Views:
    """Read and join views; rows with gaps stay unchanged.

    Parameters
    ----------
    data, mask, names, sample_ids
        As in :class:`Views`.
    reading : Reading
        Its parameters on ids, columns and orientation.
    links : {"ignore", "report", "warn", "raise"}, default="ignore"
        Whether ids are compared between views. ``"report"``, for new samples, gives a warning for ids that nearly
        match. For views that share too few samples to learn from, ``"warn"`` also gives a warning and ``"raise"``
        raises an error; both raise an error for views that look transposed.
    """
    pairs, named, outer = named_views(data)
    if not pairs:
        raise InputError(f"There are no views. {EXPECTED}; got an empty {type(data).__name__}.")
    raw = read_views(_renamed(pairs, names), reading)
    if links in ("warn", "raise"):
        check_orientation_of(raw, reading.orient)
    ids, places, notes = join(raw, sample_ids)
    is_linked = links != "ignore" and check_joined(raw, links)
    demand_encodable("the name of a view", [view.name for view in raw])
    demand_encodable("a sample id", ids.tolist() if ids.dtype == object else ())
    wanted = read_mask(mask, ids, [view.name for view in raw])
    present = np.zeros_like(wanted)
    matrices = []
    for k, (view, place) in enumerate(zip(raw, places, strict=True)):
        matrix, rows = _present_rows(view, place, wanted[:, k], ids)
        matrices.append(matrix)
        present[rows, k] = True
        if mask is not None:
            _demand_values(view.name, ids[wanted[:, k] & ~present[:, k]])
    views = Views.__new__(Views)
    views.matrices, views.mask, views.sample_ids = tuple(matrices), present, ids
    views.names = tuple(view.name for view in raw)
    views.feature_names = tuple(view.features for view in raw)
    views._named, views._outer = named or names is not None, outer
    views._containers = tuple(view.container for view in raw)
    views._is_unlinked = links == "warn" and not is_linked
    views.notes = (*(f"View '{view.name}': {note}" for view in raw for note in view.notes), *notes)
    return views


def check_orientation_of(raw: Sequence[RawView], orient: Any = None) -> None:
    """Raise an error if a view whose orientation is not given looks transposed."""
    given = [view for view in raw if view.values is not None]
    check_orientation(
        {view.name: None if view.ids is None else _as_text(view.ids) for view in given},
        {view.name: None if view.features is None else view.features.tolist() for view in given},
        stated_orientation(orient, [view.name for view in raw]),
    )


def _as_text(ids: Array) -> list[str]:
    return [key or "" for key in as_keys([None if is_missing(key) else key for key in ids.tolist()])]


def check_joined(raw: Sequence[RawView], links: str) -> bool:
    """Return whether views share samples to learn from, or raise an error; warn of ids that nearly match."""
    keys = {view.name: keys_of(view) for view in raw if view.ids is not None}
    try:
        if links != "report":
            check_links(keys)
    except InputError as error:
        if links == "raise":
            raise
        warn_user(f"{error} They can be new samples for a model; a fit refuses them.")
        return False
    for doubt in report_similar(keys):
        warn_user(doubt)
    return True


def read_training(data: Any, mask: Any = None, partial_rows: str = "raise", reading: Reading = AS_GIVEN) -> Views:
    """Return ``Views`` of training data; unlike for :class:`Views`, views that share too few samples are an error."""
    check_choice("partial_rows", partial_rows, PARTIAL_ROWS)
    if isinstance(data, Views):
        views = Views(data, mask=mask)
        views.demand_links()
        return views
    views = completed(read(data, mask, reading=reading, links="raise"), partial_rows)
    views.partial_rows, views.batches = partial_rows, None
    return views


def completed(views: Views, partial_rows: str, reference: Views | None = None) -> Views:
    """Return views without gaps in rows; they are filled from the rows of ``reference`` if given."""
    matrices, mask = [], views.mask.copy()
    for k, matrix in enumerate(views.one_by_one()):
        rows = views.rows(k)
        donors = None if reference is None else reference.matrices[k]
        whole, keep = complete_rows(views.names[k], matrix, partial_rows, views.sample_ids[rows], donors)
        mask[rows[~keep], k] = False
        matrices.append(views._held[k] if whole is matrix else whole)
    demand_a_view_for_each(mask, views.sample_ids)
    return views.with_matrices(matrices, mask)


def _renamed(pairs: list[tuple[str, Any]], names: Any) -> list[tuple[str, Any]]:
    if names is None:
        names = [name for name, _ in pairs]
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InputTypeError(
            f"names must be a sequence with one name for each of the {len(pairs)} views; got {names!r}."
        )
    texts = [str(name) for name in names]
    if len(texts) != len(pairs) or len(set(texts)) < len(texts):
        raise InputError(f"names must give a unique name to each of the {len(pairs)} views; got {list(names)!r}.")
    return [(text, view) for text, (_, view) in zip(texts, pairs, strict=True)]


def _present_rows(view: RawView, place: Array, wanted: Array, ids: Array) -> tuple[Any, Array]:
    """Return the rows of one view that are present, in sample order, and the samples they belong to."""
    if view.values is None:
        return np.empty((0, 0)), np.empty(0, dtype=np.intp)
    values = view.values
    demand_features(view.name, values.shape)
    order = np.argsort(place, kind="stable")
    order = order[wanted[place[order]]]
    if len(order) < values.shape[0] or (np.diff(order) < 0).any():
        values = values[like(order, values)]
    rows = place[order]
    absent = count_missing_cells(values) == values.shape[1]
    demand_finite(view.name, values, ids[rows])
    if absent.any():
        values, rows = select_rows(values, np.flatnonzero(~absent)), rows[~absent]
    return values, rows


def demand_features(name: str, shape: tuple[int, ...]) -> None:
    """Raise an error if a view has no features."""
    if shape[1] == 0:
        raise InputError(f"View '{name}' has no features: its shape is {shape}. Leave this view out.")


def _demand_values(name: str, lacking: Array) -> None:
    if len(lacking):
        raise InputError(
            f"mask marks view '{name}' as present for {len(lacking)} sample(s) that have no values in it, "
            f"among them {some(lacking)}. Correct the mask, or leave it out."
        )


def demand_a_view_for_each(mask: Array, ids: Array) -> None:
    """Raise an error if a sample has no view."""
    empty = ~mask.any(axis=1)
    if empty.any():
        raise InputError(
            f"Every sample needs at least one view; {int(empty.sum())} sample(s) have none left: {some(ids[empty])}. "
            "Leave them out."
        )

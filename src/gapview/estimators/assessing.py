"""How far the groups of a model can be trusted: structure, confidence, stability, agreement of views, features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..backends.disk.budget import check_memory_for_parts
from ..choice.selection import mean_clarity
from ..compute.engine import single_threaded_blas
from ..errors import GapviewError, GapviewWarning
from ..kinds import feature_views
from ..persist.checkpoints import checkpointed
from ..persist.checkpoints.journal import use_journal
from ..progress import showing, tell
from ..scaling import Scaling
from ..trust import (
    Agreement,
    Assessment,
    Stability,
    ViewEffects,
    assess_structure,
    calibrated_confidence,
    cluster_stability,
    feature_effects,
    view_agreement,
)
from ..trust.assessment import Resamples, add_groups, one_group, small_groups, warn_without_structure
from ..trust.stability import FEWEST_RESAMPLES, draw_features
from ..utils.messages import MOST_REPEATS, check_integer, check_real, muted, random_generator, warn_user
from ..utils.types import Array
from ..views import Views

N_CALIBRATING = 32  # resamples that calibrate the confidence, at most
PRECISION = 0.04  # standard error of the share of samples kept, from which no more of them are drawn
MOST_FITS = 40  # with selection="fixed", whose time an assessment aims at; it has at least FEWEST_RESAMPLES
_COST = 0.5  # of a fit without refinement
SHARE = 0.8  # of the samples and features in such a resample
MOST_CALIBRATING = 5000  # samples of which it has that share


class AssessedMixin:
    """Methods that measure how far the groups of a model can be trusted.

    An estimator derives from it and from ``MultiViewClusterer``. It defines ``_groups_again``, ``_scales`` and
    ``_neighbor_graphs``.
    """

    n_neighbors: int | str
    memory_budget: Any

    labels_: Array
    sample_ids_: Array
    views_: Views
    cluster_centers_: Array
    part_: Array
    scalings_: list[Scaling]
    confidence_: Array
    uncalibrated_confidence_: Array  # where confidence_ is calibrated, what it was before
    assessment_: Assessment  # after assess, and after a fit with n_clusters="auto"

    def cluster_stability(
        self,
        *,
        n_resamples: int = 20,
        share: float = 0.8,
        feature_share: float = 1.0,
        precision: float = 0.0,
        random_state: Any = None,
    ) -> Stability:
        """Repeat the fit on random subsets of the training samples, and measure which clusters and samples are stable.

        Settings that were chosen from the data are not chosen again. ``graph`` and ``init`` are cut to the samples
        drawn, and ``n_neighbors`` is lowered where a view has fewer samples. Each view keeps at least two samples. A
        resample on which the fit fails, for instance because a view has become constant, is skipped with a warning.
        The cost is about ``n_resamples`` fits.

        Parameters
        ----------
        n_resamples : int, default=20
            Number of resamples.
        share : float, default=0.8
            Share of the samples in a resample.
        feature_share : float, default=1.0
            Share of the features of each view in a resample, at least one feature.
        precision : float, default=0.0
            From 16 resamples on no more are drawn, once the share of samples that a resample keeps has a standard error
            below this.
        random_state : int, RandomState or None, default=None
            Seed of the subsets and of the fits.

        Returns
        -------
        Stability
            ``jaccard`` for every cluster, ``stays`` and ``kept`` for every sample, ``failures`` of skipped resamples;
            see :func:`gapview.trust.cluster_stability`.

        Raises
        ------
        SolutionError
            If the fit fails on every resample.
        ParameterError
            If a resample, which is held in memory, needs more than ``memory_budget``.

        Examples
        --------
        >>> from gapview import BridgedGRMF
        >>> from gapview.datasets import make_views
        >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
        >>> model = BridgedGRMF(n_clusters=3, random_state=0).fit(views)
        >>> bool(model.cluster_stability(n_resamples=5, random_state=0).jaccard.min() > 0.8)
        True
        """
        self.check_fitted()  # type: ignore[attr-defined]
        check_real("share", share, low=0, high=1, open_low=True)
        check_real("feature_share", feature_share, low=0, high=1, open_low=True)
        check_real("precision", precision, low=0)
        check_memory_for_parts(self, share)
        views = _dense_where_centered(self.views_, self.scalings_)

        def fit(rows: Array, seed: int) -> Array:
            part = views[rows] if feature_share == 1 else draw_features(views[rows], feature_share, seed)
            return np.asarray(self.refit(part, rows, seed).labels_)

        with showing():
            return cluster_stability(
                fit,
                self.labels_,
                n_resamples=n_resamples,
                share=share,
                random_state=random_state,
                mask=views.mask,
                n_least=self._least_per_view(),
                precision=precision,
            )

    def refit(self, views: Views, rows: Array, random_state: Any = 0, **settings: Any) -> Self:
        """Return a model with the settings of this one, fitted to some of the training samples, without warnings.

        Parameters
        ----------
        views : Views
            The samples, possibly with fewer views.
        rows : int array of shape (n_samples,)
            Their positions among the training samples.
        random_state : int, RandomState or None, default=0
            Seed of the fit.
        **settings
            Parameters that differ from those of this model.

        Examples
        --------
        >>> import numpy as np
        >>> from gapview import BridgedGRMF
        >>> from gapview.datasets import make_views
        >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
        >>> model = BridgedGRMF(n_clusters=3, random_state=0).fit(views)
        >>> model.refit(views[:60], np.arange(60)).labels_.shape
        (60,)
        """
        model = clone(self).set_params(**self._resample_parameters(views, rows))
        model.set_params(n_clusters=min(self._n_of_part(), views.n_samples), random_state=random_state, **settings)
        with muted(GapviewWarning, ConvergenceWarning):  # the fit to all samples has warned already
            return model.fit(views)  # type: ignore[no-any-return]

    def _n_of_part(self) -> int:
        """Return the number of groups of each part of the samples."""
        if not self.part_.any():
            return len(self.cluster_centers_)
        return max(len(np.unique(self.labels_[self.part_ == part])) for part in np.unique(self.part_))

    def assess(self, *, n_null: int = 19, alpha: float = 0.05, random_state: Any = None) -> Assessment:
        """Test whether the groups can be distinguished from data without groups, and calibrate the confidence.

        H0: the samples are one unimodal group. The views are clustered again with the setting of this model, as a whole
        and in resamples of 80 % of the samples, and so are null data sets with the same gaps, margins and correlations.
        The statistic is modularity³ · stability: modularity of the groups within the views, mean Jaccard similarity of
        the groups in resamples. See :func:`gapview.trust.assess_structure`. At most 2,000 samples are used. Fits use
        neighbours within the views, also if ``graph`` is given. The result is stored in ``assessment_``.

        ``confidence_`` becomes the probability that a sample is kept by its group in a fit to other samples and
        features, see :meth:`calibrate`; if ``memory_budget`` does not allow it, there is a warning instead. ``labels_``
        never change.

        The cost is about that of 40 fits with ``selection="fixed"`` to at most 2,000 samples. It is up to 70 with many
        views or features, and with more than 2,000 samples, since the fits that calibrate the confidence are then
        larger.

        Parameters
        ----------
        n_null : int, default=19
            Maximum number of null data sets of each of the two kinds. The smallest p-value is 1 / (1 + n_null).
        alpha : float, default=0.05
            Level of significance.
        random_state : int, RandomState or None, default=None
            Seed of the samples, the resamples, the null data and the fits.

        Returns
        -------
        Assessment
            ``print(assessment)`` prints it in sentences.

        Warns
        -----
        GapviewWarning
            If the groups cannot be distinguished from data without groups, and if groups have fewer than 5 samples.

        Examples
        --------
        >>> from gapview import GRMF
        >>> from gapview.datasets import make_views
        >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
        >>> model = GRMF(n_clusters=3, init="data", random_state=0).fit(views)
        >>> assessment = model.assess(random_state=0)
        >>> assessment.has_structure, assessment.group_stability.shape
        (True, (3,))
        >>> bool(model.confidence_.mean() > 0.9)
        True
        """
        self.check_fitted()  # type: ignore[attr-defined]
        state = random_generator(random_state)
        if len(np.unique(self.labels_)) == 1:
            found = getattr(self, "assessment_", one_group(self.views_.n_samples, alpha))
        else:
            clarity = mean_clarity(self._scales(), self.n_neighbors, self._n_of_part())
            again, views = self._groups_again(), self.prepared(self.views_)  # type: ignore[attr-defined]
            with showing(), single_threaded_blas():
                found, resamples = assess_structure(
                    again, clarity, views, n_null=n_null, alpha=alpha, random_state=state
                )
                self._calibrate_if_possible(found.n_fits, state)
            found = add_groups(found, resamples, self.labels_)
        self.assessment_ = found
        self._warn_of_groups()
        return found

    def calibrate(self, *, n_resamples: int | str = "auto", random_state: Any = None) -> Array:
        """Turn ``confidence_`` into the probability that a sample is kept by its group in another fit.

        The fit is repeated on resamples of 80 % of the samples, at most 4,000, and of 80 % of the features of each
        view. A sample is kept if it is in the same group and the group is found again, see
        :class:`gapview.trust.Stability`. :func:`gapview.trust.calibrated_confidence` describes the estimate. The values
        before stay in ``uncalibrated_confidence_``, from which a second call starts again. :meth:`assess` calls it.

        Parameters
        ----------
        n_resamples : int or "auto", default="auto"
            Number of resamples. "auto": from 16 on no more, once the share of samples that a resample keeps has a
            standard error below 0.04; at most 32. Each costs up to one fit with ``selection="fixed"``.
        random_state : int, RandomState or None, default=None
            Seed of the resamples and of the fits.

        Returns
        -------
        array of shape (n_samples,)
            ``confidence_``.

        Raises
        ------
        SolutionError
            If the fit fails on every resample.
        ParameterError
            If a resample, which is held in memory, needs more than ``memory_budget``.

        Examples
        --------
        >>> from gapview import BridgedGRMF
        >>> from gapview.datasets import make_views
        >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
        >>> model = BridgedGRMF(n_clusters=3, selection="fixed", random_state=0).fit(views)
        >>> bool(model.calibrate(random_state=0).mean() > 0.9)
        True
        """
        self.check_fitted()  # type: ignore[attr-defined]
        check_integer("n_resamples", n_resamples, low=1, high=MOST_REPEATS, also=["auto"])
        if isinstance(n_resamples, str):
            return self._calibrate(N_CALIBRATING, PRECISION, random_state)
        return self._calibrate(n_resamples, 0.0, random_state)

    def _calibrate(self, n_resamples: int, precision: float, random_state: Any) -> Array:
        share = SHARE * min(1.0, MOST_CALIBRATING / self.views_.n_samples)
        options = {"share": share, "feature_share": SHARE, "precision": precision, "random_state": random_state}
        before = getattr(self, "uncalibrated_confidence_", self.confidence_)

        def compute() -> Array:
            tell("Calibrating confidence")
            with use_journal(None), muted(GapviewWarning):  # fits to resamples are not recorded
                stability = self.cluster_stability(n_resamples=n_resamples, **options)
                return calibrated_confidence(stability, before, self.labels_)

        self.confidence_, self.uncalibrated_confidence_ = checkpointed("calibrated confidence", compute), before
        return self.confidence_

    def _calibrate_if_possible(self, n_fits: int, random_state: Any) -> None:
        """Calibrate the confidence with the resamples that so many fits without refinement leave time for."""
        n_left = int(MOST_FITS - _COST * n_fits)
        try:
            self._calibrate(min(max(n_left, FEWEST_RESAMPLES), N_CALIBRATING), PRECISION, random_state)
        except GapviewError as error:
            warn_user(f"confidence_ is not calibrated. {error}")

    def _warn_of_groups(self) -> None:
        """Warn of groups that cannot be distinguished from null data, and of small groups."""
        warn_without_structure(self.assessment_)
        if (text := small_groups(self.labels_)) is not None:
            warn_user(text)

    def _finish_assessment(self, resamples: Resamples, ids: Array, seed: int) -> None:
        """Add the groups of this model to the assessment that was made before the fit, and calibrate the confidence."""
        if hasattr(self, "reference_"):  # on a cluster, the groups of the drawn samples are not here
            return
        place = {key: i for i, key in enumerate(self.sample_ids_.tolist())}
        rows = np.array([place[key] for key in ids[resamples.rows].tolist()])
        self.assessment_ = add_groups(self.assessment_, resamples._replace(rows=rows), self.labels_)
        if len(self.cluster_centers_) > 1 and self.memory_budget is None:
            self._calibrate_if_possible(self.assessment_.n_fits, seed)

    def _scales(self) -> Any:
        """Return the scale of all views, or of each."""
        raise NotImplementedError

    def view_agreement(self) -> Agreement:
        """Return how far the neighbours within each view, and in each pair of views, have the same label.

        The neighbours are those of the fit: ``graph`` where it was given, else ``n_neighbors`` of them.

        Returns
        -------
        Agreement
            ``above_chance`` for every cluster and view, ``pair_above_chance`` for every cluster and two views; see
            :func:`gapview.trust.view_agreement`.

        Examples
        --------
        >>> from gapview import BridgedGRMF
        >>> from gapview.datasets import make_views
        >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
        >>> model = BridgedGRMF(n_clusters=3, random_state=0).fit(views)
        >>> model.view_agreement().above_chance.shape
        (3, 2)
        """
        self.check_fitted()  # type: ignore[attr-defined]
        return view_agreement(self._known_graphs(), self.views_.mask, self.labels_)  # type: ignore[attr-defined]

    def feature_effects(self) -> list[ViewEffects]:
        """Return how far every feature differs between each cluster and all other samples, for each view.

        Returns
        -------
        list of ViewEffects
            Standardised differences; :func:`gapview.trust.top_features` lists the strongest. Counts and other values
            that their kind takes logarithms of are compared on that scale.

        Examples
        --------
        >>> from gapview import BridgedGRMF
        >>> from gapview.datasets import make_views
        >>> from gapview.trust import top_features
        >>> views = make_views(n_samples=90, n_clusters=3, missing_rate=0.3, random_state=0).views
        >>> model = BridgedGRMF(n_clusters=3, random_state=0).fit(views)
        >>> strongest = top_features(model.feature_effects(), n_top=1)
        >>> len(strongest)
        6
        """
        self.check_fitted()  # type: ignore[attr-defined]
        return feature_effects(feature_views(self.views_, getattr(self, "kinds_", ())), self.labels_)

    def _least_per_view(self) -> int:
        """Return the number of samples of each view that a resample needs."""
        return 2 if isinstance(self.n_neighbors, str) else self.n_neighbors + 1

    def _resample_parameters(self, part: Views, rows: Array) -> dict[str, Any]:
        """Return the parameters that differ for a fit to some of the training samples, ``rows``."""
        changed: dict[str, Any] = self._kind_parameters(part)  # type: ignore[attr-defined]
        if not isinstance(self.n_neighbors, str):
            changed["n_neighbors"] = min(self.n_neighbors, *(matrix.shape[0] - 1 for matrix in part.matrices))
        return changed


def _dense_where_centered(views: Views, scalings: list[Scaling]) -> Views:
    """Return the training data with sparse views as dense arrays where the fit has centred them.

    Whether a sparse view is centred depends on its share of zeros, which may differ in a part of the samples.
    """
    matrices = [
        matrix.toarray() if sparse.issparse(matrix) and scaling.center is not None else matrix
        for matrix, scaling in zip(views.matrices, scalings, strict=True)
    ]
    return views.with_matrices(matrices)
